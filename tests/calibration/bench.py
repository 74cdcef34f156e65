"""A running lab on which tests set impairments and send packets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tests.emulator.plans import mesh
from wanlat.emulator.backends import choice
from wanlat.emulator.calibration.echoes import widest_s
from wanlat.emulator.calibration.law import Values, path_law
from wanlat.emulator.lab import Lab
from wanlat.emulator.links import Direction
from wanlat.emulator.prober import Prober
from wanlat.emulator.stream import Delivery, Stream
from wanlat.topologies.resolve import Impairment, Plan

SITES = 6
PAIR = ("n1", "n2")

STRAGGLERS = 0.05
"""Of all packets may be held up by the machine: those that are in flight when it stalls."""

_EARLY_MS = 0.1  # clocks, and wire sends a few microseconds ahead
_LATE_MS = 1.0  # coarse timers make all packets, and do in User-Mode Linux
_LATE_S, _LATE_IN_UML_S = 0.1, 0.3


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
        patience_s = self._patience_s(plan.path(*PAIR)[1])
        return self._stream.send([PAIR], count, 1 / per_s, patience_s, flows=flows)[PAIR]

    def draws(self, asked: Impairment, count: int) -> Values:
        """Return about so many delays that did not wait for each other, ms; on netem half of it.

        wire keeps the order of flows, so each packet is one. netem keeps that of links: there all
        links are used, and what counts are packets that were sent when the one before had arrived.
        """
        plan = self.ask(asked)
        names = [node.name for node in plan.nodes]
        if self.backend == "wire":
            pairs, interval_s, flows = [PAIR], 0.0003, count
        else:
            pairs = [(a, b) for a in names for b in names if a != b]
            interval_s, flows = widest_s(plan, pairs), 1
            count //= 2  # the time that one packet of a link waits for the next is long
        each = -(-count // len(pairs))
        sent = self._stream.send(pairs, each, interval_s, self._patience_s(asked), flows=flows)
        found = [_apart(one, 0.0 if flows > 1 else 0.9 * interval_s) for one in sent.values()]
        return np.concatenate(found) / 1e6

    def _patience_s(self, asked: Impairment) -> float:
        late_s = _LATE_S if self.backend == "wire" else _LATE_IN_UML_S
        return 1.2 * asked.range_ns[1] / 1e9 + late_s

    def median_rtt_ms(self, impairment: Impairment) -> float:
        """Return the median round trip over a link with this impairment both ways."""
        self.ask(impairment)
        with Prober(self.lab, PAIR) as prober:
            echoes = prober.measure([PAIR], 200, 0.003, 0.5)[PAIR]
        return float(np.median(echoes.rtt_ns)) / 1e6


def _apart(delivery: Delivery, gap_s: float) -> Values:
    """Return delays of packets that were sent at least so long after the one before, ns."""
    gaps_ns = np.diff(delivery.sent_ns, prepend=delivery.sent_ns[0] - 10**12)
    chosen: Values = delivery.delays_ns[gaps_ns[~delivery.missing] >= gap_s * 1e9]
    return chosen


@dataclass(frozen=True)
class Misfit:
    """How far delays are from a distribution, at the delay where that is most.

    ``early``: how many more of them, as a share of all, were shorter than were to be;
    ``late``: how many fewer. ``chance`` is what either may be by chance once in a million.
    ``margin_ms``: how much longer the shortest is than the shortest that may be drawn.
    """

    early: float
    late: float
    chance: float
    margin_ms: float

    @classmethod
    def of(cls, delays_ms: Values, asked: Impairment) -> Misfit:
        from scipy import stats

        law = path_law([asked])
        early, late = (
            float(stats.kstest(delays_ms + allowed_ms, law.cdf, alternative=side).statistic)
            for side, allowed_ms in (("greater", _EARLY_MS), ("less", -_LATE_MS))
        )
        # Dvoretzky, Kiefer and Wolfowitz, with Massart's constant (1990).
        chance = float(np.sqrt(np.log(1e6) / (2 * delays_ms.size)))
        margin_ms = float(delays_ms.min()) + _EARLY_MS - asked.range_ns[0] / 1e6
        return cls(early, late, chance, margin_ms)

    @property
    def is_right(self) -> bool:
        """Whether no delay is shorter than drawn, and few are longer.

        A machine that stalls holds up what is in flight; it makes nothing early.
        """
        not_early = self.margin_ms >= 0 and self.early <= self.chance
        return not_early and self.late <= self.chance + STRAGGLERS


def told(document: dict[str, Any]) -> str:
    """Everything that calibration found wrong."""
    return " | ".join(reason for pair in document["pairs"] for reason in pair["reasons"])
