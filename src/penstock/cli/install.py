"""`penstock install NAME`: fetches or makes what is optional, once; from then on it is kept."""

import argparse

from penstock.errors import PenstockError
from penstock.spark.class_archive import archive_path, make_archive
from penstock.spark.jar import cache_directory
from penstock.spark.kafka.jars import SETS

CLASSES = "class-archive"
WORDS = {
    "kafka": "Spark's connector for Kafka",
    "kafka-broker": "a Kafka broker of one node, which tests and benches start",
    CLASSES: "Spark's classes as its JVM has them in memory: starts take two seconds less",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "\n".join(f"  {name:<13} {words}" for name, words in WORDS.items())
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("names", nargs="+", choices=tuple(WORDS), metavar="NAME", help="what to install")


def run(args: argparse.Namespace) -> int:
    # An archive is of all jars there are.
    for name in sorted(args.names, key=lambda name: name == CLASSES):
        done, what = _classes() if name == CLASSES else _jars(name)
        print(f"{name}: {'installed' if done else 'was there already'}, {what}", flush=True)
    return 0


def _jars(name: str) -> tuple[bool, str]:
    jars = SETS[name]
    archived = archive_path().exists()
    done = jars.install()
    if done and archived:
        try:
            make_archive()
        except PenstockError as error:
            print(error, flush=True)
    return done, f"{len(jars.jars)} jars in {cache_directory()}"


def _classes() -> tuple[bool, str]:
    done = make_archive()
    return done, f"{archive_path().stat().st_size / 1e6:.0f} MB in {archive_path().parent}"
