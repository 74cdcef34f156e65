"""The block "load" of summary.json."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from wanlat.analysis.load.model import (
    Estimate,
    Figures,
    LittlesLaw,
    Load,
    Operation,
    Quiet,
    QuietFigures,
    Steady,
)
from wanlat.analysis.load.resampling import DEFINITION
from wanlat.analysis.load.steady import RULE

_DEFINITIONS = {
    "figures": "of requests that succeeded and ended within begin_s and end_s, seconds after the "
    "ramp; over the steady part where there is one, else over the whole load",
    "ci95": DEFINITION,
    "steady": RULE,
    "in_flight": "operations_per_s x mean_ms (Little)",
    "little": "workers = in flight + between two requests + missing; over the whole load, all "
    "outcomes",
    "write_over_read": "mean latency of PutObject / that of GetObject, of the same seconds",
    "probe_client": "single requests beside the load; more and ratio compare loaded with idle",
    "bytes_per_s": "bytes of bodies moved by requests that succeeded, a second",
}


_FROM_DUE = {
    "probe_from_due": "the quiet user's latencies are from when a request was due to its answer, "
    "his wait for an earlier one included; from_start_ms is from when it was sent",
}


def definitions_of(loads: Iterable[Load]) -> dict[str, str]:
    """What the figures of these loads mean."""
    return _DEFINITIONS | (_FROM_DUE if any(load.line.from_due for load in loads) else {})


def load_json(load: Load) -> dict[str, Any]:
    """The entry of one system."""
    return {
        "system": load.series.system,
        "version": load.series.version,
        "topology": load.topology,
        "status": load.status,
        "duration_s": _round(load.duration_s),
        "steady": _steady(load.steady),
        "operations": [_operation(each) for each in load.operations],
        "failures": [
            {
                "operation": each.operation,
                "outcome": each.outcome,
                "error": each.kind,
                "count": each.count,
                "share": _round(each.share),
                "first_s": _round(each.first_s),
                "last_s": _round(each.last_s),
            }
            for each in load.failures
        ],
        "little": _little(load.little),
        "client": {
            "workers": load.client.workers,
            "offered_per_s": _round(load.client.offered_per_s),
            "achieved_per_s": _round(load.client.achieved_per_s),
            "cpu_share": _round(load.client.cpu_share),
            "busiest_thread_share": _round(load.client.busiest_thread_share),
            "verify_share": _round(load.client.verify_share),
            "waited_share": _round(load.client.waited_share),
            "threads": load.client.threads,
            "bottleneck": load.client.bottleneck,
        },
        "probe_client": [_quiet(each) for each in load.quiet],
        "probe_missed": load.line.missed,
        **(
            {"probe_late": load.line.late, "probe_left_out": load.line.left_out}
            if load.line.from_due
            else {}
        ),
        **estimate_json("write_over_read", load.write_over_read),
        "notes": list(load.notes),
    }


def _steady(steady: Steady) -> dict[str, Any]:
    return {
        "verdict": steady.verdict,
        "of": steady.of,
        "begin_s": _round(steady.begin_s),
        "end_s": _round(steady.end_s),
        "bin_s": steady.bin_s,
        **estimate_json("change", steady.change),
        **estimate_json("bulge", steady.bulge),
        "why": steady.why,
    }


def _operation(operation: Operation) -> dict[str, Any]:
    return {
        "operation": operation.operation,
        "object_bytes": operation.object_bytes,
        "is_steady": operation.steady is not None,
        **_figures(operation.figures),
        "whole": _figures(operation.whole),
    }


def _figures(figures: Figures) -> dict[str, Any]:
    due = figures.from_due_ms
    return {
        "begin_s": _round(figures.begin_s),
        "end_s": _round(figures.end_s),
        "ok": figures.ok,
        "fail": figures.fail,
        "unknown": figures.unknown,
        "bytes": figures.bytes,
        **estimate_json("operations_per_s", figures.per_s),
        "bytes_per_s": _round(figures.bytes_per_s),
        **estimate_json("mean_ms", figures.mean_ms),
        **estimate_json("p50_ms", figures.p50_ms),
        **estimate_json("p95_ms", figures.p95_ms),
        **estimate_json("p99_ms", figures.p99_ms),
        "max_ms": _round(figures.max_ms),
        "in_flight": _round(figures.in_flight),
        "from_due_ms": None
        if due is None
        else dict(zip(("mean", "p50", "p99"), map(_round, due), strict=True)),
    }


def _little(little: LittlesLaw | None) -> dict[str, Any] | None:
    if little is None:
        return None
    return {
        "workers": little.workers,
        "in_flight": _round(little.in_flight),
        "between": _round(little.between),
        "missing": _round(little.missing),
        "gap_ms": _round(little.gap_ms),
        "overlaps": little.overlaps,
        "fits": little.fits,
    }


def _quiet(quiet: Quiet) -> dict[str, Any]:
    return {
        "endpoint": quiet.endpoint,
        "placement": quiet.placement,
        "idle": _quiet_figures(quiet.idle),
        "loaded": _quiet_figures(quiet.loaded),
        **estimate_json("mean_more_ms", quiet.mean_more_ms),
        **estimate_json("median_more_ms", quiet.median_more_ms),
        **estimate_json("mean_ratio", quiet.mean_ratio),
        **estimate_json("median_ratio", quiet.median_ratio),
    }


def _quiet_figures(figures: QuietFigures) -> dict[str, Any]:
    return {
        "ok": figures.ok,
        "fail": figures.fail,
        "unknown": figures.unknown,
        **estimate_json("mean_ms", figures.mean_ms),
        **estimate_json("median_ms", figures.median_ms),
        "p95_ms": _round(figures.p95_ms),
        "p99_ms": _round(figures.p99_ms),
        "max_ms": _round(figures.max_ms),
        **_from_start(figures),
    }


def _from_start(figures: QuietFigures) -> dict[str, Any]:
    if figures.from_start_ms is None:
        return {}
    named = zip(("mean", "median", "p99"), map(_round, figures.from_start_ms), strict=True)
    return {"from_start_ms": dict(named)}


def estimate_json(name: str, estimate: Estimate | None) -> dict[str, Any]:
    """A figure under its name, and its interval under that of `name` and "_ci95"."""
    if estimate is None:
        return {name: None, f"{name}_ci95": None}
    ci95 = None if estimate.ci95 is None else [_round(bound) for bound in estimate.ci95]
    return {name: _round(estimate.value), f"{name}_ci95": ci95}


def _round(value: float | None) -> float | None:
    """Nine digits: more than was measured."""
    return None if value is None else float(f"{value:.9g}")
