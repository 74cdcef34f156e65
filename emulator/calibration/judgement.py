"""One pair's entry of ``calibration.json``: what was asked for, what measured, what is wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from emulator.calibration.counts import (
    corrupted_part,
    duplicated_part,
    inflation,
    lost_part,
    p_value,
)
from emulator.calibration.delivery import delivery_faults, delivery_figures
from emulator.calibration.figures import figures, milliseconds
from emulator.calibration.fit import (
    PROBABILITIES,
    correlation,
    correlation_p_value,
    fit,
    lawful,
    requested_correlation,
)
from emulator.calibration.pairs import Pair
from emulator.calibration.rate import rate_faults, rate_figures
from emulator.calibration.tolerance import Tolerance
from emulator.prober import FRAME_BYTES, Echoes
from emulator.stream import Delivery
from topologies.resolve import Impairment, Plan

_RELATED_ALPHA = 1e-3
_EDGES = (0.5, 99)  # percentiles: what the machine holds up is not the network's range


@dataclass(frozen=True)
class Measured:
    """What the passes found for one pair; None where one has nothing to measure."""

    bare: Echoes
    delay: Echoes
    jitter: Echoes | None
    delivery: Delivery | None
    trains_bps: Sequence[float | None]


def judge(plan: Plan, pair: Pair, measured: Measured, tolerance: Tolerance) -> dict[str, Any]:
    """Return one entry of ``pairs``."""
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
        return entry | {"verdict": "fail", "reasons": ["no probe came back"]}
    expected_ms = rtt_ms + transmission_ms(there + back)
    errors_ms = np.abs(milliseconds(delay.rtt_ns) - expected_ms)
    entry["rtt_ms"] = figures(milliseconds(shown.rtt_ns))
    entry["error_ms"] = {
        "p50": float(np.median(errors_ms)),
        "p99": float(np.percentile(errors_ms, 99)),
    }
    reasons = list(_delay_faults(entry["error_ms"], tolerance, rtt_ms))
    if jitter is not None:
        entry["jitter"] = _jitter_figures(there, back, delay, jitter)
        reasons += _range_faults(plan, pair, jitter, tolerance)
        reasons += _jitter_faults(entry["jitter"], tolerance)
    reasons += _echo_faults(there + back, entry, tolerance)
    if delivery is not None:
        bare_one_way_ms = float(np.median(bare_ms)) / 2 if bare_ms.size else 0.0
        entry["delivery"] = delivery_figures(there, delivery, bare_one_way_ms)
        reasons += delivery_faults(there, entry["delivery"], delivery.bursts.size, tolerance)
    if entry["rate"] is not None:
        reasons += rate_faults(entry["rate"])
    return entry | {"verdict": "fail" if reasons else "pass", "reasons": reasons}


def transmission_ms(steps: Sequence[Impairment], frame_bytes: int = FRAME_BYTES) -> float:
    """Return what rates add to the delay of a probe that finds every queue empty."""
    return sum(8000 * frame_bytes / step.rate_bps for step in steps if step.rate_bps is not None)


def _delay_faults(error_ms: dict[str, float], tolerance: Tolerance, rtt_ms: float) -> Iterator[str]:
    allowed_ms = tolerance.median_for(rtt_ms)
    if error_ms["p50"] > allowed_ms:
        yield f"median error {error_ms['p50']:.3f} ms, allowed {allowed_ms:g} ms"
    if error_ms["p99"] > tolerance.p99_ms:
        yield f"p99 error {error_ms['p99']:.3f} ms, allowed {tolerance.p99_ms:g} ms"


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


def _jitter_faults(found: dict[str, Any], tolerance: Tolerance) -> Iterator[str]:
    for name in ("there", "back"):
        way = found[name]
        if way is None:
            continue
        if way["p_value"] < tolerance.alpha:
            yield (
                f"jitter on the way {name} is not {way['distribution']} as asked for "
                f"({way['n']} delays, distance {way['distance']:.3f}, "
                f"spread {way['spread']:.2f} of the requested, "
                f"p = {way['p_value']:.1g}, allowed {tolerance.alpha:g})"
            )
        related = way["correlation"]
        if related is not None and (
            math.isnan(related["measured"]) or related["p_value"] < tolerance.alpha
        ):
            yield (
                f"successive delays on the way {name} have a correlation of "
                f"{related['measured']:.1%}, asked for {related['requested']:.1%} "
                f"(p = {related['p_value']:.1g}, allowed {tolerance.alpha:g})"
            )


def _range_faults(plan: Plan, pair: Pair, jitter: Echoes, tolerance: Tolerance) -> Iterator[str]:
    steps = plan.path(*pair) + plan.path(*pair[::-1])
    more_ms = transmission_ms(steps)
    least_ms, most_ms = (sum(step.range_ns[end] for step in steps) / 1e6 for end in (0, 1))
    low, high = np.percentile(milliseconds(jitter.rtt_ns), _EDGES)
    reach_ms = tolerance.edge_ms
    if low < least_ms - reach_ms or high > most_ms + more_ms + reach_ms:
        yield (
            f"round trips of {low:.1f} to {high:.1f} ms, asked for {least_ms:g} to {most_ms:g} ms"
        )


def _echo_faults(
    steps: Sequence[Impairment], entry: dict[str, Any], tolerance: Tolerance
) -> Iterator[str]:
    """What round trips tell of loss and of packets that nobody sent."""
    lost, sent = entry["lost"], entry["sent"]
    part = 1 - (1 - lost_part(steps)) * (1 - corrupted_part(steps))
    if part == 0 and lost:
        yield f"{lost} of {sent} probes lost, none asked for"
    elif (
        not corrupted_part(steps) and p_value(lost, sent, part, inflation(steps)) < tolerance.alpha
    ):
        yield f"{lost} of {sent} probes lost, asked for {part:.2%}"
    if entry["duplicated"] and not duplicated_part(steps):
        yield f"{entry['duplicated']} of {sent} probes came back twice, no duplication asked for"
    if entry["corrupted"] and not corrupted_part(steps):
        yield f"{entry['corrupted']} of {sent} probes damaged, no corruption asked for"
    if entry["reordered"] and not any(_may_reorder(step) for step in steps):
        yield f"{entry['reordered']} probes overtaken, no reordering asked for"


def _may_reorder(step: Impairment) -> bool:
    return bool(step.reorder or step.overtake)
