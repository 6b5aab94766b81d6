"""A password or token by the place where it lies: this, never the text itself, is what settings carry."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from penstock.errors import PenstockError

_VARIABLE, _FILE, _FUNCTION = "environment variable", "file", "function"
_NAME_OF_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class SecretError(PenstockError):
    """A secret that cannot be read; the message never holds one."""


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """Made with `from_env`, `from_file` or `from_callable`, and read anew each time it is needed.

    So that a secret can be changed while pipelines run. The text is never kept in this object.
    """

    kind: str
    name: str
    function: Callable[[], str] | None = field(default=None, compare=False)

    @classmethod
    def from_env(cls, name: str) -> Secret:
        """The text in an environment variable."""
        if not _NAME_OF_VARIABLE.fullmatch(name):
            raise SecretError(
                "a secret's from_env must be given the name of a variable, got another text, which is not "
                "shown as it may be the secret: nothing can be read there"
            )
        return cls(_VARIABLE, name)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Secret:
        """The first line of a file that its owner alone can read (chmod 600)."""
        return cls(_FILE, str(Path(path).absolute()))

    @classmethod
    def from_callable(cls, function: Callable[[], str]) -> Secret:
        """The text that a function returns."""
        if not callable(function):
            raise SecretError(
                f"a secret's from_callable must be given a function, got a {type(function).__name__}: "
                "it could not be asked"
            )
        return cls(_FUNCTION, "", function)

    def reveal(self) -> str:
        """The text itself, as it is now; SecretError where there is none."""
        if self.kind == _VARIABLE:
            text = os.environ.get(self.name, "")
        else:
            text = self._from_file() if self.kind == _FILE else self._asked()
        if not text:
            raise SecretError(f"{self._place} must hold a secret, but is empty or missing: nothing was sent")
        return text

    @property
    def _place(self) -> str:
        return self.kind if self.kind == _FUNCTION else f"{self.kind} {self.name}"

    def _from_file(self) -> str:
        try:
            mode = os.stat(self.name).st_mode
            lines = Path(self.name).read_text().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise SecretError(
                f"{self._place} must hold a secret, but cannot be read ({type(error).__name__}): "
                "nothing was sent"
            ) from None
        if stat.S_IMODE(mode) & 0o077:
            raise SecretError(
                f"{self._place} must be readable by its owner alone, has mode {stat.S_IMODE(mode):o}: "
                f"chmod 600 {self.name}"
            )
        return lines[0].strip() if lines else ""

    def _asked(self) -> str:
        assert self.function is not None
        try:
            text = self.function()
        except Exception as error:
            # Its message may hold what must not be told.
            raise SecretError(f"the function of a secret raised {type(error).__name__}") from None
        if not isinstance(text, str):
            raise SecretError(f"the function of a secret must return text, got a {type(text).__name__}")
        return text

    def __repr__(self) -> str:
        named = {_VARIABLE: "from_env", _FILE: "from_file"}.get(self.kind)
        return f"Secret.{named}({self.name!r})" if named else "Secret.from_callable(...)"


@dataclass(frozen=True)
class Tls:
    """TLS to a server: its certificate is checked against `ca_file`, or the system's authorities without one.

    `cert_file` and `key_file` are the client's own, where the server asks for one.
    """

    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None

    def __post_init__(self) -> None:
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("TLS of a client must have a certificate and its key, got one of them alone")
