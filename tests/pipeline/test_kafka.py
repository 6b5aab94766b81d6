"""Settings of Kafka's source and sink: what cannot work is refused, and secrets are not shown."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from penstock import sinks, sources
from penstock.pipeline.kafka import client_settings

AT = "127.0.0.1:9092"


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda: sources.Kafka("broker", "t"),
            "servers must be host:port, more of them with commas between, got 'broker': "
            "no broker could be reached",
        ),
        (lambda: sources.Kafka(AT, ()), "topics must be one or more, got none: no row would come"),
        (
            lambda: sinks.Kafka(AT, "a b"),
            "a topic must have up to 249 letters, digits, '.', '_' and '-', got 'a b': "
            "a broker would refuse it",
        ),
        (
            lambda: sources.Kafka(AT, "t", options={"maxOffsetsPerTrigger": "10"}),
            "an option must be one of Kafka's clients, as in 'kafka.security.protocol', "
            "got 'maxOffsetsPerTrigger': what is read and written is Penstock's to say",
        ),
        (
            lambda: sources.Kafka(AT, "t", on_lost="skip"),  # type: ignore[arg-type]
            "on_lost must be 'fail', 'earliest' or 'latest', got 'skip': "
            "it is not known what is to follow when records are gone",
        ),
        (
            lambda: sources.Kafka(AT, "t", start="now"),  # type: ignore[arg-type]
            "start must be 'earliest' or 'latest', got 'now': nothing was read",
        ),
    ],
)
def test_settings_that_cannot_work_are_refused(make: Callable[[], Any], text: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        make()


def test_options_are_never_shown() -> None:
    secret = {"kafka.sasl.jaas.config": "password='tide'"}
    for spec in (sources.Kafka(AT, "t", options=secret), sinks.Kafka(AT, "t", options=secret)):
        assert "tide" not in repr(spec)
        assert hash(spec)


def test_options_reach_the_clients_under_their_own_names() -> None:
    given = {"kafka.security.protocol": "SASL_SSL"}
    assert client_settings(AT, given) == {"security.protocol": "SASL_SSL", "bootstrap.servers": AT}


def test_without_a_topic_rows_must_name_theirs() -> None:
    assert sinks.Kafka(AT).columns == ("value", "topic")
    assert sinks.Kafka(AT, "t").columns == ("value",)
    assert (sources.Kafka(AT, "t").names, sources.Kafka(AT, ("t", "u")).names) == (("t",), ("t", "u"))
