"""Connectors are optional: a missing package is told with the command that brings it."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock import Spool, sources
from penstock.errors import PenstockError
from penstock.extras import require
from penstock.ingest.mqtt import MqttFeeder
from penstock.spark.mqtt_publisher import mqtt_link

ROOT = Path(__file__).parents[1]


def feed_by_mqtt(folder: Path) -> None:
    with Spool(folder) as spool:
        MqttFeeder(sources.Mqtt("127.0.0.1", "t"), spool)


@pytest.mark.parametrize(
    ("use", "who"),
    [(feed_by_mqtt, "sources.Mqtt"), (lambda folder: mqtt_link(), "sinks.Mqtt")],
    ids=["source", "sink"],
)
def test_mqtt_without_paho_is_refused_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, use: Callable[[Path], object], who: str
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    text = f"{who} needs the package paho-mqtt, which is not installed: pip install 'penstock[mqtt]'"
    with pytest.raises(PenstockError, match=f"^{re.escape(text)}$"):
        use(tmp_path)


def test_a_package_that_is_there_is_not_asked_for() -> None:
    require("json", "json", "none", "nobody")


def test_every_connector_has_an_extra_and_none_is_mandatory() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {"kafka", "mqtt", "rabbitmq"} <= set(project["optional-dependencies"])
    names = [re.split(r"[<>=]", each)[0] for each in project["dependencies"]]
    assert not {"paho-mqtt", "pika"} & set(names)


def test_the_launcher_s_environment_has_what_the_benchmarks_need_of_them() -> None:
    assert "\npaho-mqtt==" in (ROOT / "requirements.txt").read_text()
