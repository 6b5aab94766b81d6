"""Asks a running engine for its state, by its address or by its state directory, which has that."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.dashboard.server import ADDRESS_FILE
from penstock.errors import PenstockError

TIMEOUT_SECONDS = 10.0


class NoAnswer(PenstockError):
    """An engine that serves no page, or does not answer."""


@dataclass(frozen=True)
class Client:
    """A running engine's address, and the token that it asks for."""

    url: str
    token: str = field(default="", repr=False)

    @classmethod
    def of_state(cls, state: Path) -> Client:
        """The one whose engine runs on a state directory."""
        file = state / ADDRESS_FILE
        try:
            kept = json.loads(file.read_text())
            return cls(str(kept["url"]), str(kept["token"]))
        except FileNotFoundError:
            raise NoAnswer(
                f"no engine serves a page on {state}: start it with "
                f"`penstock run FILE.py --state {state} --dashboard`, or name its address with --url"
            ) from None
        except (OSError, ValueError, KeyError) as error:
            raise NoAnswer(f"{file} must be readable for whoever attaches, but {error}") from error

    def state(self) -> dict[str, Any]:
        """The engine's state, without the last minutes."""
        address = f"{self.url.rstrip('/')}/api/state"
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        try:
            # Straight to it: a proxy of the surroundings does not know a loopback address.
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            with opener.open(
                urllib.request.Request(address, headers=headers), timeout=TIMEOUT_SECONDS
            ) as answer:
                told: dict[str, Any] = json.load(answer)
                return told
        except urllib.error.HTTPError as error:
            raise NoAnswer(f"{self.url} refuses: {_said(error)}") from error
        except (OSError, ValueError) as error:
            raise NoAnswer(
                f"{self.url} must answer, but {getattr(error, 'reason', error)}: has the engine ended?"
            ) from error


def _said(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.load(error)["said"])
    except (ValueError, KeyError):
        return str(error)
