"""What a comparison found: numbers, the table, and the README's section."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from benchmarks.command import markdown
from benchmarks.probe.contenders import OBJECT_BYTES, Contender, Target
from wanlat.emulator.machine import cores, cpu_model


@dataclass(frozen=True)
class Row:
    """One client's latencies, and how many times those of the client it is compared with."""

    client: str
    n: int
    median_us: float
    p5_us: float
    p95_us: float
    against: str
    ratio: float
    """Of the medians over all rounds."""
    ratio_of_rounds: tuple[float, float]
    """The same ratio within a round: 5th and 95th percentile over the rounds."""


def rows(contenders: Sequence[Contender], times: Mapping[str, Sequence[list[int]]]) -> list[Row]:
    """Return a row for each contender. ``times``: by name, a list of ns for each round."""
    medians = {name: np.array([np.median(one) for one in rounds]) for name, rounds in times.items()}
    pooled = {name: np.concatenate([*rounds]) / 1000 for name, rounds in times.items()}
    made = []
    for each in contenders:
        low, high = np.percentile(medians[each.name] / medians[each.against], [5, 95])
        mine = pooled[each.name]
        made.append(
            Row(
                client=each.name,
                n=len(mine),
                median_us=round(float(np.median(mine)), 1),
                p5_us=round(float(np.percentile(mine, 5)), 1),
                p95_us=round(float(np.percentile(mine, 95)), 1),
                against=each.against,
                ratio=round(float(np.median(mine) / np.median(pooled[each.against])), 2),
                ratio_of_rounds=(round(float(low), 2), round(float(high), 2)),
            )
        )
    return made


def document(found: Sequence[Row], targets: Sequence[Target], rounds: int) -> dict[str, Any]:
    """Return the JSON document of a comparison."""
    held = [_held(target, found) for target in targets]
    return {
        "format": 2,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "kernel": platform.release(),
        "cpu": f"{cores()} cores, {cpu_model()}",
        "object_bytes": OBJECT_BYTES,
        "rounds": rounds,
        "clients": [asdict(row) for row in found],
        "targets": held,
        "verdict": "pass" if all(each["verdict"] == "pass" for each in held) else "fail",
    }


def _held(target: Target, found: Sequence[Row]) -> dict[str, Any]:
    medians = {row.client: row.median_us for row in found}
    ratio = medians[target.client] / medians[target.against]
    return {
        "client": target.client,
        "against": target.against,
        "ratio": round(ratio, 3),
        "at_most": round(target.at_most, 3),
        "verdict": "pass" if ratio <= target.at_most else "fail",
    }


def verdicts(report: Mapping[str, Any]) -> str:
    """Return a line for each target: what was found, what may be, and whether it holds."""
    return "\n".join(
        f"{each['client']} takes {each['ratio']:.2f} times {each['against']} "
        f"(may take {each['at_most']:.2f}): {each['verdict']}"
        for each in report["targets"]
    )


def table(found: Sequence[Row]) -> str:
    """Return the comparison as a Markdown table, which is also readable in a terminal."""
    head = ("client", "n", "median", "p5–p95", "ratio", "ratio, by round")
    body = [
        (
            row.client,
            str(row.n),
            f"{row.median_us:.1f} µs",
            f"{row.p5_us:.1f}–{row.p95_us:.1f} µs",
            f"{row.ratio:.2f}" if row.client != row.against else "1",
            f"{row.ratio_of_rounds[0]:.2f}–{row.ratio_of_rounds[1]:.2f}"
            if row.client != row.against
            else "",
        )
        for row in found
    ]
    return markdown((head, *body))


def section(report: Mapping[str, Any], found: Sequence[Row]) -> str:
    """Return what the README shows."""
    return (
        f"{table(found)}\n\n"
        f"{report['cpu']}, Linux {report['kernel']}, {report['when'][:10]}, "
        f"{report['rounds']} rounds."
    )
