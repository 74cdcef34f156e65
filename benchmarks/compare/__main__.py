"""How often `wanlat compare` is wrong: pairs of generated runs, judged by its default gate.

    python -m benchmarks.compare [--pairs 100]

How often does it fail where nothing changed, where each start draws other shares of the same ways,
and where one endpoint of ten changed (docs/results/instrument)? Requests are drawn from a seed:
each takes the round trips of its way, 3 ms (0.7 less without distance), noise of its own and of its
RTT step; 2 % stall for 40 ms. The packet record knows two requests of five, one path in 50 a round
trip too long. Ends with 1 when more than 5 % of the pairs fail where nothing changed, or less than
95 % with one round trip more in all of 225 requests.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from benchmarks.comparison import Claim, finish, parser, positive, run, table
from wanlat.analysis.compare import Kind, Thresholds, differences
from wanlat.analysis.compare.judge import QUANTITIES, Rules, judge
from wanlat.analysis.figures.round_trips import Points, RoundTrips
from wanlat.analysis.stats.round_trips import estimate

RULES = Rules(Thresholds(), (Kind.ROUND_TRIPS, Kind.FAILURES))
Study = tuple[Sequence[float], int, int]
"""RTTs, how often each is taken, and requests an endpoint each time."""
Store = Sequence[Sequence[tuple[float, ...]]]
"""Of each way of each endpoint: the share of the requests that go it, round trips, other ms."""

Run = Sequence[RoundTrips]
"""What comparisons look at, of each endpoint."""

SHIPPED: Study = ((0, 25, 50, 100, 200), 3, 15)
IN_CI: Study = ((0, 50, 100), 2, 10)  # examples/round-trips-in-ci.yaml
KINDS: Store = (
    *([(1, trips, 3)] for trips in (0, 1, 1.5, 5)),
    *([(share, 2, 3), (1 - share, 3, 3)] for share in (0.7, 0.5)),
    [(0.9, 1, 3), (0.1, 11, 3)],
    [(0.7, 1, 3), (0.3, 1, 43)],
    [(1 / 3, trips, 3) for trips in (1, 2, 3)],
)
LIKE_GARAGE: Store = (
    [(0.6, 2, 3), (0.3, 3, 3), (0.1, 4, 3)],
    [(0.4, 1, 3), (0.4, 2, 3), (0.2, 3, 3)],
    [(0.5, 2, 3), (0.3, 3, 3), (0.2, 4, 3)],
    [(0.4, 3, 3), (0.3, 2, 3), (0.2, 4, 3), (0.1, 1, 3)],
    [(0.4, 2, 3), (0.4, 1, 3), (0.2, 3, 3)],
)


COLUMNS = {
    "what changed": "{what}",
    "requests": "{requests}",
    "slope alone": "{slope:.0%}",
    "with the record": "{record:.0%}",
    "no rule": "{no_rule:.0%}",
    "elsewhere": "{elsewhere:.0%}",
}


class Question(NamedTuple):
    """Stores that differ in nothing or in the first endpoint; starts vary a 40 % by `points`.

    With `clusters` both are measured on so many.
    """

    title: str
    study: Study
    old: Store
    new: Store
    points: int = 0
    clusters: int = 1


def questions() -> Iterator[Question]:
    """What is asked, in the order in which it is printed."""
    yield Question("nothing changed", SHIPPED, [*KINDS, *KINDS], [*KINDS, *KINDS])
    for points in (7, 11, 15):
        yield Question(f"start: ± {points} points", SHIPPED, LIKE_GARAGE, LIKE_GARAGE, points)
    changes: tuple[tuple[str, float, float, list[Study]], ...] = (
        ("one more in all", 2, 3, [SHIPPED, IN_CI, (SHIPPED[0], 3, 1)]),
        ("the same where 70 : 30 go two ways", 2.3, 3.3, [SHIPPED]),
        ("in 30 % of the requests", 2, 2.3, [SHIPPED, IN_CI]),
        ("in 20 %", 2, 2.2, [SHIPPED, IN_CI]),
        ("a slow mode from 30 % to 60 %", 2.3, 2.6, [SHIPPED]),
    )
    for title, *means, studies in changes:  # 2.3: 70 % of the requests make two, 30 % three
        old, new = ([(1 - each % 1, each // 1, 3), (each % 1, each // 1 + 1, 3)] for each in means)
        yield from (Question(title, study, (old, *KINDS), (new, *KINDS)) for study in studies)
    first, *others = LIKE_GARAGE
    more = ([(share, trips + 1, ms) for share, trips, ms in first], *others)
    for points in (7, 15):
        title = f"5 clusters, start: ± {points} points"
        yield Question(title, IN_CI, LIKE_GARAGE, LIKE_GARAGE, points, 5)
        yield Question(f"{title}, one more in all", IN_CI, LIKE_GARAGE, more, points, 5)
    seldom, often = ([(1 - share, 2, 3), (share, 3, 3)] for share in (0.3, 0.6))
    slow = (seldom, *others), (often, *others)
    yield Question("5 clusters, slow mode from 30 % to 60 %", IN_CI, *slow, points=7, clusters=5)


def simulated(rng: np.random.Generator, store: Store, asked: Question) -> list[RoundTrips]:
    """A run: of each endpoint what comparisons look at."""
    rtts_ms, repeats, samples = asked.study
    levels = rng.permutation(np.repeat(np.array(rtts_ms, dtype=float), repeats))
    step = np.repeat(np.arange(levels.size), samples)
    rtt, n = (levels + rng.uniform(0.08, 0.12, levels.size))[step], step.size
    entry: dict[str, Any] = dict.fromkeys(field.name for field in fields(RoundTrips))
    made = []
    for ways in store:
        shares, trips, own_ms = np.array(ways).T
        if asked.points:
            shares = rng.dirichlet(shares * (0.4 * 0.6 / (asked.points / 100) ** 2 - 1))
        way = rng.choice(shares.size, n, p=shares)
        latency = rtt * trips[way] + own_ms[way] - 0.7 * (rtt < 1) + 40.0 * (rng.random(n) < 0.02)
        latency += rng.exponential(0.4, n) + rng.exponential(0.6, levels.size)[step]
        path = np.where(rng.random(n) < 0.4, trips[way] + (rng.random(n) < 0.02), np.nan)
        paths = Counter(path[~np.isnan(path)].tolist()).most_common(1)
        entry["estimate"] = found = estimate(rtt, latency, step, seed=0)
        entry |= {"n": n, "failed": 0, "why": found.why, "points": Points(rtt, latency, step, path)}
        made.append(RoundTrips(**entry | {"chain_round_trips": paths[0][0] if paths else None}))
    return made


def failing(old: Sequence[Run], new: Sequence[Run]) -> set[int]:
    """The places of the endpoints that fail the default gate, of one run or cluster or several."""

    def figures(mine: Run, theirs: Run) -> differences.Figures:
        of = theirs if len(mine) == 1 else mine
        each = [
            differences.of_round_trips(*pair, 100.0, RULES.thresholds.round_trips)
            for pair in zip(mine, of, strict=True)
        ]
        found = each[0] if len(each) == 1 else differences.over_clusters(each)
        return {key: found[key] for key in found if QUANTITIES[key].kind in RULES.gate}

    # By endpoints, of each all clusters.
    by_endpoint = zip(zip(*old, strict=True), zip(*new, strict=True), strict=True)
    pairs = [(figures(*pair), figures(*pair[::-1])) for pair in by_endpoint]
    changes = [differences.of_figures(*pair, RULES.thresholds) for pair in pairs]
    judge(changes, RULES)
    return {place for place, of in enumerate(changes) if any(each.fails for each in of)}


def answer(number: int, asked: Question, pairs: int) -> list[float]:
    """The shares of pairs that fail by slopes, with the record, without the rule; elsewhere."""
    counts = np.zeros(4)
    there = {0} if asked.old != asked.new else set(range(len(asked.old)))
    for pair in range(pairs):
        rng = np.random.default_rng([number, pair])
        old, new = (
            [simulated(rng, store, asked) for _ in range(asked.clusters)]
            for store in (asked.old, asked.new)
        )
        bare = [
            [[replace(each, chain_round_trips=None) for each in one] for one in of]
            for of in (old, new)
        ]
        found = [failing(*bare), failing(old, new)]
        with mock.patch.object(differences, "PRESENT", 2.0):  # no way has twice all requests
            found.append(failing(old, new))
        counts += [*(bool(places & there) for places in found), bool(found[1] - there)]
    return [float(count) / pairs for count in counts]


def _compare(options: argparse.Namespace) -> int:
    rows: list[dict[str, Any]] = []
    for number, asked in enumerate(questions()):
        n = len(asked.study[0]) * asked.study[1] * asked.study[2]
        found = answer(number, asked, options.pairs)
        shares = dict(zip(("slope", "record", "no_rule", "elsewhere"), found, strict=True))
        rows.append({"what": asked.title, "requests": n, **shares})
        print(*rows[-1].values(), sep="  ", file=sys.stderr, flush=True)
    at = {(row["what"], row["requests"]): (row["slope"], row["record"]) for row in rows}
    false, found = max(at["nothing changed", 225]), min(at["one more in all", 225])
    claims = [
        Claim("nothing changed: at most 5 % fail", f"{false:.0%}", false <= 0.05),
        Claim("one more in all of 225: at least 95 % fail", f"{found:.0%}", found >= 0.95),
    ]
    tables, more = table(rows, COLUMNS), {"pairs": options.pairs}
    return finish(options, Path(__file__).parent, rows=rows, tables=tables, claims=claims, **more)


if __name__ == "__main__":
    made = parser("compare", __doc__, rounds=1)
    made.add_argument("--pairs", type=positive, default=100, help="default: %(default)s")
    run(_compare, made.parse_args())
