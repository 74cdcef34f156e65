"""A trace as files: the diagram as SVG and PNG, and trace.json with every message."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wanlat.analysis.bundle import Bundle
from wanlat.analysis.files import replace_text
from wanlat.analysis.names import format_ms
from wanlat.analysis.placement import LOCAL, REMOTE

if TYPE_CHECKING:
    from wanlat.analysis.summary import Group
    from wanlat.analysis.trace_model import Trace


def write_trace(trace: Trace, stem: Path) -> list[Path]:
    """Write `stem`.svg, `stem`.png and `stem`.json, and return the three.

    Raises BundleError where they cannot be written.
    """
    from wanlat.analysis.charts import sequence, style

    pictures = style.save(sequence.draw(trace), stem)
    document = stem.with_name(f"{stem.name}.json")
    replace_text(document, json.dumps(trace.to_json(), indent=2, ensure_ascii=False) + "\n")
    return [*sorted(pictures, reverse=True), document]


def groups_of(bundle: Bundle) -> list[Group]:
    """What requests of a bundle were measured: system, endpoint and placement."""
    from wanlat.analysis.summary import grouped

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
    """The chain in lines of text, crossing by crossing; the first and the last say the rest."""
    from wanlat.analysis.charts.sequence_words import subtitles, title, what_of

    lines = [title(trace), *subtitles(trace)]
    rows: list[Sequence[Any]] = [("", "from → to", "left at", "arrived", "bytes", "waited", "what")]
    of = len(trace.chain)
    for crossing in trace.chain:
        message = crossing.message
        rows.append(
            (
                f"{crossing.number} of {of}",
                f"{message.source} → {message.target}",
                f"{format_ms(message.entry_ms)} ms",
                f"{format_ms(message.departure_ms)} ms",
                f"{message.bytes}",
                f"{format_ms(max(crossing.wait_ms, 0.0))} ms",
                what_of(message, 60),
            )
        )
    if of:
        lines += _columns(rows)
    after = "after the last of them arrived" if of else "; no message that it waited for crossed"
    lines.append(f"answered after {format_ms(trace.latency_ms)} ms, {_rest(trace, of)}{after}")
    return lines


def _rest(trace: Trace, of: int) -> str:
    return f"{format_ms(max(trace.rest_ms, 0.0))} ms " if of else ""


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines, figures to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    is_figure = (False, False, True, True, True, True, False)
    return [
        "  "
        + "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, is_figure, strict=True)
        ).rstrip()
        for row in rows
    ]
