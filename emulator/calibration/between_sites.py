"""The RTT between sites, measured in a moment while a store runs on them.

For who changes all WAN links together and wants to know what came of it: a few hundred echoes over
all pairs of sites, with the kernel's own stamps, nothing switched off. The median is what counts:
a store's own packets, and a machine that is busy with it, hold up some echoes and not half of them.
`again.recalibrate` looks at one link's loss, rate and distribution as well, and takes seconds.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from itertools import combinations
from types import TracebackType
from typing import Any, Self

import numpy as np

from emulator.calibration.counts import corrupted_part, inflation, lost_part, p_value
from emulator.calibration.figures import Values, milliseconds
from emulator.calibration.judgement import transmission_ms
from emulator.calibration.pairs import Pair, directions_of
from emulator.lab import Lab
from emulator.prober import Echoes, Prober
from topologies.resolve import Impairment, Plan

ATTEMPTS = 4
_ECHOES = 400  # of all pairs together
_FEWEST, _MOST = 15, 60  # of a pair
_PAIRS = 40
_STEP_S, _INTERVAL_S = 0.001, 0.005  # between two echoes of all, of a pair
_EARLY_MS = 0.1  # clocks, and wire sends a few microseconds ahead
_LATE_MS = 0.5  # of the median: more is a machine that is held up
_TAIL, _TAIL_LATE_MS = 0.75, 2.0  # and so are a quarter of the echoes
_PAUSE_S = 0.15  # times the attempt: what holds the machine up may be over then
_ALPHA = 1e-4


def longest_s(rtt_s: float) -> float:
    """Return how long measuring takes at most, at an RTT: every attempt that there is time for."""
    return 2.0 + 2 * rtt_s


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

        A pair that is off is measured again, up to ``ATTEMPTS`` times in all and not longer than
        ``longest_s``. An entry has ``from``, ``to``, ``requested_rtt_ms``, ``measured_rtt_ms``
        (median; None: nothing came back), ``p99_ms``, ``min_ms``, ``max_ms``, ``sent``, ``lost``,
        ``attempts``, ``reasons`` and ``verdict`` (``pass``, ``fail``). Raises MachineError when
        the lab ends.
        """
        began = time.monotonic()
        in_force = self._lab.impairments
        steps = {pair: _steps(self._lab.plan, pair, in_force) for pair in self._pairs}
        longest_rtt_s = max(sum(step.range_ns[1] for step in each) for each in steps.values()) / 1e9
        until = began + longest_s(longest_rtt_s)
        found: dict[Pair, dict[str, Any]] = {}
        todo = self._pairs
        for attempt in range(1, ATTEMPTS + 1):
            at = time.monotonic()
            echoes = self._echoes(todo, longest_rtt_s)
            took_s = time.monotonic() - at
            for pair in todo:
                found[pair] = judge(pair, steps[pair], echoes[pair]) | {"attempts": attempt}
            todo = [pair for pair in todo if found[pair]["verdict"] == "fail"]
            pause_s = _PAUSE_S * attempt
            if not todo or time.monotonic() + pause_s + took_s > until:
                break
            time.sleep(pause_s)
        return [found[pair] for pair in self._pairs]

    def _echoes(self, pairs: Sequence[Pair], longest_rtt_s: float) -> dict[Pair, Echoes]:
        count = max(_FEWEST, min(_MOST, _ECHOES // len(pairs)))
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


def judge(pair: Pair, steps: Sequence[Impairment], echoes: Echoes) -> dict[str, Any]:
    """Return a pair's entry. ``steps`` are what is to be in force there and back."""
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
        return entry | {"reasons": ["no echo came back"], "verdict": "fail"}
    entry |= {
        "measured_rtt_ms": float(np.median(rtt_ms)),
        "p99_ms": float(np.percentile(rtt_ms, 99)),
        "min_ms": float(rtt_ms.min()),
        "max_ms": float(rtt_ms.max()),
    }
    reasons = _delay_faults(rtt_ms, steps) + _loss_faults(echoes, steps)
    return entry | {"reasons": reasons, "verdict": "fail" if reasons else "pass"}


def _delay_faults(rtt_ms: Values, steps: Sequence[Impairment]) -> list[str]:
    """Say where the echoes lie outside what is asked for; with jitter, outside its whole range."""
    if any(step.overtake for step in steps):
        least_ms = 0.0
    else:
        least_ms = sum(step.range_ns[0] for step in steps) / 1e6
    most_ms = sum(step.range_ns[1] for step in steps) / 1e6 + transmission_ms(steps)
    median_ms, tail_ms = (float(each) for each in np.quantile(rtt_ms, [0.5, _TAIL]))
    asked = f"{least_ms:g} ms" if least_ms == most_ms else f"{least_ms:g} to {most_ms:g} ms"
    if median_ms < least_ms - _EARLY_MS:
        return [f"early: median {median_ms:.3f} ms, asked for {asked}"]
    if median_ms > most_ms + _LATE_MS:
        return [f"late: median {median_ms:.3f} ms, asked for {asked}"]
    if tail_ms > most_ms + _TAIL_LATE_MS:
        late = f"{1 - _TAIL:.0%} of the echoes took more than {tail_ms:.3f} ms"
        return [f"late: {late}, asked for {asked}"]
    return []


def _loss_faults(echoes: Echoes, steps: Sequence[Impairment]) -> list[str]:
    part = 1 - (1 - lost_part(steps)) * (1 - corrupted_part(steps))
    if p_value(echoes.lost, echoes.sent, part, inflation(steps)) < _ALPHA:
        return [f"{echoes.lost} of {echoes.sent} echoes lost, asked for {part:.2%}"]
    return []
