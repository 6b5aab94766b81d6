"""Looks for keys where none may be: in all that an engine leaves on disk, and in Spark's plans."""

from __future__ import annotations

import base64
import os
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.operators.privacy import Keys, encrypt, pseudonymise
from penstock.pipeline import Pipeline, sinks
from penstock.pipeline.sources import Replay

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 500
VARIABLE = "PENSTOCK_BENCH_KEY"


def key_leaks(session: SparkSession) -> int:
    """How many files and plans hold a key, in any spelling, after a pipeline with and without state ran.

    With keys of a file, of a variable and of a function, one after the other.
    """
    return sum(_leaks(session, key, keys) for key, keys in _kinds())


def _kinds() -> Iterator[tuple[bytes, Keys]]:
    """A key of each kind; its place is gone when the next is asked for."""
    key = secrets.token_bytes(32)
    with tempfile.TemporaryDirectory(prefix="penstock-ring-") as secret:
        ring = Path(secret) / "ring"
        ring.touch(0o600)
        ring.write_text(base64.b64encode(key).decode())
        yield key, Keys.from_file(ring)
    key = secrets.token_bytes(32)
    os.environ[VARIABLE] = base64.b64encode(key).decode()
    try:
        yield key, Keys.from_env(VARIABLE)
    finally:
        del os.environ[VARIABLE]
    key = secrets.token_bytes(32)
    text = base64.b64encode(key).decode()
    yield key, Keys.from_callable(lambda: text)


def _leaks(session: SparkSession, key: bytes, keys: Keys) -> int:
    from penstock.spark.engine import Engine

    with tempfile.TemporaryDirectory(prefix="penstock-keys-") as scratch:
        folder = Path(scratch)
        with Engine(session, state=folder / "state", slots=2) as engine:
            engine.submit(_pipeline(keys, folder / "out"))
            engine.drain()
        texts = [*_files(folder), *_plans(session, keys)]
    return sum(holds_key(text, key) for text in texts)


def holds_key(text: bytes, key: bytes) -> bool:
    """Whether the key stands in it, as bytes, base64 (with either alphabet, padded or not) or hexadecimal.

    >>> holds_key(b"key=" + base64.b64encode(b"0123456789abcdef"), b"0123456789abcdef")
    True
    """
    spellings = (
        key,
        base64.b64encode(key).rstrip(b"="),
        base64.urlsafe_b64encode(key).rstrip(b"="),
        key.hex().encode(),
        key.hex().upper().encode(),
    )
    return any(each in text for each in spellings)


def _pipeline(keys: Keys, out: Path) -> Pipeline:
    subjects, macs = [f"s{each % 7}" for each in range(ROWS)], [f"m{each}" for each in range(ROWS)]
    trace = pa.table({"subject": subjects, "mac": macs})
    pipeline = Pipeline("leaks", fuse=False)
    rows = pipeline.source("rows", Replay(trace, 5_000.0, loop=False))
    hidden = rows.operator("hide", pseudonymise("subject", keys)).operator("seal", encrypt("mac", keys))
    hidden.sink("sealed", sinks.Parquet(out / "sealed"))
    hidden.operator("once", lambda frame: frame.dropDuplicates(["subject"]), stateful=True).sink(
        "first", sinks.JsonLines(out / "first")
    )
    return pipeline


def _files(folder: Path) -> Iterator[bytes]:
    for path in folder.rglob("*"):
        if path.is_file():
            yield path.read_bytes()


def _plans(session: SparkSession, keys: Keys) -> Iterator[bytes]:
    frame = encrypt("mac", keys)(session.range(3).selectExpr("cast(id as string) as mac"))
    yield frame._jdf.queryExecution().toString().encode()
    yield session.sparkContext.getConf().toDebugString().encode()
