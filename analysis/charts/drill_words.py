"""What the charts of drills say in words: titles, verdicts, captions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wanlat.analysis.charts.lettering import ALARMING, SUBTITLE, Lettering
from wanlat.analysis.charts.style import INK, SMALL_PT
from wanlat.analysis.charts.wording import rtt_sentence
from wanlat.analysis.drill.wording import (
    FAILS,
    claims_sentence,
    durability_sentence,
    how_it_ended,
    outage_sentence,
)
from wanlat.analysis.names import count, series_labels, shortened

if TYPE_CHECKING:
    from wanlat.analysis.charts.drill_lanes import Placed
    from wanlat.analysis.drill.model import Drill

_VERDICT = Lettering(SMALL_PT, INK, bold=True)


@dataclass(frozen=True)
class Line:
    """A line of text and how it is set."""

    text: str
    lettering: Lettering


def title_of(drill: Drill) -> str:
    """ "one-node-killed: MinIO 2026-02-12 on four-sites"."""
    label = series_labels([drill.series])[drill.series]
    return f"{drill.name}: {label} on {drill.topology}"


def subtitle_of(drill: Drill) -> list[Line]:
    """What the drill is, and how often requests were due."""
    parts = [drill.description.strip().rstrip(".")] if drill.description else []
    if drill.interval_ms:
        parts.append(f"a read and a write of each client every {drill.interval_ms:g} ms")
    if drill.deadline_ms:
        parts.append(f"deadline {drill.deadline_ms / 1000:g} s")
    if drill.scale != 1:
        parts.append(f"times × {drill.scale:g}")
    return [Line(" · ".join(parts), SUBTITLE)] if parts else []


def verdict_lines(drill: Drill) -> list[Line]:
    """What came of it: the run, durability, outage and recovery, claims."""
    lines = [Line(how, ALARMING)] if (how := how_it_ended(drill)) else []
    lines.append(
        Line(durability_sentence(drill.durability), _lettering(drill.durability.verdict == "fail"))
    )
    lines.append(Line(outage_sentence(drill), _lettering(drill.recovered is False)))
    if drill.claims:
        wrong = any(claim.verdict == FAILS for claim in drill.claims)
        lines.append(Line(claims_sentence(drill.claims), _lettering(wrong)))
    return lines


def _lettering(alarming: bool) -> Lettering:
    return ALARMING if alarming else _VERDICT


def caption_of(drill: Drill, bin_s: float, placed: Sequence[Placed]) -> list[str]:
    """How to read a timeline, and what stands in no other place on it; paragraphs."""
    if drill.requests.empty:
        return [rtt_sentence(drill.bundle, lines=False)]
    limits = [client.limit_ms for client in drill.clients if client.limit_ms is not None]
    dotted = (
        " Dotted: an answer that takes longer, from when it was sent, counts as an outage."
        if limits
        else ""
    )
    deadline = " Solid line: the deadline." if drill.deadline_ms else ""
    lines = [
        f"{count(len(drill.requests), 'request')}, each a mark where it was due, as high as it "
        "took from then on, waiting for its turn included: a stall is a falling ramp."
        f"{deadline}{dotted} Strips: share that was ok, in bins of {bin_s:g} s by due time. "
        "Shaded: a fault in force, named above; ticks below its bar: single occurrences.",
        rtt_sentence(drill.bundle, lines=False),
    ]
    if cut := [one.span.name for one in placed if one.is_cut]:
        lines.append(f"In full: {'; '.join(cut)}.")
    if full := shortened([drill.series]):
        lines.append(f"In full: {'; '.join(full)}.")
    return lines
