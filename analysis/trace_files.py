"""A trace as files: the diagram as SVG and PNG, and trace.json with every message."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from wanlat.analysis.bundle import Bundle
from wanlat.analysis.charts import sequence, style
from wanlat.analysis.charts.sequence_words import picked, subtitle, title, what_of
from wanlat.analysis.files import replace_text
from wanlat.analysis.groups import Group, grouped
from wanlat.analysis.names import format_ms
from wanlat.analysis.placement import LOCAL, REMOTE
from wanlat.analysis.trace import traces_of
from wanlat.analysis.trace_model import Trace


def write_trace(trace: Trace, stem: Path) -> list[Path]:
    """Write `stem`.svg, `stem`.png and `stem`.json, and return the three; only the last of a
    request that crossed no WAN link.

    Raises BundleError where they cannot be written.
    """
    pictures = style.save(sequence.draw(trace), stem) if trace.path else []
    document = stem.with_name(f"{stem.name}.json")
    replace_text(document, json.dumps(trace.to_json(), indent=2, ensure_ascii=False) + "\n")
    return [*sorted(pictures, reverse=True), document]


def charts_of(bundle: Bundle, groups: Sequence[Group]) -> dict[str, Figure]:
    """The diagrams of the typical requests of `groups` that cross WAN links, by their files' stem.

    Of a group that the packet record has no request of there is none.
    """
    traces = [trace for trace in traces_of(bundle, groups) if trace.path]
    return {sequence.stem(trace): sequence.draw(trace) for trace in traces}


def groups_of(bundle: Bundle) -> list[Group]:
    """What requests of a bundle were measured: system, endpoint and placement."""
    return list(grouped(bundle.measured))


def choose(groups: Iterable[Group], placement: str | None) -> Group | None:
    """The one of `groups` to draw: of that placement; remote where nobody said, which crosses."""
    by_placement = {group.placement: group for group in groups}
    if placement is not None:
        return by_placement.get(placement)
    return next(
        (by_placement[one] for one in (REMOTE, LOCAL) if one in by_placement),
        next(iter(by_placement.values()), None),
    )


def told(trace: Trace) -> list[str]:
    """The critical path in lines of text, hop by hop; the first and the last say the rest."""
    lines = [title(trace), subtitle(trace), picked(trace)]
    answered = f"answered after {format_ms(trace.latency_ms)} ms"
    if not trace.path:
        return [*lines, f"{answered}; it crossed no WAN link, so there is nothing to draw"]
    rows = [("", "from → to", "left at", "arrived", "bytes", "waited", "what")]
    for hop in trace.path:
        message = hop.message
        rows.append(
            (
                f"{hop.number} of {len(trace.path)}",
                f"{message.source} → {message.target}",
                f"{format_ms(message.entry_ms)} ms",
                f"{format_ms(message.departure_ms)} ms",
                f"{message.bytes}",
                f"{format_ms(max(hop.wait_ms, 0.0))} ms",
                what_of(message, 60),
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = zip("<<>>>><", row, widths, strict=True)
        lines.append(
            "  " + "  ".join(f"{cell:{side}{width}}" for side, cell, width in cells).rstrip()
        )
    rest = format_ms(max(trace.rest_ms, 0.0))
    return [*lines, f"{answered}, {rest} ms after the last of them arrived"]
