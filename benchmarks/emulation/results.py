"""What the comparison found: figures, the claims that must hold, the table of the page."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from benchmarks.command import markdown
from benchmarks.emulation.contender import Contender, Found
from wanlat.emulator.machine import cores, cpu_model

_LEAST_GBIT_PER_S = 5.0
OURS = "wire"
PEERS = ("netem", "rattan", "toxiproxy")
BARE = ("bare", "bare in UML")


@dataclass(frozen=True)
class Error:
    """How far the round trips at one RTT lie from it, ms: |measured − asked|."""

    asked_ms: float
    n: int
    median_ms: float
    p99_ms: float
    largest_ms: float


@dataclass(frozen=True)
class Row:
    """One contender's figures over all rounds."""

    name: str
    version: str
    errors: tuple[Error, ...]
    gbit_per_s: float
    """The median over the rounds."""
    gbit_per_s_range: tuple[float, float]


def rows(found: Mapping[str, Sequence[Found]], versions: Mapping[str, str]) -> list[Row]:
    """Return a row for each contender; ``found`` holds its rounds. A bare path is asked for 0."""
    made = []
    for name, rounds in found.items():
        pooled: dict[float, list[int]] = {}
        for each in rounds:
            for rtt_ms, times_ns in each.rtt_ns.items():
                pooled.setdefault(rtt_ms, []).extend(times_ns)
        speeds = [each.gbit_per_s for each in rounds]
        made.append(
            Row(
                name=name,
                version=versions[name],
                errors=tuple(
                    _error(0.0 if name in BARE else rtt_ms, times)
                    for rtt_ms, times in pooled.items()
                ),
                gbit_per_s=round(float(np.median(speeds)), 2),
                gbit_per_s_range=(round(min(speeds), 2), round(max(speeds), 2)),
            )
        )
    return made


def _error(asked_ms: float, times_ns: Sequence[int]) -> Error:
    errors = np.abs(np.asarray(times_ns) / 1e6 - asked_ms)
    median, p99 = np.percentile(errors, [50, 99])
    return Error(
        asked_ms=asked_ms,
        n=len(times_ns),
        median_ms=round(float(median), 4),
        p99_ms=round(float(p99), 4),
        largest_ms=round(float(errors.max()), 4),
    )


def claims(found: Sequence[Row]) -> list[dict[str, Any]]:
    """Return what must hold, and whether it does."""
    by_name = {row.name: row for row in found}
    ours = by_name[OURS]
    peers = [by_name[name] for name in PEERS if name in by_name]
    made = []
    for place, error in enumerate(ours.errors):
        for figure in ("median_ms", "p99_ms"):
            what = figure.removesuffix("_ms")
            mine = getattr(error, figure)
            best = min((getattr(peer.errors[place], figure), peer.name) for peer in peers)
            made.append(
                {
                    "claim": f"smallest {what} error at {error.asked_ms:g} ms",
                    "wire": mine,
                    "best_peer": {"name": best[1], "value": best[0]},
                    "verdict": "pass" if mine <= best[0] else "fail",
                }
            )
    made.append(
        {
            "claim": f"at least {_LEAST_GBIT_PER_S:g} Gbit/s over a link of 1 ms",
            "wire": ours.gbit_per_s,
            "verdict": "pass" if ours.gbit_per_s >= _LEAST_GBIT_PER_S else "fail",
        }
    )
    return made


def document(
    found: Sequence[Row], contenders: Sequence[Contender], rounds: int, absent: Mapping[str, str]
) -> dict[str, Any]:
    """Return the JSON document of a comparison."""
    held = claims(found)
    return {
        "format": 1,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "kernel": platform.release(),
        "cpu": f"{cores()} × {cpu_model()}",
        "rounds": rounds,
        "order": [each.name for each in contenders],
        "absent": dict(absent),
        "contenders": [asdict(row) for row in found],
        "claims": held,
        "verdict": "pass"
        if not absent and all(each["verdict"] == "pass" for each in held)
        else "fail",
    }


def verdicts(report: Mapping[str, Any]) -> str:
    """Return a line for each claim."""
    lines = []
    for each in report["claims"]:
        best = each.get("best_peer")
        beside = f", best of the others {best['value']:g} ({best['name']})" if best else ""
        lines.append(f"{each['claim']}: {each['wire']:g}{beside}: {each['verdict']}")
    lines += [f"{name} did not take part: {why}" for name, why in report["absent"].items()]
    return "\n".join(lines)


def table(found: Sequence[Row]) -> str:
    """Return the comparison as a Markdown table, errors in ms."""
    points = [error.asked_ms for row in found if row.name == OURS for error in row.errors]
    head = ["emulator", "version"]
    for asked_ms in points:
        head += [f"{asked_ms:g} ms: median error", "p99", "largest"]
    head += ["throughput at 1 ms"]
    body = []
    for row in found:
        cells = [row.name, row.version]
        for error in row.errors:
            figures = (error.median_ms, error.p99_ms, error.largest_ms)
            cells += [f"{figure:.3f} ms" for figure in figures]
        low, high = row.gbit_per_s_range
        body.append([*cells, f"{row.gbit_per_s:.2f} Gbit/s ({low:.2f}–{high:.2f})"])
    return markdown([head, *body])


def section(report: Mapping[str, Any], found: Sequence[Row]) -> str:
    """Return what the page shows."""
    samples = ", ".join(f"{error.n} at {error.asked_ms:g} ms" for error in found[0].errors)
    return (
        f"{table(found)}\n\n{report['cpu']}, Linux {report['kernel']}, {report['when'][:10]}; "
        f"{report['rounds']} rounds, round trips of each: {samples}."
    )
