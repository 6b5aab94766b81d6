"""`penstock top`: a running engine in the terminal, for people on a gateway."""

from __future__ import annotations

import argparse
import os
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.live import Live

from penstock.cli.interrupts import ended_by_signals
from penstock.cli.state_directory import DEFAULT
from penstock.dashboard.client import Client, NoAnswer
from penstock.dashboard.terminal import Screen

EVERY_SECONDS = 1.0
Rest = Callable[[float], bool]
"""Waits so long; whether somebody wants to leave."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--state", type=Path, default=DEFAULT, metavar="DIR", help="the engine's (default: ./%(default)s)"
    )
    parser.add_argument("--url", metavar="ADDRESS", help="that of an engine's page, in place of --state")
    parser.add_argument(
        "--token",
        default=os.environ.get("PENSTOCK_TOKEN", ""),
        help="for an address that asks for one (default: $PENSTOCK_TOKEN)",
    )
    parser.add_argument("--once", action="store_true", help="show it once and end")


def run(args: argparse.Namespace) -> int:
    """0 when left by q or Ctrl-C; refused where no engine answers."""
    client = Client(args.url, args.token) if args.url else Client.of_state(args.state)
    console, screen = Console(), Screen()
    told = client.state()
    if args.once or not console.is_terminal:
        console.print(screen.draw(told, console.width))
        return 0
    with ended_by_signals(), _keys() as rest, Live(console=console, screen=True, auto_refresh=False) as live:
        try:
            while True:
                live.update(screen.draw(told, console.width), refresh=True)
                if rest(EVERY_SECONDS):
                    return 0
                told = client.state()
        except KeyboardInterrupt:
            return 0
        except NoAnswer:
            live.stop()
            raise


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return False


@contextmanager
def _keys() -> Iterator[Rest]:
    """Lets q leave, where there is a keyboard."""
    if not sys.stdin.isatty():
        yield _sleep
        return
    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)

    def rest(seconds: float) -> bool:
        ready = select.select([sys.stdin], [], [], seconds)[0]
        return bool(ready) and os.read(sys.stdin.fileno(), 32)[:1] in (b"q", b"Q", b"\x1b")

    try:
        yield rest
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
