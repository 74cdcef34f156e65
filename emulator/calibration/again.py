"""Is a link that was healed what it was? Measured while a store runs on it and talks.

Nothing is switched off for this, so what is measured is what is in force, jitter and loss
included, beside the store's own packets. Those and the machine only add to delays. So packets must
not be early at all, the earlier half of them must not be late, and of all not as many as would show
a link that is wrong a third of the time; and of a rate, the median of several trains counts. A
pair that looks off is sent more, and judged by all of it (`calibration.rounds`). A few seconds,
against minutes of `emulator.calibration.calibrate`, which is the judge of an idle lab.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wanlat.emulator.calibration.counts import (
    corrupted_part,
    duplicated_part,
    inflation,
    lost_part,
    p_value,
    p_value_between,
)
from wanlat.emulator.calibration.figures import Values, figures, milliseconds
from wanlat.emulator.calibration.fit import apart
from wanlat.emulator.calibration.judgement import transmission_ms
from wanlat.emulator.calibration.law import Law, path_law
from wanlat.emulator.calibration.pairs import Pair, batches, directions_of
from wanlat.emulator.calibration.rate import bits_a_second, densest
from wanlat.emulator.calibration.rounds import (
    Finding,
    Judged,
    Limits,
    Round,
    is_certain,
    measure_in_rounds,
)
from wanlat.emulator.calibration.tolerance import Tolerance
from wanlat.emulator.calibration.trains import FRAME_BYTES, Spread, Trains
from wanlat.emulator.lab import Lab
from wanlat.emulator.links import Direction
from wanlat.emulator.prober import Echoes, Prober
from wanlat.topologies.resolve import Impairment, Plan

WHILE_RUNNING = Tolerance(median_ms=1.0, near_median_ms=0.5, rate=0.1)
"""What a machine that is busy with a store adds to delays is not the link's."""

_EARLY_MS = 0.1  # clocks, and wire sends a few microseconds ahead
_STEP_S, _INTERVAL_S = 0.001, 0.005  # between two probes of all, of a pair
_PROBES, _FEWEST = 3000, 40  # in the first round: of all pairs together, of one pair
_EARLIEST = (0.1, 0.25, 0.5, 0.75)  # quantiles that are judged
_LATEST = ((0.1, 0.0), (0.25, 0.0), (0.5, 0.0), (0.7, 5.0))  # and ms late that each allows at least
LIMITS = Limits(sizes=(1, 1, 2, 4), pause_s=0.4, longest_s=20.0)
"""Of measuring a healed link: what holds the machine up may be over after a pause."""
_CROWDED = 0.2  # of the packets may find a queue full that the store fills
_TRAINS = 5
_PACKETS = 36  # of a train: with their headers less than the smallest queue of a link with a rate
_MOST_PACKETS = 400  # more of them, because of jitter
_FRAME_BITS = 8 * FRAME_BYTES
_LONGEST_TRAIN_S = 0.15
_HIGHEST_BPS = 50e6  # a rate above is not told from none, beside a store on a busy machine
_SHARED = 0.3  # of a rate may be the store's
_AGREED = 0.1  # of their rate, trains of a link with another one are apart
_OFTEN_LOST = 0.3  # few trains of such a path arrive whole


@dataclass(frozen=True)
class _Way:
    """One way between two nodes, with what is to be in force on it."""

    pair: Pair
    steps: tuple[Impairment, ...]

    @property
    def jitter_s(self) -> float:
        """Return how far apart the delays of two packets may lie."""
        return sum(step.range_ns[1] - step.range_ns[0] for step in self.steps) / 1e9

    @property
    def rate_bps(self) -> int | None:
        """Return the slowest rate on it."""
        return min((step.rate_bps for step in self.steps if step.rate_bps), default=None)

    @property
    def train(self) -> int:
        """Return how many packets a train has.

        Where there is to be no rate, so many that one would be seen through the jitter, or lose
        some of them. Else as many as find room in the queue and are over soon.
        """
        if self.rate_bps is None:
            return _PACKETS + min(_MOST_PACKETS, int(self.jitter_s * _HIGHEST_BPS / _FRAME_BITS))
        rooms = [step.queue_bytes for step in self.steps if step.queue_bytes is not None]
        room = min([_PACKETS, *(int(0.85 * each / FRAME_BYTES) for each in rooms)])
        return max(3, min(room, int(_LONGEST_TRAIN_S * self.rate_bps / _FRAME_BITS)))

    @property
    def train_s(self) -> float:
        """Return how long after its first packet the last one of a train arrives."""
        return _FRAME_BITS * (self.train - 1) / (self.rate_bps or 1e9)

    @property
    def is_cut(self) -> bool:
        """Return whether nothing gets through."""
        return lost_part(self.steps) >= 1


@dataclass(frozen=True)
class _Route:
    """A pair of nodes, there and back, and which of its directions are asked about."""

    pair: Pair
    there: _Way
    back: _Way
    asked: tuple[Direction, ...]

    @property
    def steps(self) -> tuple[Impairment, ...]:
        """Return what is to be in force on the round trip."""
        return self.there.steps + self.back.steps


@dataclass(frozen=True)
class _Evidence:
    """What was measured of a route: round trips, and the trains that arrived either way."""

    echoes: Echoes
    there: list[Spread]
    back: list[Spread]

    def __add__(self, later: _Evidence) -> _Evidence:
        return _Evidence(
            self.echoes + later.echoes, self.there + later.there, self.back + later.back
        )


def recalibrate(
    lab: Lab,
    directions: Collection[Direction],
    *,
    held: Collection[Direction] = (),
    samples: int = 300,
    tolerance: Tolerance = WHILE_RUNNING,
    limits: Limits = LIMITS,
) -> list[dict[str, Any]]:
    """Measure pairs of nodes between which packets pass ``directions``, every one of them.

    Each is to be what the topology asks of it, with changes that were made to stay; one that is
    ``held`` as well (another fault is still in force on it), and whatever else is on the way, what
    is in force now. A pair that looks off is sent more probes and trains, within ``limits``.

    Returns one entry a pair: ``from``, ``to``, ``directions`` (those asked about, as text),
    ``requested_rtt_ms``, ``requested_jitter_ms``, ``measured_rtt_ms`` (median), ``rtt_ms``
    (figures), ``requested_loss`` (of the round trip), ``sent``, ``lost``, ``duplicated``,
    ``corrupted``, ``rate`` (``there``, ``back``: ``requested_bps``, ``measured_bps``, None where
    nothing can be said), ``rounds``, ``stall_ms``, ``reasons`` and ``verdict``: ``pass``,
    ``fail``, or ``unmeasured`` where something else cuts every way over that link. Raises
    MachineError when the lab ends.
    """
    expected = lab.impairments | {
        each: value
        for each, value in lab.settled.items()
        if each in set(directions) and each not in set(held)
    }
    routes = list(_routes(lab.plan, list(dict.fromkeys(directions)), expected))
    verdicts = {route.pair: _unmeasured(route) for route in routes}
    todo = [route for route in routes if not route.there.is_cut and not route.back.is_cut]
    if not todo:
        return list(verdicts.values())
    nodes = sorted({name for route in todo for name in route.pair})
    count = max(_FEWEST, min(samples, _PROBES // len(todo)))
    ways = [way.pair for route in todo for way in (route.there, route.back)]
    with Prober(lab, nodes) as prober, Trains(lab, list(dict.fromkeys(ways))) as trains:

        def send(unclear: list[_Route], size: int) -> dict[_Route, _Evidence]:
            echoes = _echoes(prober, unclear, size * count, lab.backend)
            spreads = _spreads(lab.plan, trains, unclear, size * _TRAINS)
            return {
                route: _Evidence(
                    echoes[route.pair], spreads[route.there.pair], spreads[route.back.pair]
                )
                for route in unclear
            }

        def judge(route: _Route, evidence: _Evidence, this: Round) -> Judged:
            return _judge(route, evidence, tolerance, lab.backend, this)

        found = measure_in_rounds(todo, send, judge, limits, lab.check)
    verdicts |= {route.pair: entry for route, entry in found.items()}
    return list(verdicts.values())


def _routes(
    plan: Plan, directions: Sequence[Direction], expected: Mapping[Direction, Impairment]
) -> Iterator[_Route]:
    """Yield routes that together pass every direction; those that are cut where no other is."""
    left = dict.fromkeys(directions)
    while left:
        wanted = next(iter(left))
        route = min(
            (_route(plan, pair, expected, directions) for pair in _pairs_over(plan, wanted)),
            key=lambda route: (
                route.there.is_cut or route.back.is_cut,
                # as little as possible that is not asked about
                len(route.steps) - len(route.asked),
                -sum(each in left for each in route.asked),
            ),
            default=None,
        )
        if route is None:  # a node that is alone in a topology of one site
            del left[wanted]
            continue
        for each in route.asked:
            left.pop(each, None)
        yield route


def _pairs_over(plan: Plan, direction: Direction) -> Iterator[Pair]:
    """Yield pairs of nodes whose way there passes a direction; a few of them."""
    few = 4
    if direction.kind == "wan":
        for a in plan.site(direction.source).nodes[:few]:
            for b in plan.site(direction.target).nodes[:few]:
                yield a.name, b.name
        return
    is_up = any(node.name == direction.source for node in plan.nodes) and any(
        link.node == direction.source and link.site == direction.target for link in plan.lan_links
    )
    node = plan.node(direction.source if is_up else direction.target)
    near = [one for one in plan.site(node.site).nodes if one != node]
    far = [one for one in plan.nodes if one.site != node.site]
    for other in (*near[:few], *far[: 2 * few]):
        yield (node.name, other.name) if is_up else (other.name, node.name)


def _route(
    plan: Plan,
    pair: Pair,
    expected: Mapping[Direction, Impairment],
    directions: Sequence[Direction],
) -> _Route:
    there, back = directions_of(plan, pair), directions_of(plan, pair[::-1])
    return _Route(
        pair,
        _Way(pair, tuple(expected[each] for each in there)),
        _Way(pair[::-1], tuple(expected[each] for each in back)),
        tuple(each for each in (*there, *back) if each in set(directions)),
    )


def _echoes(
    prober: Prober, routes: Sequence[_Route], count: int, backend: str
) -> dict[Pair, Echoes]:
    longest_ns = max(sum(step.range_ns[1] for step in route.steps) for route in routes)
    return prober.measure(
        [route.pair for route in routes],
        count,
        max(_INTERVAL_S, _STEP_S * len(routes)),
        1.2 * longest_ns / 1e9 + 0.2,
        many_flows=backend == "wire",
    )


def _spreads(
    plan: Plan, trains: Trains, routes: Sequence[_Route], times: int
) -> dict[Pair, list[Spread]]:
    ways = {way.pair: way for route in routes for way in (route.there, route.back)}
    found: dict[Pair, list[Spread]] = {}
    for batch in batches(plan, list(ways)):
        found |= trains.measure(
            {pair: ways[pair].train for pair in batch},
            times,
            max(ways[pair].train_s for pair in batch),
            max(sum(step.range_ns[1] for step in ways[pair].steps) for pair in batch) / 1e9,
        )
    return found


def _unmeasured(route: _Route) -> dict[str, Any]:
    """Return an entry of the result with what is asked for, and nothing measured."""
    ends = [way.pair for way in (route.there, route.back) if way.is_cut]
    return {
        "from": route.pair[0],
        "to": route.pair[1],
        "directions": [str(each) for each in route.asked],
        "requested_rtt_ms": sum(step.delay_ns for step in route.steps) / 1e6,
        "requested_jitter_ms": sum(step.jitter_ns for step in route.steps) / 1e6,
        "measured_rtt_ms": None,
        "rtt_ms": None,
        "requested_loss": lost_part(route.steps),
        "sent": 0,
        "lost": 0,
        "duplicated": 0,
        "corrupted": 0,
        "rate": None,
        "rounds": 0,
        "stall_ms": 0.0,
        "reasons": [f"something else cuts the way from {a} to {b}" for a, b in ends],
        "verdict": "unmeasured",
    }


def _judge(
    route: _Route, evidence: _Evidence, tolerance: Tolerance, backend: str, this: Round
) -> Judged:
    echoes = evidence.echoes
    rtt_ms = milliseconds(echoes.rtt_ns)
    found = _unmeasured(route) | {
        "measured_rtt_ms": float(np.median(rtt_ms)) if rtt_ms.size else None,
        "rtt_ms": figures(rtt_ms) if rtt_ms.size else None,
        "sent": echoes.sent,
        "lost": echoes.lost,
        "duplicated": echoes.duplicates,
        "corrupted": echoes.corrupted,
    }
    findings = list(_echo_faults(route, echoes, tolerance, this))
    late_ms = tolerance.median_for(found["requested_rtt_ms"])
    rates: dict[str, Any] = {}
    for name, way, delays_ns, spreads in (
        ("there", route.there, echoes.forward_ns, evidence.there),
        ("back", route.back, echoes.backward_ns, evidence.back),
    ):
        if delays_ns:
            alpha = this.alpha(tolerance.alpha)
            delays_ms = milliseconds(delays_ns)
            findings += _delay_faults(name, way, delays_ms, late_ms, alpha, backend, this)
        rates[name], faults = _rate(name, way, spreads, tolerance)
        findings += faults
    return found | {"rate": rates}, findings


def _echo_faults(
    route: _Route, echoes: Echoes, tolerance: Tolerance, this: Round
) -> Iterator[Finding]:
    """What round trips tell of loss, and of packets that nobody sent."""
    steps, lost, sent = route.steps, echoes.lost, echoes.sent
    if not echoes.rtt_ns:
        yield Finding("no probe came back")
        return
    part = 1 - (1 - lost_part(steps)) * (1 - corrupted_part(steps))
    if any(step.rate_bps for step in steps):
        p = p_value_between(lost, sent, part, min(1.0, part + _CROWDED))
    else:
        p = p_value(lost, sent, part, inflation(steps))
    if p < this.alpha(tolerance.alpha):
        yield Finding(
            f"{lost} of {sent} probes lost, asked for {part:.1%}",
            is_final=is_certain(p, tolerance.alpha),
        )
    if echoes.duplicates and not duplicated_part(steps):
        words = f"{echoes.duplicates} of {sent} probes came back twice, no duplication asked for"
        yield Finding(words)
    if echoes.corrupted and not corrupted_part(steps):
        yield Finding(f"{echoes.corrupted} of {sent} probes damaged, no corruption asked for")


def _delay_faults(
    name: str,
    way: _Way,
    delays_ms: Values,
    late_ms: float,
    alpha: float,
    backend: str,
    this: Round,
) -> Iterator[Finding]:
    """What quantiles of the delays tell, within what chance does to so many draws.

    By the inequality of Dvoretzky, Kiefer and Wolfowitz, with Massart's constant (1990). Early
    packets are the link's; late ones are where all quantiles that are judged are late.
    """
    drawn = any(step.jitter_ns for step in way.steps)
    n = delays_ms.size // (apart(way.steps) if drawn else 1)
    chance = math.sqrt(math.log(2 / alpha) / (2 * max(1, n))) if drawn else 0.0
    law = _law(way.steps)
    if not any(step.overtake for step in way.steps):
        for q in _EARLIEST:
            measured, least = _quantile(delays_ms, q), _asked(law, q - chance)
            if measured < least - _EARLY_MS:
                yield Finding(
                    f"early on the way {name}: {q:.0%} of the packets within {measured:.2f} ms, "
                    f"asked for {least:.2f} ms at least"
                )
                break
    # netem keeps the order of a link, so a packet may wait for one that was drawn a longer delay.
    keeps_order = backend != "wire" and drawn and not all(step.reorder for step in way.steps)
    crowded = way.rate_bps is not None  # the store's packets may be waiting
    late = []
    for q, allowed_ms in _LATEST[:1] if crowded else _LATEST:
        most = float(law.delays_ms[-1]) if keeps_order else _asked(law, q + chance)
        most += max(late_ms, allowed_ms) + transmission_ms(way.steps)
        measured = _quantile(delays_ms, q)
        if measured > most:
            share = float(np.mean(delays_ms > most))
            late.append((q, measured, most, this.is_beyond(share, 1 - q)))
    if late:
        q, measured, most, _ = late[0]
        is_all = this.is_again and q == _LATEST[0][0] and not crowded
        yield Finding(
            f"late on the way {name}: {1 - q:.0%} of the packets took more than "
            f"{measured:.2f} ms, asked for {most:.2f} ms at most",
            is_final=is_all or any(is_beyond for *_, is_beyond in late),
        )


def _law(steps: Sequence[Impairment]) -> Law:
    if any(step.jitter_ns for step in steps):
        return path_law(steps)
    fixed_ms = sum(step.delay_ns for step in steps) / 1e6
    return Law(np.array([fixed_ms, fixed_ms]), np.array([0.0, 1.0]))


def _asked(law: Law, probability: float) -> float:
    return float(law.quantiles([min(1.0, max(0.0, probability))])[0])


def _quantile(values: Values, probability: float) -> float:
    return float(np.quantile(values, probability))


def _rate(
    name: str, way: _Way, spreads: Sequence[Spread], tolerance: Tolerance
) -> tuple[dict[str, Any], list[Finding]]:
    """Return what was asked for and measured, and what is wrong with it.

    By the median of the trains. It is final where they agree with each other on another rate, or
    are all too fast: what holds the machine up makes some slow, and makes them differ.
    """
    asked_bps = way.rate_bps
    found: dict[str, Any] = {"requested_bps": asked_bps, "measured_bps": None}
    if not spreads:
        if lost_part(way.steps) > _OFTEN_LOST or any(step.overtake for step in way.steps):
            return found, []
        words = f"no train of {way.train} packets got through on the way {name}"
        return found, [Finding(words, is_final=False)]
    at_most = [each.rate_bps(way.jitter_s) for each in spreads]
    at_least = [each.rate_bps(-way.jitter_s) for each in spreads]
    found["measured_bps"] = float(np.median([each.rate_bps() for each in spreads]))
    least_bps = min(asked_bps or math.inf, _HIGHEST_BPS) * (1 - _SHARED)
    most_bps = asked_bps * (1 + tolerance.rate) if asked_bps is not None else math.inf
    wanted = "none" if asked_bps is None else bits_a_second(asked_bps)
    middle_bps = float(np.median(at_most))
    if middle_bps < least_bps:
        closest_bps, width_bps = densest(at_most)
        words = f"a rate of {bits_a_second(middle_bps)} or less on the way {name}"
        is_final = closest_bps < least_bps and width_bps < _AGREED * closest_bps
        return found, [Finding(f"{words}, asked for {wanted}", is_final)]
    middle_bps = float(np.median(at_least))
    if least_bps < _HIGHEST_BPS * (1 - _SHARED) and middle_bps > most_bps:
        words = f"a rate of {bits_a_second(middle_bps)} or more on the way {name}"
        return found, [Finding(f"{words}, asked for {wanted}", is_final=min(at_least) > most_bps)]
    return found, []
