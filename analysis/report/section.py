"""A section of a report: the answer to one question, and how it is shown.

A section names its figures (`analysis.figures`), the columns of its table, the sentences that go
with it and its charts; everything else is the same for all of them, and for a run and a matrix.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from wanlat.analysis.figures.result import Figures, Row, of_points, series_of
from wanlat.analysis.grid import Grid
from wanlat.analysis.names import EN_DASH, listing, row_labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from wanlat.analysis.bundle import Bundle
    from wanlat.analysis.sweep import Sweep

_NAMED_AT_MOST = 8


@dataclass(frozen=True)
class Column:
    """A column of the table: what it is headed, and what a row's cell says.

    `cell` is a template of the row's figures ("{full_bytes:.0f}"), or a function of the row where
    that is not enough. A cell of which a figure does not exist is a dash.
    """

    header: str
    cell: str | Callable[[Row], str | None]
    words: bool = False

    def of(self, row: Row) -> str:
        """The cell of a row."""
        if callable(self.cell):
            return self.cell(row) or EN_DASH
        try:
            return self.cell.format_map(row)
        except TypeError:  # None takes no format: a figure that does not exist
            return EN_DASH


@dataclass(frozen=True)
class Note:
    """A sentence below the table, once for all rows that meet its condition; {rows} names them."""

    template: str
    condition: Callable[[Row], bool] = lambda _row: True

    def of(self, rows: Sequence[tuple[str, Row]]) -> str | None:
        """The sentence on named rows; None where no row meets its condition."""
        met = [name for name, row in rows if self.condition(row)]
        return self.template.format(rows=listing(met, _NAMED_AT_MOST)) if met else None


@dataclass(frozen=True)
class Section:
    """One question.

    `key` is that of summary.json, in which the rows stand below `rows` ("systems"); keys of a row
    named in `hidden` are for tables and charts alone.
    """

    key: str
    title: str
    figures: Callable[[Bundle], Figures | None]
    columns: Sequence[Column]
    definitions: Mapping[str, str]
    notes: Sequence[Note] = ()
    charts: Mapping[str, Callable[[Answer], Figure]] = field(default_factory=dict)
    is_trouble: Callable[[Row], bool] = lambda _row: False
    rows: str = "systems"
    hidden: frozenset[str] = frozenset()

    def of_bundle(self, bundle: Bundle) -> Answer | None:
        """The section of a run's report; None where the run has no data for it."""
        return self._answer(bundle.study, bundle.topology, self.figures(bundle))

    def of_matrix(self, sweep: Sweep) -> Answer | None:
        """The section of a matrix: its points' figures, one below the other."""
        return self._answer(sweep.study, sweep.topology, of_points(sweep, self.figures))

    def _answer(self, study: str, topology: str, figures: Figures | None) -> Answer | None:
        return None if figures is None else Answer(self, f"{study} on {topology}", figures)


@dataclass(frozen=True)
class Answer:
    """A section with figures in it: a block of a report (`wanlat.analysis.blocks`)."""

    section: Section
    of: str
    """The study, and the topology it ran on."""
    figures: Figures

    def to_json(self) -> dict[str, Any]:
        """The entry of summary.json: figures by their columns, what a matrix varies in `values`."""
        left_out = {*self.section.hidden, *self.figures.parameters}
        rows = []
        for row in self.figures.rows:
            own = {key: as_json(value) for key, value in row.items() if key not in left_out}
            if self.figures.parameters:
                own["values"] = {name: as_json(row[name]) for name in self.figures.parameters}
            rows.append(own)
        return {"definitions": dict(self.section.definitions), self.section.rows: rows}

    def grids(self) -> Sequence[Grid]:
        """The table: systems, what a matrix varies, then the section's columns."""
        section, labels = self.section, row_labels(self.figures.series)
        rows, named = [], []
        for row in self.figures.rows:
            keys = [labels[series_of(row)], *(written(row[p]) for p in self.figures.parameters)]
            rows.append((*keys, *(column.of(row) for column in section.columns)))
            named.append((" ".join(keys), row))
        first = ("system", *self.figures.parameters)
        words = [column.header for column in section.columns if column.words]
        return [
            Grid(
                title=f"{section.title}: {self.of}",
                headers=(*first, *(column.header for column in section.columns)),
                rows=tuple(rows),
                text=frozenset((*first, *words)),
                notes=tuple(said for note in section.notes if (said := note.of(named))),
                troubled=frozenset(
                    n for n, row in enumerate(self.figures.rows) if section.is_trouble(row)
                ),
            )
        ]

    def charts(self) -> Mapping[str, Figure]:
        """The section's charts, by the stem of their files' names."""
        return {stem: draw(self) for stem, draw in self.section.charts.items()}


def percent(key: str) -> Callable[[Row], str | None]:
    """A cell: the share that a row has under a key, in whole percent."""
    return lambda row: None if row[key] is None else f"{row[key]:.0%}".replace("%", " %")


def written(value: object) -> str:
    """A parameter's value as a table has it."""
    if value is None:
        return EN_DASH
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)


def as_json(value: Any) -> Any:
    """A figure as summary.json has it: what is no number is null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): as_json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(inner) for inner in value]
    return value
