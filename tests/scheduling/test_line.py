from math import inf
from statistics import stdev

import pytest

from penstock.measure.profiles import StageProfile
from penstock.scheduling.contexts import Message, PriorityContext, ReplyContext, Target
from penstock.scheduling.line import Line, WindowSpan
from penstock.scheduling.outlook import Costs, Waiting, figures, known_below
from penstock.scheduling.policies import ContextPolicy, Edf, Llf, Sjf, TokenShare
from penstock.scheduling.progress import Heard

EPOCH = 1_800_000_000.0
URGENT = Target("s", "ads", latency_seconds=0.8)


def second(number: int, source: str = "a", late: float = 0.05) -> Message:
    """The rows of one second, which arrive a moment after it."""
    heard = (Heard(source, EPOCH + number + 0.999),)
    return Message(f"{source}{number}", 100, EPOCH + number + 1 + late, heard)


def windowed(policy: Llf | None = None, slide: float = 10.0) -> Line:
    target = Target("s", "ads", latency_seconds=0.8, slide_seconds=slide)
    return Line(policy or Llf(), target, window=WindowSpan(slide))


def next_of(line: Line, cost: float = 0.1, now: float = EPOCH) -> PriorityContext:
    context = line.next_context(cost, now)
    assert context is not None
    return context


def test_a_regular_message_must_start_early_enough_for_itself_and_the_path_below() -> None:
    line = Line(Llf(), URGENT)
    line.reply = ReplyContext(path_seconds=0.25)
    line.arrive("x", Message("x", 10, time=EPOCH))
    assert next_of(line, cost=0.1).pri_global == pytest.approx(EPOCH + 0.8 - 0.1 - 0.25)


@pytest.mark.parametrize(("policy", "deadline"), [(Edf(), EPOCH + 0.8 - 0.25), (Sjf(), 0.1)])
def test_the_kin_of_least_laxity_leave_costs_or_deadlines_out(policy: Llf, deadline: float) -> None:
    line = Line(policy, URGENT)
    line.reply = ReplyContext(path_seconds=0.25)
    line.arrive("x", Message("x", 10, time=EPOCH))
    assert next_of(line, cost=0.1).pri_global == pytest.approx(deadline)


def test_a_window_that_is_not_complete_waits_until_its_frontier_is_expected() -> None:
    line = windowed()
    for number in range(3):
        line.arrive(number, second(number))
    context = next_of(line)
    assert context.deferred
    # Rows come a second at a time, 50 ms after the last of them: those of second 10 are expected at 11.05.
    assert context.pri_global == pytest.approx(EPOCH + 11.05 + 0.8 - 0.1, abs=1e-3)
    assert context.progress == EPOCH + 10


def test_a_window_that_is_complete_is_due_from_the_arrival_that_completed_it() -> None:
    line = windowed()
    for number in range(12):
        line.arrive(number, second(number))
    context = next_of(line)
    assert not context.deferred
    # The first row at or after 10.0 came with the rows of second 10, at 11.05.
    assert context.pri_global == pytest.approx(EPOCH + 11.05 + 0.8 - 0.1)


def test_rows_already_taken_still_wait_for_their_window() -> None:
    line = windowed()
    for number in range(10):
        line.arrive(number, second(number))
        line.take(number, 100)
    line.arrive(10, second(10))
    context = next_of(line)
    assert not context.deferred
    assert context.time == pytest.approx(EPOCH + 11.05)
    line.take(10, 100)
    line.arrive(11, second(11))
    assert next_of(line).deferred


def test_without_semantics_a_window_is_due_like_any_other_stage() -> None:
    line = windowed(Llf(semantics=False))
    line.arrive(0, second(0))
    line.arrive(1, second(1))
    context = next_of(line)
    assert not context.deferred
    assert context.pri_global == pytest.approx(EPOCH + 1.05 + 0.8 - 0.1)


def test_a_window_waits_for_all_its_sources() -> None:
    line = windowed()
    for number in range(12):
        line.arrive(("fast", number), second(number, "fast"))
    for number in range(4):
        line.arrive(("slow", number), second(number, "slow", late=8.0))
    assert next_of(line, now=EPOCH + 12).deferred
    for number in range(4, 11):
        line.arrive(("slow", number), second(number, "slow", late=8.0))
    context = next_of(line, now=EPOCH + 19)
    assert not context.deferred
    assert context.time == pytest.approx(EPOCH + 19.0)


def test_errors_are_put_on_all_that_costs_are_used_for_and_drawn_once_for_a_turn() -> None:
    profile = StageProfile(0.02, 1.0, fixed_seconds=0.1, row_seconds=0.01, turns=9)
    costs = Costs(profile, slots=1, grain_seconds=1.0)
    errors = set()
    for number in range(20):
        line = Line(Llf(cost_error_seconds=0.1), URGENT)
        line.arrive("x", Message(f"x{number}", 10, time=EPOCH))
        seen = figures(line, Waiting(10, EPOCH), EPOCH, costs)
        assert figures(line, Waiting(10, EPOCH), EPOCH, costs) == seen
        error = line.cost_error_seconds
        cost = max(0.2 + error, 0.0)
        assert seen["fixed_seconds"] == pytest.approx(max(0.1 + error, 0.0))
        assert seen["start_deadline"] == pytest.approx(EPOCH + 0.8 - cost)
        assert seen["context"].pri_global == pytest.approx(EPOCH + 0.8 - cost)
        errors.add(error)
    assert len(errors) == 20
    assert 0.05 < stdev(errors) < 0.2
    assert Line(Llf(), URGENT).cost_error_seconds == 0.0


def test_the_next_message_is_the_one_with_the_least_progress() -> None:
    line = Line(Llf(), URGENT)
    line.arrive("late", Message("late", 10, time=EPOCH, heard=(Heard("", EPOCH + 5),)))
    line.arrive("early", Message("early", 10, time=EPOCH + 1, heard=(Heard("", EPOCH + 2),)))
    assert next_of(line).id == "early"
    assert line.place_of("early") < line.place_of("late")
    line.take("early", 4)
    assert next_of(line).id == "early"
    line.take("early", 6)
    assert next_of(line).id == "late"
    line.take("late", 10)
    assert line.next_context(0.1, EPOCH) is None


def test_tokens_are_stamped_evenly_and_what_is_over_the_share_has_none() -> None:
    target = Target("s", "ads", share=0.4)
    line = Line(TokenShare(rows_per_second=1000, portion_seconds=0.3), target)
    stamps = []
    for number in range(6):
        context = line.arrive(number, Message(str(number), 100, time=EPOCH + number / 10))
        context = line.take(number, 0)
        assert context is not None
        stamps.append(None if context.deferred else context.pri_global - EPOCH)
    assert stamps[:4] == [0.0, 0.25, 0.5, 0.75]
    assert stamps[4:] == [None, None]
    # A turn takes what is stamped within 0.3 s of the first.
    assert line.rows_next == 200


def test_tokens_come_back_with_time_and_go_on_with_the_data() -> None:
    policy = TokenShare(rows_per_second=1000)
    line = Line(policy, Target("s", "ads", share=0.1))
    line.arrive(0, Message("0", 500, time=EPOCH))
    line.arrive(1, Message("1", 500, time=EPOCH + 0.5))
    line.arrive(2, Message("2", 500, time=EPOCH + 1.5))
    line.arrive(3, Message("3", 500, time=EPOCH + 5.5))
    contexts = [line.take(number, 500) for number in range(4)]
    # The first has taken the tokens of five seconds.
    assert [each.deferred for each in contexts if each] == [False, True, True, False]
    below = Line(policy, Target("t", "ads", share=0.1))
    below.arrive("x", Message("x", 5, time=EPOCH + 9), upstream=contexts[1])
    assert next_of(below).deferred
    assert next_of(below).pri_local == inf


def test_a_policy_may_be_changed_while_messages_wait() -> None:
    line = Line(Llf(), URGENT)
    line.arrive("a", Message("a", 10, time=EPOCH, heard=(Heard("", EPOCH + 5),)))
    line.arrive("b", Message("b", 10, time=EPOCH + 1, heard=(Heard("", EPOCH + 2),)))
    line.follow(TokenShare(rows_per_second=10))
    assert next_of(line).id == "a"
    assert line.policy.portion < inf


def test_a_context_survives_being_stored() -> None:
    context = PriorityContext("m", 1.0, 2.5, 3.0, 4.0, 0.8, True, {"token": 7.0})
    assert PriorityContext.from_json(context.to_json()) == context


def test_windows_may_begin_at_an_offset() -> None:
    target = Target("s", "ads", latency_seconds=0.8, slide_seconds=10.0)
    line = Line(Llf(), target, window=WindowSpan(10.0, offset_seconds=5.0))
    for number in range(7):
        line.arrive(number, second(number))
    context = next_of(line)
    assert not context.deferred
    assert context.time == pytest.approx(EPOCH + 6.05)


def test_a_window_is_expected_before_any_of_its_rows_wait() -> None:
    line = windowed(slide=1.0)
    for number in range(5):
        line.arrive(number, second(number))
        line.take(number, 100)
    # Taken up to 4.999: the window that ends at 5 needs a row at 5.0, which is expected at 6.05.
    start = line.expected_start(0.1, EPOCH + 5.1)
    assert start is not None
    # A quarter of the target is in reserve, as for a stage that waits.
    assert start.by == pytest.approx(EPOCH + 6.05 + 0.8 - 0.1 - 0.2, abs=1e-3)
    assert (start.ready, start.seconds) == (pytest.approx(EPOCH + 6.05, abs=1e-3), 0.1)
    assert Line(Llf(), URGENT).expected_start(0.1, EPOCH) is None


def test_tokens_are_counted_anew_in_the_order_of_arrival_when_the_policy_changes() -> None:
    line = Line(Llf(), Target("s", "ads", share=0.1))
    for number in range(50):
        line.arrive(number, Message(str(number), 100, time=EPOCH + number / 100))
    line.follow(TokenShare(rows_per_second=1000))
    contexts = [line.take(number, 100) for number in range(50)]
    assert sum(not each.deferred for each in contexts if each) == 1


def test_a_new_target_counts_for_what_waits_already() -> None:
    line = Line(Llf(), URGENT)
    line.arrive("x", Message("x", 10, time=EPOCH))
    line.aim(0.5)
    assert next_of(line, cost=0.1).pri_global == pytest.approx(EPOCH + 0.5 - 0.1)
    assert line.place_of("x")[0] == next_of(line, cost=0.0).pri_local


def test_without_semantics_no_window_is_expected() -> None:
    line = windowed(Llf(semantics=False), slide=1.0)
    for number in range(5):
        line.arrive(number, second(number))
        line.take(number, 100)
    assert line.expected_start(0.1, EPOCH + 5.1) is None


def test_a_window_that_is_complete_says_so() -> None:
    line = windowed()
    line.arrive(0, second(0))
    line.arrive(1, second(1))
    assert not next_of(line).complete
    for number in range(2, 12):
        line.arrive(number, second(number))
    assert next_of(line).complete
    assert PriorityContext.from_json(next_of(line).to_json()) == next_of(line)


def test_a_policy_of_ones_own_knows_the_costliest_path_below_a_stage() -> None:
    class Own(ContextPolicy):
        def at_source(self, message: Message, target: Target) -> PriorityContext:
            return PriorityContext(message.id, 0.0, 0.0, 0.0, message.time, target.latency_seconds)

        def at_operator(self, context: PriorityContext, message: Message, target: Target) -> PriorityContext:
            return context

    replies = [ReplyContext(0.2, 0.3), ReplyContext(0.1, 0.1)]
    assert known_below(Own(), replies).path_seconds == pytest.approx(0.5)
