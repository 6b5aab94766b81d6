from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.cli.main import REFUSED, main


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            ["--host", "0.0.0.0"],
            "a host beyond the loopback must ask for a token, got '0.0.0.0' without one: "
            "anybody could send rows",
        ),
        (
            ["--tls-cert", "x"],
            "TLS of a server must have a certificate and its key, got one of them alone",
        ),
        (["--port", "70000"], "a port must be 0 to 65535, got 70000: nobody could connect"),
        (
            ["--port", "0", "--schema", "id MAP<STRING, INT>"],
            "field 'id' must have one of the types BOOLEAN, TINYINT, ",
        ),
        (
            ["--port", "0", "--token-file", "none"],
            "must hold a secret, but cannot be read (FileNotFoundError)",
        ),
    ],
)
def test_what_cannot_be_served_is_refused_before_anything_listens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], text: str
) -> None:
    code = main(["ingest", "--http", "--spool", str(tmp_path / "q"), *arguments])
    assert code == REFUSED
    told = capsys.readouterr()
    assert text in told.err
    assert told.out == ""


def test_the_command_says_where_it_listens_and_ends_when_told(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "penstock", "ingest", "--http", "--port", "0"]
    with subprocess.Popen(
        [*command, "--spool", str(tmp_path / "q")], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("taking rows at http://127.0.0.1:")
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read() == f"stopping: 0 rows are in {tmp_path / 'q'}\n"
        assert process.wait(30) == 0
