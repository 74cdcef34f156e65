"""What was found: the document, the table, the README's section."""

from __future__ import annotations

import os
import platform
import resource
import statistics
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.command import markdown
from benchmarks.generator.cases import Case, Round
from wanlat.emulator.machine import cores, cpu_model

_HEAD = (
    *("case", "workers", "requests/s", "by round", "client", "server", "median", "p99"),
    "promised",
)


class Watch:
    """Looks at what else the machine does while it is measured."""

    def __init__(self) -> None:
        self._loadavg = os.getloadavg()[0]
        self._began = time.monotonic(), _busy_s(), _own_s()

    def seen(self) -> dict[str, float]:
        """Return the load before, and how many cores others used since."""
        began_s, busy_s, own_s = self._began
        elapsed_s = time.monotonic() - began_s
        others_s = (_busy_s() - busy_s) - (_own_s() - own_s)
        return {
            "loadavg_before": round(self._loadavg, 2),
            "others_cores": round(max(others_s, 0) / elapsed_s, 3),
        }


def document(
    cases: Sequence[Case],
    rounds: Mapping[str, Sequence[Round]],
    machine: Mapping[str, float],
    seconds: float,
) -> dict[str, Any]:
    """Return the JSON document. Figures are medians over the rounds."""
    found = [_row(case, rounds[case.name]) for case in cases]
    return {
        "format": 1,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "kernel": platform.release(),
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "cores_of_machine": cores(),
        "machine": dict(machine),
        "rounds": len(next(iter(rounds.values()))),
        "seconds": seconds,
        "cases": found,
        "verdict": "fail" if any(row["verdict"] == "fail" for row in found) else "pass",
    }


def _row(case: Case, rounds: Sequence[Round]) -> dict[str, Any]:
    per_s = statistics.median(each.per_s for each in rounds)
    server_us = [each.server_us for each in rounds if each.server_us is not None]
    promised = case.at_least_per_s
    return {
        "case": case.name,
        "workers": case.workers,
        "object_bytes": case.object_bytes,
        "per_s": round(per_s),
        "per_s_of_rounds": [
            round(min(each.per_s for each in rounds)),
            round(max(each.per_s for each in rounds)),
        ],
        "client_us": round(statistics.median(each.client_us for each in rounds), 1),
        "client_cores": round(statistics.median(each.client_cores for each in rounds), 2),
        "server_us": round(statistics.median(server_us), 1) if server_us else None,
        "p50_us": round(statistics.median(each.p50_us for each in rounds), 1),
        "p99_us": round(statistics.median(each.p99_us for each in rounds), 1),
        "at_least_per_s": promised,
        "verdict": None if promised is None else "pass" if per_s >= promised else "fail",
    }


def table(report: Mapping[str, Any]) -> str:
    """Return a Markdown table, which is also readable in a terminal."""
    body = [
        (
            row["case"],
            str(row["workers"]),
            f"{row['per_s']:,}",
            "–".join(f"{each:,}" for each in row["per_s_of_rounds"]),
            f"{row['client_us']:.1f} µs",
            "" if row["server_us"] is None else f"{row['server_us']:.1f} µs",
            f"{row['p50_us']:,.0f} µs",
            f"{row['p99_us']:,.0f} µs",
            "" if row["verdict"] is None else f"{row['at_least_per_s']:,.0f}: {row['verdict']}",
        )
        for row in report["cases"]
    ]
    return markdown((_HEAD, *body))


def verdict(report: Mapping[str, Any]) -> str:
    """Return a sentence on what is promised, and on what else the machine did."""
    machine = report["machine"]
    return (
        f"{report['verdict']}. Others used {machine['others_cores']:.2f} cores meanwhile (load "
        f"average before: {machine['loadavg_before']:.2f})."
    )


def section(report: Mapping[str, Any]) -> str:
    """Return what the README shows."""
    return (
        f"{table(report)}\n\n"
        f"{report['cores']} of {report['cores_of_machine']} cores, {report['cpu']}, Linux "
        f"{report['kernel']}, {report['when'][:10]}, {report['rounds']} rounds of "
        f"{report['seconds']:g} s. Others used {report['machine']['others_cores']:.2f} cores "
        "meanwhile."
    )


def _busy_s() -> float:
    """Return the CPU time that all cores were not idle, since the machine started."""
    fields = [int(each) for each in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def _own_s() -> float:
    """Return the CPU time of this process and of those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)
