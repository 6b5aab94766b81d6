"""`penstock ingest`: takes rows into a spool while no engine runs on it."""

from __future__ import annotations

import argparse
import logging
import time
from pathlib import Path

from penstock.cli.interrupts import ended_by_signals
from penstock.errors import PenstockError
from penstock.ingest.http import HttpFeeder
from penstock.pipeline.http_source import Http
from penstock.queues.spool import Spool
from penstock.secret import Secret

PORT = 8080
LOOK_SECONDS = 0.2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--http", action="store_true", required=True, help="take requests over HTTP")
    parser.add_argument("--spool", type=Path, required=True, metavar="DIR", help="where the rows go")
    parser.add_argument("--schema", help="DDL; without it each line is a row in the column `value`")
    parser.add_argument("--host", default="127.0.0.1", help="default: %(default)s; others need a token")
    parser.add_argument("--port", type=int, default=PORT, help="default: %(default)s; 0: a free one")
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="senders must know its first line")
    parser.add_argument("--tls-cert", metavar="FILE", help="the server's certificate (PEM)")
    parser.add_argument("--tls-key", metavar="FILE", help="its key (PEM)")
    parser.add_argument(
        "--limit-bytes",
        type=int,
        default=None,
        metavar="N",
        help="of the spool; then senders are told to wait",
    )
    parser.add_argument(
        "--request-bytes", type=int, default=32 << 20, metavar="N", help="default: %(default)s"
    )
    parser.add_argument("--fsync", action="store_true", help="answer when rows would survive loss of power")


def run(args: argparse.Namespace) -> int:
    """0 after Ctrl-C or SIGTERM."""
    logging.basicConfig(format="%(message)s")
    try:
        spec = Http(
            args.port,
            args.schema,
            args.host,
            None if args.token_file is None else Secret.from_file(args.token_file),
            args.tls_cert,
            args.tls_key,
            args.request_bytes,
        )
        spool = Spool(args.spool, limit_bytes=args.limit_bytes, fsync=args.fsync)
    except ValueError as error:
        raise PenstockError(str(error)) from None
    with spool:
        _serve(HttpFeeder(spec, spool), spool)
    return 0


def _serve(feeder: HttpFeeder, spool: Spool) -> None:
    scheme = "https" if feeder.speaks_tls else "http"
    with ended_by_signals():
        try:
            feeder.start()
            host, port = feeder.address
            print(f"taking rows at {scheme}://{host}:{port}/ into {spool.path}", flush=True)
            while True:
                time.sleep(LOOK_SECONDS)
        except KeyboardInterrupt:
            print(f"stopping: {spool.rows} rows are in {spool.path}")
        finally:
            feeder.stop()
