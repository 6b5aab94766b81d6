"""The slots of a pipeline's stages that differ from those declared: durable, so that a restart keeps them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from penstock.queues.disk import Disk
from penstock.spark.refusals import read_json


class SlotsInForce:
    """Slots by stage in one file, replaced as a whole.

    Where state was divided and a crash came before that was written down here, the checkpoint tells.
    """

    def __init__(self, file: Path, disk: Disk):
        self._file = file
        self._disk = disk

    def read(self) -> dict[str, int]:
        """Of the stages that were changed."""
        if not self._file.exists():
            return {}
        return {str(name): int(slots) for name, slots in read_json(self._file).items()}

    def keep(self, slots: Mapping[str, int]) -> None:
        """These, and those of all other stages as they are."""
        known = self.read()
        if changed := {name: each for name, each in slots.items() if known.get(name) != each}:
            self._disk.replace(self._file, json.dumps(known | changed).encode())
