"""``python -m benchmarks.generator``: what the generator of load reaches when the store is nothing.

Server and generator share the machine's cores, or two of them. Rounds alternate, so that whatever
else the machine does hits all cases alike. Ends with 1 when it is less than is promised.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import command
from benchmarks.generator.cases import CASES, Case, Round, measure
from wanlat.emulator.machine import cores, cpu_model

_HERE = Path(__file__).parent
_CORES = 2
_HEAD = ("case", "workers", "requests/s", "by round", "client", "server", "median", "p99")


def main() -> int:
    """Return 0 when what is promised holds, 1 when it does not, else what went wrong."""
    parser = command.parser("benchmarks.generator", __doc__, rounds=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of a case and round")
    return command.run("benchmarks.generator", _measure, parser.parse_args())


def _measure(options: argparse.Namespace) -> int:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:_CORES])
    rounds: dict[str, list[Round]] = {case.name: [] for case in CASES}
    order = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as directory:
        for done in range(options.rounds):
            for case in order.sample(CASES, len(CASES)):
                rounds[case.name].append(measure(case, options.seconds, Path(directory)))
            command.show_round(done + 1, options.rounds)
    rows = [_row(case, rounds[case.name]) for case in CASES]
    held = not any(row["verdict"] == "fail" for row in rows)
    report = {
        "format": 1,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "kernel": platform.release(),
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "cores_of_machine": cores(),
        "loadavg": round(os.getloadavg()[0], 2),
        "rounds": options.rounds,
        "seconds": options.seconds,
        "cases": rows,
        "verdict": "pass" if held else "fail",
    }
    table = _table(rows)
    if options.save:
        command.save(_HERE, report, _HERE / "README.md", f"{table}\n\n{_conditions(report)}")
    verdict = f"{report['verdict']}. Load average at the end: {report['loadavg']}."
    return command.show(options, report, table, verdict)


def _row(case: Case, rounds: Sequence[Round]) -> dict[str, Any]:
    """Return a case's figures: medians over the rounds."""
    of_rounds = [round(each.per_s) for each in rounds]
    server_us = [each.server_us for each in rounds if each.server_us is not None]
    per_s, promised = round(median(of_rounds)), case.at_least_per_s
    return {
        "case": case.name,
        "workers": case.workers,
        "object_bytes": case.object_bytes,
        "per_s": per_s,
        "per_s_of_rounds": [min(of_rounds), max(of_rounds)],
        "client_us": round(median(each.client_us for each in rounds), 1),
        "client_cores": round(median(each.client_cores for each in rounds), 2),
        "server_us": round(median(server_us), 1) if server_us else None,
        "p50_us": round(median(each.p50_us for each in rounds), 1),
        "p99_us": round(median(each.p99_us for each in rounds), 1),
        "at_least_per_s": promised,
        "verdict": None if promised is None else "pass" if per_s >= promised else "fail",
    }


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
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
        for row in rows
    ]
    return command.markdown(((*_HEAD, "promised"), *body))


def _conditions(report: Mapping[str, Any]) -> str:
    return (
        f"{report['cores']} of {report['cores_of_machine']} cores, {report['cpu']}, Linux "
        f"{report['kernel']}, {report['when'][:10]}, {report['rounds']} rounds of "
        f"{report['seconds']:g} s; load average {report['loadavg']} at the end."
    )


if __name__ == "__main__":
    sys.exit(main())
