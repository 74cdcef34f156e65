"""What a conclusion is made of: clauses, each of comparisons, each a ratio with a verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wanlat.analysis.ratios import Ratio, Verdict
from wanlat.analysis.sizes import FRESH, At

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from wanlat.analysis.grid import Grid
    from wanlat.analysis.ratios import Estimate
    from wanlat.analysis.statistics import Values

MUCH = 0.05
"""Mean and median "differ much" from here on: five times the "about 1 %" that is said of Bob's."""
LIMIT_BYTES = 4 * 2**20
"""gRPC's usual longest message, which the documents suspect; with an object of that it is longer.
"""
BEHIND_NGINX, DIRECT = "minio-nginx", "minio"
"""The documents' MinIO was behind nginx; Bob was asked directly."""
PUBLISHED = "published"


@dataclass(frozen=True)
class Time:
    """What one operation takes on one system; `values_ms` are None where nobody kept them."""

    at: At
    mean: Estimate
    median: Estimate
    skew: Ratio
    values_ms: Values | None


@dataclass(frozen=True)
class Part:
    """One comparison of a conclusion. `ratio` is of means, `of_medians` the same of medians.

    `verdict` is of the means, on what the clause says of the ratio.
    """

    at: At
    ratio: Ratio
    of_medians: Ratio | None
    verdict: Verdict
    verdict_of_medians: Verdict | None

    def to_json(self) -> dict[str, Any]:
        """The entry of summary.json."""
        medians = self.of_medians
        return {
            "nodes": self.at.nodes,
            "operation": self.at.operation,
            "object_bytes": self.at.object_bytes,
            **{k: v for k, v in (("keys", self.at.keys), ("placement", self.at.placement)) if v},
            **({"others": dict(self.at.others)} if self.at.others else {}),
            "means": self.ratio.to_json(),
            "medians": None if medians is None else medians.to_json(),
            "verdict": str(self.verdict),
            "verdict_of_medians": self.verdict_of_medians and str(self.verdict_of_medians),
        }


@dataclass(frozen=True)
class Clause:
    """One thing that a conclusion says of every one of its parts.

    `ratio_of` says what the ratios are, `says` what the clause says of them, and `bounds` are the
    ratios at which that changes. A `counts` False clause is there to compare with, and decides
    nothing.
    """

    text: str
    ratio_of: str
    says: str
    parts: tuple[Part, ...]
    bounds: tuple[float, ...] = (1.0,)
    counts: bool = True

    def verdict(self, nodes: int | None = None) -> Verdict:
        """Does not hold where one part does not; holds where all do; without parts not decided."""
        parts = [part.verdict for part in self.parts if nodes in (None, part.at.nodes)]
        if Verdict.FAILS in parts:
            return Verdict.FAILS
        return Verdict.HOLDS if parts and set(parts) == {Verdict.HOLDS} else Verdict.UNDECIDED

    @property
    def deciding(self) -> Part | None:
        """The part that the verdict rests on: that it fails most clearly, else holds least clearly.

        None where there is no part.
        """
        verdict = self.verdict()
        if verdict is Verdict.FAILS:
            failing = [part for part in self.parts if part.verdict is Verdict.FAILS]
            return max(failing, key=self._distance)
        deciding = [part for part in self.parts if part.verdict is verdict]
        return min(deciding, key=self._distance, default=None)

    def _distance(self, part: Part) -> float:
        """How far the ratio of `part` is from the nearest bound, as a logarithm."""
        return min(abs(math.log(part.ratio.estimate / bound)) for bound in self.bounds)

    def to_json(self) -> dict[str, Any]:
        """The entry of summary.json."""
        return {
            "clause": self.text,
            "ratio_of": self.ratio_of,
            "says": self.says,
            "counts": self.counts,
            "verdict": str(self.verdict()),
            "parts": [part.to_json() for part in self.parts],
        }


@dataclass(frozen=True)
class Conclusion:
    """One of the documents' sentences, clause by clause."""

    key: str
    text: str
    clauses: tuple[Clause, ...]

    @property
    def nodes(self) -> list[int]:
        """The numbers of nodes that it is about."""
        return sorted({p.at.nodes or 0 for clause in self.clauses for p in clause.parts})

    def verdict(self, nodes: int | None = None) -> Verdict:
        """Holds where every clause does, on clusters of `nodes` (None: all)."""
        verdicts = [clause.verdict(nodes) for clause in self.clauses if clause.counts]
        if Verdict.FAILS in verdicts:
            return Verdict.FAILS
        return Verdict.HOLDS if set(verdicts) == {Verdict.HOLDS} else Verdict.UNDECIDED

    def counts(self, nodes: int | None = None) -> tuple[int, int]:
        """How many parts hold, of how many."""
        parts = [
            part
            for clause in self.clauses
            if clause.counts
            for part in clause.parts
            if nodes in (None, part.at.nodes)
        ]
        return sum(part.verdict is Verdict.HOLDS for part in parts), len(parts)

    def to_json(self) -> dict[str, Any]:
        """The entry of summary.json."""
        return {
            "key": self.key,
            "conclusion": self.text,
            "verdict": str(self.verdict()),
            "by_nodes": {str(nodes): str(self.verdict(nodes)) for nodes in self.nodes},
            "clauses": [clause.to_json() for clause in self.clauses],
        }


@dataclass(frozen=True)
class Conclusions:
    """The conclusions from each source: PUBLISHED, and ours against each MinIO that we measured.

    A block of a sweep's report (`wanlat.analysis.blocks`).
    """

    sources: Mapping[str, tuple[Conclusion, ...]]

    def to_json(self) -> dict[str, Any]:
        """The block of summary.json."""
        return {
            "definitions": {
                "verdict": "holds: every part does; does not hold: one part does not; by the 95 % "
                "interval of the ratio of means",
                "measured": "bootstrap-t of the logarithm of the ratio of two means; of mean / "
                "median of one sample the percentile bootstrap",
                PUBLISHED: "from stored estimates and their intervals by variance recovery on "
                "logarithms, for want of samples: of mean / median too wide, never too narrow",
                "much": MUCH,
                "limit_bytes": LIMIT_BYTES,
            },
            "sources": {
                name: [conclusion.to_json() for conclusion in conclusions]
                for name, conclusions in self.sources.items()
            },
        }

    def grids(self) -> Sequence[Grid]:
        """The verdicts, and the ratios behind them, side by side."""
        from wanlat.analysis.conclusions.table import grids_of

        return grids_of(self)

    def charts(self) -> Mapping[str, Figure]:
        """None: the ratios are in the chart of sizes."""
        return {}


def variant(at: At) -> str:
    """What tells parts of the same nodes, operation and size apart: placement, keys, others."""
    return ", ".join(
        [
            *([at.placement] if at.placement not in ("", "unknown") else []),
            *(["one key"] if at.keys not in ("", FRESH) else []),
            *(f"{name} {value}" for name, value in at.others),
        ]
    )
