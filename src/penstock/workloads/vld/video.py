"""A video whose right answer is known: logos that move over noise, at frame rates that change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.operators.vision.opencv import opencv
from penstock.workloads.vld.logos import draw_logos

SCHEMA = "frame BIGINT, at TIMESTAMP, height INT, width INT, pixels BINARY"
ARROW = pa.schema(
    [
        ("frame", pa.int64()),
        ("at", pa.timestamp("us", "UTC")),
        ("height", pa.int32()),
        ("width", pa.int32()),
        ("pixels", pa.binary()),
    ]
)
BEGIN = datetime(2020, 1, 6, 9, 0, tzinfo=UTC)
FRAMES_PER_SECOND = (1.0, 25.0)


@dataclass(frozen=True, eq=False)
class Shot:
    """One frame: when it is due, its grey pixels, and the logos that are in it."""

    number: int
    due_seconds: float
    pixels: np.ndarray
    logos: frozenset[str]


@dataclass(frozen=True, eq=False)
class Video:
    """Scenes of some seconds. In each, up to `most_logos` of the logos move about, each in a lane of its own.

    They are turned by up to 12 degrees and 0.9 to 1.1 times as large as drawn, throughout a scene.
    """

    seed: int = 1
    logos: Mapping[str, np.ndarray] = field(default_factory=draw_logos, repr=False)
    frames_per_second: tuple[float, float] = FRAMES_PER_SECOND
    """Least and most; the rate of each second is drawn evenly from between."""
    height: int = 240
    width: int = 384
    most_logos: int = 3
    scene_seconds: float = 2.0
    noise: float = 6.0
    """Standard deviation of a pixel, of 255."""

    def shots(self, seconds: float) -> Iterator[Shot]:
        """All frames of so many seconds, drawn one at a time."""
        scene, now = -1, None
        for number, due in enumerate(self.moments(seconds)):
            if int(due // self.scene_seconds) != scene or now is None:
                scene = int(due // self.scene_seconds)
                now = _Scene.drawn(self, np.random.default_rng([self.seed, 1, scene]))
            chance = np.random.default_rng([self.seed, 2, number])
            pixels = now.picture(due - scene * self.scene_seconds, chance, self.noise)
            yield Shot(number, due, pixels, frozenset(each.name for each in now.actors))

    def moments(self, seconds: float) -> list[float]:
        """When frames are due: evenly within each second, at that second's rate."""
        chance = np.random.default_rng([self.seed, 0])
        edges = np.append(np.arange(np.ceil(seconds)), seconds)
        rates = chance.uniform(*self.frames_per_second, len(edges) - 1)
        counts = np.concatenate([[0.0], np.cumsum(rates * np.diff(edges))])
        return [float(each) for each in np.interp(np.arange(1, int(counts[-1]) + 1), counts, edges)]


def table_of(shots: Iterable[Shot], begin: datetime = BEGIN) -> pa.Table:
    """Frames as rows of SCHEMA; `at` is when each is due after `begin`."""
    first = round(begin.timestamp() * 1e6)
    rows = [
        {
            "frame": shot.number,
            "at": first + round(shot.due_seconds * 1e6),
            "height": shot.pixels.shape[0],
            "width": shot.pixels.shape[1],
            "pixels": shot.pixels.tobytes(),
        }
        for shot in shots
    ]
    return pa.Table.from_pylist(rows, schema=ARROW)


@dataclass(frozen=True, eq=False)
class _Actor:
    """A logo as it looks in a scene, and the box its upper left corner moves in."""

    name: str
    picture: np.ndarray
    mask: np.ndarray
    box: tuple[float, float, float, float]
    speed: np.ndarray

    def corner(self, seconds: float) -> tuple[int, int]:
        """To and fro between the walls of the box."""
        left, top, wide, high = self.box
        x, y = (self.speed * seconds).tolist()
        return int(left + _to_and_fro(x, wide)), int(top + _to_and_fro(y, high))


def _to_and_fro(way: float, room: float) -> float:
    """Where something is that has gone this way between two walls.

    >>> [_to_and_fro(way, 10.0) for way in (3.0, 12.0, 21.0)]
    [3.0, 8.0, 1.0]
    """
    return room - abs(way % (2 * room) - room) if room > 0 else 0.0


@dataclass(frozen=True, eq=False)
class _Scene:
    background: np.ndarray
    actors: tuple[_Actor, ...]

    @classmethod
    def drawn(cls, video: Video, chance: np.random.Generator) -> _Scene:
        cv2 = opencv()
        rough = chance.uniform(60, 190, (video.height // 16, video.width // 16)).astype(np.float32)
        background = cv2.resize(rough, (video.width, video.height), interpolation=cv2.INTER_CUBIC)
        lanes = chance.permutation(video.most_logos)[: chance.integers(0, video.most_logos + 1)]
        names = chance.choice(sorted(video.logos), len(lanes), replace=False)
        actors = [
            _actor(cv2, video, str(name), int(lane), chance) for name, lane in zip(names, lanes, strict=True)
        ]
        return cls(background, tuple(actors))

    def picture(self, seconds: float, chance: np.random.Generator, noise: float) -> np.ndarray:
        canvas = self.background.copy()
        for actor in self.actors:
            x, y = actor.corner(seconds)
            high, wide = actor.picture.shape
            place = canvas[y : y + high, x : x + wide]
            place[actor.mask] = actor.picture[actor.mask]
        canvas += chance.normal(0.0, noise, canvas.shape).astype(np.float32)
        pixels: np.ndarray = np.clip(canvas, 0, 255).astype(np.uint8)
        return pixels


def _actor(cv2: Any, video: Video, name: str, lane: int, chance: np.random.Generator) -> _Actor:
    logo = video.logos[name]
    side = int(np.ceil(max(logo.shape) * 1.1 * 1.2))
    turn = cv2.getRotationMatrix2D(
        (logo.shape[1] / 2, logo.shape[0] / 2), chance.uniform(-12, 12), chance.uniform(0.9, 1.1)
    )
    turn[:, 2] += (side - logo.shape[1]) / 2, (side - logo.shape[0]) / 2
    picture = cv2.warpAffine(logo, turn, (side, side))
    mask = cv2.warpAffine(np.full_like(logo, 255), turn, (side, side)) > 127
    wide = video.width / video.most_logos
    box = (lane * wide, 0.0, max(wide - side, 0.0), float(max(video.height - side, 0)))
    return _Actor(name, picture, mask, box, chance.uniform(20, 80, 2))
