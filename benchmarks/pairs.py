"""How often `wanlat compare` fails where nothing changed: clusters of one store, two by two.

    wanlat run examples/round-trips-in-ci.yaml --systems garage --replicates 8 -o garage
    python -m benchmarks.pairs garage

Every cluster of each bundle is compared with every other, both ways, by the default gate; and every
half of the clusters with the other half, as replicates are.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, permutations
from pathlib import Path

from benchmarks.comparison import markdown
from wanlat.analysis.bundle import Bundle
from wanlat.analysis.compare import Comparison, Thresholds, compare
from wanlat.analysis.compare.conditions import clusters_of, read


def halves(whole: Bundle) -> Iterator[tuple[Bundle, Bundle]]:
    """Every way to part the clusters in two, of which each has the same number."""
    clusters = clusters_of(whole)
    numbers = range(len(clusters) // 2 * 2)
    for rest in combinations(numbers[1:], len(numbers) // 2 - 1):
        one = {0, *rest}
        sides = (one, set(numbers) - one)
        first, second = (
            replace(whole, derived={"clusters": [clusters[n] for n in sorted(side)]})
            for side in sides
        )
        yield first, second


def failing(pairs: Iterator[tuple[Bundle, Bundle]]) -> tuple[int, int, Counter[str]]:
    """How many comparisons there were, how many failed, and of which endpoints."""
    found: Sequence[Comparison] = [compare(*pair, Thresholds()) for pair in pairs]
    failed = [each for each in found if not each.passed]
    return len(found), len(failed), Counter(e["endpoint"] for each in failed for e in each.failing)


def main() -> None:
    """Print how often the gate failed, of each bundle."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bundles", nargs="+", type=Path, metavar="BUNDLE")
    rows = [["bundle", "clusters", "compared", "pairs", "failed", "endpoints"]]
    for directory in parser.parse_args().bundles:
        whole = read(directory)
        clusters = clusters_of(whole)
        ways = {
            "one with one": permutations(clusters, 2),
            "half with half": (pair for both in halves(whole) for pair in (both, both[::-1])),
        }
        for title, pairs in ways.items():
            n, failed, endpoints = failing(pairs)
            named = ", ".join(f"{name} ({count})" for name, count in endpoints.most_common())
            counts = (str(len(clusters)), title, str(n), str(failed))
            rows.append([directory.name, *counts, named])
    print(markdown(rows))


if __name__ == "__main__":
    main()
