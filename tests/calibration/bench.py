"""A running lab on which tests set impairments and send packets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.emulator.plans import mesh
from wanlat.emulator.backends import choice
from wanlat.emulator.calibration.delays import Values, milliseconds
from wanlat.emulator.calibration.passes import Passes, widest_s
from wanlat.emulator.closing import Closing
from wanlat.emulator.lab import Lab
from wanlat.emulator.links import Direction
from wanlat.emulator.prober import Prober, Probes
from wanlat.topologies.resolve import Impairment, Plan

SITES = 6
PAIR = ("n1", "n2")

_LATE_S, _LATE_IN_UML_S = 0.1, 0.3


class Bench(Closing):
    """A lab of single-node sites, and what sends packets in it."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self._prober = Prober(lab, [node.name for node in lab.plan.nodes])

    def close(self) -> None:
        self._prober.close()

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

    def send(self, impairment: Impairment, count: int, per_s: float, *, flows: int = 1) -> Probes:
        """Send packets one way over a link that does this to them."""
        plan = self.ask(impairment)
        patience_s = self._patience_s(plan.path(*PAIR)[1])
        return self._prober.send([PAIR], count, 1 / per_s, patience_s, flows=flows)[PAIR]

    def delays_ms(self, asked: Impairment, count: int) -> Values:
        """Send about so many packets that do not wait for each other; on netem half of it.

        wire keeps the order of flows, so each packet is one. netem keeps that of links: there all
        links are used, and what counts are packets that were sent when the one before had arrived.
        """
        plan = self.ask(asked)
        names = [node.name for node in plan.nodes]
        if self.backend == "wire":
            pairs, interval_s, flows, apart_s = [PAIR], 0.0003, count, 0.0
        else:
            pairs = [(a, b) for a in names for b in names if a != b]
            interval_s, flows = widest_s(plan, pairs), 1
            apart_s = 0.9 * interval_s
            count //= 2  # the time that one packet of a link waits for the next is long
        of_pair = -(-count // len(pairs))
        sent = self._prober.send(pairs, of_pair, interval_s, self._patience_s(asked), flows=flows)
        return np.concatenate([_apart_ms(delivery, apart_s) for delivery in sent.values()])

    def trains_bps(self, asked: Impairment) -> list[float]:
        """Return the rates of trains over a link with a rate, of those that say something."""
        plan = self.ask(asked)
        rates_bps = Passes(self.lab, self._prober, plan).rate(lambda _: None, [PAIR])[PAIR]
        return [rate_bps for rate_bps in rates_bps if rate_bps is not None]

    def _patience_s(self, asked: Impairment) -> float:
        late_s = _LATE_S if self.backend == "wire" else _LATE_IN_UML_S
        return 1.2 * asked.range_ns[1] / 1e9 + late_s

    def least_rtt_ms(self, impairment: Impairment) -> float:
        """Return the quickest round trip over a link with this impairment both ways."""
        self.ask(impairment)
        echoes = self._prober.measure([PAIR], 200, 0.003, 0.5)[PAIR]
        return int(echoes.rtt_ns.min()) / 1e6


def _apart_ms(delivery: Probes, apart_s: float) -> Values:
    """Return the delays of packets that were sent at least so long after the one before."""
    gaps_ns = np.diff(delivery.sent_ns, prepend=delivery.sent_ns[0] - 10**12)
    return milliseconds(delivery.delays_ns[gaps_ns[~delivery.missing] >= apart_s * 1e9])


def reasons(document: dict[str, Any]) -> list[str]:
    """Everything that calibration found wrong."""
    return [reason for pair in document["pairs"] for reason in pair["reasons"]]
