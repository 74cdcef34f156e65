"""One pair's entry of ``calibration.json``: what was requested, what measured, what is wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from wanlat.emulator.calibration import counts
from wanlat.emulator.calibration.delays import PROBABILITIES, Values, fit, milliseconds, path_law
from wanlat.emulator.calibration.passes import ONE_WAY_STEP_S, TOGETHER, BothWays
from wanlat.emulator.calibration.rounds import Finding, Judged, Round, is_certain, too_few
from wanlat.emulator.calibration.tolerance import Tolerance
from wanlat.emulator.prober import ECHO_BYTES, ETHERNET_BYTES, Pair, Probes
from wanlat.topologies import shapes
from wanlat.topologies.resolve import Impairment, Plan

Steps = Sequence[Impairment]

_P99 = 0.01  # of the probes may be later than the 99th percentile may be
_EDGES = (0.5, 99)  # percentiles: what the machine holds up is not the network's range
_BURSTS_OFF = 0.1  # of the mean length, allowed beyond what chance allows
_BURST_DEVIATIONS = 4  # what chance allows
_CERTAIN_DEVIATIONS = 2  # beyond that no chance, and no probe more, explains it


def figures(values: Values) -> dict[str, float | int] | None:
    """Return count, mean, deviation and quantiles; None of nothing."""
    if not values.size:
        return None
    return {
        "n": int(values.size),
        "mean": float(values.mean()),
        "stdev": float(values.std(ddof=1)) if values.size > 1 else 0.0,
        "min": float(values.min()),
        "p50": float(np.median(values)),
        "p99": percentile99(values),
        "max": float(values.max()),
    }


def percentile99(values: Values) -> float:
    """Return what at most one value in a hundred exceeds, one of them: of 99 it is the largest."""
    return float(np.quantile(values, 1 - _P99, method="inverted_cdf"))


def transmission_ms(steps: Steps) -> float:
    """Return what rates add to the delay of an echo that finds every queue empty."""
    bits = 8 * (ECHO_BYTES + ETHERNET_BYTES)
    return sum(1000 * bits / step.rate_bps for step in steps if step.rate_bps is not None)


def counts_of(echoes: Probes) -> dict[str, Any]:
    """Return the counts of echoes, as an entry has them."""
    return {
        "lost": echoes.lost,
        "sent": echoes.sent,
        "duplicated": echoes.duplicated,
        "corrupted": echoes.damaged,
        "late": int(echoes.is_late.sum()),
    }


def judge_delay(plan: Plan, pair: Pair, delay: Probes, tolerance: Tolerance, this: Round) -> Judged:
    """Judge echoes without jitter: every one has one right answer."""
    steps = plan.path(*pair) + plan.path(*pair[::-1])
    rtt_ms = milliseconds(delay.rtt_ns)
    entry = counts_of(delay) | {"reordered": delay.overtaken, "rtt_ms": figures(rtt_ms)}
    few = too_few(delay, this)
    if not rtt_ms.size:
        return entry | {"error_ms": None}, few or [Finding("no probe came back")]
    requested_ms = plan.rtt_ms(*pair)
    late_ms = rtt_ms - requested_ms - transmission_ms(steps)
    errors_ms = np.abs(late_ms)
    entry["error_ms"] = {"p50": float(np.median(errors_ms)), "p99": percentile99(errors_ms)}
    findings = few or list(_delay_faults(late_ms, entry["error_ms"], tolerance, requested_ms, this))
    if delay.overtaken and not any(step.reorder or step.overtake for step in steps):
        words = f"{delay.overtaken} echoes overtaken, no reordering requested"
        findings.append(Finding(words))
    return entry, findings + list(echo_faults(steps, entry, tolerance.alpha, this))


def judge_jitter(
    plan: Plan, pair: Pair, jitter: BothWays, still: Probes, tolerance: Tolerance, this: Round
) -> Judged:
    """Judge echoes with jitter; ``still`` are those without."""
    there, back = plan.path(*pair), plan.path(*pair[::-1])
    rtt_ms = milliseconds(jitter.echoes.rtt_ns)
    entry = counts_of(jitter.echoes) | {"rtt_ms": figures(rtt_ms), "jitter": None}
    few = too_few(jitter.echoes, this)
    if not rtt_ms.size:
        return entry, few or [Finding("no probe came back")]
    entry["jitter"] = {
        "there": _jitter_figures(there, still.delays_ns, jitter.there_ns),
        "back": _jitter_figures(back, still.returns_ns, jitter.back_ns),
    }
    findings = few or [
        *_range_faults(there + back, rtt_ms, tolerance, this),
        *_jitter_faults(entry["jitter"], tolerance, this),
    ]
    return entry, findings + list(echo_faults(there + back, entry, tolerance.alpha, this))


def judge_delivery(
    plan: Plan, pair: Pair, delivery: Probes, bare_ms: float, tolerance: Tolerance, this: Round
) -> Judged:
    """Judge packets sent one way by their number; ``bare_ms``: what the path itself takes."""
    steps = plan.path(*pair)
    counted = _delivery_figures(steps, delivery, bare_ms)
    return {"delivery": counted}, [
        *_delivery_faults(steps, counted, tolerance, this),
        *_burst_faults(counted, delivery.bursts.size),
        *_order_faults(steps, counted),
    ]


def _delay_faults(
    late_ms: Values, error_ms: dict[str, float], tolerance: Tolerance, rtt_ms: float, this: Round
) -> Iterator[Finding]:
    """Judge single delays: ``late_ms`` with their signs, ``error_ms`` without.

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


def _range_faults(
    steps: Steps, rtt_ms: Values, tolerance: Tolerance, this: Round
) -> Iterator[Finding]:
    least_ms, most_ms = (sum(step.range_ns[end] for step in steps) / 1e6 for end in (0, 1))
    low, high = np.percentile(rtt_ms, _EDGES)
    low_end = least_ms - tolerance.edge_ms
    high_end = most_ms + transmission_ms(steps) + tolerance.edge_ms
    if low < low_end or high > high_end:
        share = float(np.mean(rtt_ms > high_end))
        yield Finding(
            f"round trips of {low:.1f} to {high:.1f} ms, requested {least_ms:g} to {most_ms:g} ms",
            is_final=bool(low < low_end) or this.is_beyond(share, _P99),
        )


def _jitter_figures(steps: Steps, still_ns: Any, delays_ns: Any) -> dict[str, Any] | None:
    """Return the fit of one way's delays to what was requested; None without jitter.

    ``still_ns`` are those of the same way with jitter off.
    """
    names = [step.distribution for step in steps if step.jitter_ns]
    if not names or not delays_ns.size:
        return None
    errors_ms = milliseconds(still_ns) - sum(step.delay_ns for step in steps) / 1e6
    delays_ms = milliseconds(delays_ns)
    fitted = fit(delays_ms, steps, errors_ms)
    expected = path_law(steps).later_by(errors_ms)
    return {
        "distribution": names[0] if len(names) == 1 else f"sum of {' and '.join(names)}",
        **asdict(fitted),
        "requested_quantiles_ms": expected.quantiles(PROBABILITIES).tolist(),
        "measured_quantiles_ms": np.quantile(delays_ms, PROBABILITIES).tolist(),
    }


def _jitter_faults(ways: dict[str, Any], tolerance: Tolerance, this: Round) -> Iterator[Finding]:
    """How delays fit. A machine makes packets late; what is early is the link."""
    alpha = this.alpha(tolerance.alpha)
    for name, way in ways.items():
        if way is not None and way["p_value"] < alpha:
            yield Finding(
                f"jitter on the way {name} is not {way['distribution']} as requested "
                f"({way['n']} delays, distance {way['distance']:.3f}, "
                f"spread {way['spread']:.2f} of the requested, "
                f"p = {way['p_value']:.1g}, allowed {alpha:g})",
                is_final=is_certain(way["early_p_value"], tolerance.alpha),
            )


def echo_faults(
    steps: Steps, entry: dict[str, Any], alpha: float, this: Round, crowded: float = 0.0
) -> Iterator[Finding]:
    """Judge an entry's counts of round trips: losses, copies, damage.

    ``crowded``: the part that may find a queue full which others fill.
    """
    lost, sent, part = entry["lost"], entry["sent"], counts.spoilt_part(steps)
    if crowded:
        p = counts.p_value_between(lost, sent, part, min(1.0, part + crowded))
    elif counts.corrupted_part(steps):
        least = 1 - (1 - counts.lost_part(steps)) * (
            1 - counts.corrupted_part(steps) * (1 - counts.UNNOTICED_CORRUPTION)
        )
        p = counts.p_value_between(lost, sent, least, part)
    else:
        p = counts.p_value(lost, sent, part, counts.inflation(steps))
    if p < this.alpha(alpha) or (lost and p == 0):
        requested = f"requested {part:.2%}" if part else "none requested"
        yield Finding(f"{lost} of {sent} probes lost, {requested}", is_final=is_certain(p, alpha))
    if entry["duplicated"] and not counts.duplicated_part(steps):
        words = f"{entry['duplicated']} of {sent} probes came back twice, no duplication requested"
        yield Finding(words)
    if entry["corrupted"] and not counts.corrupted_part(steps):
        yield Finding(f"{entry['corrupted']} of {sent} probes damaged, no corruption requested")


def _delivery_figures(steps: Steps, delivery: Probes, bare_ms: float) -> dict[str, Any]:
    """Return what was requested and what was counted, one way.

    ``undelayed`` packets took less than half of the shortest delay that is requested.
    """
    overtake = max((step.overtake for step in steps), default=0.0)
    delayed_ns = sum(
        (step.delay_ns + step.jitter_ns * shapes.extent(step.distribution, step.table)[0])
        / (2 if step.overtake else 1)
        for step in steps
    )
    lossy = [step for step in steps if step.loss_probability]
    bursts = delivery.bursts
    length = counts.mean_burst(lossy[0].bursts) if len(lossy) == 1 and lossy[0].bursts else math.inf
    return {
        "sent": delivery.sent,
        "lost": max(0, delivery.lost - delivery.damaged),
        "duplicated": delivery.duplicated,
        "damaged": delivery.damaged,
        "overtaken": delivery.overtaken,
        "undelayed": int((delivery.delays_ns < delayed_ns + bare_ms * 1e6).sum())
        if overtake
        else 0,
        "mean_burst": float(bursts.mean()) if bursts.size else None,
        "requested": {
            "loss": counts.lost_part(steps),
            "duplicate": counts.duplicated_part(steps),
            "corrupt": counts.corrupted_part(steps),
            "overtake": overtake,
            "mean_burst": length if math.isfinite(length) else None,
        },
    }


def _delivery_faults(
    steps: Steps, counted: dict[str, Any], tolerance: Tolerance, this: Round
) -> Iterator[Finding]:
    """Compare counts with what was requested, each by how probable it is on a right link."""
    requested, sent, damaged = counted["requested"], counted["sent"], counted["damaged"]
    loss, corrupt = requested["loss"], requested["corrupt"]
    expected = [("duplicated", requested["duplicate"] * (1 - loss), 1.0)]
    if not corrupt:
        expected.append(("lost", loss, counts.inflation(steps)))
        expected.append(("damaged", 0.0, 1.0))
    if requested["overtake"]:
        expected.append(("undelayed", requested["overtake"], 1.0))
    judged = [
        (
            counts.p_value(counted[name], sent, part, raised),
            f"{counted[name]} of {sent} packets {name}",
            part,
        )
        for name, part, raised in expected
    ]
    if corrupt:  # a bit flipped in a header is a packet lost: judged together
        spoilt = counted["lost"] + damaged
        least, most = (
            1 - (1 - loss) * (1 - corrupt * noticed)
            for noticed in (1 - counts.UNNOTICED_CORRUPTION, 1)
        )
        p = counts.p_value_between(spoilt, sent, least, most) if damaged else 0.0
        judged.append((p, f"{damaged} of {sent} packets damaged, {counted['lost']} lost", most))
    for p, words, part in judged:
        if p < this.alpha(tolerance.alpha) or p == 0:
            share = f"{part * 100:.3g} %" if part else "none"
            certain = is_certain(p, tolerance.alpha)
            yield Finding(f"{words}, requested {share}", is_final=certain)


def _burst_faults(counted: dict[str, Any], bursts: int) -> Iterator[Finding]:
    """``bursts``: how many runs of lost packets were seen."""
    requested, mean = counted["requested"]["mean_burst"], counted["mean_burst"]
    if requested is None or bursts < 10:
        return  # too few to judge
    # Lengths of bursts are about geometric, and the deviation of a mean falls with their number.
    deviation = math.sqrt(max(requested * (requested - 1), 0.1) / bursts)
    allowed = _BURSTS_OFF * requested + _BURST_DEVIATIONS * deviation
    off = abs(mean - requested)
    if off > allowed:
        yield Finding(
            f"losses come in bursts of {mean:.2f} packets on average, requested {requested:.2f} "
            f"(allowed: off by {allowed:.2f})",
            is_final=off > allowed + _CERTAIN_DEVIATIONS * deviation,
        )


def _order_faults(steps: Steps, counted: dict[str, Any]) -> Iterator[Finding]:
    by_jitter = any(step.reorder and step.jitter_ns for step in steps)
    if counted["overtaken"] and not by_jitter and not any(step.overtake for step in steps):
        yield Finding(
            f"{counted['overtaken']} packets of one flow overtaken, no reordering requested"
        )
    if by_jitter and not counted["overtaken"]:
        low, high = path_law(steps).quantiles([0.25, 0.75])
        if high - low > 2000 * ONE_WAY_STEP_S * TOGETHER:  # neighbours would change places
            yield Finding(f"none of {counted['sent']} packets overtaken, reordering requested")
