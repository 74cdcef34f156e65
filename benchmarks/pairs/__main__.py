"""How often `wanlat compare` fails where nothing changed: clusters of one store, two by two.

    python -m benchmarks.pairs docs/results/round-trips/clusters/five-sites

Every cluster of each bundle is compared with every other, both ways, by the default gate; and every
half of the clusters with the other half, as replicates are (of five, four).
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

from benchmarks.comparison import finish, parser, run, table
from wanlat.analysis.compare import Thresholds, compare
from wanlat.analysis.compare.conditions import clusters_of, read
from wanlat.bundle.run import Run

Pairs = Iterator[tuple[Run, Run]]
COLUMNS = {
    "bundle": "{bundle}",
    "store": "{system}",
    "compared": "{compared}",
    "pairs": "{pairs}",
    "failed": "{failed}",
    "for": "{endpoints}",
}


def halves(whole: Run, clusters: Sequence[Run]) -> Pairs:
    """Every way to part the clusters in two, of which each has the same number, both ways."""
    numbers = range(len(clusters) // 2 * 2)
    for rest in combinations(numbers[1:], len(numbers) // 2 - 1):
        one = {0, *rest}
        sides = (one, set(numbers) - one)
        first, second = (
            replace(whole, derived={"clusters": [clusters[n] for n in sorted(side)]})
            for side in sides
        )
        yield from ((first, second), (second, first))


def _compare(options: argparse.Namespace) -> int:
    rows: list[dict[str, Any]] = []
    for directory in options.bundles:
        whole = read(directory)
        for system in dict.fromkeys(each.systems[0].system for each in clusters_of(whole)):
            mine = [each for each in clusters_of(whole) if each.systems[0].system == system]
            rows.append(_row(directory, system, "one with one", permutations(mine, 2)))
            rows.append(_row(directory, system, "half with half", halves(whole, mine)))
    tables = table(rows, COLUMNS)
    return finish(options, Path(__file__).parent, rows=rows, tables=tables, claims=[])


def _row(directory: Path, system: str, compared: str, pairs: Pairs) -> dict[str, Any]:
    """Return in how many comparisons a store failed, and for which endpoints."""
    found = [compare(*pair, Thresholds()).failing for pair in pairs]
    endpoints = Counter(each["endpoint"] for failing in found for each in failing)
    named = ", ".join(f"{name} ({count})" for name, count in endpoints.most_common())
    row = {"bundle": directory.name, "system": system, "compared": compared, "pairs": len(found)}
    return row | {"failed": sum(map(bool, found)), "endpoints": named}


if __name__ == "__main__":
    made = parser("pairs", __doc__, rounds=1)
    made.add_argument("bundles", nargs="+", type=Path, metavar="BUNDLE")
    run(_compare, made.parse_args())
