"""A section of a report: the answer to one question as figures, tables, sentences and charts.

A section names its figures (`analysis.figures`: a tidy frame of rows, with what its chart draws of
each), the columns of its table, the sentences that go with it and its charts; everything else is
the same for all of them, and for a run and a matrix. A `Grid` is a table as it is printed, in a
terminal and on a page.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from wanlat.analysis.endpoints import MEANING, is_known, with_placement
from wanlat.analysis.names import EN_DASH, listing, row_labels, series_labels
from wanlat.bundle.documents import UNKNOWN, Titles
from wanlat.bundle.errors import BundleError, one_line
from wanlat.bundle.matrix import Matrix, Point
from wanlat.bundle.run import Run, Series

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from wanlat.analysis.stats.over_time import Estimate

Row = Mapping[str, Any]
"""One row of a frame: figures by their columns; None for what there is not."""
Draw = Callable[["Answer"], "Figure"] | str
_NAMED_AT_MOST = 8
_BULLET, _NO_BREAK = "• ", "\N{NO-BREAK SPACE}"


@dataclass(frozen=True)
class Figures:
    """Rows of figures with the keys `system`, `version` and whatever else they are of.

    `arrays` has for each row what a chart draws of it, None where that is nothing. `parameters`
    are the columns of a matrix: what its points differ in. `titles` are the systems'.
    """

    rows: tuple[Row, ...]
    arrays: tuple[Any, ...]
    parameters: tuple[str, ...] = ()
    titles: Titles = field(default_factory=Titles, kw_only=True)

    @property
    def series(self) -> list[Series]:
        """Versions of systems that there are rows of, in their order."""
        return list(dict.fromkeys(series_of(row) for row in self.rows))

    @property
    def labels(self) -> dict[Series, str]:
        """What a row calls each of them, as of `names.row_labels`."""
        return row_labels(self.series, self.titles)

    def where(self, condition: Callable[[Row], bool]) -> Figures | None:
        """The rows that meet a condition, with their arrays; None where none does."""
        pairs = zip(self.rows, self.arrays, strict=True)
        kept = figures_of(pair for pair in pairs if condition(pair[0]))
        return kept and replace(kept, parameters=self.parameters, titles=self.titles)


def series_of(row: Row) -> Series:
    """The version of the system that a row is of."""
    return Series(str(row["system"]), str(row["version"]))


def rests_on(row: Row) -> int:
    """How many requests a row's figures rest on: ok, and not delayed by a late network."""
    ok = row["ok"] if "ok" in row else row["n"] - row.get("failed", 0)
    return int(ok) - int(row.get("late", 0))


def figures_of(pairs: Iterable[tuple[Row, Any]]) -> Figures | None:
    """The figures that rows with their arrays make; None without a row."""
    columns = tuple(zip(*pairs, strict=True))
    return Figures(*columns) if columns else None


def runs_of(source: Run | Matrix) -> list[tuple[str, Run]]:
    """A run without a name, or the run of every complete point of a matrix with its name."""
    if isinstance(source, Run):
        return [("", source)]
    return [(point.name, point.bundle) for point in source.complete if point.bundle is not None]


def of_points(matrix: Matrix, compute: Callable[[Run], Figures | None]) -> Figures | None:
    """The figures of every complete point of a matrix one below the other, with its name (`point`).

    What the points differ in are the `parameters`. A point with damaged files is left out: its
    own report states what is wrong with them.
    """
    names = tuple(p.name for p in matrix.parameters if matrix.varies(p.name))
    pairs: list[tuple[Row, Any]] = []
    for point in matrix.complete:
        try:
            figures = compute(point.bundle) if point.bundle else None
        except BundleError:
            continue
        if figures is not None:
            own = {"point": point.name} | {name: point.value(name) for name in names}
            rows = ({**row, **own} for row in figures.rows)
            pairs += zip(rows, figures.arrays, strict=True)
    figures_found = figures_of(pairs)
    return None if figures_found is None else replace(figures_found, parameters=names)


def named(name: str, estimate: Estimate | None) -> dict[str, Any]:
    """A figure under its name, and its interval under that of `name` and "_ci95"."""
    if estimate is None:
        return {name: None, f"{name}_ci95": None}
    ci95 = estimate.ci95 and [short(bound) for bound in estimate.ci95]
    return {name: short(estimate.value), f"{name}_ci95": ci95}


def short(value: float | None, digits: int = 9) -> float | None:
    """So many digits, which is more than was measured; None for what is not known."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.{digits}g}")


@dataclass(frozen=True)
class Grid:
    """Cells of text under headers. `text` are the headers of columns of words: left-aligned.

    `troubled` are the numbers of rows that hold what should not be; `sections` those of rows after
    which a line is left empty. Empty cells become dashes. `lines` are sentences: a table of them
    alone has no headers.
    """

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    text: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    troubled: frozenset[int] = frozenset()
    sections: frozenset[int] = frozenset()
    lines: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the rows against the headers."""
        cleaned = tuple(tuple(one_line(cell) or EN_DASH for cell in row) for row in self.rows)
        for row in cleaned:
            if len(row) != len(self.headers):
                raise ValueError(f"{len(row)} cells under {len(self.headers)} headers: {row}")
        object.__setattr__(self, "rows", cleaned)
        object.__setattr__(self, "title", one_line(self.title))
        for name in ("headers", "notes", "lines"):
            object.__setattr__(self, name, tuple(map(one_line, getattr(self, name))))


def print_grid(grid: Grid, console: Console) -> None:
    """Print `grid`, then its notes. In a narrow terminal words go over lines, figures last.

    Nothing is ever cut short, because a figure without its last digit is another figure.
    """
    for line in grid.lines:
        console.print(Text(line))
    if grid.headers:
        for padding, keep_figures in ((1, True), (0, True), (0, False)):
            table, least = _terminal_table(grid, padding, keep_figures=keep_figures)
            if least <= console.width:
                break
        console.print(table)
    print_notes(grid.notes, console)


def print_notes(notes: Sequence[str], console: Console) -> None:
    """Print sentences that a reader of a table must see with it."""
    for note in map(one_line, notes):
        console.print(Padding(Text(f"{_BULLET}{note}"), (0, 1)))


def markdown(grid: Grid) -> str:
    """`grid` and its notes in Markdown, ending in a newline."""
    ruler = ["---" if header in grid.text else "---:" for header in grid.headers]
    table = (grid.headers, ruler, *grid.rows) if grid.headers else ()
    lines = [f"| {' | '.join(map(escaped, row))} |" for row in table]
    lines += [f"- {escaped(line)}" for line in grid.lines]
    notes = [f"- {escaped(note)}" for note in grid.notes]
    return (
        "\n".join([f"{escaped(grid.title)}:", "", *lines, *(["", *notes] if notes else [])]) + "\n"
    )


def _terminal_table(grid: Grid, padding: int, *, keep_figures: bool) -> tuple[RichTable, int]:
    """`grid` as rich's table, and the least width that it takes; else all cells go over lines."""
    title = Text(grid.title, style="bold")
    table = RichTable(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.padding, table.show_edge, least = (0, padding, 0, 0), False, 0
    for number, header in enumerate(grid.headers):
        is_words = header in grid.text
        cells = [row[number] for row in grid.rows]
        parts = [part for cell in cells for part in (cell.split() if is_words else [cell])]
        words = header.replace(" %", f"{_NO_BREAK}%")
        width = max(map(len, [*parts, *words.split(" ")]), default=1)
        least += width + 1 + padding
        table.add_column(
            textwrap.fill(words, width, break_long_words=False).replace(_NO_BREAK, " "),
            justify="left" if is_words else "right",
            no_wrap=keep_figures and not is_words,
            overflow="fold",
            min_width=width if keep_figures else None,
        )
    for number, row in enumerate(grid.rows):
        style = "yellow" if number in grid.troubled else None
        cells_of_row = (Text(cell) for cell in row)
        table.add_row(*cells_of_row, style=style, end_section=number in grid.sections)
    return table, least


def escaped(text: str) -> str:
    """Text that is a cell or a line in Markdown, and no HTML."""
    return text.replace("|", "\\|").replace("<", "&lt;")


@dataclass(frozen=True)
class Column:
    """A column of the table: what it is headed, and a row's cell.

    `cell` is a template of the row's figures ("{full_bytes:.0f}"), or a function of the row where
    that is not enough. A cell of which a figure does not exist is a dash. An `optional` column is
    left out where all its cells are the same; their text then stands once, below the table.
    """

    header: str
    cell: str | Callable[[Row], str | None]
    words: bool = False
    optional: bool = False

    def text(self, row: Row) -> str:
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

    `detail` is a template of figures of a row that follow its name (" ({fail} of {n})"), `total`
    the key of a figure of which {total} is the sum. Where that is not enough, `template` is a
    function of these rows and of the systems' titles.
    """

    template: str | Callable[[Sequence[Row], Titles], str | None]
    condition: Callable[[Row], bool] = lambda _row: True
    detail: str = ""
    total: str = ""

    def sentence(self, rows: Sequence[tuple[str, Row]], titles: Titles) -> str | None:
        """The sentence on named rows; None where no row meets its condition."""
        met = [(name, row) for name, row in rows if self.condition(row)]
        if not met:
            return None
        if callable(self.template):
            return self.template([row for _, row in met], titles)
        every = len(met) == len(rows) > 1 and not self.detail
        named = [name + self.detail.format_map(row) for name, row in met]
        total = sum(row[self.total] for _, row in met) if self.total else None
        names = "every row" if every else listing(named, _NAMED_AT_MOST)
        return self.template.format(rows=names, total=total)


ENDPOINT = Column(
    "endpoint", lambda row: with_placement(row["endpoint"], row["placement"]), words=True
)
PLACED = Note(MEANING, lambda row: is_known(row["placement"]))
"""A column and a note of every section with rows of endpoints."""


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
        """The table of `figures`; its rows begin with `keys`."""
        cells = {column: [column.text(row) for row in figures.rows] for column in self.columns}
        alike = {c for c in self.columns if c.optional and len(set(cells[c])) == 1}
        shown = [column for column in self.columns if column not in alike]
        common = {c.header: cells[c][0] for c in self.columns if c in alike}
        once = [f"{header} {cell}" for header, cell in common.items() if cell != EN_DASH]
        in_every = [f"In every row: {', '.join(once)}."] if once else []
        first = ("system", *figures.parameters)
        groups = [self.group(row) if self.group else None for row in figures.rows]
        ends = frozenset(n for n, (a, b) in enumerate(pairwise(groups)) if a != b)
        return Grid(
            title=self.title,
            headers=(*first, *(column.header for column in shown)),
            rows=tuple(
                (*key, *(cells[column][n] for column in shown)) for n, key in enumerate(keys)
            ),
            text=frozenset((*first, *(column.header for column in shown if column.words))),
            notes=(*sentences(self.notes, figures), *in_every),
            troubled=frozenset(n for n, row in enumerate(figures.rows) if self.is_trouble(row)),
            # Where each row is a group of its own a line between any two would only be in the way.
            sections=frozenset() if len(ends) == len(groups) - 1 else ends,
        )


@dataclass(frozen=True)
class Section:
    """One question.

    `key` is that of summary.json, in which the rows stand below `rows` ("systems"), what a matrix
    varies below `values` in each, and beside them what `beside` gives; keys of a row named in
    `hidden` are for tables and charts alone. What a matrix's points show only together (a fit, a
    ratio) `across` makes of their rows. `charts` are by the stems of their files' names; it is a
    function where those depend on the figures. Functions may be named ("module:function"), so that
    matplotlib is imported where something is drawn.

    Unless `of_runs` (or `of_matrices`) a run (a matrix) has no such section.

    A `flat` section is of single endpoints, as most of summary.json: its rows are the whole of its
    entry there, in a matrix with the point's name and `values`; its definitions and notes are those
    of the report.
    """

    key: str
    title: str
    figures: Callable[[Run], Figures | None]
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
    across: Callable[[Matrix, Figures], Figures | None] = lambda _matrix, figures: figures
    tables: Sequence[Table] = ()
    flat: bool = False
    of_runs: bool = True
    of_matrices: bool = True

    def answer(self, source: Run | Matrix) -> Answer | None:
        """The section of a run's report, or of a matrix: its points' figures one below the other.

        None where there are no data for it.
        """
        if isinstance(source, Run):
            figures = self.figures(source) if self.of_runs else None
        elif not self.of_matrices:
            return None
        else:
            figures = of_points(source, self.figures)
            figures = figures and self.across(source, figures)
        if figures is None:
            return None
        subject = f"{source.study} on {source.topology}"
        return Answer(self, subject, replace(figures, titles=source.titles), source)


@dataclass(frozen=True)
class Answer:
    """A section with figures in it: a block of a report (`wanlat.analysis.summary`).

    `subject` is the study, and the topology it ran on; `source` the run or the matrix, for what a
    chart states of it.
    """

    section: Section
    subject: str
    figures: Figures
    source: Run | Matrix | None = None

    @cached_property
    def tables(self) -> Sequence[tuple[Table, Figures]]:
        """The section's own table and its further ones, as far as they have rows."""
        section = self.section
        own = Table(
            title=f"{section.title}: {self.subject}",
            rows=lambda figures: figures,
            columns=section.columns,
            notes=() if section.flat else section.notes,
            key=section.rows,
            is_trouble=section.is_trouble,
            group=section.group,
        )
        made = [(table, table.rows(self.figures)) for table in (own, *section.tables)]
        titles = self.figures.titles
        return [(table, replace(its, titles=titles)) for table, its in made if its is not None]

    @property
    def definitions(self) -> Mapping[str, str]:
        """What the definitions of the whole report get of this section."""
        return self.section.definitions if self.section.flat else {}

    @property
    def notes(self) -> Sequence[str]:
        """What the notes of the whole report get of it."""
        return self.sentences(self.section.notes) if self.section.flat else ()

    def sentences(self, notes: Sequence[Note]) -> list[str]:
        """The sentences of `notes` on the figures, for a chart's caption."""
        return sentences(notes, self.figures)

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


def sentences(notes: Sequence[Note], figures: Figures) -> list[str]:
    """The sentences of `notes` on rows by name: "Bob 9 Get, local" where they are of endpoints."""
    named = []
    for key, row in zip(_keys(figures), figures.rows, strict=True):
        name = " ".join([*key, *([row["endpoint"]] if "endpoint" in row else [])])
        named.append((with_placement(name, str(row.get("placement", UNKNOWN))), row))
    return [text for note in notes if (text := note.sentence(named, figures.titles))]


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
    names = series_labels(figures.series, figures.titles) if in_full else figures.labels
    return [
        (names[series_of(row)], *(written(row[name]) for name in figures.parameters))
        for row in figures.rows
    ]


def _function(named: Callable[[Answer], Any] | str) -> Callable[[Answer], Any]:
    return resolve_name(named) if isinstance(named, str) else named
