"""What a spool's directory holds when it is opened: whole segments, leftovers of a crash, and damage."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from pathlib import Path

from penstock.queues.disk import Disk
from penstock.queues.errors import CorruptSegment
from penstock.queues.manifest import Pending, load, parse_segment_name
from penstock.queues.segment import Segment
from penstock.queues.slices import checked_footer

# A crash can only have hurt what was being written; older segments are checked by size alone.
NEWEST_CHECKED = 8
FOLDERS = ("segments", "data", "pending", "removed", "quarantine", "consumers")


@dataclass
class Found:
    """The contents of a spool's directory."""

    segments: list[Segment] = field(default_factory=list)
    pending: dict[str, Pending] = field(default_factory=dict)
    removed: list[str] = field(default_factory=list)
    corrupt: list[tuple[CorruptSegment, Path]] = field(default_factory=list)
    leftovers: list[Path] = field(default_factory=list)
    # Data files that no readable manifest names.
    unnamed: list[Path] = field(default_factory=list)
    # Manifests set aside earlier; their sequence numbers are never given again.
    set_aside: list[str] = field(default_factory=list)


def scan(path: Path) -> Found:
    """Reads a spool's directory and changes nothing, but for missing folders.

    Every manifest is read and checked against its checksum, every data file against its size; footers are
    read of pending segments and of the newest eight. A flipped bit in an older data file shows when read.
    """
    for folder in FOLDERS:
        (path / folder).mkdir(parents=True, exist_ok=True)
    found = Found()
    sizes = {f"data/{entry.name}": entry.stat().st_size for entry in os.scandir(path / "data")}
    manifests = sorted(entry.name for entry in os.scandir(path / "segments"))
    for index, name in enumerate(manifests):
        _read_segment(found, path, name, sizes, thorough=index >= len(manifests) - NEWEST_CHECKED)
    for name in sorted(entry.name for entry in os.scandir(path / "pending")):
        _read_pending(found, path, name, sizes)
    found.removed = sorted(os.listdir(path / "removed"))
    found.set_aside = sorted(os.listdir(path / "quarantine"))
    named = {file for segment in found.segments for file in segment.files}
    named |= {file for pending in found.pending.values() for file in pending.files}
    found.unnamed = [path / file for file in sizes if file not in named]
    return found


def published_in(path: Path) -> list[Segment]:
    """The segments of a spool that another process may own, in order; what it removes meanwhile may miss."""
    found = []
    for manifest in sorted((path / "segments").glob("*.json")):
        parsed = parse_segment_name(manifest.name)
        with contextlib.suppress(FileNotFoundError):
            if parsed is not None:
                found.append(load(manifest).published_as(parsed[0], manifest.stat().st_mtime_ns / 1e9))
    return found


def _read_segment(found: Found, path: Path, name: str, sizes: dict[str, int], thorough: bool) -> None:
    manifest = path / "segments" / name
    parsed = parse_segment_name(name)
    try:
        if parsed is None:
            raise CorruptSegment(manifest, "must be named sequence-producer-batch.json", "got another name")
        pending = load(manifest)
        _check_data(path, pending, sizes, thorough)
    except CorruptSegment as error:
        found.corrupt.append((error, manifest))
    else:
        found.segments.append(pending.published_as(parsed[0], manifest.stat().st_mtime_ns / 1e9))


def _read_pending(found: Found, path: Path, name: str, sizes: dict[str, int]) -> None:
    manifest = path / "pending" / name
    if not name.endswith(".json"):
        found.leftovers.append(manifest)
        return
    try:
        pending = load(manifest)
        _check_data(path, pending, sizes, thorough=True)
    except CorruptSegment as error:
        found.corrupt.append((error, manifest))
    else:
        found.pending[pending.name] = pending


def _check_data(path: Path, pending: Pending, sizes: dict[str, int], thorough: bool) -> None:
    for file, size in zip(pending.files, pending.sizes, strict=True):
        if file not in sizes:
            raise CorruptSegment(path / file, f"must have {size} bytes", "but is missing")
        if sizes[file] != size:
            raise CorruptSegment(path / file, f"must have {size} bytes", f"got {sizes[file]}")
    if thorough and pending.files:
        rows = sum(checked_footer(path / file).rows for file in pending.files)
        if rows != pending.rows:
            raise CorruptSegment(path / pending.files[0], f"must hold {pending.rows} rows", f"got {rows}")


def tidy(found: Found, path: Path, disk: Disk, quarantine: bool) -> None:
    """Clears away what a crash left; damage is set aside with `quarantine`, else raised and nothing touched.

    Where a manifest cannot be read, data files without one may be its rows: they are set aside, not removed.
    """
    if found.corrupt and not quarantine:
        raise found.corrupt[0][0]
    for leftover in found.leftovers:
        disk.remove(leftover)
    for _, manifest in found.corrupt:
        disk.rename(manifest, path / "quarantine" / manifest.name)
    for file in found.unnamed:
        if found.corrupt:
            disk.rename(file, path / "quarantine" / file.name)
        else:
            disk.remove(file)
    found.set_aside += [manifest.name for _, manifest in found.corrupt]
