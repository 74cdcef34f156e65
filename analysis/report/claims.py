"""The block of claims: their verdicts, and every comparison that these rest on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wanlat.analysis.claims import ANY, Comparison, Result, Row, Verdict, evaluated
from wanlat.analysis.grid import Grid
from wanlat.analysis.names import EN_DASH, count, display_system
from wanlat.analysis.report.formats import size, with_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Claims:
    """The claims on a study, evaluated: a block of its report (`wanlat.analysis.blocks`)."""

    results: tuple[Result, ...]

    def to_json(self) -> dict[str, Any]:
        """The entry of summary.json."""
        return {
            "definitions": {
                "verdict": "holds: every comparison does; does not hold: one does not; by 95 % "
                "intervals, corrected for all comparisons together (Holm)",
                "value": "a figure, or its ratio to the same figure of another row; the interval "
                "of a ratio is from those of both (variance recovery on logarithms)",
            },
            "claims": [
                {
                    **{key: result.spec.get(key) for key in ("id", "claim", "source")},
                    "of": dict(result.of),
                    "figure": _figure(result),
                    "bound": str(result.bound),
                    "verdict": str(result.verdict),
                    "comparisons": [
                        {
                            "where": dict(each.where),
                            "value": float(f"{each.value:.6g}"),
                            "ci95": each.ci95 and [float(f"{bound:.6g}") for bound in each.ci95],
                            "n": list(each.n),
                            "p": float(f"{each.p:.3g}"),
                            "p_corrected": float(f"{each.p_corrected:.3g}"),
                            "verdict": str(each.verdict),
                        }
                        for each in result.comparisons
                    ],
                }
                for result in self.results
            ],
        }

    def grids(self) -> Sequence[Grid]:
        """The verdicts with what decides each; all comparisons, which is long."""
        number = sum(len(result.comparisons) for result in self.results)
        sources = dict.fromkeys(str(result.spec.get("source", "")) for result in self.results)
        verdicts = Grid(
            title="What is claimed, and whether it holds here",
            headers=("claim", "of", "verdict", "hold", "bound", "decided by"),
            rows=tuple(_row(result) for result in self.results),
            text=frozenset(("claim", "of", "verdict", "bound", "decided by")),
            notes=(
                "Decided by: the comparison that is clearest against the claim; where all hold, "
                "the one that does least clearly. n: requests it rests on.",
                f"Corrected for {count(number, 'comparison')} at once (Holm). Every point is one "
                "cluster, and how much two clusters of a kind differ is in no interval.",
                *(f"Source: {source}" for source in sources if source),
            ),
            troubled=frozenset(
                n for n, each in enumerate(self.results) if each.verdict is Verdict.DOES_NOT_HOLD
            ),
        )
        rows = [
            (
                str(result.spec["id"]),
                _listed(result.of),
                _listed(each.where),
                _figure(result),
                with_interval(each.value, each.ci95),
                str(result.bound),
                _counted(each),
                str(each.verdict),
            )
            for result in self.results
            for each in result.comparisons
        ]
        headers = ("claim", "of", "where", "figure", "value [95 %]", "bound", "n", "verdict")
        words = frozenset(headers) - {"value [95 %]", "n"}
        return [verdicts, Grid("Every comparison", headers, tuple(rows), words, long=True)]

    def charts(self) -> Mapping[str, Figure]:
        """None: the figures have charts of their own."""
        return {}


def claims_block(specs: Sequence[Any], summary: Mapping[str, Any]) -> Claims | None:
    """The claims of a manifest, evaluated on the blocks of a summary.json by their keys.

    None where no row was measured that one of them is about.
    """
    results = tuple(evaluated(specs, summary))
    return Claims(results) if any(result.comparisons for result in results) else None


def _row(result: Result) -> tuple[str, ...]:
    claim, deciding = str(result.spec["claim"]), result.deciding
    if deciding is None:
        return claim, _listed(result.of), "not measured", EN_DASH, str(result.bound), EN_DASH
    value = with_interval(deciding.value, deciding.ci95)
    return (
        claim,
        _listed(result.of),
        str(result.verdict),
        f"{result.holding()} of {len(result.comparisons)}",
        str(result.bound),
        f"{value}, n {_counted(deciding)}: {_listed(deciding.where)}",
    )


def _figure(result: Result) -> str:
    """What is compared: "mean_ms / that of nodes 1"."""
    named = f"{result.spec['figure']}"
    if result.spec.get("per"):
        named += f" per {result.spec['per']}"
    if not (over := result.spec.get("over")):
        return named
    told = [_written(name, value) for name, value in over.items() if value != ANY]
    return f"{named} / that of {', '.join(told)}"


def _counted(comparison: Comparison) -> str:
    return " / ".join(map(str, comparison.n)) or EN_DASH


def _listed(values: Row) -> str:
    """ "2 nodes, read, 1KiB": a row's values in words; those that are unknown left out."""
    return ", ".join(
        _written(name, value)
        for name, value in values.items()
        if value not in (None, "", "unknown", {})
    )


def _written(name: str, value: Any) -> str:
    kind = name.removeprefix("over ")
    before = name.removesuffix(kind)
    if kind == "system":
        return before + display_system(str(value))
    if kind.endswith("_bytes") and isinstance(value, int):
        return before + size(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key.replace('_', ' ')} {_written(name, value[key])}" for key in value)
    return before + (f"{kind} {value:g}" if isinstance(value, int | float) else str(value))
