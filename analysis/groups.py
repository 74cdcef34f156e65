"""What is counted together, and in which order it stands in tables and charts."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable
from itertools import groupby, product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wanlat.analysis.endpoints import endpoint_order, is_known, row_of
from wanlat.analysis.names import series_order
from wanlat.analysis.stats.intervals import Values
from wanlat.bundle.documents import PLACEMENTS
from wanlat.bundle.run import Run, Series, is_late

_KEYS = ("system", "version", "endpoint", "placement")
_NS_PER_MS = 1e6


class Group(NamedTuple):
    """What is counted together: requests to one endpoint of one series, alike in placement."""

    series: Series
    endpoint: str
    placement: str

    @property
    def row(self) -> dict[str, str]:
        """The keys of its rows in tables and summary.json."""
        return dict(zip(_KEYS, (*self.series, self.endpoint, self.placement), strict=True))


class OfGroup:
    """Figures of one group: they name it."""

    group: Group

    @property
    def series(self) -> Series:
        """The version of the system."""
        return self.group.series

    @property
    def endpoint(self) -> str:
        """The endpoint."""
        return self.group.endpoint

    @property
    def placement(self) -> str:
        """Where its keys lie (`analysis.endpoints`)."""
        return self.group.placement


def positions(samples: pd.DataFrame) -> dict[Group, NDArray[np.intp]]:
    """Where the rows of each group stand in `samples`, with words as categories; ascending."""
    words: list[Any] = [samples[key].cat for key in _KEYS]
    shape = [len(word.categories) for word in words]
    # As few bits as do: 16 are sorted by radix, ten million rows in a tenth of a second.
    code = np.zeros(len(samples), dtype=np.min_scalar_type(math.prod(shape)))
    for column, size in zip(words, shape, strict=True):
        code = code * code.dtype.type(size) + column.codes.to_numpy(code.dtype)
    order = np.argsort(code, kind="stable")
    codes, begins = np.unique(code[order], return_index=True)
    groups = {}
    for number, begin, end in zip(codes, begins, [*begins, len(order)][1:], strict=True):
        at = np.unravel_index(number, shape)
        names = [str(word.categories[place]) for word, place in zip(words, at, strict=True)]
        groups[Group(Series(names[0], names[1]), names[2], names[3])] = order[begin:end]
    return groups


def grouped(samples: pd.DataFrame) -> dict[Group, pd.DataFrame]:
    """The rows of `samples` by what is counted together, each in the order it came in."""
    return {group: samples.iloc[rows] for group, rows in positions(samples).items()}


def timed(rows: pd.DataFrame) -> pd.DataFrame:
    """The requests with latencies that count: successful ones, the network not being late."""
    return rows[(rows["outcome"] == "ok") & ~is_late(rows)]


def ok_ms(rows: pd.DataFrame, column: str = "total_ns") -> Values:
    """Durations in `column` of the `timed` requests, milliseconds, shape (timed,).

    In the order of the rows; a duration that was not recorded is left out.
    """
    durations = timed(rows)[column].dropna()
    return durations.to_numpy(dtype="float64") / _NS_PER_MS


def in_order(groups: Iterable[Group], bundle: Run) -> list[Group]:
    """`groups` row by row; in a row by series as the run took them, endpoint, placement."""
    present = set(groups)
    series = series_order((group.series for group in present), bundle.systems)
    names = endpoint_order((group.endpoint for group in present), bundle.manifest.study)
    rows = [list(row) for _, row in groupby(names, key=row_of)]
    every = (Group(*key) for row in rows for key in product(series, row, PLACEMENTS))
    return [group for group in every if group in present]


def seed_of(seed: int, group: Group) -> list[int]:
    """A seed of the group's own, so that its interval does not depend on what else was run.

    A placement that is not known adds nothing, so that intervals made before it was recorded
    stay as they are.
    """
    known = (group.placement,) if is_known(group.placement) else ()
    return seed_for(seed, *group.series, group.endpoint, *known)


def seed_for(seed: int, *names: str) -> list[int]:
    """A seed of its own for what has these names: one figure more changes no other's interval."""
    return [abs(seed), zlib.crc32("\0".join(names).encode())]
