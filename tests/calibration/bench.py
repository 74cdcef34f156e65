"""A running lab on which tests set impairments and send packets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from emulator.backends import choice
from emulator.calibration.echoes import widest_s
from emulator.calibration.fit import lawful
from emulator.calibration.law import Values
from emulator.calibration.pairs import directions_of
from emulator.lab import Lab
from emulator.links import Direction
from emulator.prober import Prober
from emulator.stream import Delivery, Stream
from tests.emulator.plans import mesh
from topologies.resolve import Impairment, Plan

SITES = 6
PAIR = ("n1", "n2")
_LATE_S = 0.3


class Bench:
    """A lab of single-node sites, and what sends packets in it."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self._stream = Stream(lab, [node.name for node in lab.plan.nodes])

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    @property
    def backend(self) -> str:
        return self.lab.backend

    def refusal(self, impairment: Impairment) -> str | None:
        """Why the backend does not do it; None if it does."""
        direction = next(iter(self.lab.impairments))
        try:
            choice.check(self.backend, {direction: impairment})
        except Exception as error:
            return str(error)
        return None

    def ask(self, impairment: Impairment) -> Plan:
        """Set it on every WAN link and return the plan that says so; skip if refused.

        What may be refused is a test of its own.
        """
        if reason := self.refusal(impairment):
            pytest.skip(reason)
        self.lab.change(dict.fromkeys(self._wan(), impairment))
        return mesh(len(self.lab.plan.sites), wan=impairment)

    def _wan(self) -> list[Direction]:
        return [each for each in self.lab.impairments if each.kind == "wan"]

    def send(self, impairment: Impairment, count: int, per_s: float, *, flows: int = 1) -> Delivery:
        """Send packets one way over a link that does this to them."""
        plan = self.ask(impairment)
        longest_s = plan.path(*PAIR)[1].range_ns[1] / 1e9
        return self._stream.send([PAIR], count, 1 / per_s, 1.2 * longest_s + _LATE_S, flows=flows)[
            PAIR
        ]

    def draws(self, asked: Impairment, count: int) -> Draws:
        """Return about `count` delays that did not wait for each other, and this machine's errors.

        wire keeps the order of flows, so each packet is one. netem keeps that of links: there many
        links are used, and each packet is sent when the one before has arrived. Some links have
        the delay without jitter meanwhile. What they show of the machine being held up is left out
        on all, and what is left of their errors is what the others' must be expected to have.
        """
        self.ask(asked)
        plan = mesh(len(self.lab.plan.sites), wan=asked)
        names = [node.name for node in plan.nodes]
        pairs = [(a, b) for a in names for b in names if a != b]
        still = [pair for pair in pairs if pair[0] == names[-1]]
        drawn = [pair for pair in pairs if pair[0] != names[-1]]
        if self.backend == "wire":
            drawn, still = [PAIR], [("n3", "n4")]
        fixed = replace(asked, jitter_ns=0, distribution="uniform", table=(), correlation=0.0)
        self.lab.change({directions_of(plan, pair)[1]: fixed for pair in still})
        each = -(-count // len(drawn))
        if self.backend == "wire":
            interval_s, flows = 0.0006, each
        else:
            interval_s, flows = widest_s(plan, drawn), 1
        patience_s = 1.2 * asked.range_ns[1] / 1e9 + _LATE_S
        sent = self._stream.send([*drawn, *still], each, interval_s, patience_s, flows=flows)
        held_up = _HeldUp(fixed.delay_ns, [sent[pair] for pair in still])
        return Draws(
            np.concatenate([held_up.without(sent[pair]) for pair in drawn]) / 1e6,
            (np.concatenate([held_up.without(sent[pair]) for pair in still]) - fixed.delay_ns)
            / 1e6,
        )

    def median_rtt_ms(self, impairment: Impairment) -> float:
        """Return the median round trip over a link with this impairment both ways."""
        self.ask(impairment)
        with Prober(self.lab, PAIR) as prober:
            echoes = prober.measure([PAIR], 200, 0.003, 0.5)[PAIR]
        return float(np.median(echoes.rtt_ns)) / 1e6


@dataclass(frozen=True)
class Draws:
    """Delays, and the errors of packets that were sent among them with a fixed delay; ms."""

    delays_ms: Values
    errors_ms: Values

    def p_value(self, asked: Impairment) -> float:
        """Return the probability of delays that fit what is asked for as badly as these."""
        law = lawful([asked], self.errors_ms)
        return float(stats.kstest(self.delays_ms, law.cdf).pvalue)


class _HeldUp:
    """Spans of time in which the machine delivered nothing, by packets whose delay is known."""

    def __init__(self, delay_ns: int, still: list[Delivery]) -> None:
        due = np.concatenate([one.sent_ns[~one.missing] for one in still]) + delay_ns
        late = np.concatenate([one.delays_ns for one in still]) - delay_ns
        usual = np.median(late)
        bad = late > 3 * usual + 300_000
        order = np.argsort(due[bad])
        # A packet that was due a little before the first that we know of was held up as well.
        self._begins = due[bad][order] - 1_000_000
        self._ends = np.maximum.accumulate((due + late)[bad][order] + 200_000)

    def without(self, delivery: Delivery) -> Values:
        """Return the delays (ns) of the packets that arrived outside these spans."""
        delays = delivery.delays_ns
        if not self._begins.size:
            return delays.astype(np.float64)
        arrived = delivery.sent_ns[~delivery.missing] + delays
        last = np.searchsorted(self._begins, arrived, side="right") - 1
        inside = (last >= 0) & (arrived <= self._ends[np.maximum(last, 0)])
        return delays[~inside].astype(np.float64)


def holds(claim: Callable[[], bool], times: int = 3) -> bool:
    """Whether a claim holds at one of a few attempts.

    At 1 %, one right network in a hundred is rejected, and a busy machine spoils a measurement;
    a defect spoils all of them.
    """
    return any(claim() for _ in range(times))


def told(document: dict[str, Any]) -> str:
    """Everything that calibration found wrong."""
    return " | ".join(reason for pair in document["pairs"] for reason in pair["reasons"])
