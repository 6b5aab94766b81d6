"""What a policy by contexts is: the four functions of Cameo."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import inf

from penstock.scheduling.contexts import Message, PriorityContext, ReplyContext, Target
from penstock.scheduling.stage_view import StageView


@dataclass(frozen=True, slots=True)
class ContextPolicy(ABC):
    """Orders stages by the priorities that their messages carry (Cameo, section 5.1).

    A policy of one's own gives contexts: `at_source` to a message that comes from outside, `at_operator` to
    one that a stage has written, from the context of the message that triggered it. The least `pri_local`
    is a stage's next message, and the stage with the least `pri_global` of its next message runs first;
    among them, one whose message is `deferred` only where nothing else waits. A turn takes the messages
    whose `pri_global` is up to `portion` above that of the next.
    """

    @property
    def portion(self) -> float:
        return inf

    @property
    def by_deadline(self) -> bool:
        """Whether a patient turn is cut short for one that must start soon."""
        return False

    @property
    def waits_for_more(self) -> bool:
        """Whether few rows of messages that are deferred wait a little for more, even in idle slots."""
        return False

    @abstractmethod
    def at_source(self, message: Message, target: Target) -> PriorityContext: ...

    @abstractmethod
    def at_operator(self, context: PriorityContext, message: Message, target: Target) -> PriorityContext: ...

    def process_reply(self, known: ReplyContext, reply: ReplyContext) -> ReplyContext:
        """What a stage knows of those below it, after a reply of one of them: the costliest is critical."""
        return ReplyContext(known.cost_seconds, max(known.path_seconds, reply.total_seconds))

    def prepare_reply(self, own: ReplyContext) -> ReplyContext:
        """What a stage tells those above it: its own cost, and that of the path below."""
        return own

    def cost_error(self, stage: str, message: str) -> float:
        """Seconds put on the cost of the turn that begins with a message, to see how much errors matter."""
        return 0.0

    def priority(self, stage: StageView, now: float) -> float:
        return stage.context.pri_global if stage.context is not None else inf

    def reason(self, stage: StageView) -> str:
        return "least priority of its next message"
