"""The JVM's side of a stage's grants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.spark.inputs import Slices, file_lines
from penstock.spark.jvm import jvm
from penstock.spark.stage_base import Place

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class GrantBooks:
    """Which files the query of a stage reads for which number of a grant."""

    def __init__(self, place: Place, queues: tuple[str, ...]):
        self._java = jvm(place.session).penstock.GrantBook
        self._names = {queue: f"{place.folder}|{queue}" for queue in queues}
        self._books: dict[str, Any] = {queue: self._java.open(name) for queue, name in self._names.items()}

    def frames(self, place: Place, schemas: Any, slots: int) -> dict[str, DataFrame]:
        """The streaming DataFrames that read the books, in so many tasks at most."""
        reader = place.session.readStream.format("penstock.GrantSourceProvider")
        return {
            queue: reader.schema(schemas[queue]).option("book", name).load().coalesce(slots)
            for queue, name in self._names.items()
        }

    def add(self, number: int, slices: Slices) -> None:
        for queue, book in self._books.items():
            book.add(number, file_lines(slices.get(queue, ())))

    def forget_below(self, number: int) -> None:
        for book in self._books.values():
            book.forgetBelow(number)

    def take_served(self) -> int:
        """The last grant that the running batch reads, 0 if it reads none."""
        return max(int(book.takeServed()) for book in self._books.values())

    def close(self) -> None:
        for name in self._names.values():
            self._java.close(name)
