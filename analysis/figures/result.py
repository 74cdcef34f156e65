"""What answers a question about a bundle: a tidy frame, and the arrays that its chart draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from wanlat.analysis.bundle import Bundle, Series
from wanlat.analysis.stats.over_time import Estimate
from wanlat.analysis.sweep import Sweep
from wanlat.bundle.errors import BundleError

Row = Mapping[str, Any]
"""One row of a frame: figures by their columns; None for what there is not."""


@dataclass(frozen=True)
class Figures:
    """Rows of figures with the keys `system`, `version` and whatever else they are of.

    `arrays` has for each row what a chart draws of it, None where that is nothing. `parameters`
    are the columns of a matrix: what its points differ in.
    """

    rows: tuple[Row, ...]
    arrays: tuple[Any, ...]
    parameters: tuple[str, ...] = ()

    @property
    def series(self) -> list[Series]:
        """Versions of systems that there are rows of, in their order."""
        return list(dict.fromkeys(series_of(row) for row in self.rows))

    def where(self, condition: Callable[[Row], bool]) -> Figures | None:
        """The rows that meet a condition, with their arrays; None where none does."""
        pairs = zip(self.rows, self.arrays, strict=True)
        kept = figures_of(pair for pair in pairs if condition(pair[0]))
        return None if kept is None else replace(kept, parameters=self.parameters)


def series_of(row: Row) -> Series:
    """The version of the system that a row is of."""
    return Series(str(row["system"]), str(row["version"]))


def figures_of(pairs: Iterable[tuple[Row, Any]]) -> Figures | None:
    """The figures that rows with their arrays make; None without a row."""
    columns = tuple(zip(*pairs, strict=True))
    return Figures(*columns) if columns else None


def of_points(sweep: Sweep, compute: Callable[[Bundle], Figures | None]) -> Figures | None:
    """The figures of every complete point of a matrix one below the other, with its name (`point`).

    What the points differ in are the `parameters`. A point whose files are damaged is left out: its
    own report says what is wrong with them.
    """
    names = tuple(each.name for each in sweep.parameters if sweep.varies(each.name))
    pairs: list[tuple[Row, Any]] = []
    for point in sweep.complete:
        try:
            figures = compute(point.bundle) if point.bundle else None
        except BundleError:
            continue
        if figures is not None:
            of = {"point": point.name} | {name: point.value(name) for name in names}
            rows = ({**row, **of} for row in figures.rows)
            pairs += zip(rows, figures.arrays, strict=True)
    found = figures_of(pairs)
    return None if found is None else replace(found, parameters=names)


def named(name: str, estimate: Estimate | None) -> dict[str, Any]:
    """A figure under its name, and its interval under that of `name` and "_ci95"."""
    if estimate is None:
        return {name: None, f"{name}_ci95": None}
    ci95 = estimate.ci95 and [short(bound) for bound in estimate.ci95]
    return {name: short(estimate.value), f"{name}_ci95": ci95}


def short(value: float | None, digits: int = 9) -> float | None:
    """So many digits, which is more than was measured; None for what is not known."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.{digits}g}")
