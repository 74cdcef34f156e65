"""Links measured while a store runs on them: at another RTT, or after a fault was healed.

Nothing is switched off for this, so what is measured is what is in force, jitter and loss
included, beside the store's own packets. Those and the machine only add to delays. So packets must
not be early at all, the earlier half of them must not be late, and of all not as many as would show
a link that is wrong a third of the time; and of a rate, the median of several trains counts. A
pair that looks off is sent more, and judged by all of it (`calibration.rounds`).
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from wanlat.emulator.calibration import judgement
from wanlat.emulator.calibration.counts import lost_part
from wanlat.emulator.calibration.delays import EARLY_MS, Values, milliseconds, path_law
from wanlat.emulator.calibration.pairs import batches, directions_of
from wanlat.emulator.calibration.passes import interval_s, longest_ns
from wanlat.emulator.calibration.rate import FRAME_BITS, Rated, by_train
from wanlat.emulator.calibration.rounds import (
    Finding,
    Judged,
    Limits,
    Round,
    measure_in_rounds,
    too_few,
)
from wanlat.emulator.calibration.tolerance import Tolerance
from wanlat.emulator.closing import Closing
from wanlat.emulator.lab import Lab
from wanlat.emulator.links import Direction
from wanlat.emulator.prober import Numbers, Pair, Prober, Probes
from wanlat.topologies.resolve import Impairment, Plan

WHILE_RUNNING = Tolerance(median_ms=1.0, near_median_ms=0.5, rate=0.1)
"""What a machine that is busy with a store adds to delays is not the link's."""
LIMITS = Limits(sizes=(1, 1, 2, 4), pause_s=0.4, longest_s=20.0)
"""Of measuring a healed link: what holds the machine up may be over after a pause."""
RTT_STEP = Tolerance(median_ms=0.5, near_median_ms=0.5)

_ECHOES, _FEWEST, _MOST = 3000, 40, 300  # in the first round: of all pairs, of one pair
_STEP_ECHOES, _STEP_FEWEST, _STEP_MOST = 400, 15, 60  # and at an RTT step
_ENOUGH = 0.4  # of the packets are clean: their median is the link's
_PAIRS = 40
_EARLIEST = (0.1, 0.25, 0.5, 0.75)  # quantiles that are judged
_LATEST = ((0.1, 0.0), (0.25, 0.0), (0.5, 0.0), (0.7, 5.0))  # and ms late that each allows at least
_CROWDED = 0.2  # of the packets may find a queue full that the store fills
_BURSTS, _PACKETS, _MOST_PACKETS = 5, 36, 400  # of a burst: fewer than the smallest queue holds
_LONGEST_BURST_S = 0.15
_SEEN_BPS = 50e6  # a rate below is seen through a jitter


@dataclass(frozen=True)
class _Route:
    """A pair of nodes, what is to be in force there and back, and the directions to be measured."""

    pair: Pair
    there: tuple[Impairment, ...]
    back: tuple[Impairment, ...]
    targets: tuple[Direction, ...] = ()

    @classmethod
    def between(
        cls,
        plan: Plan,
        pair: Pair,
        expected: Mapping[Direction, Impairment],
        targets: Collection[Direction] = (),
    ) -> _Route:
        there, back = directions_of(plan, pair), directions_of(plan, pair[::-1])
        return cls(
            pair,
            tuple(expected[direction] for direction in there),
            tuple(expected[direction] for direction in back),
            tuple(direction for direction in (*there, *back) if direction in targets),
        )

    @property
    def steps(self) -> tuple[Impairment, ...]:
        """What is to be in force on the round trip."""
        return self.there + self.back

    @property
    def cut(self) -> list[Pair]:
        """The ways on which nothing gets through."""
        ways = ((self.pair, self.there), (self.pair[::-1], self.back))
        return [pair for pair, steps in ways if lost_part(steps) >= 1]


@dataclass(frozen=True)
class _Evidence:
    """What was measured of a route: round trips, and bursts of full packets either way."""

    echoes: Probes
    there: Probes
    back: Probes

    def __add__(self, later: _Evidence) -> _Evidence:
        return _Evidence(
            self.echoes + later.echoes, self.there + later.there, self.back + later.back
        )


def _burst(steps: Sequence[Impairment]) -> tuple[int, float]:
    """Return how many packets a burst has, and how far apart a rate lets them arrive, s.

    Where there is to be no rate, so many that one would be seen through the jitter. Else as many
    as find room in the queue and are over soon.
    """
    if (rated := Rated.on_path(steps)) is None:
        jitter_s = sum(step.range_ns[1] - step.range_ns[0] for step in steps) / 1e9
        return _PACKETS + min(_MOST_PACKETS, int(jitter_s * _SEEN_BPS / FRAME_BITS)), 0.0
    room = min(_PACKETS, int(0.85 * 8 * rated.queue_bytes / FRAME_BITS))
    return max(3, min(room, int(_LONGEST_BURST_S / rated.packet_s))), rated.packet_s


def pairs_between_sites(plan: Plan, target: str, seed: int) -> list[Pair]:
    """Return a pair of nodes for every two sites, those from the site of ``target`` first.

    Of many sites, all pairs from that site, and others as the seed draws them.
    """
    here = plan.node(target).site
    first = {site.name: site.nodes[0].name for site in plan.sites} | {here: target}
    near = [(target, name) for site, name in first.items() if site != here]
    others = [(first[a], first[b]) for a, b in combinations(first, 2) if here not in (a, b)]
    room = max(0, _PAIRS - len(near))
    if len(others) > room:
        others = random.Random(f"{seed}/pairs").sample(others, room)
    return near + others


class BetweenSites(Closing):
    """Measures the RTT of pairs again and again, each time in a moment. A context manager.

    For who changes all WAN links together and wants to know what came of it: echoes alone, and
    round trips alone are judged.
    """

    def __init__(self, lab: Lab, pairs: Sequence[Pair]) -> None:
        self._lab = lab
        self._pairs = list(pairs)
        nodes = sorted({name for pair in pairs for name in pair})
        self._prober = Prober(lab, nodes, RTT_STEP.late_ms)

    def close(self) -> None:
        """Close the prober."""
        self._prober.close()

    def measure(self) -> list[dict[str, Any]]:
        """Measure every pair as the lab is now; return one entry each, in their order.

        An entry has ``from``, ``to``, ``requested_rtt_ms``, ``measured_rtt_ms`` (median; None:
        nothing came back), ``p99_ms``, ``min_ms``, ``max_ms``, ``sent``, ``lost``, ``rounds``,
        ``late``, ``reasons`` and ``verdict`` (``pass``, ``fail``). Raises MachineError when
        the lab ends.
        """
        in_force = self._lab.impairments
        routes = [_Route.between(self._lab.plan, pair, in_force) for pair in self._pairs]
        count = max(_STEP_FEWEST, min(_STEP_MOST, _STEP_ECHOES // len(routes)))
        longest_s = 3.0 + 4 * max(longest_ns(route.steps) / 1e9 for route in routes)
        outcomes = measure_in_rounds(
            routes,
            lambda todo, size: _echoes(self._lab, self._prober, todo, size * count),
            judge_rtt_step,
            Limits((1, 1, 2), 0.15, longest_s),
        )
        return [outcomes[route].entry | outcomes[route].verdict for route in routes]


def judge_rtt_step(route: _Route, echoes: Probes, this: Round) -> Judged:
    """Return a pair's entry at an RTT step, and what is wrong."""
    entry, findings = _judge_echoes(route, echoes, RTT_STEP, this)
    rtt = entry["rtt_ms"] or {}
    kept = ("from", "to", "requested_rtt_ms", "measured_rtt_ms", "sent", "lost", "late")
    shown = {f"{name}_ms": rtt.get(name) for name in ("p99", "min", "max")}
    rtt_ms = milliseconds(echoes.rtt_ns)
    few = too_few(echoes, this, _ENOUGH)
    findings += few or _delay_faults("", route.steps, rtt_ms, RTT_STEP, this)
    return {key: entry[key] for key in kept} | shown, findings


def recalibrate(
    lab: Lab,
    directions: Collection[Direction],
    *,
    samples: int = _MOST,
    tolerance: Tolerance = WHILE_RUNNING,
    limits: Limits = LIMITS,
) -> list[dict[str, Any]]:
    """Measure pairs of nodes between which packets pass ``directions``, every one of them.

    Each is to be what the topology requests, with changes that were made to stay, and whatever
    else is on the way, what is in force. Returns an entry for each pair: ``from``, ``to``,
    ``directions``, ``requested_rtt_ms``, ``requested_jitter_ms``, ``requested_loss``,
    ``measured_rtt_ms`` (median), ``rtt_ms`` (figures), ``sent``, ``lost``, ``duplicated``,
    ``corrupted``, ``rate`` (each way: ``requested_bps``, ``measured_bps``; None where nothing
    is known), ``rounds``, ``late``, ``reasons`` and ``verdict``: ``pass``, ``fail``, or
    ``unmeasured`` where something else cuts every way over that link. Raises MachineError when the
    lab ends.
    """
    expected = lab.impairments | {
        direction: value for direction, value in lab.settled.items() if direction in set(directions)
    }
    routes = list(_routes(lab.plan, list(dict.fromkeys(directions)), expected))
    todo = [route for route in routes if not route.cut]
    if not todo:
        return [_unmeasured(route) for route in routes]
    count = max(_FEWEST, min(samples, _ECHOES // len(todo)))
    keeps_order = lab.backend != "wire"
    nodes = sorted({name for route in todo for name in route.pair})
    with Prober(lab, nodes, tolerance.late_ms) as prober:

        def send(unclear: list[_Route], size: int) -> dict[_Route, _Evidence]:
            echoes = _echoes(lab, prober, unclear, size * count)
            full = _bursts(lab.plan, prober, unclear, size * _BURSTS)
            return {
                route: _Evidence(echoes[route], full[route.pair], full[route.pair[::-1]])
                for route in unclear
            }

        outcomes = measure_in_rounds(
            todo,
            send,
            lambda route, evidence, this: judge_healed(
                route, evidence, tolerance, this, keeps_order
            ),
            limits,
        )
    return [
        outcomes[route].entry | outcomes[route].verdict if route in outcomes else _unmeasured(route)
        for route in routes
    ]


def _routes(
    plan: Plan, directions: Sequence[Direction], expected: Mapping[Direction, Impairment]
) -> Iterator[_Route]:
    """Yield routes that together pass every direction; those that are cut where no other is."""
    left = dict.fromkeys(directions)
    while left:
        wanted = next(iter(left))
        routes = [
            _Route.between(plan, pair, expected, directions) for pair in _pairs_over(plan, wanted)
        ]
        if not routes:  # a node that is alone in a topology of one site
            del left[wanted]
            continue
        # As little as possible beside the directions to be measured, and as many of those.
        route = min(
            routes,
            key=lambda candidate: (
                bool(candidate.cut),
                len(candidate.steps) - len(candidate.targets),
                -sum(way in left for way in candidate.targets),
            ),
        )
        for direction in route.targets:
            left.pop(direction, None)
        yield route


def _pairs_over(plan: Plan, direction: Direction) -> Iterator[Pair]:
    """Yield pairs of nodes with a direction on their way there; a few of them."""
    few = 4
    if direction.kind == "wan":
        for a in plan.site(direction.source).nodes[:few]:
            for b in plan.site(direction.target).nodes[:few]:
                yield a.name, b.name
        return
    is_up = any(
        (link.node, link.site) == (direction.source, direction.target) for link in plan.lan_links
    )
    node = plan.node(direction.source if is_up else direction.target)
    near = [other for other in plan.site(node.site).nodes if other != node]
    far = [other for other in plan.nodes if other.site != node.site]
    for other in (*near[:few], *far[: 2 * few]):
        yield (node.name, other.name) if is_up else (other.name, node.name)


def _echoes(lab: Lab, prober: Prober, routes: Sequence[_Route], count: int) -> dict[_Route, Probes]:
    pairs = [route.pair for route in routes]
    patience_s = 1.2 * max(longest_ns(route.steps) / 1e9 for route in routes) + 0.2
    every_s = interval_s(lab.plan, pairs, step_s=0.001)  # the store needs the machine, too
    many_flows = lab.backend == "wire"
    echoes = prober.measure(pairs, count, every_s, patience_s, many_flows=many_flows)
    return {route: echoes[route.pair] for route in routes}


def _bursts(plan: Plan, prober: Prober, routes: Sequence[_Route], times: int) -> dict[Pair, Probes]:
    """Send bursts of full packets each way; ways that share a link take turns."""
    ways = {route.pair: route.there for route in routes}
    ways |= {route.pair[::-1]: route.back for route in routes}
    bursts: dict[Pair, Probes] = {}
    for batch in batches(plan, list(ways)):
        sizes = {pair: _burst(ways[pair]) for pair in batch}
        every_s = 0.005 + max(1.3 * length * packet_s for length, packet_s in sizes.values())
        due_s = {
            pair: [turn * every_s for turn in range(times) for _ in range(length)]
            for pair, (length, _) in sizes.items()
        }
        patience_s = every_s + max(longest_ns(ways[pair]) / 1e9 for pair in batch) + 0.05
        bursts |= prober.send_full(due_s, patience_s)
    return bursts


def _unmeasured(route: _Route) -> dict[str, Any]:
    """Return an entry of a route on which something else cuts a way."""
    entry, _ = _judge_echoes(route, Probes(), WHILE_RUNNING, Round())
    return entry | {
        "rate": None,
        "rounds": 0,
        "reasons": [f"something else cuts the way from {a} to {b}" for a, b in route.cut],
        "only_late": False,
        "verdict": "unmeasured",
    }


def _judge_echoes(
    route: _Route, echoes: Probes, tolerance: Tolerance, this: Round
) -> tuple[dict[str, Any], list[Finding]]:
    """Return an entry of the echoes, and what is wrong with their number."""
    rtt_ms = milliseconds(echoes.rtt_ns)
    entry = {
        "from": route.pair[0],
        "to": route.pair[1],
        "directions": [str(direction) for direction in route.targets],
        "requested_rtt_ms": sum(step.delay_ns for step in route.steps) / 1e6,
        "requested_jitter_ms": sum(step.jitter_ns for step in route.steps) / 1e6,
        "requested_loss": lost_part(route.steps),
        "measured_rtt_ms": float(np.median(rtt_ms)) if rtt_ms.size else None,
        "rtt_ms": judgement.figures(rtt_ms),
        **judgement.counts_of(echoes),
    }
    if not rtt_ms.size and echoes.missing.all():
        return entry, [Finding("no probe came back")]
    crowded = _CROWDED if any(step.rate_bps for step in route.steps) else 0.0
    return entry, list(judgement.echo_faults(route.steps, entry, tolerance.alpha, this, crowded))


def judge_healed(
    route: _Route, evidence: _Evidence, tolerance: Tolerance, this: Round, keeps_order: bool
) -> Judged:
    """Return the entry of a route that was healed, and what is wrong.

    A rate is judged by the delays of full packets sent at once: each waits for those before it. So
    a rate that was not requested makes them late, and one that is not there, early.
    ``keeps_order``: of a link, so that a packet may wait for one that was drawn a longer delay.
    """
    echoes = evidence.echoes
    entry, findings = _judge_echoes(route, echoes, tolerance, this)
    few = too_few(echoes, this, _ENOUGH)
    findings += few
    entry["rate"] = {}
    for name, steps, delays_ns, full in (
        ("there", route.there, echoes.delays_ns, evidence.there),
        ("back", route.back, echoes.returns_ns, evidence.back),
    ):
        length, packet_s = _burst(steps)
        full_ms = milliseconds(full.delays_ns - _waits_ns(full, length, packet_s))
        where = f" on the way {name}"
        if not few:
            findings += _delay_faults(
                where, steps, milliseconds(delays_ns), tolerance, this, keeps_order
            )
        findings += too_few(full, this, _ENOUGH) or _delay_faults(
            f"{where}, in bursts of {length}", steps, full_ms, tolerance, this, True
        )
        spreads_s = [
            np.ptp(arrived_ns) / 1e9
            for arrived_ns in by_train(full, length)
            if arrived_ns.size == length
        ]
        rates_bps = [FRAME_BITS * (length - 1) / max(spread_s, 1e-6) for spread_s in spreads_s]
        entry["rate"][name] = {
            "requested_bps": rated.rate_bps if (rated := Rated.on_path(steps)) else None,
            "measured_bps": float(np.median(rates_bps)) if rates_bps else None,
        }
    return entry, findings


def _waits_ns(full: Probes, length: int, packet_s: float) -> Numbers:
    """Return how long a rate held back each packet that came, by those before it and by itself.

    Of bursts of ``length``, each of which finds an empty queue. From when it was really sent: a
    sender that is held up within a burst lets the queue run empty. What was lost before the rate
    took no time of it. Shape (clean,), by number.
    """
    late = full.is_late
    waits, free_ns, packet_ns, burst = [], 0, round(1e9 * packet_s), -1
    for number in np.flatnonzero(~full.missing).tolist():
        sent_ns = int(full.sent_ns[number])
        before_ns = free_ns if number // length == burst else sent_ns
        free_ns, burst = max(before_ns, sent_ns) + packet_ns, number // length
        if not late[number]:
            waits.append(free_ns - sent_ns)
    return np.array(waits, dtype=np.int64)


def _delay_faults(
    where: str,
    steps: Sequence[Impairment],
    delays_ms: Values,
    tolerance: Tolerance,
    this: Round,
    keeps_order: bool = False,
) -> list[Finding]:
    """Judge quantiles of the delays, within what chance does to so many draws.

    By the inequality of Dvoretzky, Kiefer and Wolfowitz, with Massart's constant (1990). Early
    packets are the link's; late ones are where all quantiles that are judged are late.
    """
    if not delays_ms.size:
        return []
    law, drawn = path_law(steps), any(step.jitter_ns for step in steps)
    alpha = max(this.alpha(tolerance.alpha), 1e-12)
    chance = math.sqrt(math.log(2 / alpha) / (2 * delays_ms.size)) if drawn else 0.0

    def requested_ms(probability: float) -> float:
        return float(law.quantiles([min(1.0, max(0.0, probability))])[0])

    findings = []
    if not any(step.overtake for step in steps):
        for q in _EARLIEST:
            measured, least = float(np.quantile(delays_ms, q)), requested_ms(q - chance)
            if measured < least - EARLY_MS:
                findings.append(
                    Finding(
                        f"early{where}: {q:.0%} of the packets within {measured:.2f} ms, "
                        f"requested {least:.2f} ms at least"
                    )
                )
                break
    crowded = any(step.rate_bps for step in steps)  # the store's packets may be waiting
    late_ms = tolerance.median_for(sum(step.delay_ns for step in steps) / 1e6)
    late = []
    for q, allowed_ms in _LATEST[:1] if crowded else _LATEST:
        most = requested_ms(1.0 if keeps_order else q + chance)
        most += max(late_ms, allowed_ms) + judgement.transmission_ms(steps)
        measured = float(np.quantile(delays_ms, q))
        if measured > most:
            share = float(np.mean(delays_ms > most))
            late.append((q, measured, most, this.is_beyond(share, 1 - q)))
    if late:
        q, measured, most, _ = late[0]
        is_all = this.is_again and q == _LATEST[0][0] and not crowded
        findings.append(
            Finding(
                f"late{where}: {1 - q:.0%} of the packets took more than "
                f"{measured:.2f} ms, requested {most:.2f} ms at most",
                is_final=is_all or any(is_beyond for *_, is_beyond in late),
            )
        )
    return findings
