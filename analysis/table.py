"""The summary as a table: for a terminal, and in Markdown for a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from wanlat.analysis.endpoints import row_of
from wanlat.analysis.grid import print_notes
from wanlat.analysis.names import EN_DASH, format_ms, series_labels
from wanlat.analysis.round_trips_table import HEADERS as ROUND_TRIPS_HEADERS
from wanlat.analysis.round_trips_table import MODES, ROUND_TRIPS
from wanlat.analysis.round_trips_table import cells_of as round_trips_cells
from wanlat.analysis.summary import EndpointSummary, Group, Summary

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from wanlat.analysis.in_rtts import LatenciesInRtts

_SYSTEM = "system"
_ENDPOINT = "endpoint"
_PLACEMENT = "placement"
_ENDPOINT_AND_PLACEMENT = f"{_ENDPOINT}\n{_PLACEMENT}"
_MEAN = "mean [95 %] ms"
_LATENCY_HEADERS = (
    "n",
    "ok/fail/unknown",
    _MEAN,
    "median ms",
    "min ms",
    "max ms",
    "p95 ms",
    "p99 ms",
)

_TEXT_HEADERS = (_SYSTEM, _ENDPOINT, _PLACEMENT, _ENDPOINT_AND_PLACEMENT)
_OF_WORDS = (_SYSTEM, _ENDPOINT, _ENDPOINT_AND_PLACEMENT, _MEAN, ROUND_TRIPS, MODES)

_FOLDED_SYSTEM = 10
"""Characters of a line of the column of systems where it is folded: a version that is a date."""


class Line(NamedTuple):
    """A row of the table; a `troubled` one holds what should not be."""

    endpoint: str
    cells: list[str]
    troubled: bool


class Fit(IntEnum):
    """How a table is made to fit, the less the wider the terminal.

    From WORDS on, columns of several words go over lines, and placement stands below its
    endpoint. FOLDED also breaks long versions, TIGHT breaks whatever it must.
    """

    ROOMY = 0
    WORDS = 1
    FOLDED = 2
    TIGHT = 3


def print_table(summary: Summary, console: Console, *, with_notes: bool = True) -> None:
    """Print the table of `summary`, as roomy as the console allows, and its notes."""
    unlimited = console.options.update(max_width=10_000)
    for fit in Fit:
        table = terminal_table(summary, fit)
        if table.__rich_measure__(console, unlimited).maximum <= console.width:
            break
    console.print(table)
    if with_notes:
        print_notes(summary.notes, console)


def terminal_table(summary: Summary, fit: Fit = Fit.ROOMY) -> Table:
    """One row an endpoint and placement of a version of a system, as in summary.json.

    Endpoints are set apart by a line, those that correspond stand together. Placement is shown
    where any is known. Nothing is ever cut short, because a figure without its last digit is
    another figure.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=Text(_title(summary), style="bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1 if fit is Fit.ROOMY else 0, 0, 0),
        pad_edge=False,
        show_edge=False,
    )
    headers, rows = _headers(summary), _lines(summary)
    if fit is not Fit.ROOMY and summary.knows_placement:
        headers, rows = _placement_below(headers, rows)
    for number, header in enumerate(headers):
        # Units go to a line of their own, which keeps the columns as narrow as their numbers.
        table.add_column(
            Text(header.replace(" ms", "\nms").replace("/", "/\n")),
            justify="left" if header in _TEXT_HEADERS else "right",
            no_wrap=fit is not Fit.TIGHT and (fit is Fit.ROOMY or header not in _OF_WORDS),
            overflow="fold",
            max_width=_max_width(header, [line.cells[number] for line in rows], fit),
        )
    groups = [list(group) for _, group in groupby(rows, key=lambda line: row_of(line.endpoint))]
    several = any(len(group) > 1 for group in groups)
    for group in groups:
        for position, line in enumerate(group, start=1):
            table.add_row(
                *(Text(cell) for cell in line.cells),
                style="yellow" if line.troubled else None,
                end_section=several and position == len(group),
            )
    return table


def print_in_words(summary: Summary, said: LatenciesInRtts, console: Console) -> None:
    """Print a sentence for each endpoint, then all notes, then how right the network was."""
    from rich.text import Text

    for line in said.lines:
        console.print(Text(line))
    print_notes((*said.notes, *summary.notes), console)
    if said.calibration is not None:
        console.print(Text(said.calibration))


def markdown_in_words(said: LatenciesInRtts) -> str:
    """The same in Markdown without the notes of the run, ending in a newline."""
    agreement = [] if said.calibration is None else [said.calibration]
    lines = [f"- {_escaped(line)}" for line in (*said.lines, *said.notes, *agreement)]
    return "\n".join(["In words:", "", *lines]) + "\n"


def markdown_table(summary: Summary, *, with_notes: bool = True) -> str:
    """The same table as `print_table` in Markdown, and its notes, ending in a newline."""
    headers = _headers(summary)
    ruler = ["---" if header in _TEXT_HEADERS else "---:" for header in headers]
    rows = [headers, ruler, *(line.cells for line in _lines(summary))]
    lines = [f"| {' | '.join(_escaped(cell) for cell in row)} |" for row in rows]
    notes = [f"- {_escaped(note)}" for note in summary.notes] if with_notes else []
    return "\n".join([_title(summary) + ":", "", *lines, *(["", *notes] if notes else [])]) + "\n"


def _headers(summary: Summary) -> list[str]:
    figures = _LATENCY_HEADERS if summary.round_trips is None else ROUND_TRIPS_HEADERS
    names = (_SYSTEM, _ENDPOINT, *((_PLACEMENT,) if summary.knows_placement else ()))
    return [*names, *figures]


def _lines(summary: Summary) -> list[Line]:
    labels, headers = series_labels(summary.series), _headers(summary)

    def line(group: Group, figures: Mapping[str, str], *, troubled: bool) -> Line:
        cells = {
            _SYSTEM: labels[group.series],
            _ENDPOINT: group.endpoint,
            _PLACEMENT: group.placement,
            **figures,
        }
        return Line(group.endpoint, [cells[header] for header in headers], troubled)

    if summary.round_trips is not None:
        return [
            line(entry.group, round_trips_cells(entry), troubled=bool(entry.failed or entry.why))
            for entry in summary.round_trips
        ]
    return [
        line(entry.group, _cells(entry), troubled=bool(entry.fail or entry.unknown))
        for entry in summary.endpoints
    ]


def _cells(entry: EndpointSummary) -> dict[str, str]:
    """What each column of latencies says of `entry`."""
    cells = {
        "n": str(entry.n),
        "ok/fail/unknown": f"{entry.ok}/{entry.fail}/{entry.unknown}",
    }
    latency = entry.latency
    if latency is None:
        return dict.fromkeys(_LATENCY_HEADERS, EN_DASH) | cells
    return cells | {
        _MEAN: f"{format_ms(latency.mean_ms)} {format_interval(latency.mean_ci95_ms)}",
        "median ms": format_ms(latency.median_ms),
        "min ms": format_ms(latency.min_ms),
        "max ms": format_ms(latency.max_ms),
        "p95 ms": format_ms(latency.p95_ms),
        "p99 ms": format_ms(latency.p99_ms),
    }


def format_interval(interval: tuple[float, float] | None) -> str:
    """`interval` in brackets, or a dash in them where there is none."""
    if interval is None:
        return f"[{EN_DASH}]"
    return f"[{format_ms(interval[0])}{EN_DASH}{format_ms(interval[1])}]"


def _placement_below(headers: list[str], rows: list[Line]) -> tuple[list[str], list[Line]]:
    """The columns with placement as a word in that of the endpoint, where it costs no width."""
    endpoint, placement = headers.index(_ENDPOINT), headers.index(_PLACEMENT)
    joined = []
    for line in rows:
        both = f"{line.cells[endpoint]} {line.cells[placement]}"
        cells = [*line.cells[:endpoint], both, *line.cells[placement + 1 :]]
        joined.append(line._replace(cells=cells))
    return [*headers[:endpoint], _ENDPOINT_AND_PLACEMENT, *headers[placement + 1 :]], joined


def _max_width(header: str, texts: Iterable[str], fit: Fit) -> int | None:
    """How wide the column of `texts` may be, None for as wide as they are."""
    if header not in _OF_WORDS or fit not in (Fit.WORDS, Fit.FOLDED):
        return None
    longest = max((len(word) for text in texts for word in text.split()), default=1)
    return min(longest, _FOLDED_SYSTEM) if (header, fit) == (_SYSTEM, Fit.FOLDED) else longest


def _title(summary: Summary) -> str:
    return f"{summary.facts['study']} on {summary.facts['topology']}"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
