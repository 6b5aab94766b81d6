"""Kills processes that release from one privacy budget, and counts what subjects have spent in what came out.

Two workers at a time ask for the same releases. Each writes what it publishes to a file, as an adversary
would collect it, and before that who stands behind it, which only the bench knows.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from penstock.errors import PenstockError
from penstock.operators.privacy.budget import Budget
from penstock.operators.privacy.questions import Question, Sum, answers

EPSILON = 1.0
RELEASE_EPSILON = 0.3
RELEASES = 20
"""Of each product. A subject is in half of them, and can pay for three."""
SUBJECTS = 400
WINDOW_SECONDS = 60.0
QUESTION = Question("count", "", RELEASE_EPSILON, None, ("all",), WINDOW_SECONDS, 1, 1)

Worker = subprocess.Popen[str]


def budget_overrun(kills: int, seed: int = 1) -> float:
    """The largest excess of what a subject has spent over its budget: at most 0 if all is well.

    Two different answers to one question count as two: noise that is drawn again can be averaged away.
    """
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="penstock-budget-") as scratch:
        folder = Path(scratch)
        rounds = (kills + 1) // 2
        for number in range(rounds):
            _killed_pair(folder, number, chance, last=kills - 2 * number)
        _run_to_the_end(folder, rounds, chance)
        return max(spent(folder).values()) - EPSILON


def spent(folder: Path) -> dict[tuple[str, str], float]:
    """By product and subject, the epsilon of all answers that came out and that the subject stands behind."""
    behind: dict[tuple[str, int], set[str]] = defaultdict(set)
    for drawn in _lines(folder / "drawn"):
        behind[drawn["product"], drawn["start"]].update(drawn["subjects"])
    answered = _lines(folder / "published")
    published = {(each["product"], each["start"], tuple(each["values"])) for each in answered}
    found: dict[tuple[str, str], float] = defaultdict(float)
    for product, start, _ in published:
        for subject in behind[product, start]:
            found[product, subject] += RELEASE_EPSILON
    if not found:
        raise PenstockError("releases must come out before they are counted, but none did: nothing was tried")
    return found


def _killed_pair(folder: Path, number: int, chance: random.Random, *, last: int) -> None:
    """Two workers on a product of their own and the one before, each killed somewhere in the middle."""
    workers = [_start(folder, (number - 1, number), chance) for _ in range(2)]
    try:
        for each in workers[:last]:
            _kill(each, chance)
        _finish(workers[last:])
    finally:
        _end(workers)


def _run_to_the_end(folder: Path, rounds: int, chance: random.Random) -> None:
    """All that was ever asked is asked once more."""
    workers = [_start(folder, range(rounds), chance) for _ in range(2)]
    try:
        _finish(workers)
    finally:
        _end(workers)


def _start(folder: Path, products: range | tuple[int, ...], chance: random.Random) -> Worker:
    listed = ",".join(str(each) for each in products if each >= 0)
    assert __spec__ is not None
    command = [sys.executable, "-m", __spec__.name, str(folder), listed, str(chance.randrange(1 << 30))]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _kill(worker: Worker, chance: random.Random) -> None:
    """Some time after it has told of a release: while it works at the next one."""
    assert worker.stdout is not None
    for _ in range(chance.randint(1, RELEASES // 2)):
        if not worker.stdout.readline():
            raise PenstockError(f"a worker must run until it is killed, but it ended with {worker.wait()}")
    time.sleep(chance.uniform(0, 0.02))
    worker.kill()


def _finish(workers: list[Worker]) -> None:
    for each in workers:
        each.communicate(timeout=300)
        if each.returncode != 0:
            raise PenstockError(
                f"the last workers must come to their end, but one left with {each.returncode}"
            )


def _end(workers: list[Worker]) -> None:
    for each in workers:
        each.kill()
        each.wait()
        if each.stdout is not None:
            each.stdout.close()


def work(folder: Path, products: list[str], seed: int) -> None:
    """Asks for all releases of the products, in an order of its own, whether they were made before or not."""
    budget = Budget(folder / "ledger", EPSILON)
    all_of_them = [(product, number) for product in products for number in range(RELEASES)]
    random.Random(seed).shuffle(all_of_them)
    with (folder / "drawn").open("ab", 0) as drawn, (folder / "published").open("ab", 0) as published:
        for product, number in all_of_them:
            question = replace(QUESTION, product=product)
            start = round(number * WINDOW_SECONDS * 1e6)

            def sums(paid: Mapping[int, frozenset[str]], product: str = product) -> dict[int, dict[str, Sum]]:
                for start, subjects in paid.items():
                    _tell(drawn, {"product": product, "start": start, "subjects": sorted(subjects)})
                return {start: {"all": Sum(len(subjects))} for start, subjects in paid.items()}

            values = answers(budget, question, {start: _present(number)}, sums)[start]
            _tell(published, {"product": product, "start": start, "values": list(values)})
            print("released", product, number, flush=True)


def _present(number: int) -> list[str]:
    """Half of the subjects, others in each release."""
    return random.Random(number).sample([f"s{each}" for each in range(SUBJECTS)], SUBJECTS // 2)


def _tell(file: IO[bytes], line: Mapping[str, Any]) -> None:
    """One line in one write, which a kill leaves whole or not there at all."""
    os.write(file.fileno(), (json.dumps(line) + "\n").encode())


def _lines(file: Path) -> Iterator[Any]:
    return map(json.loads, file.read_text().splitlines())


if __name__ == "__main__":
    work(Path(sys.argv[1]), sys.argv[2].split(","), int(sys.argv[3]))
