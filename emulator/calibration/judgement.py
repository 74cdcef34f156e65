"""One pair's entry of ``calibration.json``: what was asked for, what measured, what is wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from wanlat.emulator.calibration.counts import (
    corrupted_part,
    duplicated_part,
    inflation,
    lost_part,
    p_value,
)
from wanlat.emulator.calibration.delivery import delivery_faults, delivery_figures
from wanlat.emulator.calibration.figures import Values, figures, milliseconds
from wanlat.emulator.calibration.fit import (
    PROBABILITIES,
    correlation,
    correlation_p_value,
    fit,
    lawful,
    requested_correlation,
)
from wanlat.emulator.calibration.pairs import Pair
from wanlat.emulator.calibration.rate import rate_faults, rate_figures
from wanlat.emulator.calibration.rounds import Finding, Judged, Round, is_certain
from wanlat.emulator.calibration.tolerance import Tolerance
from wanlat.emulator.prober import FRAME_BYTES, Echoes
from wanlat.emulator.stream import Delivery
from wanlat.topologies.resolve import Impairment, Plan

_P99 = 0.01  # of the probes may be later than the 99th percentile may be
_EDGES = (0.5, 99)  # percentiles: what the machine holds up is not the network's range


@dataclass(frozen=True)
class Measured:
    """What the passes found for one pair; None where one has nothing to measure."""

    bare: Echoes
    delay: Echoes
    jitter: Echoes | None
    delivery: Delivery | None
    trains_bps: Sequence[float | None]

    def __add__(self, later: Measured) -> Measured:
        """Return what both found together; the bare path is measured once."""
        return Measured(
            self.bare,
            self.delay + later.delay,
            _sum(self.jitter, later.jitter),
            _sum(self.delivery, later.delivery),
            [*self.trains_bps, *later.trains_bps],
        )


T = TypeVar("T", Echoes, Delivery)


def _sum(earlier: T | None, later: T | None) -> T | None:
    if earlier is None or later is None:
        return later if earlier is None else earlier
    return earlier + later


def judge(plan: Plan, pair: Pair, measured: Measured, tolerance: Tolerance, this: Round) -> Judged:
    """Return one entry of ``pairs``, and what is wrong."""
    delay, jitter = measured.delay, measured.jitter
    shown = jitter if jitter is not None else delay
    there, back = plan.path(*pair), plan.path(*pair[::-1])
    rtt_ms = plan.rtt_ms(*pair)
    echoes = [each for each in (delay, jitter) if each is not None]
    delivery = measured.delivery
    bare_ms = milliseconds(measured.bare.rtt_ns)
    entry: dict[str, Any] = {
        "from": pair[0],
        "to": pair[1],
        "requested_rtt_ms": rtt_ms,
        "requested_jitter_ms": plan.jitter_ms(*pair),
        "lost": sum(each.lost for each in echoes),
        "sent": sum(each.sent for each in echoes),
        "duplicated": sum(each.duplicates for each in echoes),
        "corrupted": sum(each.corrupted for each in echoes),
        "reordered": delay.reordered + (delivery.overtaken if delivery else 0),
        "bare_rtt_ms": figures(bare_ms) if bare_ms.size else None,
        "rtt_ms": None,
        "error_ms": None,
        "jitter": None,
        "delivery": None,
        "rate": rate_figures(there, measured.trains_bps, tolerance),
    }
    if not delay.rtt_ns or not shown.rtt_ns:
        return entry, [Finding("no probe came back")]
    expected_ms = rtt_ms + transmission_ms(there + back)
    late_ms = milliseconds(delay.rtt_ns) - expected_ms
    errors_ms = np.abs(late_ms)
    entry["rtt_ms"] = figures(milliseconds(shown.rtt_ns))
    entry["error_ms"] = {
        "p50": float(np.median(errors_ms)),
        "p99": float(np.percentile(errors_ms, 99)),
    }
    findings = list(_delay_faults(late_ms, entry["error_ms"], tolerance, rtt_ms, this))
    if jitter is not None:
        entry["jitter"] = _jitter_figures(there, back, delay, jitter)
        findings += _range_faults(there + back, jitter, tolerance, this)
        findings += _jitter_faults(entry["jitter"], tolerance, this)
    findings += _echo_faults(there + back, entry, tolerance, this)
    if delivery is not None:
        bare_one_way_ms = float(np.median(bare_ms)) / 2 if bare_ms.size else 0.0
        entry["delivery"] = delivery_figures(there, delivery, bare_one_way_ms)
        runs = delivery.bursts.size
        findings += delivery_faults(there, entry["delivery"], runs, tolerance, this)
    if entry["rate"] is not None:
        findings += rate_faults(entry["rate"])
    return entry, findings


def transmission_ms(steps: Sequence[Impairment], frame_bytes: int = FRAME_BYTES) -> float:
    """Return what rates add to the delay of a probe that finds every queue empty."""
    return sum(8000 * frame_bytes / step.rate_bps for step in steps if step.rate_bps is not None)


def _delay_faults(
    late_ms: Values,
    error_ms: dict[str, float],
    tolerance: Tolerance,
    rtt_ms: float,
    this: Round,
) -> Iterator[Finding]:
    """What single delays tell: ``late_ms`` with their signs, ``error_ms`` without.

    A median that is off is the link's where the quarter that suffered least is off too, and so is
    every share of packets that were early.
    """
    allowed_ms = tolerance.median_for(rtt_ms)
    if error_ms["p50"] > allowed_ms:
        early, best = np.quantile(late_ms, [0.5, 0.25])
        yield Finding(
            f"median error {error_ms['p50']:.3f} ms, allowed {allowed_ms:g} ms",
            is_final=bool(early < -allowed_ms or (this.is_again and best > allowed_ms)),
        )
    if error_ms["p99"] > tolerance.p99_ms:
        share = float(np.mean(np.abs(late_ms) > tolerance.p99_ms))
        is_early = float(np.mean(late_ms < -tolerance.p99_ms)) > _P99
        yield Finding(
            f"p99 error {error_ms['p99']:.3f} ms, allowed {tolerance.p99_ms:g} ms "
            f"({share:.1%} of {late_ms.size} probes are off by more)",
            is_final=is_early or this.is_beyond(share, _P99),
        )


def _jitter_figures(
    there: Sequence[Impairment], back: Sequence[Impairment], delay: Echoes, jitter: Echoes
) -> dict[str, Any]:
    """Return the fit of either way's delays to what was asked for; None where one has no jitter."""
    result: dict[str, Any] = {"there": None, "back": None}
    sent_ns = np.asarray(jitter.seen_sent_ns, dtype=np.int64)
    forward_ns = np.asarray(jitter.forward_ns, dtype=np.int64)
    ways = (
        ("there", there, delay.forward_ns, jitter.forward_ns, sent_ns),
        ("back", back, delay.backward_ns, jitter.backward_ns, sent_ns + forward_ns),
    )
    for name, steps, still_ns, delays_ns, entered_ns in ways:
        if not any(step.jitter_ns for step in steps) or not delays_ns:
            continue
        errors_ms = milliseconds(still_ns) - sum(step.delay_ns for step in steps) / 1e6
        in_order = milliseconds(delays_ns)[np.argsort(entered_ns, kind="stable")]
        found = fit(in_order, steps, errors_ms)
        result[name] = {
            "distribution": _named(steps),
            "n": found.n,
            "distance": found.distance,
            "spread": found.spread,
            "p_value": found.p_value,
            "early_p_value": found.early_p_value,
            "correlation": _correlation(steps, jitter) if name == "there" else None,
            "requested_quantiles_ms": lawful(steps, errors_ms).quantiles(PROBABILITIES).tolist(),
            "measured_quantiles_ms": np.quantile(in_order, PROBABILITIES).tolist(),
        }
    return result


def _named(steps: Sequence[Impairment]) -> str:
    names = [step.distribution for step in steps if step.jitter_ns]
    return names[0] if len(names) == 1 else f"sum of {' and '.join(names)}"


def _correlation(steps: Sequence[Impairment], jitter: Echoes) -> dict[str, float] | None:
    if not any(step.correlation for step in steps if step.jitter_ns):
        return None
    by_number = np.full(jitter.sent, np.nan)
    by_number[jitter.seen_numbers] = milliseconds(jitter.forward_ns)
    measured, requested = correlation(by_number), requested_correlation(steps)
    n = len(jitter.seen_numbers)
    return {
        "requested": requested,
        "measured": measured,
        "p_value": correlation_p_value(measured, requested, n),
    }


def _jitter_faults(found: dict[str, Any], tolerance: Tolerance, this: Round) -> Iterator[Finding]:
    """How delays fit. A machine makes packets late, and neighbours alike; the rest is the link."""
    alpha = this.alpha(tolerance.alpha)
    for name in ("there", "back"):
        way = found[name]
        if way is None:
            continue
        if way["p_value"] < alpha:
            yield Finding(
                f"jitter on the way {name} is not {way['distribution']} as asked for "
                f"({way['n']} delays, distance {way['distance']:.3f}, "
                f"spread {way['spread']:.2f} of the requested, "
                f"p = {way['p_value']:.1g}, allowed {alpha:g})",
                is_final=is_certain(way["early_p_value"], tolerance.alpha),
            )
        related = way["correlation"]
        if related is None:
            continue
        measured, requested = related["measured"], related["requested"]
        if math.isnan(measured) or related["p_value"] < alpha:
            is_less = not math.isnan(measured) and measured < requested
            yield Finding(
                f"successive delays on the way {name} have a correlation of "
                f"{measured:.1%}, asked for {requested:.1%} "
                f"(p = {related['p_value']:.1g}, allowed {alpha:g})",
                is_final=is_less and is_certain(related["p_value"], tolerance.alpha),
            )


def _range_faults(
    steps: Sequence[Impairment], jitter: Echoes, tolerance: Tolerance, this: Round
) -> Iterator[Finding]:
    rtt_ms = milliseconds(jitter.rtt_ns)
    least_ms, most_ms = (sum(step.range_ns[end] for step in steps) / 1e6 for end in (0, 1))
    low, high = np.percentile(rtt_ms, _EDGES)
    low_end = least_ms - tolerance.edge_ms
    high_end = most_ms + transmission_ms(steps) + tolerance.edge_ms
    if low < low_end or high > high_end:
        share = float(np.mean(rtt_ms > high_end))
        yield Finding(
            f"round trips of {low:.1f} to {high:.1f} ms, asked for {least_ms:g} to {most_ms:g} ms",
            is_final=bool(low < low_end) or this.is_beyond(share, _P99),
        )


def _echo_faults(
    steps: Sequence[Impairment], entry: dict[str, Any], tolerance: Tolerance, this: Round
) -> Iterator[Finding]:
    """What round trips tell of loss and of packets that nobody sent."""
    lost, sent = entry["lost"], entry["sent"]
    part = 1 - (1 - lost_part(steps)) * (1 - corrupted_part(steps))
    if part == 0 and lost:
        yield Finding(f"{lost} of {sent} probes lost, none asked for")
    elif not corrupted_part(steps):
        p = p_value(lost, sent, part, inflation(steps))
        if p < this.alpha(tolerance.alpha):
            yield Finding(
                f"{lost} of {sent} probes lost, asked for {part:.2%}",
                is_final=is_certain(p, tolerance.alpha),
            )
    if entry["duplicated"] and not duplicated_part(steps):
        yield Finding(
            f"{entry['duplicated']} of {sent} probes came back twice, no duplication asked for"
        )
    if entry["corrupted"] and not corrupted_part(steps):
        yield Finding(f"{entry['corrupted']} of {sent} probes damaged, no corruption asked for")
    if entry["reordered"] and not any(_may_reorder(step) for step in steps):
        yield Finding(f"{entry['reordered']} probes overtaken, no reordering asked for")


def _may_reorder(step: Impairment) -> bool:
    return bool(step.reorder or step.overtake)
