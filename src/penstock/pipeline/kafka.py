"""How a Kafka cluster is reached: settings that its source and its sink share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

OnLost = Literal["fail", "earliest", "latest"]
Start = Literal["earliest", "latest"]
PREFIX = "kafka."


def check_servers(servers: str) -> None:
    """Refuses what cannot be a list of addresses."""
    for each in servers.split(","):
        host, colon, port = each.strip().rpartition(":")
        if not (host and colon and port.isdigit()):
            raise ValueError(
                f"servers must be host:port, more of them with commas between, got {servers!r}: "
                "no broker could be reached"
            )


def check_topic(topic: str) -> None:
    """Refuses what no topic can be called."""
    legal = topic.replace(".", "").replace("_", "").replace("-", "")
    if not (topic.isascii() and legal.isalnum() and len(topic) <= 249):
        raise ValueError(
            f"a topic must have up to 249 letters, digits, '.', '_' and '-', got {topic!r}: "
            "a broker would refuse it"
        )


def check_options(options: Mapping[str, str]) -> None:
    """Refuses options of Spark's connector that would decide what Penstock decides; values are not shown."""
    for name in options:
        if not name.startswith(PREFIX):
            raise ValueError(
                f"an option must be one of Kafka's clients, as in 'kafka.security.protocol', got {name!r}: "
                "what is read and written is Penstock's to say"
            )


def client_settings(servers: str, options: Mapping[str, str]) -> dict[str, str]:
    """The options as Kafka's own clients take them, the addresses included."""
    given = {name.removeprefix(PREFIX): str(value) for name, value in options.items()}
    return {**given, "bootstrap.servers": servers}
