"""A hop ends with the publication of its result."""

import threading
import time
from pathlib import Path

import pyarrow as pa

from penstock import Spool
from penstock.bench.hop import Hops


def test_a_hop_ends_when_its_result_is_published(tmp_path: Path) -> None:
    with Spool(tmp_path / "in") as source, Spool(tmp_path / "out") as result:
        hops = Hops(source, result)

        def stage() -> None:
            time.sleep(0.01)
            result.append(pa.table({"id": [1]}))

        source.add_listener(lambda: threading.Thread(target=stage).start())
        times = hops.run(3)
        assert len(times) == 3
        assert min(times) >= 0.01
        assert source.rows == 3000
