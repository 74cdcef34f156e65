"""Everything measured, judged and put into the document of ``calibration.json``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from emulator.calibration.delivery import delivery_pass, is_counted
from emulator.calibration.echoes import bare_pass, delay_pass, jitter_pass
from emulator.calibration.fit import PROBABILITIES
from emulator.calibration.judgement import Measured, judge
from emulator.calibration.pairs import Pair, pairs_of
from emulator.calibration.rate import rate_pass
from emulator.calibration.tolerance import Tolerance
from emulator.lab import Lab
from emulator.prober import Prober
from emulator.stream import Stream
from topologies.errors import UserError
from topologies.resolve import Plan

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
    attempts: int = 3,
    on_progress: Progress = lambda _stage, _part: None,
) -> dict[str, Any]:
    """Measure the lab's pairs and judge them; return the document of ``calibration.json``.

    What is requested may come from another plan than the lab's (``against``): that is how the
    check is checked. A pair that fails is measured again, up to ``attempts`` times in all: a busy
    machine delays packets now and then, a wrong link always. How often is in the document. The
    lab's impairments are the same after as before. Raises MachineError when the lab ends,
    UserError for a lab of one node.
    """
    requested = against or lab.plan
    tolerance = tolerance or Tolerance()
    wanted = list(pairs or pairs_of(lab.plan))
    if not wanted:
        raise UserError(
            f"Topology {lab.plan.name} has one node, so there is no path to measure. "
            "Choose one with two nodes or more."
        )
    verdicts: dict[Pair, dict[str, Any]] = {}
    nodes = sorted({name for pair in wanted for name in pair})
    with ExitStack() as opened:
        prober = opened.enter_context(Prober(lab, nodes))
        stream = opened.enter_context(Stream(lab, nodes))
        bare = bare_pass(lab, prober, wanted, _BARE_SAMPLES, _stage(on_progress, "bare path"))
        todo = wanted
        for attempt in range(1, attempts + 1):
            delay = delay_pass(lab, prober, requested, todo, samples, _stage(on_progress, "delay"))
            jitter = jitter_pass(
                lab, prober, requested, todo, jitter_samples, _stage(on_progress, "jitter")
            )
            delivery = delivery_pass(
                lab,
                stream,
                requested,
                [pair for pair in todo if pair in jitter or is_counted(requested.path(*pair))],
                delivery_samples,
                _stage(on_progress, "delivery"),
            )
            trains_bps = rate_pass(lab, requested, todo, _stage(on_progress, "rate"))
            for pair in todo:
                measured = Measured(
                    bare=bare[pair],
                    delay=delay[pair],
                    jitter=jitter.get(pair),
                    delivery=delivery.get(pair),
                    trains_bps=trains_bps.get(pair, ()),
                )
                verdicts[pair] = judge(requested, pair, measured, tolerance)
                verdicts[pair]["attempts"] = attempt
            todo = [pair for pair in todo if verdicts[pair]["verdict"] == "fail"]
            if not todo:
                break
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
