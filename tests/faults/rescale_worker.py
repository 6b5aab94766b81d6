"""A process that changes the slots of a stage with state again and again, until it is killed.

Its input is filled before it starts: `python -m tests.faults.rescale_worker FOLDER`.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tests.faults.flows import Flow

from penstock import Engine, Spool
from penstock.spark.session import build_session


def main(folder: Path) -> None:
    session = build_session(cores=2)
    engine = Engine(session, state=folder / "state", slots=2, consumption="at-most-20", state_store="rocksdb")
    engine.submit(Flow(Spool(folder / "input"), folder / "out").pipeline())
    while not (folder / "state/p/stages/w/checkpoint/commits/0").exists():
        time.sleep(0.01)
    while True:
        for slots in (2, 1):
            engine.set_slots({"p.w": slots})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
