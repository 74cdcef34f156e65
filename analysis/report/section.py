"""A section of a report: the answer to one question, and how it is shown.

A section names its figures (`analysis.figures`), the columns of its table, the sentences that go
with it and its charts; everything else is the same for all of them, and for a run and a matrix.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from wanlat.analysis.bundle import Bundle
from wanlat.analysis.endpoints import MEANING, UNKNOWN, is_known, with_placement
from wanlat.analysis.figures.result import Figures, Row, of_points, series_of
from wanlat.analysis.grid import Grid
from wanlat.analysis.names import EN_DASH, listing, row_labels, series_labels
from wanlat.analysis.sweep import Point, Sweep

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Draw = Callable[["Answer"], "Figure"] | str

_NAMED_AT_MOST = 8


@dataclass(frozen=True)
class Column:
    """A column of the table: what it is headed, and what a row's cell says.

    `cell` is a template of the row's figures ("{full_bytes:.0f}"), or a function of the row where
    that is not enough. A cell of which a figure does not exist is a dash. An `optional` column is
    left out where all its cells are the same; what they say is then said once, below the table.
    """

    header: str
    cell: str | Callable[[Row], str | None]
    words: bool = False
    optional: bool = False

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
    """A sentence below the table, once for all rows that meet its condition; {rows} names them.

    `each` is a template of figures of a row that follow its name (" ({fail} of {n})"), `total` the
    key of a figure of which {total} is the sum. Where that is not enough, `template` is a function
    of these rows.
    """

    template: str | Callable[[Sequence[Row]], str | None]
    condition: Callable[[Row], bool] = lambda _row: True
    each: str = ""
    total: str = ""

    def of(self, rows: Sequence[tuple[str, Row]]) -> str | None:
        """The sentence on named rows; None where no row meets its condition."""
        met = [(name, row) for name, row in rows if self.condition(row)]
        if not met:
            return None
        if callable(self.template):
            return self.template([row for _, row in met])
        every = len(met) == len(rows) > 1 and not self.each
        named = [name + self.each.format_map(row) for name, row in met]
        total = sum(row[self.total] for _, row in met) if self.total else None
        said = "every row" if every else listing(named, _NAMED_AT_MOST)
        return self.template.format(rows=said, total=total)


ENDPOINT = Column(
    "endpoint", lambda row: with_placement(row["endpoint"], row["placement"]), words=True
)
PLACED = Note(MEANING, lambda row: is_known(row["placement"]))
"""A column and a note of every section whose rows are of endpoints."""


@dataclass(frozen=True)
class Table:
    """A further table of a section: `rows` makes its rows of the section's, None for no table.

    Under `key`, where there is one, they are in summary.json as well. `group`: what rows that stand
    together have in common, where that is not their order alone.
    """

    title: str
    rows: Callable[[Figures], Figures | None]
    columns: Sequence[Column]
    notes: Sequence[Note] = ()
    key: str | None = None
    is_trouble: Callable[[Row], bool] = lambda _row: False
    group: Callable[[Row], object] | None = None

    def grid(self, figures: Figures, keys: Sequence[tuple[str, ...]]) -> Grid:
        """The table of `figures`, whose rows begin with `keys`."""
        cells = {column: [column.of(row) for row in figures.rows] for column in self.columns}
        alike = {each for each in self.columns if each.optional and len(set(cells[each])) == 1}
        shown = [column for column in self.columns if column not in alike]
        said = {c.header: cells[c][0] for c in self.columns if c in alike}
        once = [f"{header} {cell}" for header, cell in said.items() if cell != EN_DASH]
        in_every = [f"In every row: {', '.join(once)}."] if once else []
        first = ("system", *figures.parameters)
        groups = [self.group(row) if self.group else None for row in figures.rows]
        ends = frozenset(n for n, (a, b) in enumerate(pairwise(groups)) if a != b)
        return Grid(
            title=self.title,
            headers=(*first, *(column.header for column in shown)),
            rows=tuple((*key, *(cells[each][n] for each in shown)) for n, key in enumerate(keys)),
            text=frozenset((*first, *(column.header for column in shown if column.words))),
            notes=(*say(self.notes, figures), *in_every),
            troubled=frozenset(n for n, row in enumerate(figures.rows) if self.is_trouble(row)),
            # Where each row is a group of its own a line between any two would only be in the way.
            sections=frozenset() if len(ends) == len(groups) - 1 else ends,
        )


@dataclass(frozen=True)
class Section:
    """One question.

    `key` is that of summary.json, in which the rows stand below `rows` ("systems"), what a matrix
    varies below `values` in each, and beside them what `beside` gives; keys of a row named in
    `hidden` are for tables and charts alone. What a matrix's points tell only together (a fit, a
    ratio) `across` makes of their rows. `charts` are by the stems of their files' names; it is a
    function where those depend on the figures. Functions may be named ("module:function"), so that
    matplotlib is imported where something is drawn.

    A `flat` section is of single endpoints, as most of summary.json: its rows are the whole of its
    entry there, in a matrix with the point's name and `values`; its definitions and notes are those
    of the report.
    """

    key: str
    title: str
    figures: Callable[[Bundle], Figures | None]
    columns: Sequence[Column]
    definitions: Mapping[str, str]
    notes: Sequence[Note] = ()
    charts: Mapping[str, Draw] | Callable[[Answer], Mapping[str, Figure]] | str = field(
        default_factory=dict
    )
    is_trouble: Callable[[Row], bool] = lambda _row: False
    group: Callable[[Row], object] | None = None
    rows: str = "systems"
    values: str = "values"
    hidden: frozenset[str] = frozenset()
    beside: Callable[[Figures], Mapping[str, Any]] = lambda _figures: {}
    across: Callable[[Sweep, Figures], Figures | None] = lambda _sweep, figures: figures
    tables: Sequence[Table] = ()
    flat: bool = False

    def of(self, source: Bundle | Sweep) -> Answer | None:
        """The section of a run's report, or of a matrix: its points' figures one below the other.

        None where there are no data for it.
        """
        if isinstance(source, Bundle):
            figures = self.figures(source)
        else:
            figures = of_points(source, self.figures)
            figures = figures and self.across(source, figures)
        of = f"{source.study} on {source.topology}"
        return None if figures is None else Answer(self, of, figures, source)


@dataclass(frozen=True)
class Answer:
    """A section with figures in it: a block of a report (`wanlat.analysis.summary`).

    `of` is the study, and the topology it ran on; `source` the run or the matrix, for what a chart
    says of it.
    """

    section: Section
    of: str
    figures: Figures
    source: Bundle | Sweep | None = None

    @cached_property
    def tables(self) -> Sequence[tuple[Table, Figures]]:
        """The section's own table and its further ones, as far as they have rows."""
        section = self.section
        own = Table(
            title=f"{section.title}: {self.of}",
            rows=lambda figures: figures,
            columns=section.columns,
            notes=() if section.flat else section.notes,
            key=section.rows,
            is_trouble=section.is_trouble,
            group=section.group,
        )
        made = [(table, table.rows(self.figures)) for table in (own, *section.tables)]
        return [(table, figures) for table, figures in made if figures is not None]

    @property
    def definitions(self) -> Mapping[str, str]:
        """What the definitions of the whole report get of this section."""
        return self.section.definitions if self.section.flat else {}

    @property
    def notes(self) -> Sequence[str]:
        """What the notes of the whole report get of it."""
        return self.say(self.section.notes) if self.section.flat else ()

    def say(self, notes: Sequence[Note]) -> list[str]:
        """What `notes` say of the figures: some of the section's own, for a chart's caption."""
        return say(notes, self.figures)

    def to_json(self) -> Any:
        """The entry of summary.json: figures by their columns, what a matrix varies apart."""
        if self.section.flat:
            return self._json(self.figures)
        return {
            **self.section.beside(self.figures),
            "definitions": dict(self.section.definitions),
            **{table.key: [] for table in self.section.tables if table.key},
            **{table.key: self._json(figures) for table, figures in self.tables if table.key},
        }

    def grids(self) -> Sequence[Grid]:
        """The tables that have columns: systems, what a matrix varies, then the columns."""
        return [
            table.grid(figures, _keys(figures, in_full=self.section.flat))
            for table, figures in self.tables
            if table.columns
        ]

    @cached_property
    def points(self) -> Mapping[str, Point]:
        """The points of the matrix by their names; none of a run."""
        return {point.name: point for point in getattr(self.source, "points", ())}

    def charts(self) -> Mapping[str, Figure]:
        """The section's charts, by the stem of their files' names."""
        charts = self.section.charts
        if isinstance(charts, Mapping):
            return {stem: _function(draw)(self) for stem, draw in charts.items()}
        return dict(_function(charts)(self))

    def _json(self, figures: Figures) -> list[dict[str, Any]]:
        left_out = {*self.section.hidden, *figures.parameters}
        if self.section.flat:  # a row says where it was measured even if that varies
            left_out -= {"topology"}
        rows = []
        for row in figures.rows:
            own = {key: as_json(value) for key, value in row.items() if key not in left_out}
            if "point" in row and self.section.flat:
                values = dict(self.points[row["point"]].values)
                own = {"point": row["point"], "values": values} | own
            elif figures.parameters:
                own[self.section.values] = {name: as_json(row[name]) for name in figures.parameters}
            rows.append(own)
        return rows


def say(notes: Sequence[Note], figures: Figures) -> list[str]:
    """What `notes` say of rows by name: "Bob 9 Get, local" where they are of endpoints."""
    named = []
    for key, row in zip(_keys(figures), figures.rows, strict=True):
        name = " ".join([*key, *([row["endpoint"]] if "endpoint" in row else [])])
        named.append((with_placement(name, str(row.get("placement", UNKNOWN))), row))
    return [said for note in notes if (said := note.of(named))]


def percent(key: str) -> Callable[[Row], str | None]:
    """A cell: the share that a row has under a key, in whole percent."""
    return lambda row: None if row[key] is None else f"{100 * row[key]:z.0f} %"


def written(value: object) -> str:
    """A parameter's value as a table has it."""
    if value is None:
        return EN_DASH
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)


def as_json(value: Any, places: int = 17) -> Any:
    """A figure as summary.json has it, to so many places: what is no number is null."""
    if isinstance(value, float):
        return round(value, places) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): as_json(inner, places) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(inner, places) for inner in value]
    return value


def _keys(figures: Figures, *, in_full: bool = False) -> list[tuple[str, ...]]:
    """What each row is of: the system, and what a matrix varies."""
    names = (series_labels if in_full else row_labels)(figures.series)
    return [
        (names[series_of(row)], *(written(row[name]) for name in figures.parameters))
        for row in figures.rows
    ]


def _function(named: Callable[[Answer], Any] | str) -> Callable[[Answer], Any]:
    return resolve_name(named) if isinstance(named, str) else named
