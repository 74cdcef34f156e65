"""The RTT between sites, measured in a moment while a store runs on them.

For who changes all WAN links together and wants to know what came of it: a few hundred echoes over
all pairs of sites, with the kernel's own stamps, nothing switched off. The median is what counts:
a store's own packets, and a machine that is busy with it, hold up some echoes and not half of them.
A pair that looks off is sent more echoes, and judged by all of them (`calibration.rounds`).
`again.recalibrate` looks at one link's loss, rate and distribution as well, and takes seconds.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations
from types import TracebackType
from typing import Any, Self

import numpy as np

from wanlat.emulator.calibration.counts import corrupted_part, inflation, lost_part, p_value
from wanlat.emulator.calibration.figures import Values, milliseconds
from wanlat.emulator.calibration.judgement import transmission_ms
from wanlat.emulator.calibration.pairs import Pair, directions_of
from wanlat.emulator.calibration.rounds import (
    Finding,
    Judged,
    Limits,
    Round,
    is_certain,
    measure_in_rounds,
)
from wanlat.emulator.lab import Lab
from wanlat.emulator.prober import Echoes, Prober
from wanlat.topologies.resolve import Impairment, Plan

_ECHOES = 400  # of all pairs together, in the first round
_FEWEST, _MOST = 15, 60  # of a pair
_PAIRS = 40
_STEP_S, _INTERVAL_S = 0.001, 0.005  # between two echoes of all, of a pair
_EARLY_MS = 0.1  # clocks, and wire sends a few microseconds ahead
_LATE_MS = 0.5  # of the median: more is a machine that is held up
_TAIL, _TAIL_LATE_MS = 0.75, 2.0  # and so are a quarter of the echoes
_SIZES = (1, 1, 2)  # of the rounds
_PAUSE_S = 0.15  # times the round: what holds the machine up may be over then
_ALPHA = 1e-4


def longest_s(rtt_s: float) -> float:
    """Return how long measuring takes at most, at an RTT: every round that there is time for."""
    return 3.0 + 4 * rtt_s


def pairs_between_sites(plan: Plan, asked: str, seed: int) -> list[Pair]:
    """Return a pair of nodes for every two sites, those from the site of ``asked`` first.

    Of many sites, all pairs from that site, and others as the seed draws them.
    """
    here = plan.node(asked).site
    first = {site.name: site.nodes[0].name for site in plan.sites} | {here: asked}
    near = [(asked, name) for site, name in first.items() if site != here]
    others = [(first[a], first[b]) for a, b in combinations(first, 2) if here not in (a, b)]
    room = max(0, _PAIRS - len(near))
    if len(others) > room:
        others = random.Random(f"{seed}/pairs").sample(others, room)
    return near + others


class BetweenSites:
    """Sockets on one node of each site, to measure with again and again. A context manager."""

    def __init__(self, lab: Lab, pairs: Sequence[Pair]) -> None:
        self._lab = lab
        self._pairs = list(pairs)
        self._prober = Prober(lab, sorted({name for pair in pairs for name in pair}))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._prober.close()

    def measure(self) -> list[dict[str, Any]]:
        """Measure every pair as the lab is now; return one entry each, in their order.

        A pair that looks off is sent more echoes, not longer than ``longest_s`` in all. An entry
        has ``from``, ``to``, ``requested_rtt_ms``, ``measured_rtt_ms`` (median; None: nothing came
        back), ``p99_ms``, ``min_ms``, ``max_ms``, ``sent``, ``lost``, ``rounds``, ``stall_ms``,
        ``reasons`` and ``verdict`` (``pass``, ``fail``). Raises MachineError when the lab ends.
        """
        in_force = self._lab.impairments
        steps = {pair: _steps(self._lab.plan, pair, in_force) for pair in self._pairs}
        longest_rtt_s = max(sum(step.range_ns[1] for step in each) for each in steps.values()) / 1e9
        count = max(_FEWEST, min(_MOST, _ECHOES // len(self._pairs)))
        found = measure_in_rounds(
            self._pairs,
            lambda todo, size: self._echoes(todo, size * count, longest_rtt_s),
            lambda pair, echoes, this: judge(pair, steps[pair], echoes, this),
            Limits(_SIZES, _PAUSE_S, longest_s(longest_rtt_s)),
        )
        return [found[pair] for pair in self._pairs]

    def _echoes(
        self, pairs: Sequence[Pair], count: int, longest_rtt_s: float
    ) -> dict[Pair, Echoes]:
        return self._prober.measure(
            pairs,
            count,
            max(_INTERVAL_S, _STEP_S * len(pairs)),
            1.2 * longest_rtt_s + 0.1,
            many_flows=self._lab.backend == "wire",
        )


def _steps(plan: Plan, pair: Pair, in_force: Any) -> tuple[Impairment, ...]:
    ways = (*directions_of(plan, pair), *directions_of(plan, pair[::-1]))
    return tuple(in_force[each] for each in ways)


def judge(pair: Pair, steps: Sequence[Impairment], echoes: Echoes, this: Round) -> Judged:
    """Return a pair's entry and what is wrong. ``steps`` are to be in force there and back."""
    rtt_ms = milliseconds(echoes.rtt_ns)
    entry: dict[str, Any] = {
        "from": pair[0],
        "to": pair[1],
        "requested_rtt_ms": sum(step.delay_ns for step in steps) / 1e6,
        "measured_rtt_ms": None,
        "p99_ms": None,
        "min_ms": None,
        "max_ms": None,
        "sent": echoes.sent,
        "lost": echoes.lost,
    }
    if not rtt_ms.size:
        return entry, [Finding("no echo came back")]
    entry |= {
        "measured_rtt_ms": float(np.median(rtt_ms)),
        "p99_ms": float(np.percentile(rtt_ms, 99)),
        "min_ms": float(rtt_ms.min()),
        "max_ms": float(rtt_ms.max()),
    }
    return entry, _delay_faults(rtt_ms, steps, this) + _loss_faults(echoes, steps, this)


def _delay_faults(rtt_ms: Values, steps: Sequence[Impairment], this: Round) -> list[Finding]:
    """Say where the echoes lie outside what is asked for; with jitter, outside its whole range.

    A median that is late is the link's where the quarter that suffered least is late too.
    """
    if any(step.overtake for step in steps):
        least_ms = 0.0
    else:
        least_ms = sum(step.range_ns[0] for step in steps) / 1e6
    most_ms = sum(step.range_ns[1] for step in steps) / 1e6 + transmission_ms(steps)
    best_ms, median_ms, tail_ms = (float(q) for q in np.quantile(rtt_ms, [0.25, 0.5, _TAIL]))
    asked = f"{least_ms:g} ms" if least_ms == most_ms else f"{least_ms:g} to {most_ms:g} ms"
    if median_ms < least_ms - _EARLY_MS:
        return [Finding(f"early: median {median_ms:.3f} ms, asked for {asked}")]
    if median_ms > most_ms + _LATE_MS:
        words = f"late: median {median_ms:.3f} ms, asked for {asked}"
        return [Finding(words, is_final=this.is_again and best_ms > most_ms + _LATE_MS)]
    if tail_ms > most_ms + _TAIL_LATE_MS:
        late = f"{1 - _TAIL:.0%} of the echoes took more than {tail_ms:.3f} ms"
        share = float(np.mean(rtt_ms > most_ms + _TAIL_LATE_MS))
        is_final = this.is_beyond(share, 1 - _TAIL)
        return [Finding(f"late: {late}, asked for {asked}", is_final=is_final)]
    return []


def _loss_faults(echoes: Echoes, steps: Sequence[Impairment], this: Round) -> list[Finding]:
    part = 1 - (1 - lost_part(steps)) * (1 - corrupted_part(steps))
    p = p_value(echoes.lost, echoes.sent, part, inflation(steps))
    if p < this.alpha(_ALPHA):
        words = f"{echoes.lost} of {echoes.sent} echoes lost, asked for {part:.2%}"
        return [Finding(words, is_final=is_certain(p, _ALPHA))]
    return []
