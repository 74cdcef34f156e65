"""A running lab on which tests set impairments and send packets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pytest

from tests.emulator.plans import mesh
from wanlat.emulator.backends import choice
from wanlat.emulator.calibration.delays import Values, path_law
from wanlat.emulator.calibration.passes import Passes, widest_s
from wanlat.emulator.lab import Lab
from wanlat.emulator.links import Direction
from wanlat.emulator.prober import Prober, Probes
from wanlat.topologies.resolve import Impairment, Plan

SITES = 6
PAIR = ("n1", "n2")

STRAGGLERS = 0.05
"""Of the packets that were sent while nothing stood still may be late all the same."""

_EARLY_MS = 0.1  # clocks, and wire sends a few microseconds ahead
_LATE_MS = 1.0  # coarse timers make all packets, and do in User-Mode Linux
_SILENCE = 12  # times the mean distance of packets: chance makes one once in 160,000
_IN_FLIGHT = 0.995  # the quantile of a draw after which a packet has arrived
_FEWEST = 100  # packets tell something
_LATE_S, _LATE_IN_UML_S = 0.1, 0.3


class Bench:
    """A lab of single-node sites, and what sends packets in it."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self._prober = Prober(lab, [node.name for node in lab.plan.nodes])

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
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

    def draws(self, asked: Impairment, count: int) -> Draws:
        """Send about so many packets that do not wait for each other; on netem half of it.

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
        sent = self._prober.send(pairs, each, interval_s, self._patience_s(asked), flows=flows)
        found = [_apart(one, 0.0 if flows > 1 else 0.9 * interval_s) for one in sent.values()]
        return Draws(
            np.concatenate([each.sent_ms for each in found]),
            np.concatenate([each.delays_ms for each in found]),
        )

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


@dataclass(frozen=True)
class Draws:
    """When packets that arrived were sent, and how long they took."""

    sent_ms: Values
    delays_ms: Values

    @classmethod
    def of(cls, delivery: Probes) -> Draws:
        """Return those of a delivery, in the order of sending."""
        return cls(delivery.sent_ns[~delivery.missing] / 1e6, delivery.delays_ns / 1e6)

    def calm(self, asked: Impairment) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return of which packets none was in flight while nothing arrived for a while.

        What stands still hands on nothing and then all at once. Packets are chosen by when they
        were sent and not by how long they took, so the rest are draws like all others.
        """
        arrived_ms = np.sort(self.sent_ms + self.delays_ms)
        silent = np.diff(arrived_ms) > _SILENCE * np.ptp(self.sent_ms) / self.sent_ms.size
        latest_ms = float(path_law([asked]).quantiles([_IN_FLIGHT])[0])
        calm = np.ones(self.sent_ms.size, dtype=np.bool_)
        for begin_ms, end_ms in zip(arrived_ms[:-1][silent], arrived_ms[1:][silent], strict=True):
            calm &= (self.sent_ms < begin_ms - latest_ms) | (self.sent_ms > end_ms)
        return calm


def _apart(delivery: Probes, gap_s: float) -> Draws:
    """Return packets that were sent at least so long after the one before."""
    gaps_ns = np.diff(delivery.sent_ns, prepend=delivery.sent_ns[0] - 10**12)
    chosen = gaps_ns[~delivery.missing] >= gap_s * 1e9
    draws = Draws.of(delivery)
    return Draws(draws.sent_ms[chosen], draws.delays_ms[chosen])


@dataclass(frozen=True)
class Misfit:
    """How far delays are from a distribution, at the delay where that is most.

    ``early``: how many more of them, as a share of all, were shorter than were to be; ``late``:
    how many fewer. Both less what chance does once in a million to so many. ``early`` is that of
    all packets or of the calm ones, whichever is more; ``late`` of the calm ones (`Draws.calm`).
    ``margin_ms``: how much longer the shortest is than the shortest that may be drawn.
    """

    early: float
    late: float
    calm: int
    margin_ms: float

    @classmethod
    def of(cls, draws: Draws, asked: Impairment) -> Misfit:
        """Compare delays with the distribution that was requested."""
        delays_ms = draws.delays_ms
        calm_ms = delays_ms[draws.calm(asked)]
        return cls(
            max(_beyond(delays_ms, asked, "greater"), _beyond(calm_ms, asked, "greater")),
            _beyond(calm_ms, asked, "less"),
            int(calm_ms.size),
            float(delays_ms.min()) + _EARLY_MS - asked.range_ns[0] / 1e6,
        )

    @property
    def is_right(self) -> bool:
        """Whether no delay is shorter than drawn, and few of the calm ones are longer.

        A machine that stalls holds up what is in flight; it makes nothing early. So early is what
        convicts a distribution of the same mean: somewhere it has more packets than were asked
        for. Where the machine stood still all the time, nothing is said of late ones.
        """
        return self.margin_ms >= 0 and self.early <= 0 and self.late <= STRAGGLERS


def _beyond(delays_ms: Values, asked: Impairment, side: Literal["greater", "less"]) -> float:
    """Return the largest distance to that side, less what chance does once in a million.

    By Dvoretzky, Kiefer and Wolfowitz, with Massart's constant (1990).
    """
    if delays_ms.size < _FEWEST:
        return -1.0
    law, ordered = path_law([asked]), np.sort(delays_ms)
    places = np.arange(ordered.size)
    if side == "greater":
        distance = np.max((places + 1) / ordered.size - law.cdf(ordered + _EARLY_MS))
    else:
        distance = np.max(law.cdf(ordered - _LATE_MS) - places / ordered.size)
    return float(distance - np.sqrt(np.log(1e6) / (2 * ordered.size)))


def reasons(document: dict[str, Any]) -> list[str]:
    """Everything that calibration found wrong."""
    return [reason for pair in document["pairs"] for reason in pair["reasons"]]
