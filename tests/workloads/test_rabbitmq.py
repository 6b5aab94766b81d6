"""A real RabbitMQ that comes and goes without a trace."""

from __future__ import annotations

import socket

import pytest

from penstock.errors import PenstockError
from penstock.workloads.mosquitto import accepts
from penstock.workloads.rabbitmq import RabbitMQ, is_installed

pytestmark = pytest.mark.skipif(not is_installed(), reason="rabbitmq-server is not installed")

AMQP_0_9_1 = b"AMQP\x00\x00\x09\x01"


@pytest.mark.slow
def test_a_broker_speaks_amqp_on_a_port_of_its_own_until_it_is_ended() -> None:
    with RabbitMQ() as broker:
        assert broker.url == f"amqp://guest:guest@127.0.0.1:{broker.port}/"
        with socket.create_connection((broker.host, broker.port), timeout=30) as client:
            client.sendall(AMQP_0_9_1)
            head = client.recv(11)
        # A frame of methods on channel 0, with Connection.Start, which is method 10 of class 10.
        assert (head[0], head[1:3], head[7:11]) == (1, b"\x00\x00", b"\x00\x0a\x00\x0a")
        with pytest.raises(PenstockError, match="the broker must have stopped before it starts"):
            broker.start()
        names = broker._epmd_port
        assert accepts(broker.host, names)
    assert not accepts(broker.host, broker.port)
    assert not accepts(broker.host, names)
