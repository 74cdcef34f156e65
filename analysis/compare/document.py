"""A comparison as one JSON document; its keys are in docs/compare.md."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from wanlat.analysis.compare.model import (
    Change,
    Compared,
    Comparison,
    ModeShare,
    Side,
    Verdict,
)
from wanlat.analysis.compare.sentences import change_sentence
from wanlat.analysis.compare.thresholds import FALSE_ALARMS


def document(comparison: Comparison) -> dict[str, Any]:
    """What `wanlat compare --json` prints."""
    counts = comparison.counts
    return {
        "old": _side(comparison.old),
        "new": _side(comparison.new),
        "kind": "round-trips" if comparison.of_round_trips else "latency",
        "at_rtt_ms": comparison.at_rtt_ms,
        "gate": {
            "kinds": [str(kind) for kind in comparison.gate],
            "strict": comparison.strict,
            "allow_missing": comparison.allow_missing,
            "passed": comparison.passed,
            "failures": list(comparison.failures),
        },
        "thresholds": {**asdict(comparison.thresholds), "false_alarms": FALSE_ALARMS},
        "counts": {str(verdict): counts.get(verdict, 0) for verdict in Verdict},
        "endpoints": [_endpoint(each, comparison.at_rtt_ms) for each in comparison.endpoints],
        "differs": list(comparison.differs),
        "notes": list(comparison.notes),
    }


def _side(side: Side) -> dict[str, Any]:
    return {
        "directory": str(side.directory),
        "study": side.study,
        "topology": side.topology,
        "started": side.started,
        "status": side.status,
        "systems": [{"system": one.system, "version": one.version} for one in side.series],
    }


def _endpoint(compared: Compared, at_rtt_ms: float | None) -> dict[str, Any]:
    series = compared.new or compared.old
    return {
        "system": series.system if series else None,
        "old_system": compared.old.system if compared.old else None,
        "old_version": compared.old.version if compared.old else None,
        "new_version": compared.new.version if compared.new else None,
        "endpoint": compared.endpoint,
        "placement": compared.placement,
        "verdict": str(compared.verdict),
        "fails": compared.fails,
        "changes": [_change(change, at_rtt_ms) for change in compared.changes],
        "modes": {
            "old": [_mode(mode) for mode in compared.old_modes],
            "new": [_mode(mode) for mode in compared.new_modes],
        },
    }


def _change(change: Change, at_rtt_ms: float | None) -> dict[str, Any]:
    return {
        "quantity": change.quantity.key,
        "kind": str(change.quantity.kind),
        "unit": change.quantity.unit,
        "old": _rounded(change.old),
        "new": _rounded(change.new),
        "difference": _rounded(change.difference),
        "ci95": None if change.ci95 is None else [_rounded(bound) for bound in change.ci95],
        "p": change.p,
        "p_adjusted": change.p_adjusted,
        "threshold": _rounded(change.threshold),
        "verdict": str(change.verdict),
        "missing": change.missing,
        "gated": change.gated,
        "fails": change.fails,
        "why": change.why,
        "sentence": change_sentence(change, at_rtt_ms),
    }


def _mode(mode: ModeShare) -> dict[str, Any]:
    return {"share": _rounded(mode.share), "round_trips": _rounded(mode.round_trips)}


def _rounded(value: float | None) -> float | None:
    """To six places: nanoseconds where it is milliseconds."""
    return None if value is None or not math.isfinite(value) else round(value, 6)
