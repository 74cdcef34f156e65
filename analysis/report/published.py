"""The section of latencies that others published, beside ours."""

from __future__ import annotations

from collections.abc import Callable

from wanlat.analysis.figures.published import published
from wanlat.analysis.figures.result import Row
from wanlat.analysis.names import EN_DASH, format_ms, short_version
from wanlat.analysis.placement import with_placement
from wanlat.analysis.report.section import Column, Note, Section


def _extremes(before: str) -> Callable[[Row], str]:
    return lambda row: f" {EN_DASH} ".join(
        "?" if (ms := row[f"{before}{end}_ms"]) is None else format_ms(ms) for end in ("min", "max")
    )


PUBLISHED = Section(
    key="published",
    title="Beside what was published",
    figures=published,
    columns=(
        Column(
            "endpoint", lambda row: with_placement(row["endpoint"], row["placement"]), words=True
        ),
        Column("mean ms", lambda row: format_ms(row["mean_ms"])),
        Column(f"min {EN_DASH} max ms", _extremes("")),
        Column("theirs: version", lambda row: short_version(row["published_version"]), words=True),
        Column("mean of theirs, ms", "{published_mean_ms:.0f}"),
        Column(f"min {EN_DASH} max of theirs, ms", _extremes("published_")),
        Column("ours / theirs", "{mean_over_published:.3g}"),
    ),
    definitions={
        "published_mean_ms": "read off a published chart; of other versions on another machine",
        "mean_over_published": "mean_ms / published_mean_ms; no interval: theirs has none",
    },
    notes=(
        Note(
            lambda rows: (
                f"Theirs: {rows[0]['published_by']}, {rows[0]['published_year']}. Other versions, "
                "another machine and another emulator: they enter no figure of ours."
            )
        ),
    ),
    charts={"published": "wanlat.analysis.charts.endpoint_latency:draw_published"},
    rows="endpoints",
)
