"""The passes of calibration over an idle lab: what is sent, and what is switched off meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from wanlat.emulator.calibration.delays import path_law
from wanlat.emulator.calibration.pairs import batches, slices
from wanlat.emulator.calibration.rate import Rated, Train, train_rates
from wanlat.emulator.lab import Lab
from wanlat.emulator.links import Direction
from wanlat.emulator.links import requested as requested_of
from wanlat.emulator.prober import (
    ECHO_BYTES,
    ETHERNET_BYTES,
    ONE_WAY_BYTES,
    Leg,
    Numbers,
    Pair,
    Prober,
    Probes,
    Progress,
)
from wanlat.topologies.resolve import Impairment, Plan

_NOTHING = Impairment()
_DRAWN = ("jitter_ns", "overtake")  # what makes packets' delays differ
_UNDELIVERED = ("loss", "bursts", "duplicate", "corrupt")  # and what, their number
# Between two probes of a pair, and of the whole lab: a load that leaves processors idle.
_INTERVAL_S, _ECHO_STEP_S, ONE_WAY_STEP_S = 0.005, 0.0006, 0.0002
_CALM_STEP_S = 0.001
"""In further rounds: what held the machine up in the first is a small part of a longer time."""
_HELD = 0.995  # the quantile of a draw that the next packet of the link is sent after
_FEW = 100  # packets show whether order is kept
TOGETHER = 10
"""So many pairs are counted at the same time: a flow's packets follow each other more closely than
their jitter."""
_TOGETHER_BPS = 300e6  # of trains at the same time: this process has to keep up
_LATE_S = 0.15


NO_ECHOES = Probes(back=Leg())


@dataclass(frozen=True)
class BothWays:
    """A pair's echoes, and those of the opposite pair, which pass the same links."""

    echoes: Probes
    opposite: Probes = NO_ECHOES

    def __add__(self, later: BothWays) -> BothWays:
        return BothWays(self.echoes + later.echoes, self.opposite + later.opposite)

    @property
    def there_ns(self) -> Numbers:
        """The delays of all packets on the way there."""
        return np.concatenate((self.echoes.delays_ns, self.opposite.returns_ns))

    @property
    def back_ns(self) -> Numbers:
        """The delays of all packets on the way back."""
        return np.concatenate((self.echoes.returns_ns, self.opposite.delays_ns))


@dataclass(frozen=True)
class Passes:
    """The passes over a lab on which ``requested`` is to be in force.

    Each has a count and a progress callback (the part done, 0 to 1), then the pairs, and how many
    times the count is sent.
    """

    lab: Lab
    prober: Prober
    requested: Plan

    def bare(self, count: int, on_progress: Progress, pairs: Sequence[Pair]) -> dict[Pair, Probes]:
        """Measure with every impairment off: what the path itself costs."""
        in_force = self.lab.impairments.items()
        off = {direction: _NOTHING for direction, now in in_force if not now.is_noop}
        with _changed(self.lab, off):
            every_s = interval_s(self.lab.plan, pairs)
            return self.prober.measure(pairs, count, every_s, 0.3, on_progress)

    def delay(
        self, count: int, on_progress: Progress, pairs: Sequence[Pair], size: int = 1
    ) -> dict[Pair, Probes]:
        """Measure with requested jitter off, so that every packet has one right answer."""
        with self._without(_DRAWN):
            every_s = interval_s(self.requested, pairs, _echo_step_s(size))
            patience = patience_s(self.lab.plan, pairs)
            return self.prober.measure(pairs, size * count, every_s, patience, on_progress)

    def jitter(
        self, count: int, on_progress: Progress, pairs: Sequence[Pair], size: int = 1
    ) -> dict[Pair, BothWays]:
        """Measure the pairs that have jitter, so that draws do not depend on each other.

        So that each direction has that many delays: an echo has one each way, so half of them are
        those of the opposite pair's echoes, where that is measured too. wire keeps the order of a
        flow: each probe is a flow. netem keeps that of a link: a probe is sent when the one before
        it has arrived, and pairs that share a link take turns.
        """
        requested, by_flow = self.requested, self.lab.backend == "wire"
        steps = [step for pair in pairs for step in requested.path(*pair) if step.jitter_ns]
        keeps_link_order = not by_flow and not all(step.reorder for step in steps)
        turns = batches(requested, pairs, both_ways=True) if keeps_link_order else [list(pairs)]
        if {pair[::-1] for pair in pairs} == set(pairs):
            count = -(-count // 2)
        probes: dict[Pair, Probes] = {}
        with self._without(("overtake", "duplicate")):
            for number, batch in enumerate(turns):
                every_s = interval_s(requested, batch, _echo_step_s(size), least_s=0.0)
                if keeps_link_order:
                    every_s = max(every_s, widest_s(requested, batch))
                patience = patience_s(self.lab.plan, batch)
                probes |= self.prober.measure(
                    batch, size * count, every_s, patience, many_flows=by_flow
                )
                on_progress((number + 1) / len(turns))
        return {pair: BothWays(probes[pair], probes.get(pair[::-1], NO_ECHOES)) for pair in pairs}

    def delivery(
        self, count: int, on_progress: Progress, pairs: Sequence[Pair], size: int = 1
    ) -> dict[Pair, Probes]:
        """Send one flow of packets a pair, close together, with every impairment in force.

        ``count`` of them where loss, duplication, corruption or overtaking are requested, few where
        only the order matters.
        """
        requested = self.requested
        many = [pair for pair in pairs if is_counted(requested.path(*pair))]
        few = [pair for pair in pairs if pair not in set(many)]
        # Bursts are runs of a link's packets, so each link has to be a pair's own.
        turns = [(batch, count * size) for batch in batches(requested, many, at_most=TOGETHER)]
        turns += [(batch, _FEW * size) for batch in slices(few, TOGETHER)]
        probes: dict[Pair, Probes] = {}
        for number, (batch, packets) in enumerate(turns):
            longest_s = max(longest_ns(self.lab.plan.path(*pair)) for pair in batch) / 1e9
            every_s = interval_s(requested, batch, ONE_WAY_STEP_S, 0.0, ONE_WAY_BYTES)
            probes |= self.prober.send(batch, packets, every_s, 1.2 * longest_s + _LATE_S)
            on_progress((number + 1) / len(turns))
        return probes

    def rate(
        self, on_progress: Progress, pairs: Sequence[Pair], size: int = 1
    ) -> dict[Pair, list[float | None]]:
        """Return the rates of the pairs that have one, by ``size`` times the trains.

        Pairs with trains at the same time share no link, and are not too much for one process.
        """
        requested = self.requested
        rated = {pair: rate for pair in pairs if (rate := Rated.on_path(requested.path(*pair)))}
        turns: list[list[Pair]] = []
        for batch in batches(requested, list(rated)):
            taken: list[Pair] = []
            for pair in batch:
                if taken and sum(rated[member].rate_bps for member in (*taken, pair)) > (
                    _TOGETHER_BPS
                ):
                    turns.append(taken)
                    taken = []
                taken.append(pair)
            turns.append(taken)
        rates: dict[Pair, list[float | None]] = {}
        with self._without((*_DRAWN, *_UNDELIVERED)):
            for number, batch in enumerate(turns):
                trains = {pair: Train.for_rate(rated[pair]).times_of(size) for pair in batch}
                # The last packet waits for the path's delay, and for the queue before it.
                patience = _LATE_S + max(
                    sum(step.delay_ns for step in self.lab.plan.path(*pair)) / 1e9
                    + 1.5 * train.length * rated[pair].packet_s
                    for pair, train in trains.items()
                )
                due_s = {pair: train.due_s for pair, train in trains.items()}
                sent = self.prober.send_full(due_s, patience)
                for pair, train in trains.items():
                    rates[pair] = train_rates(sent[pair], train, rated[pair])
                on_progress((number + 1) / len(turns))
        return rates

    @contextmanager
    def _without(self, fields: Sequence[str]) -> Iterator[None]:
        """Switch these fields off, on links for which they are requested.

        Where they are not, they stay: what was not requested is an error to be found.
        """
        by_direction = requested_of(self.requested)
        changes: dict[Direction, Impairment] = {}
        for direction, now in self.lab.impairments.items():
            wanted = by_direction.get(direction, _NOTHING)
            off = {
                name: getattr(_NOTHING, name)
                for name in fields
                if getattr(wanted, name) != getattr(_NOTHING, name)
            }
            changed = replace(now, **off)
            if not changed.jitter_ns:  # nothing for draws to be shaped by
                changed = replace(changed, distribution="uniform", table=())
            if changed != now:
                changes[direction] = changed
        with _changed(self.lab, changes):
            yield


def _echo_step_s(size: int) -> float:
    return _ECHO_STEP_S if size == 1 else _CALM_STEP_S


def is_counted(steps: Sequence[Impairment]) -> bool:
    """Return whether a path is to deliver other packets than those that were sent."""
    return any(
        step.loss_probability or step.duplicate or step.corrupt or step.overtake for step in steps
    )


def longest_ns(steps: Sequence[Impairment]) -> int:
    """Return the longest delay of a path."""
    return sum(step.range_ns[1] for step in steps)


def patience_s(plan: Plan, pairs: Sequence[Pair]) -> float:
    """Return how long to wait for the last echo of these pairs."""
    longest = max(longest_ns(plan.path(*pair) + plan.path(*pair[::-1])) for pair in pairs)
    return 1.5 * longest / 1e9 + 0.4


def interval_s(
    plan: Plan,
    pairs: Sequence[Pair],
    step_s: float = _ECHO_STEP_S,
    least_s: float = _INTERVAL_S,
    size: int = ECHO_BYTES,
) -> float:
    """Return how far apart a pair's probes are sent, so that they fill no link with a rate."""
    ways = [way for pair in pairs for way in (pair, pair[::-1])]
    slowest = [rated.rate_bps for way in ways if (rated := Rated.on_path(plan.path(*way)))]
    together = 2 * len(pairs) * 8 * (size + ETHERNET_BYTES) / min(slowest) if slowest else 0.0
    return max(least_s, step_s * len(pairs), together)


def widest_s(plan: Plan, pairs: Sequence[Pair]) -> float:
    """Return how far apart packets must be sent for (nearly) none to wait for the one before."""
    laws = [path_law(plan.path(*way)) for pair in pairs for way in (pair, pair[::-1])]
    return max(float(law.quantiles([_HELD])[0] - law.delays_ms[0]) for law in laws) / 1000


@contextmanager
def _changed(lab: Lab, changes: dict[Direction, Impairment]) -> Iterator[None]:
    before = {direction: lab.impairments[direction] for direction in changes}
    if changes:
        lab.change(changes, origin="calibration")
    try:
        yield
    finally:
        if changes:
            lab.change(before, origin="calibration")
