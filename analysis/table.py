"""The summary as a table: for a terminal, and in Markdown for a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from analysis.names import EN_DASH, format_ms, series_labels
from analysis.summary import EndpointSummary, Summary

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_HEADERS = (
    "system",
    "endpoint",
    "n",
    "ok/fail/unknown",
    "mean [95 %] ms",
    "median ms",
    "min ms",
    "max ms",
    "p95 ms",
    "p99 ms",
)
_TEXT_COLUMNS = 2

# Which columns break over lines, the less the wider the terminal: the name of the system and the
# interval are several words, the rest are not.
_NOTHING_BREAKS: frozenset[int] = frozenset()
_WORDS_BREAK = frozenset({0, _HEADERS.index("mean [95 %] ms")})
_ALL_BREAK = frozenset(range(len(_HEADERS)))


def print_table(summary: Summary, console: Console) -> None:
    """Print the table of `summary`, as roomy as the console allows, then its notes."""
    from rich.padding import Padding
    from rich.text import Text

    unlimited = console.options.update(max_width=10_000)
    for breaking in (_NOTHING_BREAKS, _WORDS_BREAK, _ALL_BREAK):
        table = terminal_table(summary, breaking)
        if table.__rich_measure__(console, unlimited).maximum <= console.width:
            break
    console.print(table)
    for note in summary.notes:
        console.print(Padding(Text(f"• {note}"), (0, 1)))


def terminal_table(summary: Summary, breaking: frozenset[int] = frozenset()) -> Table:
    """One row an endpoint of a version of a system; endpoints are set apart by a line.

    The columns in `breaking` may go over several lines. None is ever cut short, because a
    figure without its last digit is another figure.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=Text(_title(summary), style="bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 0 if breaking else 1, 0, 0),
        pad_edge=False,
        show_edge=False,
    )
    rows = _rows(summary)
    for number, header in enumerate(_HEADERS):
        # Units go to a line of their own, which keeps the columns as narrow as their numbers.
        table.add_column(
            Text(header.replace(" ms", "\nms").replace("/", "/\n")),
            justify="left" if number < _TEXT_COLUMNS else "right",
            no_wrap=number not in breaking,
            overflow="fold",
            max_width=_longest_word(cells[number] for _, cells in rows)
            if breaking == _WORDS_BREAK and number in breaking
            else None,
        )
    several = len(summary.series) > 1
    for _, entries in groupby(rows, key=lambda pair: pair[0].endpoint):
        group = list(entries)
        for position, (entry, cells) in enumerate(group, start=1):
            table.add_row(
                *(Text(cell) for cell in cells),
                style="yellow" if entry.fail or entry.unknown else None,
                end_section=several and position == len(group),
            )
    return table


def markdown_table(summary: Summary) -> str:
    """The same table and notes in Markdown, ending in a newline."""
    ruler = ["---"] * _TEXT_COLUMNS + ["---:"] * (len(_HEADERS) - _TEXT_COLUMNS)
    rows = [_HEADERS, ruler, *(cells for _, cells in _rows(summary))]
    lines = [f"| {' | '.join(_escaped(cell) for cell in row)} |" for row in rows]
    notes = [f"- {_escaped(note)}" for note in summary.notes]
    return "\n".join([_title(summary) + ":", "", *lines, *(["", *notes] if notes else [])]) + "\n"


def _rows(summary: Summary) -> list[tuple[EndpointSummary, list[str]]]:
    labels = series_labels(summary.series)
    return [(entry, _cells(entry, labels[entry.series])) for entry in summary.endpoints]


def _cells(entry: EndpointSummary, label: str) -> list[str]:
    latency = entry.latency
    counts = f"{entry.ok}/{entry.fail}/{entry.unknown}"
    if latency is None:
        figures: Sequence[str] = [EN_DASH] * 6
    else:
        figures = [
            f"{format_ms(latency.mean_ms)} {format_interval(latency.mean_ci95_ms)}",
            *(
                format_ms(value)
                for value in (
                    latency.median_ms,
                    latency.min_ms,
                    latency.max_ms,
                    latency.p95_ms,
                    latency.p99_ms,
                )
            ),
        ]
    return [label, entry.endpoint, str(entry.n), counts, *figures]


def format_interval(interval: tuple[float, float] | None) -> str:
    """`interval` in brackets, or a dash in them where there is none."""
    if interval is None:
        return f"[{EN_DASH}]"
    return f"[{format_ms(interval[0])}{EN_DASH}{format_ms(interval[1])}]"


def _longest_word(texts: Iterable[str]) -> int:
    return max((len(word) for text in texts for word in text.split()), default=1)


def _title(summary: Summary) -> str:
    return f"{summary.facts['study']} on {summary.facts['topology']}"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
