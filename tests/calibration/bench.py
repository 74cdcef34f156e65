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
from emulator.calibration.law import Law, Values
from emulator.calibration.pairs import directions_of
from emulator.lab import Lab
from emulator.links import Direction
from emulator.prober import Prober
from emulator.stream import Delivery, Stream
from tests.emulator.plans import mesh
from topologies.resolve import Impairment, Plan

SITES = 6
PAIR = ("n1", "n2")

Instants = np.ndarray[Any, np.dtype[np.int64]]

_LATE_S = 0.3
_ROUNDS = 4


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

    def draws(self, asked: Impairment, at_least: int) -> Draws:
        """Return so many delays that did not wait for each other, and this machine's errors.

        Fewer if the machine was held up for most of the time.
        """
        found = self._draws(asked, at_least + at_least // 10)
        for _ in range(_ROUNDS - 1):
            if found.delays_ms.size >= at_least:
                break
            found = found.and_more(self._draws(asked, at_least))
        return found

    def _draws(self, asked: Impairment, count: int) -> Draws:
        """Return about `count` delays, in the order of sending, without those that were held up.

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
        # Where packets are few, so are the known ones, and they stand for the time between them.
        blind_ns = 2e6 if self.backend == "wire" else np.inf
        held_up = _HeldUp(fixed.delay_ns, [sent[pair] for pair in still], blind_ns)
        errors_ns = np.concatenate([held_up.sift(sent[pair])[1] for pair in still])
        law = lawful([asked], (errors_ns - fixed.delay_ns) / 1e6)
        sifted = [(*held_up.sift(sent[pair]), held_up) for pair in drawn]
        return Draws(
            np.concatenate([delays_ns / 1e6 for _, delays_ns, _ in sifted]),
            np.concatenate([_as_uniform(law, *one) for one in sifted]),
        )

    def median_rtt_ms(self, impairment: Impairment) -> float:
        """Return the median round trip over a link with this impairment both ways."""
        self.ask(impairment)
        with Prober(self.lab, PAIR) as prober:
            echoes = prober.measure([PAIR], 200, 0.003, 0.5)[PAIR]
        return float(np.median(echoes.rtt_ns)) / 1e6


@dataclass(frozen=True)
class Draws:
    """Delays (ms), and what part of all packets was to have a shorter one; shape (n,).

    Those parts are even draws from 0 to 1 if the delays are from what was asked for.
    """

    delays_ms: Values
    parts: Values

    def and_more(self, others: Draws) -> Draws:
        return Draws(
            np.concatenate((self.delays_ms, others.delays_ms)),
            np.concatenate((self.parts, others.parts)),
        )

    def p_value(self, every: int = 1) -> float:
        """Return the probability of delays that fit as badly as (every n-th of) these."""
        return float(stats.kstest(self.parts[::every], "uniform").pvalue)


def _as_uniform(law: Law, sent_ns: Instants, delays_ns: Values, held_up: _HeldUp) -> Values:
    """Return what part of the delays that were not left out was to be shorter, for each.

    A packet that was sent at a given instant could not be kept with some of the delays that it may
    draw: those that end while the machine was held up. So its law is the requested one without
    them.
    """
    below, kept = law.cdf(delays_ns / 1e6), np.ones(delays_ns.size)
    for begin_ns, end_ns in held_up.unseen:
        low, high = (begin_ns - sent_ns) / 1e6, (end_ns - sent_ns) / 1e6
        kept -= law.cdf(high) - law.cdf(low)
        below -= law.cdf(np.minimum(high, delays_ns / 1e6))
        below += law.cdf(np.minimum(low, delays_ns / 1e6))
    return below / np.maximum(kept, 1e-9)


class _HeldUp:
    """When the machine was held up, by packets whose delay is known.

    Those that were to leave meanwhile left late; and those that were sent meanwhile arrived late.
    Leaving out by the instants of sending and of arrival does not prefer any delay.
    """

    def __init__(self, delay_ns: int, still: list[Delivery], blind_ns: float) -> None:
        """Where none of the known ones was to leave for `blind_ns`, nobody knows."""
        sent = np.concatenate([one.sent_ns[~one.missing] for one in still])
        late = np.concatenate([one.delays_ns for one in still]) - delay_ns
        bad = late > 3 * np.quantile(late, 0.1) + 500_000
        due = sent[bad] + delay_ns
        all_due = np.sort(sent + delay_ns)
        wide = np.flatnonzero(np.diff(all_due) > blind_ns)
        self._sent = _merged(sent[bad] - 1_000_000, sent[bad] + 1_000_000)
        self.unseen = _merged(
            np.concatenate((due - 1_000_000, all_due[wide])),
            np.concatenate((due + late[bad] + 300_000, all_due[wide + 1] + 300_000)),
        )

    def sift(self, delivery: Delivery) -> tuple[Instants, Values]:
        """Return instants of sending and delays of what was neither sent nor arrived then; ns."""
        sent, delays = delivery.sent_ns[~delivery.missing], delivery.delays_ns
        good = ~_inside(sent, self._sent) & ~_inside(sent + delays, self.unseen)
        return sent[good], delays[good].astype(np.float64)


def _merged(begins: Instants, ends: Instants) -> list[tuple[int, int]]:
    """Return spans of time without overlap."""
    merged: list[tuple[int, int]] = []
    for begin, end in sorted(zip(begins.tolist(), ends.tolist(), strict=True)):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


def _inside(
    instants: Instants, spans: list[tuple[int, int]]
) -> np.ndarray[Any, np.dtype[np.bool_]]:
    inside = np.zeros(instants.shape, dtype=np.bool_)
    for begin, end in spans:
        inside |= (instants >= begin) & (instants <= end)
    return inside


def holds(claim: Callable[[], bool], times: int = 3) -> bool:
    """Whether a claim holds at one of a few attempts.

    At 1 %, one right network in a hundred is rejected, and a busy machine spoils a measurement;
    a defect spoils all of them.
    """
    return any(claim() for _ in range(times))


def told(document: dict[str, Any]) -> str:
    """Everything that calibration found wrong."""
    return " | ".join(reason for pair in document["pairs"] for reason in pair["reasons"])
