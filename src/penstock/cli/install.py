"""`penstock install NAME`: fetches the jars of an optional connector, once; from then on they are kept."""

import argparse

from penstock.spark.jar import cache_directory
from penstock.spark.kafka.jars import SETS

WORDS = {
    "kafka": "Spark's connector for Kafka",
    "kafka-broker": "a Kafka broker of one node, which tests and benches start",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "\n".join(f"  {name:<13} {words}" for name, words in WORDS.items())
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("names", nargs="+", choices=tuple(SETS), metavar="NAME", help="what to install")


def run(args: argparse.Namespace) -> int:
    for name in args.names:
        jars = SETS[name]
        done = "installed" if jars.install() else "was there already"
        print(f"{name}: {done}, {len(jars.jars)} jars in {cache_directory()}", flush=True)
    return 0
