"""The block of claims: their verdicts, and every comparison that these rest on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wanlat.analysis.claims import ANY, Row, Verdict, deciding, evaluated
from wanlat.analysis.grid import Grid
from wanlat.analysis.names import EN_DASH, count, display_system
from wanlat.analysis.report.formats import size, with_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DEFINITIONS = {
    "verdict": "holds: every comparison does; does not hold: one does not; by 95 % intervals, "
    "corrected for all comparisons together (Holm)",
    "value": "a figure, or its ratio to the same figure of another row; the interval of a ratio is "
    "from those of both (variance recovery on logarithms)",
}


@dataclass(frozen=True)
class Claims:
    """The claims on a study, evaluated: a block of its report (`wanlat.analysis.blocks`)."""

    results: Sequence[Row]

    def to_json(self) -> dict[str, Any]:
        """The entry of summary.json."""
        return {
            "definitions": _DEFINITIONS,
            "claims": [
                {name: each[name] for name in ("id", "claim", "source", "of")}
                | {"figure": _figure(each), "bound": str(each["bound"])}
                | {
                    "verdict": str(each["verdict"]),
                    "comparisons": [*map(_json, each["comparisons"])],
                }
                for each in self.results
            ],
        }

    def grids(self) -> Sequence[Grid]:
        """The verdicts with what decides each; summary.json has all comparisons."""
        number = sum(len(result["comparisons"]) for result in self.results)
        sources = dict.fromkeys(str(result["source"] or "") for result in self.results)
        headers = ("claim", "of", "verdict", "hold", "bound", "decided by")
        table = Grid(
            title="What is claimed, and whether it holds here",
            headers=headers,
            rows=tuple(map(_row, self.results)),
            text=frozenset(headers) - {"hold"},
            notes=(
                "Decided by: the comparison that is clearest against the claim; where all hold, "
                "the one that does least clearly. n: requests it rests on.",
                f"Corrected for {count(number, 'comparison')} at once (Holm). Every point is one "
                "cluster, and how much two clusters of a kind differ is in no interval.",
                *(f"Source: {source}" for source in sources if source),
            ),
            troubled=frozenset(
                n for n, each in enumerate(self.results) if each["verdict"] == Verdict.DOES_NOT_HOLD
            ),
        )
        return [table]

    def charts(self) -> Mapping[str, Figure]:
        """None: the figures have charts of their own."""
        return {}


def claims_block(specs: Sequence[Any], summary: Mapping[str, Any]) -> Claims | None:
    """The claims of a manifest, evaluated on the blocks of a summary.json by their keys.

    None where no row was measured that one of them is about.
    """
    results = evaluated(specs, summary)
    return Claims(results) if any(result["comparisons"] for result in results) else None


def _row(result: Row) -> tuple[str, ...]:
    by, of, bound = deciding(result), _listed(result["of"]), str(result["bound"])
    if by is None:
        return str(result["claim"]), of, "not measured", EN_DASH, bound, EN_DASH
    verdicts = [each["verdict"] for each in result["comparisons"]]
    held = f"{verdicts.count(Verdict.HOLDS)} of {len(verdicts)}"
    said = f"{_value(by)}, n {_counted(by)}: {_listed(by['where'])}"
    return str(result["claim"]), of, str(result["verdict"]), held, bound, said


def _figure(result: Row) -> str:
    """What is compared: "mean_ms / that of nodes 1"."""
    named = f"{result['figure']} per {result['per']}" if result["per"] else str(result["figure"])
    over = {name: value for name, value in (result["over"] or {}).items() if value != ANY}
    return f"{named} / that of {_listed(over)}" if result["over"] else named


def _value(comparison: Row) -> str:
    return with_interval(comparison["value"], comparison["ci95"])


def _counted(comparison: Row) -> str:
    return " / ".join(map(str, comparison["n"])) or EN_DASH


def _listed(values: Row) -> str:
    """ "2 nodes, read, 1KiB": a row's values in words; those that are unknown left out."""
    known = {name: each for name, each in values.items() if each not in (None, "", "unknown", {})}
    return ", ".join(_written(name, value) for name, value in known.items())


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


def _json(comparison: Row) -> dict[str, Any]:
    """Figures to six digits, probabilities to three."""
    ci95 = comparison["ci95"]
    return {
        **comparison,
        "value": float(f"{comparison['value']:.6g}"),
        "ci95": ci95 and [float(f"{bound:.6g}") for bound in ci95],
        **{name: float(f"{comparison[name]:.3g}") for name in ("p", "p_corrected")},
    }
