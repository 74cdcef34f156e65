"""The passes that measure round trips: the bare path, delay, and jitter."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from wanlat.emulator.calibration.fit import apart, requested_correlation
from wanlat.emulator.calibration.law import path_law
from wanlat.emulator.calibration.pairs import Pair, batches
from wanlat.emulator.calibration.switched import DRAWN, nothing, without
from wanlat.emulator.lab import Lab
from wanlat.emulator.prober import Echoes, Prober
from wanlat.topologies.resolve import Impairment, Plan

Tell = Callable[[float], None]

_INTERVAL_S = 0.005
_STEP_S = 0.001  # between two probes of the whole lab: a load that leaves processors idle
_CORRELATION_DEVIATIONS = 6  # how far off a missing correlation must be seen
_AT_MOST = 4000
_HELD = 0.995  # the quantile of a draw that the next packet of the link is sent after


def bare_pass(
    lab: Lab, prober: Prober, pairs: Sequence[Pair], samples: int, tell: Tell
) -> dict[Pair, Echoes]:
    """Measure with every impairment off: what the path itself costs."""
    with nothing(lab):
        return prober.measure(pairs, samples, _spread_s(pairs, _STEP_S), 0.3, tell)


def delay_pass(
    lab: Lab, prober: Prober, requested: Plan, pairs: Sequence[Pair], samples: int, tell: Tell
) -> dict[Pair, Echoes]:
    """Measure with requested jitter off, so that every packet has one right answer."""
    with without(lab, requested, DRAWN):
        return prober.measure(
            pairs, samples, _spread_s(pairs, _STEP_S), patience_s(lab.plan, pairs), tell
        )


def jitter_pass(
    lab: Lab,
    prober: Prober,
    requested: Plan,
    pairs: Sequence[Pair],
    samples: int,
    tell: Tell,
    *,
    size: int = 1,
) -> dict[Pair, Echoes]:
    """Measure the pairs that have jitter, so that draws do not depend on each other.

    ``size`` times as many probes as ``samples`` and the requested correlation need.

    wire keeps the order of a flow: each probe is a flow. netem keeps that of a link: a probe is
    sent when the one before it has arrived, and pairs that share a link take turns. They do so too
    where draws are to be correlated, since it is successive packets of a link whose draws are.
    """
    jittered = [pair for pair in pairs if requested.jitter_ms(*pair) > 0]
    if not jittered:
        return {}
    there = {pair: requested.path(*pair) for pair in jittered}
    related = any(step.correlation for steps in there.values() for step in steps)
    count = size * max(_needed(steps, samples) for steps in there.values())
    keeps_link_order = lab.backend != "wire" and not all(
        step.reorder for steps in there.values() for step in steps if step.jitter_ns
    )
    turns = [jittered]
    if related or keeps_link_order:
        turns = batches(requested, jittered, both_ways=True)
    found: dict[Pair, Echoes] = {}
    with without(lab, requested, ("overtake", "duplicate")):
        for number, batch in enumerate(turns):
            interval_s = len(batch) * _STEP_S
            if keeps_link_order:
                interval_s = max(interval_s, widest_s(requested, batch))

            def tell_all(part: float, number: int = number) -> None:
                tell((number + part) / len(turns))

            found |= prober.measure(
                batch,
                count,
                interval_s,
                patience_s(lab.plan, batch),
                tell_all,
                many_flows=lab.backend == "wire",
            )
    return found


def patience_s(plan: Plan, pairs: Sequence[Pair]) -> float:
    """Return how long to wait for the last probe of these pairs."""
    longest_ns = max(
        sum(step.range_ns[1] for step in plan.path(*pair) + plan.path(*pair[::-1]))
        for pair in pairs
    )
    return 1.5 * longest_ns / 1e9 + 0.4


def _spread_s(pairs: Sequence[Pair], step_s: float) -> float:
    return max(_INTERVAL_S, step_s * len(pairs))


def _needed(steps: Sequence[Impairment], samples: int) -> int:
    """Return how many probes show a requested correlation, and leave enough that are unrelated."""
    asked = requested_correlation(steps) if any(step.jitter_ns for step in steps) else 0.0
    if asked == 0:
        return samples
    shows = math.ceil((_CORRELATION_DEVIATIONS / asked) ** 2)
    return max(samples, min(_AT_MOST, max(shows, samples * apart(steps))))


def widest_s(plan: Plan, pairs: Sequence[Pair]) -> float:
    """Return how far apart packets must be sent for (nearly) none to wait for the one before."""
    ways = [way for pair in pairs for way in (pair, pair[::-1])]
    widths_ms = []
    for way in ways:
        steps = plan.path(*way)
        if any(step.jitter_ns for step in steps):
            law = path_law(steps)
            widths_ms.append(float(law.quantiles([_HELD])[0] - law.delays_ms[0]))
    return float(np.max(widths_ms)) / 1000
