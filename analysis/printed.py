"""Every table with a rate in a printed text, multiplied: whoever made it, wherever it stands.

A table that shows requests a second beside a time or a throughput must be registered
(`wanlat.analysis.units.register`), so that nobody can print one whose columns nobody knows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from pkgutil import walk_packages

from wanlat.analysis.grid import Grid, read_grids
from wanlat.analysis.units import REGISTERED, RateTable, UnitsError, check_rows, unit_of

_TIME_UNITS = ("ns", "µs", "us", "ms", "s")
_TIME = re.compile(r"\b(time|mean|median|latency|average|avg)\b", re.IGNORECASE)
_PER_S = re.compile(
    r"\b(requests?|operations?|ops|reqs?)\s*(/\s*s|a second|per second)\b|\b(rps|iops|qps)\b",
    re.IGNORECASE,
)
_THROUGHPUT = re.compile(
    r"(?<![A-Za-z])[kKMGT]?i?B(/s|ps)(?![A-Za-z])|\bthroughput\b", re.IGNORECASE
)


def check_text(text: str) -> Counter[str]:
    """How many rows of each registered table `text` has; all of them are multiplied.

    Raises UnitsError where figures contradict each other, and where a table looks like one of
    rates and is none that is known.
    """
    load_all_tables()
    found: Counter[str] = Counter()
    for grid in read_grids(text):
        tables = tables_of(grid.headers)
        if not tables and looks_like_rates(grid.headers):
            raise UnitsError(
                f"A table with the columns {', '.join(grid.headers)} is of rates, and nobody has "
                "registered it (analysis.units.register), so that its units cannot be checked."
            )
        for table in tables:
            found[table.name] += check_rows(table, grid.headers, grid.rows)
    return found


def check_grid(grid: Grid) -> Counter[str]:
    """The same of one table that is at hand."""
    from wanlat.analysis.grid import markdown

    return check_text(markdown(grid))


def tables_of(headers: Sequence[str]) -> list[RateTable]:
    """The registered tables that have these columns."""
    there = set(headers)
    return [table for table in REGISTERED.values() if set(table.headers) <= there]


def looks_like_rates(headers: Sequence[str]) -> bool:
    """Whether among `headers` are requests a second, and a time or a throughput."""
    per_s = [header for header in headers if _PER_S.search(header)]
    return bool(per_s) and any(
        _THROUGHPUT.search(header) or unit_of(header) in _TIME_UNITS or _TIME.search(header)
        for header in headers
        if header not in per_s
    )


def load_all_tables() -> None:
    """Import every module of this room, because a table is registered where it is made."""
    from wanlat import analysis

    for module in walk_packages(analysis.__path__, "wanlat.analysis."):
        if module.name.rpartition(".")[2].endswith("table"):
            import_module(module.name)
