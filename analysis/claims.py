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
from dataclasses import dataclass
from enum import StrEnum
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
        middle, least, most, *bounds = at
        # How many half intervals each bound is away, on its side of the figure.
        away = [
            math.inf
            if math.isinf(bound) or (bound != middle and half == 0)
            else abs(bound - middle) / (half or 1.0)
            for bound in bounds
            for half in [middle - least if bound < middle else most - middle]
        ]
        p = math.erfc(Z95 * min(away) / math.sqrt(2))
        if p >= SIGNIFICANCE:
            return Verdict.NOT_DECIDED, p
        return Verdict.HOLDS if self.allows(value) else Verdict.DOES_NOT_HOLD, p

    def __str__(self) -> str:
        """As a reader has it: "≥ 1", "outside 0.95 to 1.05"."""
        if self.outside or math.isfinite(self.low + self.high):
            return f"{'outside' if self.outside else 'within'} {self.low:g} to {self.high:g}"
        return f"≥ {self.low:g}" if math.isfinite(self.low) else f"≤ {self.high:g}"


def evaluated(specs: Iterable[Spec], summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The claims `specs`, evaluated on the blocks of a summary.json by their keys.

    A row for each claim and each value that its conditions list (`of`): what the claim says, the
    `bound` and the `verdict`, with `comparisons`: `where` tells one from the others, `value`,
    `ci95`, `n` (requests, of the row and of the one it is divided by), `p`, `p_corrected` and
    `verdict`.
    """
    results = [result for spec in specs for result in _results(spec, summary)]
    every = [each for result in results for each in result["comparisons"] if each["ci95"]]
    for each, p in zip(every, holm([each["p"] for each in every]), strict=True):
        each["p_corrected"] = p
        if p >= SIGNIFICANCE:
            each["verdict"] = Verdict.NOT_DECIDED
    for result in results:
        verdicts = {each["verdict"] for each in result["comparisons"]}
        if Verdict.DOES_NOT_HOLD in verdicts:
            result["verdict"] = Verdict.DOES_NOT_HOLD
        elif verdicts == {Verdict.HOLDS}:
            result["verdict"] = Verdict.HOLDS
    return results


def deciding(result: Row) -> Row | None:
    """The comparison clearest against the claim; where all hold, that which does least clearly."""
    every: Sequence[Row] = result["comparisons"]
    same = [each for each in every if each["verdict"] == result["verdict"]]
    if result["verdict"] == Verdict.HOLDS:
        return max(same, key=lambda each: float(each["p"]))
    bound: Bound = result["bound"]
    return min(same, key=lambda each: (bound.allows(each["value"]), each["p"]), default=None)


def rows_at(summary: Mapping[str, Any], path: str) -> list[Row]:
    """The rows under a path of lists ("load.systems.operations").

    Each has the plain figures of what it stands in, and what a matrix varies (`values`, `others`).
    """
    rows: list[Row] = [summary]
    for key in path.split("."):
        rows = [
            {
                **{
                    name: value for name, value in row.items() if not isinstance(value, dict | list)
                },
                **inner,
                **(inner.get("values") or {}),
                **(inner.get("others") or {}),
            }
            for row in rows
            for inner in _list(row.get(key))
        ]
    return rows


def _results(spec: Spec, summary: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """One of each value that the claim's conditions list."""
    rows = rows_at(summary, str(spec["rows"]))
    where = spec.get("where") or {}
    lists = {name: values for name, values in where.items() if isinstance(values, list)}
    for values in product(*lists.values()):
        of = dict(zip(lists, values, strict=True))
        chosen = _matching(rows, {**where, **of})
        yield {
            **{key: spec.get(key) for key in ("id", "claim", "source", "figure", "per", "over")},
            "of": of,
            "bound": Bound.of(spec),
            "verdict": Verdict.NOT_DECIDED,
            "comparisons": [each for row in chosen for each in _comparisons(spec, row, rows)],
        }


def _comparisons(spec: Spec, row: Row, rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """The row's figure, or its ratio to that of each row that agrees in what must be the `same`."""
    over, estimate = spec.get("over"), _estimate(row, spec)
    same = {name: row.get(name) for name in spec.get("same") or ()}
    where = {**same, **_ranging(spec.get("where") or {}, row)}
    if estimate is None:
        return
    if not over:
        yield _compared(spec, where, *estimate, [row])
        return
    alike = [each for each in rows if all(each.get(name) == same[name] for name in same)]
    for base in _matching(alike, over):
        below = _estimate(base, spec)
        if base is not row and below is not None and min(estimate[0], below[0]) > 0:
            ratio = of_estimates(estimate, below)
            ranging = {f"over {name}": value for name, value in _ranging(over, base).items()}
            yield _compared(spec, {**where, **ranging}, ratio.estimate, ratio.ci95, [row, base])


def _compared(
    spec: Spec, where: Row, value: float, ci95: Interval | None, rows: Sequence[Row]
) -> dict[str, Any]:
    verdict, p = Bound.of(spec).judge(value, ci95, is_ratio=len(rows) > 1)
    counts = [row.get("ok", row.get("n")) for row in rows]
    return {
        "where": where,
        "value": value,
        "ci95": ci95,
        "n": [int(count) for count in counts if count is not None],
        "p": p,
        "p_corrected": 1.0,
        "verdict": verdict,
    }


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
        if isinstance(each, Mapping) and "largest_below" in each:
            largest = max((row[name] for row in found), default=None)
            found = [row for row in found if row[name] == largest]
    return found


def _fits(value: Any, condition: Any) -> bool:
    if isinstance(condition, Mapping):
        return value is not None and (
            condition.get("at_least", value) <= value <= condition.get("at_most", value)
            and value < condition.get("largest_below", math.inf)
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


def _list(value: Any) -> list[dict[str, Any]]:
    return value if isinstance(value, list) else [value] if isinstance(value, dict) else []
