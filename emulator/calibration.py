"""Is the delay that packets get the delay that was asked for?

Two passes over every pair of nodes, with real packets (``emulator.prober``):

1. *delay*: the lab's own impairments, but with requested jitter switched off, so that the error
   of every single packet is known: its round trip minus the requested one;
2. *jitter*: the impairments as they are. Each direction is a draw from the uniform distribution
   on delay ± jitter; the samples are tested against it (Kolmogorov-Smirnov), and round trips
   against the range that the two directions span.

A plan without jitter needs only the first. What is requested may come from another plan than
the lab's (``against``): that is how the check is checked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

import numpy as np
from scipy import stats

from emulator.lab import Lab
from emulator.links import requested as requested_of
from emulator.prober import Echoes, Pair, Prober
from topologies.errors import UserError
from topologies.resolve import Impairment, Plan

_DELAY_INTERVAL_S = 0.005
_MIN_STEP_S = 0.001  # between two probes of the whole lab: a load that leaves processors idle
_MAX_PAIRS = 132  # every ordered pair up to 12 nodes
_KS_ALPHA = 1e-6  # per direction; a lab has dozens, and a healthy one must pass


@dataclass(frozen=True)
class Tolerance:
    """How far a pair may be off. All in ms.

    ``median_ms`` holds from ``near_ms`` RTT on, ``near_median_ms`` below; ``p99_ms`` always;
    ``edge_ms`` is how far a jittered round trip may lie outside the range it was asked for.
    """

    median_ms: float = 0.5
    near_median_ms: float = 0.15
    near_ms: float = 2.0
    p99_ms: float = 2.0
    edge_ms: float = 2.0

    def median_for(self, rtt_ms: float) -> float:
        """Return the tolerated median error at a requested round-trip time."""
        return self.median_ms if rtt_ms >= self.near_ms else self.near_median_ms

    def as_json(self) -> dict[str, float]:
        """Return the figures for ``calibration.json``."""
        return {
            "median_ms": self.median_ms,
            "near_median_ms": self.near_median_ms,
            "near_ms": self.near_ms,
            "p99_ms": self.p99_ms,
            "edge_ms": self.edge_ms,
            "ks_alpha": _KS_ALPHA,
        }


def pairs_of(plan: Plan, limit: int = _MAX_PAIRS) -> list[Pair]:
    """Return the ordered pairs of nodes to measure.

    All of them up to ``limit``; beyond, one pair for every ordered pair of sites and one for
    every node with a neighbour in its site, nodes taken in turn so that each occurs.
    """
    names = [node.name for node in plan.nodes]
    if len(names) * (len(names) - 1) <= limit:
        return list(permutations(names, 2))
    return list(dict.fromkeys(_covering_pairs(plan)))


def _covering_pairs(plan: Plan) -> Iterator[Pair]:
    for turn, (a, b) in enumerate(permutations(plan.sites, 2)):
        yield a.nodes[turn % len(a.nodes)].name, b.nodes[turn % len(b.nodes)].name
    for site in plan.sites:
        for node, neighbour in zip(site.nodes, (*site.nodes[1:], site.nodes[0]), strict=True):
            if node.name != neighbour.name:
                yield node.name, neighbour.name


def calibrate(
    lab: Lab,
    *,
    against: Plan | None = None,
    pairs: Sequence[Pair] | None = None,
    samples: int = 200,
    jitter_samples: int = 200,
    tolerance: Tolerance | None = None,
    attempts: int = 3,
    on_progress: Callable[[str, float], None] = lambda _stage, _part: None,
) -> dict[str, Any]:
    """Measure the lab's pairs and judge them; return the document of ``calibration.json``.

    A pair that fails is measured again, up to ``attempts`` times in all: a busy machine delays
    packets now and then, a wrong link always. How often is in the document. The lab's
    impairments are the same after as before. Raises MachineError when the lab ends, UserError
    for a lab of one node.
    """
    requested = against or lab.plan
    tolerance = tolerance or Tolerance()
    wanted = list(pairs or pairs_of(lab.plan))
    verdicts: dict[Pair, dict[str, Any]] = {}
    if not wanted:
        raise UserError(
            f"Topology {lab.plan.name} has one node, so there is no path to measure. "
            "Choose one with two nodes or more."
        )
    nodes = sorted({name for pair in wanted for name in pair})
    with Prober(lab, nodes) as prober:
        todo = wanted
        for attempt in range(1, attempts + 1):
            delay = _delay_pass(lab, prober, requested, todo, samples, on_progress)
            jitter = _jitter_pass(lab, prober, requested, todo, jitter_samples, on_progress)
            for pair in todo:
                verdict = _judge(requested, pair, delay[pair], jitter.get(pair), tolerance)
                verdicts[pair] = verdict | {"attempts": attempt}
            todo = [pair for pair in todo if verdicts[pair]["verdict"] == "fail"]
            if not todo:
                break
    overflows = sum(counters.overflows for counters in lab.counters().values())
    passed = all(verdict["verdict"] == "pass" for verdict in verdicts.values())
    return {
        "topology": requested.name,
        "backend": lab.backend,
        "tolerance": tolerance.as_json(),
        "pairs": [verdicts[pair] for pair in wanted],
        "overflows": overflows,
        "verdict": "pass" if passed and overflows == 0 else "fail",
    }


def _delay_pass(
    lab: Lab,
    prober: Prober,
    requested: Plan,
    pairs: Sequence[Pair],
    samples: int,
    on_progress: Callable[[str, float], None],
) -> dict[Pair, Echoes]:
    # Only jitter that was asked for is switched off: any other is an error to be found.
    asked = {each for each, value in requested_of(requested).items() if value.jitter_ns}
    jittered = {each: value for each, value in lab.impairments.items() if each in asked}
    if jittered:
        lab.change({each: replace(value, jitter_ns=0) for each, value in jittered.items()})
    try:
        return prober.measure(
            pairs,
            samples,
            max(_DELAY_INTERVAL_S, _MIN_STEP_S * len(pairs)),
            _patience_s(lab.plan, pairs),
            lambda part: on_progress("delay", part),
        )
    finally:
        if jittered:
            lab.change(jittered)


def _jitter_pass(
    lab: Lab,
    prober: Prober,
    requested: Plan,
    pairs: Sequence[Pair],
    samples: int,
    on_progress: Callable[[str, float], None],
) -> dict[Pair, Echoes]:
    """Measure the pairs that have jitter, slowly enough for draws to be independent.

    Packets of one flow keep their order, so a draw would be raised by the one before it if they
    were closer than the range of the jitter. Where the backend keeps the order of a whole link
    (netem), pairs that share one take turns.
    """
    jittered = [pair for pair in pairs if requested.jitter_ms(*pair) > 0]
    if not jittered:
        return {}
    span_ms = max(2 * requested.jitter_ms(*pair) for pair in jittered)
    interval_s = max(1.25 * span_ms / 2000, _DELAY_INTERVAL_S, _MIN_STEP_S * len(jittered))
    rounds = [jittered] if lab.backend == "wire" else _sharing_no_link(requested, jittered)
    echoes: dict[Pair, Echoes] = {}
    for number, batch in enumerate(rounds):

        def tell(part: float, number: int = number) -> None:
            on_progress("jitter", (number + part) / len(rounds))

        echoes |= prober.measure(batch, samples, interval_s, _patience_s(lab.plan, batch), tell)
    return echoes


def _sharing_no_link(plan: Plan, pairs: Sequence[Pair]) -> list[list[Pair]]:
    """Split pairs into rounds in which no two use the same WAN link or the same node."""
    rounds: list[tuple[set[object], list[Pair]]] = []
    for pair in pairs:
        sites = frozenset(plan.node(name).site for name in pair)
        uses: set[object] = {*pair} | ({sites} if len(sites) > 1 else set())
        for used, batch in rounds:
            if used.isdisjoint(uses):
                used.update(uses)
                batch.append(pair)
                break
        else:
            rounds.append((uses, [pair]))
    return [batch for _, batch in rounds]


def _patience_s(plan: Plan, pairs: Sequence[Pair]) -> float:
    longest_ms = max(plan.rtt_ms(*pair) + plan.jitter_ms(*pair) for pair in pairs)
    return 2 * longest_ms / 1000 + 0.5


def _ms(values_ns: Sequence[int]) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.asarray(values_ns, dtype=np.float64) / 1e6


def _figures(values: np.ndarray[Any, np.dtype[np.float64]]) -> dict[str, float | int]:
    return {
        "n": int(values.size),
        "mean": float(values.mean()),
        "stdev": float(values.std(ddof=1)) if values.size > 1 else 0.0,
        "min": float(values.min()),
        "p50": float(np.median(values)),
        "p99": float(np.percentile(values, 99)),
        "max": float(values.max()),
    }


def _judge(
    plan: Plan, pair: Pair, delay: Echoes, jitter: Echoes | None, tolerance: Tolerance
) -> dict[str, Any]:
    """Return one entry of ``pairs``."""
    rtt_ms, jitter_ms = plan.rtt_ms(*pair), plan.jitter_ms(*pair)
    shown = jitter if jitter is not None else delay
    entry: dict[str, Any] = {
        "from": pair[0],
        "to": pair[1],
        "requested_rtt_ms": rtt_ms,
        "requested_jitter_ms": jitter_ms,
        "lost": delay.lost + (jitter.lost if jitter else 0),
        "sent": delay.sent + (jitter.sent if jitter else 0),
        "reordered": delay.reordered + (jitter.reordered if jitter else 0),
    }
    if not delay.rtt_ns or not shown.rtt_ns:
        return entry | {
            "rtt_ms": None,
            "error_ms": None,
            "verdict": "fail",
            "reasons": ["no probe came back"],
        }
    errors = np.abs(_ms(delay.rtt_ns) - rtt_ms)
    error_ms = {"p50": float(np.median(errors)), "p99": float(np.percentile(errors, 99))}
    reasons = list(_delay_faults(error_ms, tolerance, rtt_ms))
    if jitter is not None:
        reasons += _jitter_faults(plan, pair, jitter, tolerance)
    reasons += _delivery_faults(plan, pair, entry)
    return entry | {
        "rtt_ms": _figures(_ms(shown.rtt_ns)),
        "error_ms": error_ms,
        "verdict": "fail" if reasons else "pass",
        "reasons": reasons,
    }


def _delay_faults(error_ms: dict[str, float], tolerance: Tolerance, rtt_ms: float) -> Iterator[str]:
    allowed_ms = tolerance.median_for(rtt_ms)
    if error_ms["p50"] > allowed_ms:
        yield f"median error {error_ms['p50']:.3f} ms, allowed {allowed_ms:g} ms"
    if error_ms["p99"] > tolerance.p99_ms:
        yield f"p99 error {error_ms['p99']:.3f} ms, allowed {tolerance.p99_ms:g} ms"


def _jitter_faults(plan: Plan, pair: Pair, echoes: Echoes, tolerance: Tolerance) -> Iterator[str]:
    rtt_ms, jitter_ms = plan.rtt_ms(*pair), plan.jitter_ms(*pair)
    low, high = np.percentile(_ms(echoes.rtt_ns), [0.5, 99])
    reach_ms = jitter_ms + tolerance.edge_ms
    if low < rtt_ms - reach_ms or high > rtt_ms + reach_ms:
        yield (
            f"round trips of {low:.1f} to {high:.1f} ms, asked for "
            f"{rtt_ms - jitter_ms:g} to {rtt_ms + jitter_ms:g} ms"
        )
    ways = ((pair, echoes.forward_ns, "there"), (pair[::-1], echoes.backward_ns, "back"))
    for (source, target), delays_ns, name in ways:
        jittered = [step for step in plan.path(source, target) if step.jitter_ns]
        if len(jittered) != 1:
            continue  # the sum of several draws is not uniform, and the range is checked above
        p_value = _uniform_p_value(plan.path(source, target), jittered[0], delays_ns)
        if p_value < _KS_ALPHA:
            yield f"jitter on the way {name} is not uniform (p = {p_value:.1g})"


def _uniform_p_value(
    path: Sequence[Impairment], step: Impairment, delays_ns: Sequence[int]
) -> float:
    centre_ms = sum(each.delay_ns for each in path) / 1e6
    reach_ms = step.jitter_ns / 1e6
    uniform = stats.uniform(loc=centre_ms - reach_ms, scale=2 * reach_ms)
    return float(stats.kstest(_ms(delays_ns), uniform.cdf).pvalue)


def _delivery_faults(plan: Plan, pair: Pair, entry: dict[str, Any]) -> Iterator[str]:
    steps = plan.path(*pair) + plan.path(*pair[::-1])
    arrives = math.prod(1 - step.loss for step in steps)
    lost, sent = entry["lost"], entry["sent"]
    if arrives == 1 and lost:
        yield f"{lost} of {sent} probes lost, none asked for"
    elif stats.binomtest(lost, sent, 1 - arrives).pvalue < _KS_ALPHA:
        yield f"{lost} of {sent} probes lost, asked for {1 - arrives:.2%}"
    if entry["reordered"] and not any(step.reorder for step in steps):
        yield f"{entry['reordered']} probes overtaken, no reordering asked for"
