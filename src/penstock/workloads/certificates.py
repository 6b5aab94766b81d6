"""A certificate for a server on the loopback, made with the command `openssl`, for tests and benches."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import PenstockError

DAYS = "2"


@dataclass(frozen=True)
class Certificate:
    """Files in PEM form; the certificate is its own authority."""

    cert_file: str
    key_file: str


def can_certify() -> bool:
    return shutil.which("openssl") is not None


def certify(folder: Path, name: str = "127.0.0.1") -> Certificate:
    """A certificate for the address `name`, in files of `folder`."""
    made = Certificate(str(folder / "server.crt"), str(folder / "server.key"))
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    command += ["-days", DAYS, "-subj", f"/CN={name}", "-addext", f"subjectAltName=IP:{name}"]
    command += ["-keyout", made.key_file, "-out", made.cert_file]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise PenstockError(f"openssl must make a certificate, but: {answer.stderr.strip()[-300:]}")
    return made
