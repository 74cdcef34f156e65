"""How long a search takes: the networks that it tests wherever the limits are, trial by trial."""

from __future__ import annotations

import random
from collections.abc import Sequence

from wanlat.bundle.documents import Network
from wanlat.experiments.envelope.search import (
    Answer,
    Axis,
    Decide,
    Question,
    SearchPlan,
    moved,
)
from wanlat.experiments.kinds.envelope import EnvelopeSpec
from wanlat.experiments.workloads.pace import NONE, Seconds, stated

NEAR_S = 0.2
"""How long a cluster is near before each trial."""
_SETTLE_RTTS = 4
"""TCP's timer runs out once or twice, then comes the answer, and that of what waited for it."""
_HEAD_S = 0.2
_VERDICT = Seconds(1.0, 4.0)
"""Of each network: its RTT is measured, and what was written on it is read from every node."""
_TRIAL = Seconds(0.0, 0.5)
_UNWELL = Seconds(0.0, 2.0)
"""After a trial that failed, until the cluster serves near again."""
_KILL = Seconds(2.0, 25.0)
_IDLE_S = 2.0
_SUPPOSED = tuple(share / 4 for share in range(5))
"""Where on its axis each limit is supposed to be, by ratios."""


def settle_s(spec: EnvelopeSpec, question: Question) -> float:
    """Return how long a cluster is at work on a network before the promise has to hold."""
    seconds = max(spec.settle.s, _SETTLE_RTTS * question.network.rtt_ms / 1000)
    if question.after is not None:
        seconds += spec.promise.recovery.s + 2 * question.after.rtt_ms / 1000
    return seconds


def question_takes(spec: EnvelopeSpec, question: Question, held: bool) -> Seconds:
    """Return how long it takes until a network has a verdict."""
    promise, near_s = spec.promise, NEAR_S + spec.rtt.low.s + _HEAD_S
    trial_s = near_s + settle_s(spec, question) + promise.window.s + promise.deadline.s
    if question.after is not None:
        trial_s += promise.window.s + _HEAD_S + question.after.rtt_ms / 1000
    cut_s = promise.cut.s and promise.cut.s + 2 * promise.deadline.s
    lost_s = promise.cut.s and promise.cut.s + promise.recovery.s + promise.deadline.s
    if held:
        trial = stated(trial_s + cut_s).plus(_TRIAL)
    else:  # at once, or after the link was cut
        trial = Seconds(trial_s, trial_s + lost_s).plus(_UNWELL)
    fewest, more = (spec.test.trials(held, astray) for astray in (0, 1))
    return Seconds(trial.least * fewest, trial.most * more).plus(_VERDICT)


def _value(network: Network, axis: Axis) -> float:
    return {"rtt": network.rtt_ms, "jitter": network.jitter_ms, "loss": network.loss}[axis.name]


def supposed(plan: SearchPlan, share: float, known: Sequence[Answer] = ()) -> Decide:
    """Return the answers of a cluster with every limit at a share of its axis, by ratios.

    Where verdicts are ``known``, of what these leave open of the axis.
    """
    limits = dict[Axis, float]()
    for axis in plan.axes:
        held = [_value(question.network, axis) for question, holds in known if holds]
        failed = [question.network for question, holds in known if not holds]
        ends = [(_value(network, axis), network) for network in failed]
        # Of networks that are near but for this axis.
        outside = [end for end, network in ends if network == moved(plan.near, axis.name, end)]
        low, high = max([axis.low, *held]), min([axis.high, *outside])
        limits[axis] = low * (max(high, low) / low) ** share

    def holds(question: Question) -> bool:
        ends = limits.items()
        return all(_value(question.network, axis) <= end * (1 + 1e-9) for axis, end in ends)

    return holds


def search_takes(spec: EnvelopeSpec) -> Seconds:
    """Return how long a search takes, wherever the limits are on their axes."""
    every = []
    for share in _SUPPOSED:
        taken = NONE
        answers = spec.plan.rehearsed(random.Random(0), (), supposed(spec.plan, share))
        for question, held in answers:
            taken = taken.plus(question_takes(spec, question, held))
        every.append(taken)
    whole = Seconds(min(taken.least for taken in every), max(taken.most for taken in every))
    return whole.plus(_KILL.times(spec.kills).plus(stated(_IDLE_S if spec.kills else 0.0)))


def left_s(
    spec: EnvelopeSpec,
    chance: random.Random,
    done: Sequence[bool],
    took_s: float,
    resumed: int = 0,
) -> tuple[int, float]:
    """Return how many networks are left to be tested, and about how many seconds that takes.

    ``chance`` draws the order of the search; ``done`` are its verdicts so far, of which those after
    the first ``resumed`` took ``took_s``. Limits are supposed to be in the middle of what verdicts
    leave open.
    """
    order = chance.getstate()
    known = spec.plan.rehearsed(chance, done, supposed(spec.plan, 0.5))[: len(done)]
    chance.setstate(order)
    answers = spec.plan.rehearsed(chance, done, supposed(spec.plan, 0.5, known))
    times_s = [sum(question_takes(spec, question, held)) / 2 for question, held in answers]
    before_s, after_s = sum(times_s[resumed : len(done)]), sum(times_s[len(done) :])
    ratio = took_s / before_s if before_s else 1.0
    return len(answers) - len(done), after_s * ratio + spec.kills * sum(_KILL) / 2
