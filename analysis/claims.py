"""Claims: statements about figures, and whether what was measured bears it out.

A claim is data. It names rows of summary.json, a figure of theirs, maybe divided by the same figure
of other rows, and a bound. One claim is about many rows as a rule (every size, every number of
nodes): each is a comparison, with a verdict that rests on the 95 % interval of the figure. A
claim holds where all its comparisons do, and does not hold where one of them does not. All
comparisons of a report are corrected for together (Holm), as one in twenty on the brink would be
judged wrongly. docs/reference/claims.md has the keys.

Comparisons that are the same but for their clusters are values of one: their mean counts, with
Student's interval over the clusters. Replicates always are, and are compared one by one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from wanlat.analysis.names import EN_DASH, below, count, digits, short_version, size, with_interval
from wanlat.analysis.section import Grid, rests_on
from wanlat.analysis.statistics import of_estimates
from wanlat.analysis.stats.intervals import Z95, Interval, holm, of_mean, wilson
from wanlat.bundle import REPLICATE
from wanlat.bundle.documents import Titles
from wanlat.bundle.units import bytes_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = Mapping[str, Any]
Spec = Mapping[str, Any]
"""A claim as a manifest has it."""

SIGNIFICANCE = 0.05
LEAST_DUE = 10
"""A share of fewer requests has no verdict."""
ANY = "any"
"""Of a column of the rows that a figure is divided by: whatever it is."""


class Verdict(StrEnum):
    """Whether what is claimed is so."""

    HOLDS = "holds"
    DOES_NOT_HOLD = "does not hold"
    NOT_DECIDED = "not decided"
    CANNOT_BE_TESTED = "cannot be tested here"


@dataclass(frozen=True)
class Bound:
    """Where a figure must lie: from `low` to `high`, or `outside` of them."""

    low: float = -math.inf
    high: float = math.inf
    outside: bool = False

    @classmethod
    def from_claim(cls, spec: Spec) -> Bound:
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
        decided = Verdict.HOLDS if self.allows(value) else Verdict.DOES_NOT_HOLD
        if value == ci95[0] == ci95[1] and value not in (self.low, self.high):
            return decided, 0.0
        at = [value, *ci95, self.low, self.high]
        if is_ratio:
            at = [math.log(edge) if edge > 0 else -math.inf for edge in at]
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
        return decided, p

    def __str__(self) -> str:
        """As a reader has it: "≥ 1", "outside 0.95 to 1.05"."""
        if self.outside or math.isfinite(self.low + self.high):
            return f"{'outside' if self.outside else 'within'} {self.low:g} to {self.high:g}"
        return f"≥ {self.low:g}" if math.isfinite(self.low) else f"≤ {self.high:g}"


def evaluated(specs: Iterable[Spec], summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The claims `specs`, evaluated on the blocks of a summary.json by their keys.

    A row for each claim and each value that its conditions list (`of`): the claim in words, the
    `bound` and the `verdict`, with `comparisons`: `where` distinguishes them, `value`,
    `ci95`, `n` (requests, of the row and of the one it is divided by), `clusters` (how many it is
    of), `p`, `p_corrected` and `verdict`. What cannot be tested has `why`, and compares nothing.
    """
    results = [result for spec in specs for result in _results(spec, summary)]
    every = [
        comparison
        for result in results
        for comparison in result["comparisons"]
        if comparison["ci95"]
    ]
    for judged, p in zip(every, holm([comparison["p"] for comparison in every]), strict=True):
        judged["p_corrected"] = p
        if p >= SIGNIFICANCE:
            judged["verdict"] = Verdict.NOT_DECIDED
    for result in results:
        if result["comparisons"]:
            result["verdict"] = _verdict(result["holds_for"], result["comparisons"])
    return results


def _verdict(holds_for: str, comparisons: Sequence[Row]) -> Verdict:
    """That of a claim which is meant of `all` or `most` of its comparisons."""
    verdicts = [comparison["verdict"] for comparison in comparisons]
    hold, do_not = (verdicts.count(verdict) for verdict in (Verdict.HOLDS, Verdict.DOES_NOT_HOLD))
    needed = {"all": len(verdicts), "most": len(verdicts) // 2 + 1}[holds_for]
    if hold >= needed:
        return Verdict.HOLDS
    return Verdict.DOES_NOT_HOLD if do_not > len(verdicts) - needed else Verdict.NOT_DECIDED


def deciding(result: Row) -> Row | None:
    """The comparison clearest against the claim; where all hold, that which does least clearly."""
    every: Sequence[Row] = result["comparisons"]
    same = [comparison for comparison in every if comparison["verdict"] == result["verdict"]]
    if result["verdict"] == Verdict.HOLDS:
        return max(same, key=lambda comparison: float(comparison["p"]))
    bound: Bound = result["bound"]
    return min(
        same,
        key=lambda comparison: (bound.allows(comparison["value"]), comparison["p"]),
        default=None,
    )


def rows_at(summary: Mapping[str, Any], path: str) -> list[Row]:
    """The rows under a path of lists ("load.systems.operations").

    Each has the plain figures of what it stands in, and what a matrix varies (`values`, `others`,
    of which a replicate is none).
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
                **{name: _no_replicate(inner[name]) for name in ("others",) if name in inner},
            }
            for row in rows
            for inner in _list(row.get(key))
        ]
    return rows


def _no_replicate(others: Row | None) -> Row:
    return {name: value for name, value in (others or {}).items() if name != REPLICATE}


def _results(spec: Spec, summary: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """One of each value that the claim's conditions list."""
    why = spec.get("cannot_be_tested")
    rows = [] if why else rows_at(summary, str(spec["rows"]))
    where = spec.get("where") or {}
    lists = {name: values for name, values in where.items() if isinstance(values, list)}
    for values in product(*lists.values()):
        selection = dict(zip(lists, values, strict=True))
        chosen = _matching(rows, {**where, **selection})
        compared = [comparison for row in chosen for comparison in _comparisons(spec, row, rows)]
        yield {
            **{key: spec.get(key) for key in ("id", "claim", "source", "publication", *_FIGURE)},
            "of": selection,
            "bound": Bound.from_claim(spec),
            "holds_for": spec.get("holds_for") or "all",
            "verdict": Verdict.CANNOT_BE_TESTED if why else Verdict.NOT_DECIDED,
            "why": why,
            "comparisons": list(_over_clusters(spec, compared)),
        }


_FIGURE = ("figure", "per", "over")


def _comparisons(spec: Spec, row: Row, rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """The row's figure, or its ratio to that of each row that agrees in what must be the `same`."""
    over, estimate = spec.get("over"), _estimate(row, spec)
    same = {name: row.get(name) for name in spec.get("same") or ()}
    if row.get(REPLICATE) is not None and int(row.get("clusters") or 1) == 1:
        same[REPLICATE] = row[REPLICATE]
    where = {**same, **_ranging(spec.get("where") or {}, row)}
    if estimate is None:
        return
    if not over:
        yield _compared(spec, where, *estimate, [row])
        return
    alike = [
        candidate for candidate in rows if all(candidate.get(name) == same[name] for name in same)
    ]
    for base in _matching(alike, over):
        below = _estimate(base, spec)
        if base is not row and below is not None and min(estimate[0], below[0]) > 0:
            ratio = of_estimates(estimate, below)
            ranging = {f"over {name}": value for name, value in _ranging(over, base).items()}
            yield _compared(spec, {**where, **ranging}, ratio.estimate, ratio.ci95, [row, base])


def _compared(
    spec: Spec,
    where: Row,
    value: float,
    ci95: Interval | None,
    rows: Sequence[Row],
    clusters: int | None = None,
) -> dict[str, Any]:
    verdict, p = Bound.from_claim(spec).judge(value, ci95, is_ratio=bool(spec.get("over")))
    clusters = clusters or min((int(row.get("clusters") or 1) for row in rows), default=1)
    return {
        "where": where,
        "value": value,
        "ci95": ci95,
        "n": [count for row in rows for count in _counts(row, spec)],
        "clusters": clusters,
        "p": p,
        "p_corrected": 1.0,
        "verdict": verdict,
    }


def _over_clusters(spec: Spec, compared: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Those that differ in nothing but the columns of `clusters`, as one: their mean.

    Of ratios it is that of their logarithms. One cluster alone keeps its own interval.
    """
    names = (*(spec.get("clusters") or ()), REPLICATE)
    groups = dict[str, list[dict[str, Any]]]()
    for comparison in compared:
        where = {name: value for name, value in comparison["where"].items() if name not in names}
        groups.setdefault(repr(where), []).append(comparison)
    for group in groups.values():
        is_repeated = all(member["where"].get(REPLICATE) is not None for member in group)
        if len(group) == 1 or not (spec.get("clusters") or is_repeated):
            yield from group
            continue
        values = np.array([member["value"] for member in group])
        values = np.log(values) if spec.get("over") else values
        figures = [float(values.mean()), *of_mean(values)]
        value, low, high = map(math.exp, figures) if spec.get("over") else figures
        where = {key: value for key, value in group[0]["where"].items() if key not in names}
        yield _compared(spec, where, value, (low, high), [], len(group)) | {
            "n": [sum(numbers) for numbers in zip(*(one["n"] for one in group), strict=True)]
        }


def _counts(row: Row, spec: Spec) -> list[int]:
    """How many requests a row's figure rests on: without those that a late network delayed."""
    figure = below(row, str(spec["figure"]))
    if isinstance(figure, Mapping) and "attempted" in figure:
        return [due_of(figure)]
    is_counted = row.get("ok", row.get("n")) is not None
    return [rests_on(row)] if is_counted and not spec.get("exact") else []


def _estimate(row: Row, spec: Spec) -> tuple[float, Interval | None] | None:
    """The row's figure with its interval, by what the claim divides it.

    None where there is none.
    """
    name = str(spec["figure"])
    figure = below(row, name)
    if isinstance(figure, Mapping) and "attempted" in figure:
        figure = _share_of_due(figure)
    if isinstance(figure, Mapping):  # {"ratio": …, "ci95": …}
        value, ci95 = figure.get("ratio"), figure.get("ci95")
    else:
        value = figure
        usual = (f"{name}_ci95", f"{name.removesuffix('_ms')}_ci95_ms")
        columns = [spec["interval"]] if spec.get("interval") else usual
        ci95 = next((row[column] for column in columns if row.get(column) is not None), None)
    per = below(row, str(spec["per"])) if spec.get("per") else 1.0
    if value is None or per is None:
        return None
    value, bounds = float(value) / per, None if ci95 is None else (ci95[0] / per, ci95[1] / per)
    return value, (value, value) if spec.get("exact") else bounds


def due_of(requests: Row) -> int:
    """How many requests of a drill's selection were due, but for what this machine did not send."""
    return int(requests["attempted"] - requests["not_sent"])


def _share_of_due(requests: Row) -> Row | None:
    """The share of requests that were ok, of those that were due; no interval below ten."""
    due = due_of(requests)
    if not due:
        return None
    ci95 = wilson(requests["ok"], due) if due >= LEAST_DUE else None
    return {"ratio": requests["ok"] / due, "ci95": ci95}


def _matching(rows: Sequence[Row], conditions: Mapping[str, Any]) -> list[Row]:
    """The rows that meet all conditions: a value, `any`, or a range."""
    chosen = [
        row
        for row in rows
        if all(_fits(row.get(name), wanted) for name, wanted in conditions.items())
    ]
    for name, condition in conditions.items():
        if isinstance(condition, Mapping) and "largest_below" in condition:
            largest = max((row[name] for row in chosen), default=None)
            chosen = [row for row in chosen if row[name] == largest]
    return chosen


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
        for name, condition in conditions.items()
        if isinstance(condition, Mapping) or condition == ANY
    }


def _list(value: Any) -> list[dict[str, Any]]:
    return value if isinstance(value, list) else [value] if isinstance(value, dict) else []


_DEFINITIONS = {
    "verdict": "holds: every comparison does; does not hold: one does not; by 95 % intervals, "
    "corrected for all comparisons together (Holm)",
    "value": "a figure, or its ratio to the same figure of another row; the interval of a ratio is "
    "from those of both (variance recovery on logarithms)",
}


@dataclass(frozen=True)
class Claims:
    """The claims on a study, evaluated: a block of its report (`wanlat.analysis.summary`)."""

    results: Sequence[Row]
    titles: Titles

    def to_json(self) -> dict[str, Any]:
        """The entry of summary.json."""
        return {
            "definitions": _DEFINITIONS,
            "claims": [
                {name: result[name] for name in ("id", "claim", "source", "of")}
                | {
                    "figure": _figure(result, self.titles),
                    "bound": str(result["bound"]),
                    "why": result["why"],
                }
                | {
                    "verdict": str(result["verdict"]),
                    "comparisons": [*map(_json, result["comparisons"])],
                }
                for result in self.results
            ],
        }

    def grids(self) -> Sequence[Grid]:
        """The verdicts on what was measured, with what decides each.

        summary.json has all comparisons, and the claims on what was not measured.
        """
        measured = [result for result in self.results if result["comparisons"]]
        left_out = len(self.results) - len(measured)
        sources = dict.fromkeys(str(result["source"] or "") for result in measured)
        notes = [
            DECIDED_BY,
            corrected_for(measured),
            *([f"Claims on what this run did not measure: {left_out}."] if left_out else []),
            *(f"Source: {source}" for source in sources if source),
        ]
        title = "What is claimed, and whether it holds here"
        return [table_of(measured, self.titles, title, notes)]

    def charts(self) -> Mapping[str, Figure]:
        """None: the figures have charts of their own."""
        return {}


def claims_block(
    specs: Sequence[Any], summary: Mapping[str, Any], titles: Titles, lacking: str | None = None
) -> Claims | None:
    """The claims of a manifest, evaluated on the blocks of a summary.json by their keys.

    None where no row was measured that one of them is about. `lacking`: why samples are missing;
    then none is decided.
    """
    results = evaluated(specs, summary)
    for result in results if lacking else ():
        if result["verdict"] != Verdict.CANNOT_BE_TESTED:
            result |= {"verdict": Verdict.NOT_DECIDED, "why": lacking}
    return Claims(results, titles) if any(result["comparisons"] for result in results) else None


def table_of(results: Sequence[Row], titles: Titles, title: str, notes: Sequence[str] = ()) -> Grid:
    """The verdicts of `results`, each with what decides it."""
    headers = ("claim", "of", "verdict", "hold", "bound", "decided by", "clusters")
    troubled = {n for n, result in enumerate(results) if result["verdict"] == Verdict.DOES_NOT_HOLD}
    words = frozenset(headers) - {"hold", "clusters"}
    rows = tuple(_row(result, titles) for result in results)
    return Grid(title, headers, rows, words, tuple(notes), frozenset(troubled))


DECIDED_BY = (
    "Decided by: the comparison that is clearest against the claim; where all hold, the one that "
    "does least clearly. n: requests it rests on. An interval of several clusters is over clusters "
    "(Student's); that of one knows nothing of a second."
)


def corrected_for(results: Sequence[Row]) -> str:
    """How many comparisons the verdicts were corrected for."""
    number = sum(len(result["comparisons"]) for result in results)
    return f"Corrected for {count(number, 'comparison')} at once (Holm)."


def _row(result: Row, titles: Titles) -> tuple[str, ...]:
    by, words = deciding(result), (str(result["claim"]), _listed(result["of"], titles))
    if result["why"]:
        return *words, str(result["verdict"]), EN_DASH, EN_DASH, str(result["why"]), EN_DASH
    meant = "" if result["holds_for"] == "all" else f", for {result['holds_for']}"
    bound = f"{_figure(result, titles)} {result['bound']}{meant}"
    if by is None:
        return *words, "not measured", EN_DASH, bound, EN_DASH, EN_DASH
    verdicts = [comparison["verdict"] for comparison in result["comparisons"]]
    held = f"{verdicts.count(Verdict.HOLDS)} of {len(verdicts)}"
    counted = [f"n {_counted(by)}"] if by["n"] else []
    evidence = ", ".join([_value(by), *counted, *filter(None, [_listed(by["where"], titles)])])
    clusters = "one" if by["clusters"] == 1 else str(by["clusters"])
    return *words, str(result["verdict"]), held, bound, evidence, clusters


def _figure(result: Row, titles: Titles) -> str:
    """What is compared: "mean_ms / that of nodes 1"."""
    named = str(result["figure"])
    named += f" per {result['per']}" if result["per"] else ""
    over = {name: value for name, value in (result["over"] or {}).items() if value != ANY}
    return f"{named} / that of {_listed(over, titles)}" if result["over"] else named


def _value(comparison: Row) -> str:
    value, ci95 = comparison["value"], comparison["ci95"]
    is_exact = ci95 is not None and value == ci95[0] == ci95[1]
    return digits(value, 3) if is_exact else with_interval(value, ci95)


def _counted(comparison: Row) -> str:
    return " / ".join(map(str, comparison["n"])) or EN_DASH


def _listed(values: Row, titles: Titles) -> str:
    """ "2 nodes, read, 1KiB": a row's values in words; those that are unknown left out."""
    known = {
        name: value for name, value in values.items() if value not in (None, "", "unknown", {})
    }
    return ", ".join(_written(name, value, titles) for name, value in known.items())


def _written(name: str, value: Any, titles: Titles) -> str:
    kind = name.removeprefix("over ")
    before = name.removesuffix(kind)
    if kind == "system":
        return before + titles[str(value)]
    if kind == "version":
        return before + short_version(str(value))
    if kind.endswith("_bytes") and isinstance(value, int):
        return before + size(value)
    if isinstance(value, Mapping):
        parts = {key.replace("_", " "): _written(name, value[key], titles) for key in value}
        return ", ".join(map(" ".join, parts.items()))
    return before + (f"{kind} {value:g}" if isinstance(value, int | float) else str(value))


def _json(comparison: Row) -> dict[str, Any]:
    """Figures to six digits, probabilities to three."""
    ci95 = comparison["ci95"]
    return {
        **comparison,
        "value": float(f"{comparison['value']:.6g}"),
        "ci95": ci95 and [float(f"{bound:.6g}") for bound in ci95],
        **{name: float(f"{comparison[name]:.3g}") for name in ("p", "p_corrected")},
    }
