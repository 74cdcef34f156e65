"""Before anything is measured on an emulated network: is it the requested one?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from wanlat.emulator.calibration import Limits, Tolerance, blame, calibrate, pairs_of
from wanlat.emulator.lab import Lab

FOR_LATENCY = Tolerance()
"""For a study of single latencies, unless it tolerates more."""
FOR_ROUND_TRIPS = Tolerance(p99_ms=25.0, edge_ms=25.0)
"""For a study of round trips, which is calibrated again at every RTT step: delays must be right,
and one packet in a hundred that is late by some milliseconds changes none of its medians."""

_PAIRS = 30
_PAUSE_S = 1.5
"""Times the round: what holds a machine up may be over then."""
LONGEST_S = 150.0
"""Of a calibration with all its rounds."""

OnProgress = Callable[[str, float, float], None]


def prove(
    lab: Lab,
    on_progress: OnProgress,
    tolerance: Tolerance = FOR_LATENCY,
    *,
    longest_s: float = LONGEST_S,
) -> dict[str, Any] | None:
    """Return the document of a quick calibration; None where there is no path to measure.

    Pairs that look off are sent more probes, as long as that takes no longer than ``longest_s``,
    and are judged by all of them. ``on_progress`` gets
    what is being done, how much of it is, and of how much.
    """
    pairs = pairs_of(lab.plan, _PAIRS)
    if not pairs:
        return None
    return calibrate(
        lab,
        pairs=pairs,
        tolerance=tolerance,
        limits=Limits(pause_s=_PAUSE_S, longest_s=longest_s),
        on_progress=lambda stage, part: on_progress(
            f"calibrating ({stage})", round(part * 100), 100
        ),
    )


def tolerating(late_ms: float) -> Tolerance:
    """Return the tolerance for a study in which one packet in a hundred may be so late."""
    return replace(FOR_LATENCY, p99_ms=late_ms, edge_ms=late_ms)


def is_only_late(document: Mapping[str, Any]) -> bool:
    """Return whether the machine was late, and nothing else is wrong."""
    failed = [pair for pair in document["pairs"] if pair["verdict"] != "pass"]
    return not document["overflows"] and all(pair["only_late"] for pair in failed)


def what_is_off(document: Mapping[str, Any], topology: str, *, may_tolerate: bool = False) -> str:
    """Return why nothing is measured on a network, by the document of its calibration.

    ``may_tolerate``: whether the reader can raise what is tolerated.
    """
    failed = [pair for pair in document["pairs"] if pair["verdict"] != "pass"]
    pairs = f"{len(failed)} of {len(document['pairs'])} pairs"
    if failed and is_only_late(document):
        is_it, wrong = "is not known to be", f"of {pairs} too few probes are left to judge by."
    else:
        first = (f"{e['from']} → {e['to']}: {'; '.join(e['reasons'])}" for e in failed[:3])
        more = f", and {len(failed) - 3} more" if len(failed) > 3 else ""
        is_it, wrong = "is not", f"{pairs} are off ({' | '.join(first)}{more})."
    remarks = [blame(failed)]
    if remarks[0] and may_tolerate:
        remarks.append("Or say how late packets may be (`--max-network-error 10ms`).")
    dropped = f" {document['overflows']} packets were dropped." if document["overflows"] else ""
    return (
        f"The emulated network {is_it} what {topology} asks for, so nothing was measured on it: "
        f"{wrong}{dropped} {''.join(f'{remark} ' for remark in remarks if remark)}"
        f"`wanlat calibrate {topology}` shows every pair."
    )
