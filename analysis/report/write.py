"""A bundle's report: summary.json and the charts, made from the bundle alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wanlat.analysis.files import replace_text
from wanlat.bundle.errors import BundleError

# pandas, scipy and matplotlib take a second to import. Nothing here needs them before a report is
# really asked for, so that importing this module costs a command line nothing.
if TYPE_CHECKING:
    from wanlat.analysis.bundle import Bundle
    from wanlat.analysis.drill.model import Drill
    from wanlat.analysis.summary import Group, Summary
    from wanlat.analysis.trace import Trace


@dataclass(frozen=True)
class Report:
    """What a report consists of, and where it was written."""

    bundle: Bundle
    summary: Summary
    summary_path: Path
    charts: tuple[Path, ...]
    tables_path: Path | None = None
    """None of a run that has no table at all."""

    @property
    def drill(self) -> Drill | None:
        """The drill that left the bundle; None of a study."""
        return self.summary.drill

    @property
    def paths(self) -> tuple[Path, ...]:
        """Every file written."""
        tables = () if self.tables_path is None else (self.tables_path,)
        return (self.summary_path, *tables, *self.charts)


def report(bundle_dir: Path | str) -> Report:
    """Write summary.json, tables.md and charts/ into the bundle; say what was written.

    tables.md has the table of latencies first, then those of its blocks (`analysis.blocks`). The
    same bundle gives the same bytes. A study of round trips gets charts of those, and a trace of
    each endpoint, in place of the chart of latencies: over all RTTs those are of no network. No
    chart of latencies or round trips is drawn where calibration failed in a lab that samples come
    from. Raises BundleError (NoSamplesError where a study measured nothing; a drill is reported
    however far it got).
    """
    from wanlat.analysis.bundle import read_bundle
    from wanlat.analysis.summary import summarize

    bundle = read_bundle(bundle_dir)
    summary = summarize(bundle)
    summary_path = bundle.directory / "summary.json"
    replace_text(summary_path, summary.to_text())
    _keep_chains(bundle)
    tables = _write_tables(bundle, summary)
    return Report(bundle, summary, summary_path, tuple(_draw_charts(bundle, summary)), tables)


def _keep_chains(bundle: Bundle) -> None:
    """Have what was found in the packets stay when they are thrown away."""
    from wanlat.analysis.packets import kept, record

    text = kept.to_text(bundle.derived.get("packets", {}))
    if text is not None and not record.is_gone(bundle):
        replace_text(bundle.directory / kept.NAME, text)


def _write_tables(bundle: Bundle, summary: Summary) -> Path | None:
    from wanlat.analysis.table import markdown_in_words, markdown_table
    from wanlat.analysis.tables import write_tables

    first = []
    if summary.groups:
        before = "Before the faults, " if bundle.is_drill else ""
        first.append(before + markdown_table(summary, with_notes=False))
    if summary.in_rtts is not None:
        first.append(markdown_in_words(summary.in_rtts))
    grids = [grid for block in summary.blocks.values() for grid in block.grids()]
    title = f"{bundle.study} on {bundle.topology}"
    return write_tables(bundle.directory, title, grids, summary.notes, first)


def _draw_charts(bundle: Bundle, summary: Summary) -> list[Path]:
    from wanlat.analysis.charts import calibration, endpoint_latency, published, style
    from wanlat.analysis.notes import is_trusted

    charts = bundle.directory / "charts"
    paths: list[Path] = []
    if summary.drill is not None:
        from wanlat.analysis.charts import drill_timeline

        paths += style.save(drill_timeline.draw(summary.drill), charts / "drill-timeline")
    elif not is_trusted(bundle):
        pass  # of a network that was not as asked for no figure is drawn
    elif summary.round_trips is not None:
        paths += _draw_round_trips(bundle, summary)
    elif summary.endpoints:
        paths += style.save(endpoint_latency.draw(bundle, summary), charts / "endpoint-latency")
        if published.has_counterpart(bundle, summary):
            paths += style.save(published.draw(bundle, summary), charts / "published")
    for block in summary.blocks.values():
        for stem, figure in block.charts().items():
            paths += style.save(figure, charts / stem)
    if bundle.calibration is not None and bundle.calibration.pairs:
        paths += style.save(calibration.draw(bundle.calibration.document), charts / "calibration")
    return paths


def _draw_round_trips(bundle: Bundle, summary: Summary) -> list[Path]:
    from wanlat.analysis.charts import latency_against_rtt, round_trips, style

    charts = bundle.directory / "charts"
    return [
        *style.save(round_trips.draw(bundle, summary), charts / "round-trips"),
        *style.save(latency_against_rtt.draw(bundle, summary), charts / "latency-against-rtt"),
        *_draw_traces(bundle, summary),
    ]


def _draw_traces(bundle: Bundle, summary: Summary) -> list[Path]:
    """One trace of each endpoint and placement that the packet record covers."""
    from wanlat.analysis.charts import sequence, style

    recorded = [e.group for e in summary.round_trips or () if e.chain_round_trips is not None]
    paths: list[Path] = []
    for trace in _traces(bundle, recorded):
        paths += style.save(
            sequence.draw(trace), bundle.directory / "charts" / sequence.stem(trace)
        )
    return paths


def _traces(bundle: Bundle, groups: Sequence[Group]) -> tuple[Trace, ...]:
    """The traces that can be drawn; a record may end before one RTT and after another."""
    from wanlat.analysis.trace import traces_of

    try:
        return traces_of(bundle, groups) if groups else ()
    except BundleError:
        if len(groups) == 1:
            return ()
        return tuple(trace for group in groups for trace in _traces(bundle, [group]))
