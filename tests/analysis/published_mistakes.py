"""What is wrong in the published tables of Bob and MinIO, found by multiplying their figures.

Each row of those tables has a time, requests a second and a throughput, which must agree; and the
times can be held against the estimates that Criterion stored.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from wanlat.analysis.criterion import PrintedRow, StoredEstimate, printed_rows, stored_estimates
from wanlat.analysis.grid import Grid
from wanlat.analysis.sizes_table import format_size, percent_more

SAME = 0.03
"""Figures that differ by less agree: the documents print some of them with two digits."""
_MIB = 2**20
_THOUSANDS = 1000 / 1024
_SAME_FIGURE = 1e-4
_ALL = "all rows"


@dataclass(frozen=True)
class Mistake:
    """One of them. `where` says which rows; `printed` and `right` are figures in words."""

    document: str
    where: str
    printed: str
    right: str
    why: str


def mistakes_of_units() -> list[Mistake]:
    """The column headed "ns", and throughputs in which a kilobyte is a thousandth of a MiB."""
    found = []
    for document, rows in _by_document():
        micro = sum(_agrees(row.time_us * 1e-6 * row.requests_per_s) for row in rows)
        nano = sum(_agrees(row.time_us * 1e-9 * row.requests_per_s) for row in rows)
        found.append(
            Mistake(
                document,
                _ALL,
                'time headed "ns"',
                "µs",
                f"time x requests/s is 1 in {nano} of {len(rows)} rows read as ns, in {micro} read "
                "as µs",
            )
        )
        of_thousand = [row for row in rows if abs(_throughput(row) - _THOUSANDS) < SAME / 100]
        if of_thousand:
            sizes = sorted({row.object_bytes for row in of_thousand})
            found.append(
                Mistake(
                    document,
                    f"{len(of_thousand)} rows of MinIO's writes, "
                    f"{' and '.join(format_size(size) for size in sizes)}",
                    f"{of_thousand[0].digits[2]} MiB/s",
                    f"{of_thousand[0].requests_per_s * of_thousand[0].object_bytes / _MIB:.4g}",
                    "size x requests/s is 2.3 % less: 1000 KiB were taken for a MiB",
                )
            )
    return found


def mistakes_of_rows() -> list[Mistake]:
    """Rows whose figures contradict each other, or the estimate that was stored."""
    stored = {_place(each): each for each in stored_estimates()}
    found = []
    for row in printed_rows():
        where = _named([row])
        time_ms = row.time_us / 1e3
        product = time_ms / 1e3 * row.requests_per_s
        if not _agrees(product):
            twins = [
                other
                for place, other in stored.items()
                if abs(other.mean_ms / time_ms - 1) < _SAME_FIGURE and place != _place(row)
            ]
            of = f": the mean of {_named(twins)} again" if twins else ""
            found.append(
                Mistake(
                    row.document,
                    where,
                    f"{row.digits[0]} µs",
                    f"{stored[_place(row)].mean_ms * 1e3:.1f}",
                    f"time x requests/s is {product:.2f}{of}",
                )
            )
        elif not _agrees(_throughput(row)):
            found.append(
                Mistake(
                    row.document,
                    where,
                    f"{row.digits[2]} MiB/s",
                    f"{row.requests_per_s * row.object_bytes / _MIB:.4g}",
                    f"size x requests/s is {percent_more(_throughput(row))} of it",
                )
            )
    return found


def mistakes_of_statistics() -> list[Mistake]:
    """Medians that are called means, and means that are called medians."""
    stored = {_place(each): each for each in stored_estimates()}
    found = []
    for document, rows in _by_document():
        medians = [
            row
            for row in rows
            if row.statistic == "mean"
            and abs(row.time_us / 1e3 / stored[_place(row)].median_ms - 1) < _SAME_FIGURE
        ]
        if medians:
            found.append(
                Mistake(
                    document,
                    _named(medians),
                    f"{medians[0].digits[0]} µs as mean",
                    f"{stored[_place(medians[0])].mean_ms * 1e3:.2f}",
                    "the stored median; the throughput beside it is that of the mean",
                )
            )
        of_bob = [(_place(row), row.time_us) for row in rows if row.system == "bob"]
        again = sorted({row for row in of_bob if of_bob.count(row) > 1})
        if again:
            found.append(
                Mistake(
                    document,
                    f"the table of medians, {len(again)} rows of Bob",
                    f"{again[0][1]:g} µs for {_named([stored[again[0][0]]])}",
                    "a median",
                    "the same times as in the table of means",
                )
            )
    skewed = [
        each for each in stored.values() if each.system == "bob" and _skew(each) > 1 + 4 * SAME
    ]
    return [
        *found,
        Mistake(
            "both",
            "the remark that Bob's mean and median differ by about 1 %",
            "1 %",
            " and ".join(percent_more(_skew(each)) for each in skewed),
            f"stored estimates of {'; '.join(_named([each]) for each in skewed)}",
        ),
    ]


def mistakes_grid() -> Grid:
    """All of them as a table."""
    found = [*mistakes_of_units(), *mistakes_of_rows(), *mistakes_of_statistics()]
    headers = ("document", "where", "printed", "should be", "what shows it")
    return Grid(
        title="What is wrong in the published tables",
        headers=headers,
        rows=tuple((m.document, m.where, m.printed, m.right, m.why) for m in found),
        text=frozenset(headers),
        long=True,
        notes=(
            "Figures of one row that agree within 3 % are let pass. What the README prints as mean "
            "is up to 5 % off the stored one even so.",
        ),
    )


def _by_document() -> list[tuple[str, list[PrintedRow]]]:
    rows = printed_rows()
    return [(name, [row for row in rows if row.document == name]) for name in _documents(rows)]


def _documents(rows: Iterable[PrintedRow]) -> list[str]:
    return list(dict.fromkeys(row.document for row in rows))


def _agrees(ratio: float) -> bool:
    return abs(ratio - 1) < SAME


def _throughput(row: PrintedRow) -> float:
    """Size x requests a second / throughput."""
    return row.object_bytes * row.requests_per_s / (row.mib_per_s * _MIB)


def _skew(each: StoredEstimate) -> float:
    return each.mean_ms / each.median_ms


def _place(of: PrintedRow | StoredEstimate) -> tuple[str, int, str, int]:
    return of.system, of.nodes, of.operation, of.object_bytes


def _named(rows: Iterable[PrintedRow | StoredEstimate]) -> str:
    """ "bob, read, 1KiB on 1 and 2 nodes", for each system, operation and size of `rows`."""
    nodes: dict[tuple[str, str, int], list[str]] = {}
    for row in rows:
        nodes.setdefault((row.system, row.operation, row.object_bytes), []).append(str(row.nodes))
    return "; ".join(
        f"{'Bob' if system == 'bob' else 'MinIO'}, {operation}, {format_size(size)} on "
        f"{' and '.join(dict.fromkeys(on))} node{'' if on == ['1'] else 's'}"
        for (system, operation, size), on in nodes.items()
    )
