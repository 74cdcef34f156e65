"""What a comparison found: numbers, the table, the verdicts, and the page's section."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from statistics import median
from typing import Any

from benchmarks.size.contenders import OURS, PEER, PHASES, Timing, sites_of
from wanlat.emulator.machine import cores, cpu_model

TIMES_FASTER = 7.0
COMPARED_NODES = 100
LARGEST_NODES, LARGEST_UP_S = 1000, 10.0
GROWTH = 1.5  # of the cost per node, from 100 nodes to 1,000


def document(timings: Mapping[tuple[str, int], Sequence[Timing]], rounds: int) -> dict[str, Any]:
    """Return the JSON document of a comparison."""
    found = [_row(name, nodes, each) for (name, nodes), each in timings.items()]
    for row in found:
        row["ms_per_further_node"] = _further_ms(row, found)
    targets = _targets(found)
    return {
        "measured": datetime.now(UTC).date().isoformat(),
        "machine": f"{cores()} cores, {cpu_model()}, Linux {platform.release()}",
        "rounds": rounds,
        "sizes": found,
        "targets": targets,
        "verdict": "pass" if all(each["met"] for each in targets) else "fail",
    }


def _row(name: str, nodes: int, taken: Sequence[Timing]) -> dict[str, Any]:
    both_s = [each.up_s + each.down_s for each in taken]
    return {
        "emulator": name,
        "nodes": nodes,
        "sites": sites_of(nodes),
        "up_s": _spread([each.up_s for each in taken]),
        "down_s": _spread([each.down_s for each in taken]),
        "both_s": _spread(both_s),
        "ms_per_node": round(median(both_s) / nodes * 1000, 3),
        "phases_s": {
            phase: round(median(each.phases[phase] for each in taken), 4)
            for phase in taken[0].phases
        },
    }


def _further_ms(row: Mapping[str, Any], found: Sequence[Mapping[str, Any]]) -> float | None:
    """Return what each node costs beyond the smallest network of the same emulator."""
    same = [each for each in found if each["emulator"] == row["emulator"]]
    smallest = min(same, key=lambda each: int(each["nodes"]))
    if row["nodes"] < 10:
        return None
    more_s = row["both_s"]["median"] - smallest["both_s"]["median"]
    return round(more_s / max(1, row["nodes"] - smallest["nodes"]) * 1000, 3)


def _spread(values: Sequence[float]) -> dict[str, float]:
    return {
        "median": round(median(values), 4),
        "min": round(min(values), 4),
        "max": round(max(values), 4),
    }


def _targets(found: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    rows = {(row["emulator"], row["nodes"]): row for row in found}
    ours, peer = rows.get((OURS, COMPARED_NODES)), rows.get((PEER, COMPARED_NODES))
    largest = rows.get((OURS, LARGEST_NODES))
    targets = []
    if ours and peer:
        times = peer["both_s"]["median"] / ours["both_s"]["median"]
        targets.append(
            {
                "target": f"up and down of {COMPARED_NODES} nodes at least {TIMES_FASTER:.0f} "
                "times faster than Mininet",
                "found": f"{times:.1f} times",
                "met": times >= TIMES_FASTER,
            }
        )
    if largest:
        targets.append(
            {
                "target": f"{LARGEST_NODES} nodes up within {LARGEST_UP_S:.0f} s",
                "found": f"{largest['up_s']['median']:.2f} s, at most {largest['up_s']['max']:.2f}",
                "met": largest["up_s"]["max"] <= LARGEST_UP_S,
            }
        )
    if ours and largest:
        growth = largest["ms_per_further_node"] / ours["ms_per_further_node"]
        targets.append(
            {
                "target": f"a further node of {LARGEST_NODES} costs at most {GROWTH} times one of "
                f"{COMPARED_NODES}",
                "found": f"{growth:.2f} times",
                "met": growth <= GROWTH,
            }
        )
    return targets


def table(report: Mapping[str, Any]) -> str:
    """Return the table in Markdown: medians, and the range of up and down together."""
    lines = [
        "| emulator | nodes | sites | up | down | both | least–most | a node | a further node |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in sorted(report["sizes"], key=lambda row: (row["emulator"] != OURS, row["nodes"])):
        both = row["both_s"]
        lines.append(
            f"| {row['emulator']} | {row['nodes']:,} | {row['sites']} "
            f"| {row['up_s']['median']:.2f} s | {row['down_s']['median']:.2f} s "
            f"| {both['median']:.2f} s | {both['min']:.2f}–{both['max']:.2f} s "
            f"| {row['ms_per_node']:.1f} ms | {_milliseconds(row['ms_per_further_node'])} |"
        )
    return "\n".join(lines)


def _milliseconds(value: float | None) -> str:
    return "" if value is None else f"{value:.1f} ms"


def phases(report: Mapping[str, Any]) -> str:
    """Return, in Markdown, where wanlat's time goes."""
    lines = [
        f"| nodes | {' | '.join(PHASES)} | down |",
        f"| ---: | {' | '.join(['---:'] * len(PHASES))} | ---: |",
    ]
    for row in sorted(report["sizes"], key=lambda row: row["nodes"]):
        if row["emulator"] == OURS:
            parts = " | ".join(f"{row['phases_s'][phase]:.3f} s" for phase in PHASES)
            lines.append(f"| {row['nodes']:,} | {parts} | {row['down_s']['median']:.3f} s |")
    return "\n".join(lines)


def verdicts(report: Mapping[str, Any]) -> str:
    """Return a line for each target."""
    return "\n".join(
        f"{'met' if each['met'] else 'MISSED'}: {each['target']}: {each['found']}"
        for each in report["targets"]
    )


def section(report: Mapping[str, Any]) -> str:
    """Return what the page shows."""
    bullets = "\n".join(
        f"- {each['target']}: **{each['found']}**{'' if each['met'] else ' (missed)'}"
        for each in report["targets"]
    )
    return (
        f"{table(report)}\n\nMedians of {report['rounds']} rounds. {report['machine']}, "
        f"{report['measured']}.\n\n{bullets}\n\n"
        "Where wanlat's time goes (medians): the lab's processes start (sandbox), the network is "
        "made and its links emulated, and the rest, which is the nodes' directories.\n\n"
        f"{phases(report)}"
    )
