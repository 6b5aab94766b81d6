"""Your own query, under the scheduler: the streaming DataFrame stays as it is.

    python examples/existing_query.py [FOLDER]

Here orders appear as JSON files in a directory. What `writeStream ... start()` would have run is handed to
`engine.start`, with a latency target; the function is one as `foreachBatch` takes it.
"""

import json
import sys
import time
from pathlib import Path

from penstock import Engine

ORDERS = 1000


def orders_appear(folder: Path) -> None:
    """Ten files of a hundred orders each."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in range(10):
        rows = ({"id": 100 * part + number, "amount": float(number)} for number in range(100))
        (folder / f"orders-{part}.json").write_text("\n".join(map(json.dumps, rows)))


def main(folder: Path) -> None:
    orders_appear(folder / "in")
    with Engine(state=folder / "state") as engine:
        orders = engine.spark.readStream.schema("id LONG, amount DOUBLE").json(str(folder / "in"))
        large = orders.where("amount >= 50")
        # As with Spark alone, a batch may come again after a crash: its number tells.
        engine.start(
            large,
            lambda batch, number: batch.write.mode("overwrite").parquet(str(folder / f"out/batch={number}")),
            latency="2s",
            name="large_orders",
        )
        kept, limit = 0, time.monotonic() + 60
        while kept < ORDERS // 2 and time.monotonic() < limit:
            time.sleep(0.1)
            if list(folder.glob("out/batch=*/_SUCCESS")):
                kept = engine.spark.read.parquet(str(folder / "out")).count()
        print(f"{kept} of {ORDERS} orders are large")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "penstock-examples/existing_query"))
