"""A driver of `bench connect`, in a process of its own: a JVM has one SparkContext, and this one is killed.

Asked {"do": "live", ...} it runs a pipeline into a spool (`lives`), asked {"do": "fill", ...} and the like it
works with topics of Kafka (`kafka_work`).
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from penstock.bench.connect.kafka_work import KafkaWork
from penstock.bench.connect.lives import SLOTS, Lives
from penstock.bench.workers import ending_at_once, serve

SETTINGS = {"spark.driver.memory": "2g"}


def main() -> None:
    from penstock.spark.session import build_session

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    folder = parser.parse_args().folder
    logging.basicConfig(level=logging.WARNING)
    session = build_session(cores=SLOTS, settings=SETTINGS)
    lives, kafka = Lives(session), KafkaWork(session, folder)
    duties: Mapping[str, Callable[..., Any]] = {
        each.__name__: each
        for each in (
            *(lives.live, lives.busy, lives.until, lives.complete, lives.rest),
            *(kafka.fill, kafka.feed, kafka.fed, kafka.copy, kafka.plain_copy, kafka.spool),
        )
    }

    def answer(request: Mapping[str, Any]) -> Any:
        asked = dict(request)
        return duties[asked.pop("do")](**asked)

    with ending_at_once():
        serve("ready", answer)


if __name__ == "__main__":
    main()
