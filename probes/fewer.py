"""A plan with fewer samples of some of its turns, as shuffled as before."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from wanlat.probes.plan import Placement, Plan, Request

Turn = tuple[str, Placement]
"""An endpoint and a placement: what a plan measures the same number of times."""


def fewer(plan: Plan, samples: Mapping[Turn, int]) -> Plan:
    """Return the plan with at most so many samples of each turn; of others, all.

    Which of a turn's requests stay is drawn, so that they lie all over the plan: with the first
    ones, a turn of few samples would be measured at the beginning only. What none of the requests
    that stay has a use for is not prepared. The same arguments give the same plan.
    """
    measure = fewer_measured(plan.measure, samples, plan.seed)
    if len(measure) == len(plan.measure):
        return plan
    return replace(plan, prepare=_needed(plan.prepare, (*plan.warmup, *measure)), measure=measure)


def fewer_measured(
    measure: Sequence[Request], samples: Mapping[Turn, int], seed: int
) -> tuple[Request, ...]:
    """Return at most so many requests of each turn, in the order of the plan."""
    of_turn: defaultdict[Turn, list[int]] = defaultdict(list)
    for place, request in enumerate(measure):
        of_turn[request.called, request.placement].append(place)
    kept: set[int] = set()
    for turn, places in of_turn.items():
        wanted = min(samples.get(turn, len(places)), len(places))
        kept.update(random.Random(f"{seed}/fewer/{'/'.join(turn)}").sample(places, wanted))
    return tuple(request for place, request in enumerate(measure) if place in kept)


def _needed(prepare: Sequence[Request], later: Sequence[Request]) -> tuple[Request, ...]:
    keys = {(request.bucket, request.key) for request in later if request.key is not None}
    prefixes = tuple({request.prefix for request in later if request.prefix is not None})
    return tuple(
        request
        for request in prepare
        if request.key is None
        or (request.bucket, request.key) in keys
        or request.key.startswith(prefixes)
    )
