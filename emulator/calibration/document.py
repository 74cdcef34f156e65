"""Everything measured, judged and put into the document of ``calibration.json``."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from wanlat.emulator.calibration.delays import PROBABILITIES, milliseconds
from wanlat.emulator.calibration.judgement import figures, judge_delay, judge_delivery, judge_jitter
from wanlat.emulator.calibration.pairs import pairs_of
from wanlat.emulator.calibration.passes import Passes, is_counted
from wanlat.emulator.calibration.rate import Rated, judge_rate
from wanlat.emulator.calibration.rounds import Limits, Outcome, measure_in_rounds
from wanlat.emulator.calibration.tolerance import Tolerance
from wanlat.emulator.lab import Lab
from wanlat.emulator.prober import Pair, Prober, Probes, Progress
from wanlat.topologies.errors import UserError
from wanlat.topologies.resolve import Plan

LIMITS = Limits(pause_s=0.5, longest_s=180.0)
"""Unless something else is requested: what holds the machine up may be over after a pause."""

_BARE_ECHOES, _PACKETS = 20, 2000
_SUMS = ("lost", "sent", "duplicated", "corrupted", "reordered", "late")  # over the passes

StageProgress = Callable[[str, float], None]


def calibrate(
    lab: Lab,
    *,
    against: Plan | None = None,
    pairs: Sequence[Pair] | None = None,
    samples: int | None = None,
    tolerance: Tolerance | None = None,
    limits: Limits = LIMITS,
    on_progress: StageProgress = lambda _stage, _part: None,
) -> dict[str, Any]:
    """Measure the lab's pairs and judge them; return the document of ``calibration.json``.

    What is requested may come from another plan than the lab's (``against``): that is how the
    check is checked. Of echoes a pair is sent as many as its verdict needs (`Tolerance.echoes`,
    `Tolerance.delays`), unless ``samples`` sets the number. A pair that looks off is sent more,
    within ``limits``, and judged by all of them but those that the machine held up
    (`calibration.rounds`); the document has both numbers. The lab's impairments are the same after
    as before. Raises MachineError when the lab ends, UserError for a lab of one node.
    """
    requested = against or lab.plan
    tolerance = tolerance or Tolerance()
    wanted = list(pairs or pairs_of(lab.plan))
    if not wanted:
        raise UserError(
            f"Topology {lab.plan.name} has one node, so there is no path to measure. "
            "Choose one with two nodes or more."
        )
    echoes = samples or tolerance.echoes
    delays = max(samples or 0, tolerance.delays)
    drawn = [pair for pair in wanted if requested.jitter_ms(*pair) > 0]
    counted = [p for p in wanted if p in drawn or is_counted(requested.path(*p))]
    rated = [pair for pair in wanted if Rated.on_path(requested.path(*pair))]
    started = time.monotonic()

    def left() -> Limits:
        return replace(limits, longest_s=limits.longest_s - (time.monotonic() - started))

    def stage(name: str) -> Progress:
        return lambda part: on_progress(name, part)

    nodes = sorted({name for pair in wanted for name in pair})
    with Prober(lab, nodes, tolerance.late_ms) as prober:
        passes = Passes(lab, prober, requested)
        bare = passes.bare(_BARE_ECHOES, stage("bare path"), wanted)
        delay = measure_in_rounds(
            wanted,
            partial(passes.delay, echoes, stage("delay")),
            lambda pair, probes, this: judge_delay(requested, pair, probes, tolerance, this),
            left(),
        )
        reached = {pair for pair, outcome in delay.items() if outcome.evidence.rtt_ns.size}
        jitter = measure_in_rounds(
            [pair for pair in drawn if pair in reached],
            partial(passes.jitter, delays, stage("jitter")),
            lambda pair, probes, this: judge_jitter(
                requested, pair, probes, delay[pair].evidence, tolerance, this
            ),
            left(),
        )
        delivery = measure_in_rounds(
            [pair for pair in counted if pair in reached],
            partial(passes.delivery, _PACKETS, stage("delivery")),
            lambda pair, probes, this: judge_delivery(
                requested, pair, probes, _median_ms(bare[pair]) / 2, tolerance, this
            ),
            left(),
        )
        rate = measure_in_rounds(
            [pair for pair in rated if pair in reached],
            partial(passes.rate, stage("rate")),
            lambda pair, trains, _: judge_rate(requested.path(*pair), trains, tolerance),
            left(),
        )
    measured = (delay, jitter, delivery, rate)
    entries = [
        _entry(
            requested,
            pair,
            bare[pair],
            [outcomes[pair] for outcomes in measured if pair in outcomes],
        )
        for pair in wanted
    ]
    overflows = sum(counters.overflows for counters in lab.counters().values())
    passed = all(entry["verdict"] == "pass" for entry in entries)
    return {
        "topology": requested.name,
        "backend": lab.backend,
        "tolerance": tolerance.as_json(),
        "quantiles": list(PROBABILITIES),
        "pairs": entries,
        "overflows": overflows,
        "verdict": "pass" if passed and overflows == 0 else "fail",
    }


def _entry(
    requested: Plan, pair: Pair, bare: Probes, outcomes: Sequence[Outcome]
) -> dict[str, Any]:
    """Return one entry of ``pairs``, of what the passes found; the first is that of delay."""
    entry: dict[str, Any] = {
        "from": pair[0],
        "to": pair[1],
        "requested_rtt_ms": requested.rtt_ms(*pair),
        "requested_jitter_ms": requested.jitter_ms(*pair),
        **dict.fromkeys(_SUMS, 0),
        "bare_rtt_ms": figures(milliseconds(bare.rtt_ns)),
        **dict.fromkeys(("rtt_ms", "error_ms", "jitter", "delivery", "rate")),
    }
    for outcome in outcomes:
        part = outcome.entry
        entry |= part | {key: entry[key] + part.get(key, 0) for key in _SUMS}
    if entry["delivery"]:
        entry["reordered"] += entry["delivery"]["overtaken"]
    findings = [finding for outcome in outcomes for finding in outcome.findings]
    rounds = max(outcome.rounds for outcome in outcomes)
    return entry | Outcome(None, entry, findings, rounds).verdict


def _median_ms(echoes: Probes) -> float:
    return float(np.median(milliseconds(echoes.rtt_ns))) if echoes.rtt_ns.size else 0.0
