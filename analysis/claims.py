"""Claims: what somebody says of figures, and whether what was measured bears it out.

A claim is data. It names rows of summary.json, a figure of theirs, maybe divided by the same figure
of other rows, and a bound. One claim is about many rows as a rule (every size, every number of
nodes): each is a comparison of its own, whose verdict rests on the 95 % interval of the figure. A
claim holds where all its comparisons do, and does not hold where one of them does not. All
comparisons of a report are corrected for together (Holm), as one in twenty on the brink would be
judged wrongly. docs/claims.md has the keys.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from itertools import product
from typing import Any

from wanlat.analysis.ratios import of_estimates
from wanlat.analysis.stats.intervals import Z95, Interval, holm
from wanlat.analysis.sweep import bytes_of

Row = Mapping[str, Any]
Spec = Mapping[str, Any]
"""A claim as a manifest has it."""

SIGNIFICANCE = 0.05
ANY = "any"
"""Of a column of the rows that a figure is divided by: whatever it is."""


class Verdict(StrEnum):
    """Whether what is claimed is so."""

    HOLDS = "holds"
    DOES_NOT_HOLD = "does not hold"
    NOT_DECIDED = "not decided"


@dataclass(frozen=True)
class Bound:
    """Where a figure must lie: from `low` to `high`, or `outside` of them."""

    low: float = -math.inf
    high: float = math.inf
    outside: bool = False

    @classmethod
    def of(cls, spec: Spec) -> Bound:
        """That of a claim: `at_least`, `at_most`, `within` or `outside` (`[low, high]`)."""
        between = spec.get("within") or spec.get("outside")
        low, high = between or (spec.get("at_least", -math.inf), spec.get("at_most", math.inf))
        return cls(float(low), float(high), outside="outside" in spec)

    def allows(self, value: float) -> bool:
        """Whether `value` lies where it must, whatever its interval."""
        return (self.low <= value <= self.high) is not self.outside

    def judge(
        self, value: float, ci95: Interval | None, *, is_ratio: bool = False
    ) -> tuple[Verdict, float]:
        """Whether `value` lies where it must, and how surprising it were on the bound (p, 0..1).

        p is below 0.05 where the bound lies outside of the interval: a verdict needs that, and
        without an interval there is none (p = 1). The error is taken for normal, as wide on each
        side as the interval is; that of a ratio, which must be positive, in logarithms.
        """
        if ci95 is None or (is_ratio and min(value, *ci95) <= 0):
            return Verdict.NOT_DECIDED, 1.0
        at = [value, *ci95, self.low, self.high]
        if is_ratio:
            at = [math.log(each) if each > 0 else -math.inf for each in at]
        middle, least, most, low, high = at
        below, above = middle - least, most - middle
        if low <= middle <= high:
            reach = min(_times(middle - low, below), _times(high - middle, above))
        elif middle < low:
            reach = _times(low - middle, above)
        else:
            reach = _times(middle - high, below)
        p = math.erfc(Z95 * reach / math.sqrt(2))
        if p >= SIGNIFICANCE:
            return Verdict.NOT_DECIDED, p
        return Verdict.HOLDS if self.allows(value) else Verdict.DOES_NOT_HOLD, p

    def __str__(self) -> str:
        """As a reader has it: "≥ 1", "outside 0.95 to 1.05"."""
        if self.outside or math.isfinite(self.low + self.high):
            return f"{'outside' if self.outside else 'within'} {self.low:g} to {self.high:g}"
        return f"≥ {self.low:g}" if math.isfinite(self.low) else f"≤ {self.high:g}"


@dataclass(frozen=True)
class Comparison:
    """A figure of a row compared with its claim's bound.

    `where` tells it from the other comparisons of the claim. `n` are the requests that the figure
    rests on: of the row, and of the one that it is divided by. `p` is how surprising it were on the
    bound, `p_corrected` the same among all that are judged together.
    """

    where: Row
    value: float
    ci95: Interval | None
    n: tuple[int, ...]
    verdict: Verdict
    p: float
    p_corrected: float = 1.0

    def corrected(self, p: float) -> Comparison:
        """The same with its p among many: no verdict where that is not small enough."""
        verdict = self.verdict if p < SIGNIFICANCE else Verdict.NOT_DECIDED
        return replace(self, p_corrected=p, verdict=verdict)


@dataclass(frozen=True)
class Result:
    """What came of a claim. `of` are the values of what it claims of several (of two systems)."""

    spec: Spec
    of: Row
    comparisons: tuple[Comparison, ...]

    @cached_property
    def bound(self) -> Bound:
        """The claim's."""
        return Bound.of(self.spec)

    @property
    def verdict(self) -> Verdict:
        """Does not hold where one comparison does not; holds where all do, and there is one."""
        verdicts = [each.verdict for each in self.comparisons]
        if Verdict.DOES_NOT_HOLD in verdicts:
            return Verdict.DOES_NOT_HOLD
        return Verdict.HOLDS if set(verdicts) == {Verdict.HOLDS} else Verdict.NOT_DECIDED

    @property
    def deciding(self) -> Comparison | None:
        """The one clearest against the claim; where all hold, that which does least clearly."""
        same = [each for each in self.comparisons if each.verdict is self.verdict]
        if self.verdict is Verdict.HOLDS:
            return max(same, key=lambda each: each.p)
        return min(same, key=lambda each: (self.bound.allows(each.value), each.p), default=None)

    def holding(self) -> int:
        """How many of its comparisons hold."""
        return sum(each.verdict is Verdict.HOLDS for each in self.comparisons)


def evaluated(specs: Iterable[Spec], summary: Mapping[str, Any]) -> list[Result]:
    """The claims `specs`, evaluated on the blocks of a summary.json by their keys."""
    results = [result for spec in specs for result in _results(spec, summary)]
    judged = [each for result in results for each in result.comparisons if each.ci95 is not None]
    corrected = dict(zip(map(id, judged), holm([each.p for each in judged]), strict=True))
    return [
        replace(
            result,
            comparisons=tuple(
                each.corrected(corrected.get(id(each), 1.0)) for each in result.comparisons
            ),
        )
        for result in results
    ]


def rows_at(summary: Mapping[str, Any], path: str) -> list[Row]:
    """The rows under a path of lists ("load.systems.operations").

    Each has the plain figures of what it stands in, and what a matrix varies (`values`, `others`).
    """
    rows: list[dict[str, Any]] = [dict(summary)]
    for key in path.split("."):
        rows = [
            {**_plain(row), **inner, **(inner.get("values") or {}), **(inner.get("others") or {})}
            for row in rows
            for inner in _list(row.get(key))
        ]
    return list(rows)


def _results(spec: Spec, summary: Mapping[str, Any]) -> Iterator[Result]:
    """One of each value that the claim's conditions list."""
    rows = rows_at(summary, str(spec["rows"]))
    where = spec.get("where") or {}
    lists = {name: values for name, values in where.items() if isinstance(values, list)}
    for values in product(*lists.values()):
        of = dict(zip(lists, values, strict=True))
        chosen = _matching(rows, {**where, **of})
        found = (each for row in chosen for each in _comparisons(spec, row, rows))
        yield Result(spec, of, tuple(found))


def _comparisons(spec: Spec, row: Row, rows: Sequence[Row]) -> Iterator[Comparison]:
    """The row's figure, or its ratio to that of each row that agrees in what must be the `same`."""
    bound, over = Bound.of(spec), spec.get("over")
    estimate = _estimate(row, spec)
    same = {name: row.get(name) for name in spec.get("same") or ()}
    told = {**same, **_ranging(spec.get("where") or {}, row)}
    if estimate is None:
        return
    if not over:
        verdict, p = bound.judge(*estimate)
        yield Comparison(told, *estimate, _n(row), verdict, p)
        return
    alike = [each for each in rows if all(each.get(name) == same[name] for name in same)]
    for base in _matching(alike, over):
        below = _estimate(base, spec)
        if base is row or below is None or min(estimate[0], below[0]) <= 0:
            continue
        ratio = of_estimates(estimate, below)
        verdict, p = bound.judge(ratio.estimate, ratio.ci95, is_ratio=True)
        ranging = {f"over {name}": value for name, value in _ranging(over, base).items()}
        where = {**told, **ranging}
        yield Comparison(where, ratio.estimate, ratio.ci95, _n(row, base), verdict, p)


def _estimate(row: Row, spec: Spec) -> tuple[float, Interval | None] | None:
    """The row's figure with its interval, per what the claim says; None where there is none."""
    name = str(spec["figure"])
    found = row.get(name)
    if isinstance(found, Mapping):  # {"ratio": …, "ci95": …}
        value, ci95 = found.get("ratio"), found.get("ci95")
    else:
        value = found
        ci95 = row.get(f"{name}_ci95") or row.get(f"{name.removesuffix('_ms')}_ci95_ms")
    if value is None:
        return None
    per = float(row[spec["per"]]) if spec.get("per") else 1.0
    return value / per, None if ci95 is None else (ci95[0] / per, ci95[1] / per)


def _matching(rows: Sequence[Row], conditions: Mapping[str, Any]) -> list[Row]:
    """The rows that meet all conditions: a value, `any`, or a range."""
    found = [
        row for row in rows if all(_fits(row.get(name), each) for name, each in conditions.items())
    ]
    for name, each in conditions.items():
        if found and isinstance(each, Mapping) and "largest_below" in each:
            largest = max(row[name] for row in found)
            found = [row for row in found if row[name] == largest]
    return found


def _fits(value: Any, condition: Any) -> bool:
    if isinstance(condition, Mapping):
        least, most, below = map(condition.get, ("at_least", "at_most", "largest_below"))
        return (
            value is not None
            and (least is None or value >= least)
            and (most is None or value <= most)
            and (below is None or value < below)
        )
    if isinstance(value, int) and isinstance(condition, str):
        return condition == ANY or value == bytes_of(condition)
    return bool(condition in (ANY, value))


def _ranging(conditions: Mapping[str, Any], row: Row) -> dict[str, Any]:
    """What a row has in the columns of which its conditions leave a choice."""
    return {
        name: row.get(name)
        for name, each in conditions.items()
        if isinstance(each, Mapping) or each == ANY
    }


def _n(*rows: Row) -> tuple[int, ...]:
    """How many requests the rows' figures rest on, of those that say so."""
    counts = (row.get("ok", row.get("n")) for row in rows)
    return tuple(int(count) for count in counts if count is not None)


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if not isinstance(value, Mapping | list)}


def _list(value: Any) -> list[dict[str, Any]]:
    return value if isinstance(value, list) else [value] if isinstance(value, dict) else []


def _times(distance: float, half: float) -> float:
    """How many half intervals a bound is away."""
    return math.inf if distance > 0 == half or math.isinf(distance) else distance / (half or 1.0)
