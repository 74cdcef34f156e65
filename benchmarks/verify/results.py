"""What was found: the document, the tables, and the README's section."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from benchmarks.command import markdown
from benchmarks.verify.clients import COMPARED, Fetched
from wanlat.emulator.machine import cores, cpu_model

AT_MOST = 0.10
"""Of the transfer, at the largest size."""


@dataclass(frozen=True)
class Row:
    """One client at one size."""

    object_bytes: int
    api: str
    client: str
    n: int
    median_ms: float
    verify_ms: float | None
    """Median; None: nothing is verified."""
    share: float | None
    """Of all time that the fetches took together."""
    share_of_rounds: tuple[float, float] | None
    """The least and the greatest of a round."""


def row(object_bytes: int, api: str, client: str, rounds: Sequence[Sequence[Fetched]]) -> Row:
    """Return the row of a client, from what it fetched in each round."""
    fetched = [each for one in rounds for each in one]
    verified = client == COMPARED
    shares = [_share(one) for one in rounds]
    return Row(
        object_bytes,
        api,
        client,
        n=len(fetched),
        median_ms=round(statistics.median(each.total_ns for each in fetched) / 1e6, 4),
        verify_ms=round(statistics.median(each.verify_ns or 0 for each in fetched) / 1e6, 4)
        if verified
        else None,
        share=round(_share(fetched), 4) if verified else None,
        share_of_rounds=(round(min(shares), 4), round(max(shares), 4)) if verified else None,
    )


def _share(fetched: Sequence[Fetched]) -> float:
    return sum(each.verify_ns or 0 for each in fetched) / sum(each.total_ns for each in fetched)


def document(rows: Sequence[Row], others_ns: Mapping[str, int], rounds: int) -> dict[str, Any]:
    """Return the JSON document."""
    largest = max(each.object_bytes for each in rows)
    judged = [each for each in rows if each.object_bytes == largest and each.share is not None]
    held = all(each.share is not None and each.share < AT_MOST for each in judged)
    return {
        "format": 1,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "kernel": platform.release(),
        "cpu": f"{cores()} cores, {cpu_model()}",
        "load_average": round(os.getloadavg()[0], 1),
        "real_time": os.sched_getscheduler(0) in (os.SCHED_FIFO, os.SCHED_RR),
        "rounds": rounds,
        "rows": [asdict(each) for each in rows],
        "others_ms": {name: round(ns / 1e6, 1) for name, ns in others_ns.items()},
        "others_bytes": largest,
        "at_most": AT_MOST,
        "verdict": "pass" if held else "fail",
    }


def text(report: Mapping[str, Any]) -> str:
    """Return both tables as Markdown, which is also readable in a terminal."""
    body = [_cells(each) for each in report["rows"]]
    head = ("object", "API", "client", "n", "median", "GB/s", "verifying", "share", "by round")
    largest = report["others_bytes"]
    fastest_ms = min(
        each["median_ms"] for each in report["rows"] if each["object_bytes"] == largest
    )
    other = [
        (name, f"{ms:.1f} ms", f"{ms / fastest_ms:.0%}") for name, ms in report["others_ms"].items()
    ]
    title = (f"{_size(largest)} in memory", "takes", "of the fastest transfer")
    return f"{markdown((head, *body))}\n\n{markdown((title, *other))}"


def verdict(report: Mapping[str, Any]) -> str:
    """Return what was found in a sentence."""
    shares = [
        f"{each['share']:.1%} over {each['api']}"
        for each in report["rows"]
        if each["share"] is not None and each["object_bytes"] == report["others_bytes"]
    ]
    return (
        f"Verifying {_size(report['others_bytes'])} takes {' and '.join(shares)} of the transfer "
        f"(may take {report['at_most']:.0%}): {report['verdict']}"
    )


def section(report: Mapping[str, Any]) -> str:
    """Return what the README shows."""
    return (
        f"{text(report)}\n\n"
        f"{report['cpu']}, Linux {report['kernel']}, {report['when'][:10]}, {report['rounds']} "
        f"rounds; load average {report['load_average']:.1f} at the end"
        f"{', with a real-time priority over whatever else ran' if report['real_time'] else ''}."
    )


def _cells(each: Mapping[str, Any]) -> tuple[str, ...]:
    rate = each["object_bytes"] / each["median_ms"] / 1e6
    verified = each["share"] is not None
    return (
        _size(each["object_bytes"]),
        each["api"],
        each["client"],
        str(each["n"]),
        _time(each["median_ms"]),
        f"{rate:.2g}",
        _time(each["verify_ms"]) if verified else "",
        f"{each['share']:.1%}" if verified else "",
        "{:.1%}–{:.1%}".format(*each["share_of_rounds"]) if verified else "",
    )


def _time(ms: float) -> str:
    return (
        f"{ms:.3g} ms"
        if 0.1 <= ms < 1000
        else f"{ms:.0f} ms"
        if ms >= 1000
        else f"{ms * 1000:.3g} µs"
    )


def _size(count: int) -> str:
    return f"{count >> 20} MiB" if count >= 1 << 20 else f"{count >> 10} KiB"
