"""How often `wanlat compare` is wrong: pairs of generated runs, judged by its default gate.

    python -m benchmarks.compare [--pairs 200]

How often does the gate fail where nothing changed, where the second start draws other shares of
the same ways, and where one endpoint of ten changed (docs/compare.md)? Requests are drawn from a
seed: each takes the round trips of its way, 3 ms (0.7 less without distance), noise of its own and
of its RTT step; 2 % stall for 40 ms. The packet record knows two requests of five, and one path in
50 is one round trip too long. Ends with 1 when more than one pair of 20 fails where nothing
changed, or when one round trip more in all of 225 requests is found in less than 95 %.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import NamedTuple
from unittest import mock

import numpy as np

from benchmarks.command import markdown, positive
from wanlat.analysis.compare import Kind, Thresholds, differences
from wanlat.analysis.compare.judge import Rules, judge
from wanlat.analysis.figures.round_trips import Points, RoundTrips
from wanlat.analysis.stats.round_trips import estimate
from wanlat.analysis.stats.slopes import Indexes, Values

MOST_FALSE, LEAST_FOUND = 0.05, 0.95
RULES = Rules(Thresholds(), (Kind.ROUND_TRIPS, Kind.FAILURES))
AT_MS = 100.0
NO_RULE = 2.0
"""As `differences.PRESENT`: no run has a way that so great a share goes, so none is shared."""


class Way(NamedTuple):
    """What a `share` of an endpoint's requests does."""

    share: float
    round_trips: float
    own_ms: float = 3.0


class Study(NamedTuple):
    """Each RTT is taken `repeats` times, with `samples` requests an endpoint."""

    rtts_ms: Sequence[float]
    repeats: int
    samples: int


Store = Sequence[Sequence[Way]]
"""The ways of each endpoint."""


class Question(NamedTuple):
    """Draws the stores of a pair of runs; where `changed`, the first endpoint did, alone."""

    title: str
    study: Study
    stores: Callable[[np.random.Generator], tuple[Store, Store]]
    changed: bool = True


SHIPPED = Study((0, 25, 50, 100, 200), 3, 15)
IN_CI = Study((0, 50, 100), 2, 10)  # examples/round-trips-in-ci.yaml
HURRIED = SHIPPED._replace(samples=1)
KINDS: Store = (
    *([Way(1, trips)] for trips in (0, 1, 1.5, 5)),
    *([Way(share, 2), Way(1 - share, 3)] for share in (0.7, 0.5)),
    [Way(0.9, 1), Way(0.1, 11)],
    [Way(0.7, 1), Way(0.3, 1, own_ms=43.0)],
    [Way(1 / 3, trips) for trips in (1, 2, 3)],
)
LIKE_GARAGE: Store = (
    [Way(0.6, 2), Way(0.3, 3), Way(0.1, 4)],
    [Way(0.4, 1), Way(0.4, 2), Way(0.2, 3)],
    [Way(0.5, 2), Way(0.3, 3), Way(0.2, 4)],
    [Way(0.4, 3), Way(0.3, 2), Way(0.2, 4), Way(0.1, 1)],
    [Way(0.4, 2), Way(0.4, 1), Way(0.2, 3)],
)


def change(
    title: str, study: Study, old: Sequence[tuple[float, float]], new: Sequence[tuple[float, float]]
) -> Question:
    """An endpoint beside those of KINDS goes other ways (share, round trips) in NEW."""
    one, other = ((tuple(Way(*way) for way in ways), *KINDS) for ways in (old, new))
    return Question(title, study, lambda _: (one, other))


def other_start(points: float) -> Question:
    """Shares by Dirichlet's distribution, that of 40 % with a deviation of so many points."""
    weight = 0.4 * 0.6 / (points / 100) ** 2 - 1

    def started(rng: np.random.Generator) -> Store:
        shares = [rng.dirichlet([weight * way.share for way in ways]) for ways in LIKE_GARAGE]
        return [
            [way._replace(share=share) for way, share in zip(ways, drawn, strict=True)]
            for ways, drawn in zip(LIKE_GARAGE, shares, strict=True)
        ]

    title = f"another start: 40 % varies by {points:g} points"
    return Question(title, SHIPPED, lambda rng: (started(rng), started(rng)), changed=False)


TWO_WAYS = [(0.7, 2), (0.3, 3)]
QUESTIONS = (
    Question("nothing changed", SHIPPED, lambda _: ([*KINDS, *KINDS],) * 2, changed=False),
    *map(other_start, (7, 11, 15)),
    *(change("one more in all", each, [(1, 2)], [(1, 3)]) for each in (SHIPPED, IN_CI, HURRIED)),
    change("the same where 70 : 30 go two ways", SHIPPED, TWO_WAYS, [(0.7, 3), (0.3, 4)]),
    *(change("in 30 % of the requests", each, [(1, 2)], TWO_WAYS) for each in (SHIPPED, IN_CI)),
    *(change("in 20 %", each, [(1, 2)], [(0.8, 2), (0.2, 3)]) for each in (SHIPPED, IN_CI)),
    change("a slow mode from 30 % to 60 %", SHIPPED, TWO_WAYS, [(0.4, 2), (0.6, 3)]),
)


def run(rng: np.random.Generator, study: Study, store: Store) -> list[RoundTrips]:
    """A run of `study`, an entry an endpoint."""
    levels = rng.permutation(np.repeat(np.array(study.rtts_ms, float), study.repeats))
    step = np.repeat(np.arange(levels.size), study.samples)
    rtt = (levels + rng.uniform(0.08, 0.12, levels.size))[step]
    return [_endpoint(rng, rtt, step, ways) for ways in store]


def _endpoint(
    rng: np.random.Generator, rtt: Values, step: Indexes, ways: Sequence[Way]
) -> RoundTrips:
    n, shares = rtt.size, [way.share for way in ways]
    _, trips, own_ms = np.array(ways)[rng.choice(len(ways), n, p=shares)].T
    noise_ms = rng.exponential(0.4, n) + rng.exponential(0.6, n)[step]
    stall_ms = 40.0 * (rng.random(n) < 0.02)
    latency = rtt * trips + own_ms - 0.7 * (rtt < 1) + noise_ms + stall_ms
    chain = np.where(rng.random(n) < 0.4, trips + (rng.random(n) < 0.02), np.nan)
    paths = Counter(chain[~np.isnan(chain)].tolist()).most_common(1)
    found = estimate(rtt, latency, step, seed=0)
    entry = dict.fromkeys(field.name for field in fields(RoundTrips)) | {
        "n": n,
        "failed": 0,
        "estimate": found,
        "why": found.why,
        "chain_round_trips": paths[0][0] if paths else None,
        "points": Points(rtt, latency, step, chain),
    }
    return RoundTrips(**entry)


def failing(old: Sequence[RoundTrips], new: Sequence[RoundTrips], record: bool) -> set[int]:
    """The places of the endpoints that fail the default gate, with the packet `record` or not."""
    changes = []
    for pair in zip(old, new, strict=True):
        seen = [each if record else replace(each, chain_round_trips=None) for each in pair]
        one, other = (
            differences.of_round_trips(*each, AT_MS, RULES.thresholds.round_trips)
            for each in (seen, seen[::-1])
        )
        changes.append(differences.of_figures(one, other, RULES.thresholds))
    judge(changes, RULES)
    return {place for place, of in enumerate(changes) if any(each.fails for each in of)}


def answers(number: int, pairs: int) -> list[float]:
    """Shares of the pairs: found by the slope alone, with the record, without the rule; wrongly."""
    _, study, stores, changed = QUESTIONS[number]
    counts = np.zeros(4)
    for pair in range(pairs):
        rng = np.random.default_rng([1, number, pair])
        old, new = (run(rng, study, store) for store in stores(rng))
        found = [failing(old, new, record) for record in (False, True)]
        with mock.patch.object(differences, "PRESENT", NO_RULE):
            found.append(failing(old, new, record=True))
        right = {0} if changed else set(range(len(old)))
        counts += [*(bool(places & right) for places in found), bool(found[1] - right)]
    return (counts / pairs).tolist()


def main() -> int:
    """Print how often the gate failed; exit code 1 where that is worse than it should be."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=positive, default=200, help="default: %(default)s")
    pairs = parser.parse_args().pairs
    head = ("what changed", "requests", "slope alone", "with the packet record")
    rows = [(*head, "without the rule of ways", "another endpoint")]
    shares = []
    for number, (title, (rtts, repeats, samples), *_) in enumerate(QUESTIONS):
        shares.append(answers(number, pairs))
        requests = str(len(rtts) * repeats * samples)
        rows.append((title, requests, *(f"{100 * share:.1f}" for share in shares[-1])))
        print(f"{number + 1} of {len(QUESTIONS)}: {title}", file=sys.stderr)
    print(f"Of {pairs} pairs each, the gate failed in percent:\n\n{markdown(rows)}")
    found = next(n for n, question in enumerate(QUESTIONS) if question.changed)
    is_fine = max(shares[0][:2]) <= MOST_FALSE and min(shares[found][:2]) >= LEAST_FOUND
    return 0 if is_fine else 1


if __name__ == "__main__":
    sys.exit(main())
