"""Work that goes behind all other, or waits a little: it costs less when there is more of it."""

from __future__ import annotations

from penstock.scheduling.laxity import pays_early
from penstock.scheduling.policies import BatchIt, ContextPolicy, Policy
from penstock.scheduling.stage_view import StageView

NOT_PUT_OFF, IN_IDLE_SLOTS, UNTIL_IT_PAYS, UNTIL_COMPLETE = range(4)
AMPLE_SECONDS = 20.0
"""A stage that need not start before then has much time."""


def put_off(policy: Policy, view: StageView, now: float, *, scarce: bool = True) -> int:
    """How far a stage is put off; `scarce` says that slots are.

    By a plan: behind the full batches; with a window that is not complete until it has waited a little, and
    with a block that is not until it is, or until patience ends.
    By contexts, work for a window that is not complete yet goes behind all other; where a turn for the few
    rows there are would be mostly fixed cost, such work waits a little for more, if the policy wants that.
    So does, by deadlines, a stage with a target that leaves it much time; but the result of a window that is
    complete leaves at once if nobody else needs the slot.
    """
    if isinstance(policy, BatchIt):
        if view.full:
            return NOT_PUT_OFF
        if view.short_of_block:
            return UNTIL_COMPLETE
        return UNTIL_IT_PAYS if view.blocked else IN_IDLE_SLOTS
    if view.context is None or not isinstance(policy, ContextPolicy):
        return NOT_PUT_OFF
    pays = pays_early(view) or not view.trusted
    if view.context.deferred:
        return IN_IDLE_SLOTS if pays or not policy.waits_for_more else UNTIL_IT_PAYS
    has_time = view.latency_seconds is not None and view.start_deadline - now > AMPLE_SECONDS
    has_time &= policy.by_deadline and not view.flush
    leaves = view.context.complete and not scarce
    return UNTIL_IT_PAYS if has_time and not pays and not leaves else NOT_PUT_OFF
