"""Everything measured, judged and put into the document of ``calibration.json``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from wanlat.emulator.calibration.delivery import delivery_pass, is_counted
from wanlat.emulator.calibration.echoes import bare_pass, delay_pass, jitter_pass
from wanlat.emulator.calibration.fit import PROBABILITIES
from wanlat.emulator.calibration.judgement import Measured, judge
from wanlat.emulator.calibration.pairs import Pair, pairs_of
from wanlat.emulator.calibration.rate import rate_pass
from wanlat.emulator.calibration.rounds import Judged, Limits, Round, measure_in_rounds
from wanlat.emulator.calibration.tolerance import Tolerance
from wanlat.emulator.lab import Lab
from wanlat.emulator.prober import Prober
from wanlat.emulator.stream import Stream
from wanlat.topologies.errors import UserError
from wanlat.topologies.resolve import Plan

LIMITS = Limits(pause_s=0.5, longest_s=180.0)
"""Unless something else is asked for: what holds the machine up may be over after a pause."""

_BARE_SAMPLES = 40

Progress = Callable[[str, float], None]


def calibrate(
    lab: Lab,
    *,
    against: Plan | None = None,
    pairs: Sequence[Pair] | None = None,
    samples: int = 200,
    jitter_samples: int = 200,
    delivery_samples: int = 2000,
    tolerance: Tolerance | None = None,
    limits: Limits = LIMITS,
    on_progress: Progress = lambda _stage, _part: None,
) -> dict[str, Any]:
    """Measure the lab's pairs and judge them; return the document of ``calibration.json``.

    What is requested may come from another plan than the lab's (``against``): that is how the
    check is checked. A pair that looks off is sent more probes, within ``limits``, and judged by
    all of them (`calibration.rounds`); the document says how many those were. The lab's
    impairments are the same after as before. Raises MachineError when the lab ends, UserError for
    a lab of one node.
    """
    requested = against or lab.plan
    tolerance = tolerance or Tolerance()
    wanted = list(pairs or pairs_of(lab.plan))
    if not wanted:
        raise UserError(
            f"Topology {lab.plan.name} has one node, so there is no path to measure. "
            "Choose one with two nodes or more."
        )
    nodes = sorted({name for pair in wanted for name in pair})
    with ExitStack() as opened:
        prober = opened.enter_context(Prober(lab, nodes))
        stream = opened.enter_context(Stream(lab, nodes))
        bare = bare_pass(lab, prober, wanted, _BARE_SAMPLES, _stage(on_progress, "bare path"))

        def send(todo: list[Pair], size: int) -> dict[Pair, Measured]:
            stage = partial(_stage, on_progress)
            delay = delay_pass(lab, prober, requested, todo, samples * size, stage("delay"))
            jitter = jitter_pass(
                lab, prober, requested, todo, jitter_samples, stage("jitter"), size=size
            )
            counted = [p for p in todo if p in jitter or is_counted(requested.path(*p))]
            delivery = delivery_pass(
                lab, stream, requested, counted, delivery_samples, stage("delivery"), size=size
            )
            trains_bps = rate_pass(lab, requested, todo, stage("rate"), size=size)
            return {
                pair: Measured(
                    bare=bare[pair],
                    delay=delay[pair],
                    jitter=jitter.get(pair),
                    delivery=delivery.get(pair),
                    trains_bps=trains_bps.get(pair, ()),
                )
                for pair in todo
            }

        def judge_pair(pair: Pair, measured: Measured, this: Round) -> Judged:
            return judge(requested, pair, measured, tolerance, this)

        verdicts = measure_in_rounds(wanted, send, judge_pair, limits, lab.check)
    overflows = sum(counters.overflows for counters in lab.counters().values())
    passed = all(verdict["verdict"] == "pass" for verdict in verdicts.values())
    return {
        "topology": requested.name,
        "backend": lab.backend,
        "tolerance": tolerance.as_json(),
        "quantiles": list(PROBABILITIES),
        "pairs": [verdicts[pair] for pair in wanted],
        "overflows": overflows,
        "verdict": "pass" if passed and overflows == 0 else "fail",
    }


def _stage(on_progress: Progress, name: str) -> Callable[[float], None]:
    return lambda part: on_progress(name, part)
