"""The HTTP source over real connections: what it answers, and what then lies in the spool."""

from __future__ import annotations

import http.client
import io
import json
import os
import signal
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.ingest.conftest import eventually, rows_in

from penstock import Spool, sources
from penstock.errors import PenstockError
from penstock.ingest.http import HttpFeeder
from penstock.ingest.http_requests import ARROW
from penstock.secret import Secret
from penstock.workloads.certificates import can_certify, certify

SCHEMA = "id LONG NOT NULL, name STRING, at TIMESTAMP, score DOUBLE, tags ARRAY<STRING>, day DATE"


@contextmanager
def listening(folder: Path, *, limit: int | None = None, **settings: Any) -> Iterator[tuple[int, Spool]]:
    with Spool(folder, limit_bytes=limit) as spool:
        feeder = HttpFeeder(sources.Http(0, **settings), spool)
        feeder.start()
        try:
            yield feeder.address[1], spool
        finally:
            feeder.stop()


def post(
    port: int, body: Any, *, path: str = "/", context: ssl.SSLContext | None = None, **headers: str
) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Status, body and headers of the reply."""
    if context is None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    else:
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=30, context=context)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request("POST", path, body, named, encode_chunked=not isinstance(body, (str, bytes)))
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read()), dict(reply.getheaders())
    finally:
        connection.close()


def lines(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def arrow(table: pa.Table) -> bytes:
    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    return stream.getvalue()


def test_json_lines_and_arrow_become_rows_of_the_schema(tmp_path: Path) -> None:
    with listening(tmp_path / "q", schema=SCHEMA) as (port, spool):
        body = lines(
            {"id": 1, "name": "ä", "at": "2026-01-02T03:04:05Z", "tags": ["x"], "more": 1},
            {"id": 2, "day": "2026-01-02"},
        )
        assert post(port, body)[:2] == (200, {"rows": 2, "repeated": False})
        assert spool.rows == 2
        table = pa.table({"score": pa.array([0.5], pa.float32()), "id": pa.array([3], pa.int32())})
        for name, kind in (
            ("name", pa.string()),
            ("at", pa.timestamp("ms", "UTC")),
            ("tags", pa.list_(pa.string())),
            ("day", pa.date32()),
        ):
            table = table.append_column(name, pa.nulls(1, kind))
        assert post(port, arrow(table), Content_Type=ARROW)[:2] == (200, {"rows": 1, "repeated": False})
        assert post(port, (part.encode() for part in ('{"id": 4}\n{"i', 'd": 5}\n')))[0] == 200
        assert post(port, "\n")[:2] == (200, {"rows": 0, "repeated": False})
        found = rows_in(spool)
    assert [row["id"] for row in found] == [1, 2, 3, 4, 5]
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert found[0] == {"id": 1, "name": "ä", "at": at, "score": None, "tags": ["x"], "day": None}
    assert found[1]["day"] == at.date()
    assert found[2]["score"] == 0.5


@pytest.mark.parametrize(
    ("body", "line", "text"),
    [
        ('{"id": 1}\n{"id": 2}\n{"id": "x"}\n{"id": "y"}\n', 3, ""),
        ('{"id": 1}\n\n\n{"id": 2\n', 4, ""),
        ('{"id": 1}{"id": 2}\n', 1, "it is no JSON (Extra data"),
        # Arrow's reader would end the process at these.
        ("null\n", 1, "it is no JSON object but NoneType"),
        ('{"id": 1}\n{"id": 1} null {"id": 2}\n', 2, "it is no JSON (Extra data"),
        ("[" * 100_000, 1, "it is no JSON (maximum recursion depth exceeded"),
        (b'{"id": 1, "name": "\xff"}', 1, "it is no JSON ('utf-8' codec can't decode byte 0xff"),
        ('{"id": 1, "score": NaN}', 1, "it is no JSON (NaN is no JSON)"),
        ('{"id": 1, "day": "noon"}', 1, ""),
        ('{"id": 1}\n\n{"name": "n"}\n', 3, "field 'id' is missing: it is NOT NULL"),
        ("[1]\n", 1, ""),
        ('{"id": 1.5}\n', 1, ""),
        ('{"id": 1, "at": "noon"}\n', 1, ""),
    ],
)
def test_a_bad_line_is_named_and_nothing_of_its_request_is_kept(
    tmp_path: Path, body: str | bytes, line: int, text: str
) -> None:
    with listening(tmp_path / "q", schema=SCHEMA) as (port, spool):
        status, answer, _ = post(port, body)
        assert (status, answer["line"], spool.rows) == (400, line, 0)
        assert answer["error"].startswith(f"line {line} must fit the schema, but {text}")
        assert answer["error"].endswith(": nothing of the request was kept")


def test_bad_arrow_is_refused(tmp_path: Path) -> None:
    with listening(tmp_path / "q", schema="id LONG NOT NULL") as (port, spool):
        whole = arrow(pa.table({"id": [1, 2]}))
        for body, text in (
            (whole[:-40], "it is no whole Arrow stream"),
            (whole.replace(b"\x02\x00\x00\x00id", b"\x02\x00\x00\x00i\xff"), "it is no whole Arrow stream"),
            (arrow(pa.table({"other": [1]})), "it must have one column 'id', got 0"),
            (arrow(pa.table([[1], [2]], ["id", "id"])), "it must have one column 'id', got 2"),
            (arrow(pa.table({"id": [1.5]})), ""),
            (arrow(pa.table({"id": pa.array([1, None])})), "field 'id' is missing: it is NOT NULL"),
        ):
            status, answer, _ = post(port, body, Content_Type=ARROW)
            assert status == 400
            assert text in answer["error"]
        assert spool.rows == 0


def test_without_a_schema_each_line_is_a_row_for_parse(tmp_path: Path) -> None:
    with listening(tmp_path / "q") as (port, spool):
        assert post(port, '{"id": 1}\r\nnonsense\n\n')[0] == 200
        assert [row["value"] for row in rows_in(spool)] == ['{"id": 1}', "nonsense"]
        assert post(port, b"", Content_Type=ARROW)[0] == 415


def test_a_request_under_its_key_is_taken_once_over_retries_restarts_and_removal(tmp_path: Path) -> None:
    body = lines({"id": 1}, {"id": 2})
    taken, again = {"rows": 2, "repeated": False}, {"rows": 2, "repeated": True}
    with listening(tmp_path / "q", schema=SCHEMA) as (port, spool):
        assert post(port, body, Idempotency_Key="a")[:2] == (200, taken)
        assert post(port, body, Idempotency_Key="a")[:2] == (200, again)
        assert post(port, lines({"id": 3}), Idempotency_Key="a")[0] == 422
        assert post(port, body, Idempotency_Key="b")[:2] == (200, taken)
        reader = spool.subscribe("reader")
        pieces = reader.take(None, tmp_path)
        reader.commit(pieces)
        reader.release(pieces)
        assert spool.rows == 0
    # As after a crash between the publication of a segment and the note of its keys.
    [kept] = (tmp_path / "q" / "requests").iterdir()
    kept.write_text(kept.read_text().replace('["b"', '\x00["b'))
    with listening(tmp_path / "q", schema=SCHEMA) as (port, spool):
        assert post(port, body, Idempotency_Key="a")[:2] == (200, again)
        assert post(port, body, Idempotency_Key="b")[:2] == (200, again)
        assert spool.rows == 0


def test_requests_that_come_together_share_segments_and_a_key_among_them_counts_once(tmp_path: Path) -> None:
    answers: list[tuple[int, dict[str, Any], dict[str, str]]] = []

    def send(number: int) -> None:
        answers.append(post(port, lines({"id": number}), Idempotency_Key=f"k{number}"))

    with listening(tmp_path / "q", schema=SCHEMA) as (port, spool):
        threads = [threading.Thread(target=send, args=(number % 20,)) for number in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [status for status, _, _ in answers] == [200] * 40
        assert sum(body["repeated"] for _, body, _ in answers) == 20
        assert sorted(row["id"] for row in rows_in(spool)) == list(range(20))
        arrived = sum(segment.arrivals.rows for segment in spool.segments)
        assert arrived == 20


def test_a_full_spool_asks_to_come_again_and_takes_the_same_request_later(tmp_path: Path) -> None:
    body = lines(*({"id": number, "name": "x" * 100} for number in range(100)))
    with listening(tmp_path / "q", limit=30_000, schema=SCHEMA) as (port, spool):
        reader = spool.subscribe("reader")
        assert post(port, body, Idempotency_Key="1")[0] == 200
        assert post(port, body, Idempotency_Key="2")[0] == 200
        status, answer, headers = post(port, body, Idempotency_Key="3")
        assert (status, headers["Retry-After"], spool.rows) == (429, "1", 200)
        assert "nothing was appended" in answer["error"]
        assert post(port, body * 5)[0] == 413
        pieces = reader.take(None, tmp_path)
        reader.commit(pieces)
        reader.release(pieces)
        assert post(port, body, Idempotency_Key="3")[:2] == (200, {"rows": 100, "repeated": False})
        assert spool.rows == 100


def test_requests_that_are_too_large_or_odd_are_refused(tmp_path: Path) -> None:
    with listening(tmp_path / "q", schema=SCHEMA, request_bytes=1000) as (port, spool):
        assert post(port, "x" * 1001)[0] == 413
        assert post(port, (b"y" * 400 for _ in range(4)))[0] == 413
        assert post(port, "{}", path="/elsewhere")[0] == 404
        assert post(port, "{}", Content_Type="text/csv")[0] == 415
        assert post(port, "{}", Content_Encoding="gzip")[0] == 415
        assert post(port, '{"id": 1}', Idempotency_Key="k" * 201)[0] == 400
        assert spool.rows == 0


def test_only_who_knows_the_token_is_let_in(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    secret = tmp_path / "token"
    secret.touch(0o600)
    secret.write_text("tr0ub4dor\n")
    with listening(tmp_path / "q", token=Secret.from_file(secret)) as (port, spool):
        for header in ({}, {"Authorization": "Bearer tr0ub4do"}, {"Authorization": "tr0ub4dor"}):
            status, _, headers = post(port, "a", **header)
            assert (status, headers["WWW-Authenticate"]) == (401, "Bearer")
        assert post(port, "a", Authorization="Bearer tr0ub4dor")[0] == 200
        assert spool.rows == 1
    assert "tr0ub4dor" not in caplog.text
    text = (
        "a host beyond the loopback must ask for a token, got '0.0.0.0' without one: anybody could send rows"
    )
    with pytest.raises(ValueError, match=f"^{text}$"):
        sources.Http(0, host="0.0.0.0")


@pytest.mark.skipif(not can_certify(), reason="openssl is not installed")
def test_rows_come_over_tls_too(tmp_path: Path) -> None:
    made = certify(tmp_path)
    with listening(tmp_path / "q", tls_cert=made.cert_file, tls_key=made.key_file) as (port, spool):
        context = ssl.create_default_context(cafile=made.cert_file)
        assert post(port, "a\nb", context=context)[0] == 200
        with pytest.raises((OSError, http.client.HTTPException)):
            post(port, "a\nb")
        assert spool.rows == 2


def test_a_port_that_is_taken_is_told_at_once(tmp_path: Path) -> None:
    with listening(tmp_path / "q") as (port, _), Spool(tmp_path / "other") as other:
        text = f"HTTP must listen on 127.0.0.1:{port}, but cannot (Address already in use): "
        with pytest.raises(PenstockError) as caught:
            HttpFeeder(sources.Http(port), other)
        assert str(caught.value) == text + "choose another port, or end who has it"


def test_what_was_answered_survives_the_death_of_the_command_that_took_it(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "penstock", "ingest", "--http", "--port", "0"]
    command += ["--spool", str(tmp_path / "q"), "--schema", "id LONG NOT NULL"]
    sent = 0
    for life in range(2):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                port = int(process.stdout.readline().split("/ into")[0].rsplit(":", 1)[1])
                body = lines({"id": sent})
                assert post(port, body, Idempotency_Key=f"{sent}")[1] == {"rows": 1, "repeated": False}
                if life:
                    body = lines({"id": sent - 1})
                    assert post(port, body, Idempotency_Key=f"{sent - 1}")[1] == {"rows": 1, "repeated": True}
                sent += 1
            finally:
                os.kill(process.pid, signal.SIGKILL)
    with Spool(tmp_path / "q") as spool:
        eventually(lambda: spool.rows == 2)
        assert [row["id"] for row in rows_in(spool)] == [0, 1]
