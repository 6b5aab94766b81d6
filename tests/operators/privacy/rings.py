"""Key rings for tests, the looks of a key where none must be, and Java functions called one by one."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.operators.privacy import Keys
from penstock.spark.jvm import jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def key(name: str) -> bytes:
    """32 bytes that are the same in every test for the same name."""
    return hashlib.sha256(f"a key of the tests: {name}".encode()).digest()


def text(name: str) -> str:
    return base64.b64encode(key(name)).decode()


def ring(*ids: str, current: str | None = None, **more: Any) -> str:
    """A ring of these ids; the last is the current one unless said otherwise."""
    return json.dumps({"current": current or ids[-1], "keys": {id: text(id) for id in ids}, **more})


def keys_of(*ids: str, **more: Any) -> Keys:
    return Keys.from_callable(lambda: json.loads(ring(*ids, **more)))


def key_file(folder: Path, content: str, mode: int = 0o600) -> Path:
    """A file of keys, put in place as one should: written beside, then renamed."""
    path, beside = folder / "keys.json", folder / "keys.new"
    beside.touch(mode=0o600)
    beside.write_text(content)
    beside.chmod(mode)
    beside.rename(path)
    return path


def traces_of(name: str, content: bytes) -> list[str]:
    """In which forms the key stands in the content."""
    secret = key(name)
    forms = {
        "bytes": secret,
        "base64": base64.b64encode(secret).rstrip(b"="),
        "urlsafe base64": base64.urlsafe_b64encode(secret).rstrip(b"="),
        "hexadecimal": secret.hex().encode(),
        "upper hexadecimal": secret.hex().upper().encode(),
        "list of numbers": ", ".join(map(str, secret)).encode(),
    }
    return [form for form, spelled in forms.items() if spelled in content]


def sealed(spark: SparkSession, keys: Keys, column: str, plain: bytes) -> str:
    """One value, encrypted."""
    found = jvm(spark).penstock.Encrypt(keys.place(spark), column).call(plain)
    assert isinstance(found, str)
    return found


def opened(spark: SparkSession, keys: Keys, column: str, value: str) -> bytes | str:
    """One value decrypted: its bytes, or why it cannot be."""
    found = bytes(jvm(spark).penstock.Decrypt(keys.place(spark), column).call(value))
    return found[1:] if found[0] == 0 else found[1:].decode()
