"""A cluster on one machine in virtual time: nodes, tasks and the driver share its processors.

What the bench's runs have on Spark is here in a few numbers, so that its managers and settings can be tried
in seconds: a node's start takes processor time, the first task of a stage on a node is cold, dividing state
is a pause, and all of it slows down what else runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import count
from random import Random

from tests.bench.elastic.virtual_parts import Costs, Node, Stage, Task, Turn, Use, dealt, wanting

from penstock.act import Actuator, ElasticLoop, RecentFigures, UseMeter, stage_seen
from penstock.act.cluster import COLD
from penstock.bench.elastic.scale import PIPELINE, REGION, Scale
from penstock.measure.stage_meter import StageMeter
from penstock.measure.turns import TurnRecord
from penstock.plan.elastic import Observation
from penstock.spark.elastic import RATE_PERIODS
from penstock.workloads.wordcount import OPERATORS

STEP_SECONDS = 0.05
LATE_SECONDS = 0.1
DRAIN_SECONDS = 120.0


class VirtualCluster:
    """Is the `Nodes` and the `Stages` of an actuator; `run` feeds it the ramp under its managers."""

    def __init__(self, scale: Scale, scenario: str, costs: Costs | None = None, seed: int = 1):
        self.now = 0.0
        self.latencies: list[tuple[float, int, float]] = []
        """When a sentence was due, its words, and how long they took."""
        self.replica_seconds = self.node_seconds = 0.0
        self.pauses: list[float] = []
        self.changes: list[float] = []
        self.history: list[tuple[float, int, int]] = []
        self._scale, self._costs, self._chance = scale, costs or Costs(), Random(seed)
        self._late = Random(seed)
        self._names = (f"first-{number}" for number in count(1))
        self._nodes: dict[str, Node] = {}
        for _ in range(scale.first_nodes(scenario)):
            self._add(next(self._names), 1, REGION, "up")
        slots = scale.first_replicas(scenario)
        self._stages = {
            f"{PIPELINE}.{name}": Stage(
                f"{PIPELINE}.{name}", scale.service[name], slots[name], StageMeter(0.0)
            )
            for name in OPERATORS
        }
        for node in self._nodes.values():
            node.knows.update(self._stages)
        self._use: Counter[tuple[str, int, str]] = Counter()
        self._sent = 0
        self._dividing = 0.0
        self._loop = self._managed(scale, scenario)

    def _managed(self, scale: Scale, scenario: str) -> ElasticLoop | None:
        managers = scale.managers(scenario)
        if managers is None:
            return None
        period = managers.periods.operator_seconds
        self._recent = RecentFigures(RATE_PERIODS * period)
        self._uses = UseMeter(period, "run")
        self._actuator = Actuator(self, self)
        return ElasticLoop(managers, self._observe, self._actuator)

    # What a cluster offers.

    def nodes(self) -> Sequence[Node]:
        return list(self._nodes.values())

    def use(self) -> Sequence[Use]:
        return [Use(*key, run_seconds=seconds) for key, seconds in self._use.items()]

    def start(self, cores: int, region: str, name: str = "") -> str:
        self._add(name, cores, region, "starting")
        return name

    def hide(self, name: str) -> None:
        self._nodes[name].state = "hidden"

    def show(self, name: str) -> None:
        self._nodes[name].state = "up"

    def release(self, name: str) -> None:
        self._nodes[name].state, self._nodes[name].gone_at = "leaving", self.now + 1.0

    def set_slots(self, slots: Mapping[str, int], reason: str = "") -> None:
        """Returns when it is done, as an engine does."""
        for name, wanted in slots.items():
            stage, began = self._stages[name], self.now
            if stage.stateful:
                stage.paused = True
                while stage.turn is not None:
                    self._pass()
                self._dividing = self._costs.divide
                while self._dividing > 0.0:
                    self._pass()
                stage.paused, stage.resumes = False, True
                self.pauses.append(self.now - began)
            stage.profiler.rescale(wanted)
            stage.slots, stage.changed_at = wanted, self.now
            self.changes.append(self.now)

    def _add(self, name: str, cores: int, region: str, state: str) -> None:
        left = self._costs.start if state == "starting" else 0.0
        self._nodes[name] = Node(name, region, cores, state, left)

    # A run.

    def run(self) -> VirtualCluster:
        """The whole ramp, and what is left at its end."""
        seconds, look_at = self._scale.ramp.seconds, 0.0
        while self.now < seconds or (self._busy and self.now < seconds + DRAIN_SECONDS):
            if self._loop is not None and self.now >= look_at and self.now < seconds:
                self._loop.look(self.now)
                # Late by up to a tenth of a second, as threads are.
                look_at = self._loop.next_look(self.now) + self._late.uniform(0.0, LATE_SECONDS)
            self._pass()
        return self

    @property
    def _busy(self) -> bool:
        return any(stage.queue or stage.turn for stage in self._stages.values())

    def _observe(self, now: float) -> Observation:
        seen = {}
        for name, stage in self._stages.items():
            figures = self._recent.of(name, stage.meter, now)
            known = stage_seen(figures, stage.slots, stage.profiler.profile)
            seen[name] = type(known)(**{**vars(known), "since": stage.changed_at})
        return self._uses.look(now, self.nodes(), self.use(), seen, self._actuator.name_of)

    # Time passes.

    def _pass(self) -> None:
        self._feed()
        for stage in self._stages.values():
            if stage.turn is None and stage.queue and not stage.paused:
                self._grant(stage)
        self._work()
        self.now = round(self.now + STEP_SECONDS, 6)
        for name, stage in self._stages.items():
            if stage.turn is not None and stage.turn.after <= 0.0:
                self._finish(name, stage, stage.turn)
        self._come_and_go()
        self._count()

    def _feed(self) -> None:
        tick, ramp = self._scale.tick, self._scale.ramp
        if self.now and abs(self.now / tick - round(self.now / tick)) < 1e-6 and self.now <= ramp.seconds:
            upto = ramp.sentences(self.now)
            first = [(self.now, self._chance.randint(5, 15)) for _ in range(upto - self._sent)]
            self._sent = upto
            self._put(f"{PIPELINE}.{OPERATORS[0]}", first)

    def _put(self, name: str, sentences: list[tuple[float, int]]) -> None:
        if sentences:
            stage = self._stages[name]
            stage.queue.extend(sentences)
            words = name != f"{PIPELINE}.{OPERATORS[0]}"
            arrived = sum(each[1] for each in sentences) if words else len(sentences)
            stage.meter.queue_changed(len(stage.queue), self.now, arrived)

    def _grant(self, stage: Stage) -> None:
        free = [node for node in self._nodes.values() if node.state == "up" and node.tasks < node.cores]
        slots = sum(node.cores - node.tasks for node in free)
        if slots < stage.slots:
            return
        sentences = list(stage.queue)
        stage.queue.clear()
        stage.meter.queue_changed(0, self.now)
        tasks = []
        for replica, words in enumerate(dealt(stage, sentences, self._chance)):
            node = self._chance.choice([each for each in free if each.tasks < each.cores])
            node.tasks += 1
            cold = stage.name not in node.knows
            node.knows.add(stage.name)
            processor = self._costs.task + (self._costs.cold if cold else 0.0)
            tasks.append(Task(replica, node, processor, words * stage.row_seconds, cold))
        before = self._costs.driver + (self._costs.resume if stage.resumes else 0.0)
        stage.turn, stage.resumes = Turn(self.now, sentences, before, self._costs.driver / 2, tasks), False
        stage.meter.turn_started(self.now, stage.slots)

    def _work(self) -> None:
        """Everything that wants a processor gets its share of them for a moment."""
        turns = [stage.turn for stage in self._stages.values() if stage.turn is not None]
        starting = [node for node in self._nodes.values() if node.state == "starting"]
        active = (self._dividing > 0.0) + sum(wanting(turn) for turn in turns)
        sharing = active if self._costs.yielding else active + len(starting)
        speed = min(1.0, self._costs.cores / sharing) if sharing else 1.0
        left = max(self._costs.cores - active, 0.1) if self._costs.yielding else speed * len(starting)
        if self._dividing > 0.0:
            self._dividing -= speed * STEP_SECONDS
        for node in starting:
            node.start_left -= min(1.0, left / len(starting)) * STEP_SECONDS
        for name, stage in self._stages.items():
            if stage.turn is not None:
                self._run_turn(name, stage.turn, speed)

    def _run_turn(self, name: str, turn: Turn, speed: float) -> None:
        """What a moment has left of one part of a turn goes to the next."""
        if turn.before > 0.0:
            turn.before -= speed * STEP_SECONDS
            for task in turn.tasks:
                task.processor_left = max(task.processor_left + min(turn.before, 0.0), 1e-9)
            return
        running = [task for task in turn.tasks if not task.done]
        for task in running:
            self._use[name, COLD if task.cold else task.replica, task.node.name] += STEP_SECONDS
            if task.processor_left > 0.0:
                task.processor_left -= speed * STEP_SECONDS
                task.waits += min(task.processor_left, 0.0)
            else:
                task.waits -= STEP_SECONDS
            if task.done:
                task.node.tasks -= 1
        if not running:
            turn.after -= speed * STEP_SECONDS
        elif all(task.done for task in running):
            turn.after += max(task.waits for task in running)

    def _finish(self, name: str, stage: Stage, turn: Turn) -> None:
        stage.turn = None
        stage.turns += 1
        words = sum(each[1] for each in turn.sentences)
        rows = len(turn.sentences) if name.endswith("split") else words
        record = TurnRecord(
            name,
            PIPELINE,
            stage.turns,
            "direct",
            stage.slots,
            turn.granted_at,
            self.now,
            rows,
            words,
            0.0,
            0.0,
            0.0,
        )
        stage.meter.turn_finished(record)
        stage.profiler.learn(record)
        place = OPERATORS.index(name.rpartition(".")[2])
        if place + 1 < len(OPERATORS):
            self._put(f"{PIPELINE}.{OPERATORS[place + 1]}", turn.sentences)
        else:
            self.latencies += [(due, words, self.now - due) for due, words in turn.sentences]

    def _come_and_go(self) -> None:
        for name, node in tuple(self._nodes.items()):
            if node.state == "starting" and node.start_left <= 0.0:
                node.state = "up"
            elif node.state == "leaving" and self.now >= node.gone_at and not node.tasks:
                del self._nodes[name]

    def _count(self) -> None:
        if self.now <= self._scale.ramp.seconds:
            replicas = sum(stage.slots for stage in self._stages.values())
            self.replica_seconds += STEP_SECONDS * replicas
            self.node_seconds += STEP_SECONDS * len(self._nodes)
            if not self.history or self.now - self.history[-1][0] >= self._scale.minute:
                self.history.append((self.now, replicas, len(self._nodes)))

    # Its figures.

    @property
    def replicas(self) -> float:
        return self.replica_seconds / self._scale.ramp.seconds

    @property
    def mean_nodes(self) -> float:
        return self.node_seconds / self._scale.ramp.seconds

    @property
    def latency_seconds(self) -> float:
        """Of a word."""
        return sum(words * took for _, words, took in self.latencies) / sum(
            each[1] for each in self.latencies
        )
