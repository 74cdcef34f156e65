"""How long a search takes: the arithmetic of the plan, beside what searches took."""

from __future__ import annotations

import random

import pytest

from wanlat.experiments.config.study import load
from wanlat.experiments.envelope.extent import left_s, question_takes, search_takes, supposed
from wanlat.experiments.kinds.envelope import EnvelopeSpec

QUICK = EnvelopeSpec.model_validate(
    {
        "promise": {
            **{"deadline": "400ms", "rate": 10, "share": "80%", "window": "400ms"},
            **{"cut": "200ms", "recovery": "2s"},
        },
        "rtt": {"low": "10ms", "high": "300ms", "precision": "100%"},
        "settle": "200ms",
        "fails": "10%",
        "error": "10%",
    }
)
TOOK_S = 29.6
"""A search with this plan for a limit at 60 ms, on the reference store; of 8 networks."""


def shipped() -> EnvelopeSpec:
    spec = load("envelope").kind
    assert isinstance(spec, EnvelopeSpec)
    return spec


def test_the_range_of_a_search_has_what_one_took_and_the_half_hour_of_the_shipped_one() -> None:
    quick = search_takes(QUICK)
    assert quick.least < TOOK_S < quick.most
    assert TOOK_S / quick.least < 3 and quick.most / TOOK_S < 4
    whole = search_takes(shipped())
    assert whole.least < 10 * 60 and 25 * 60 < whole.most < 45 * 60


def test_a_range_is_that_of_its_trials_and_each_more_limit_takes_longer() -> None:
    spec, test = shipped(), shipped().test
    assert (test.trials(True), test.trials(False)) == (3, 2)
    assert test.trials(True, astray=1) == 6
    holds = supposed(spec.plan, 0.5)
    answers = spec.plan.rehearsed(random.Random(1), (), holds)
    for question, held in answers:
        promise, taken = spec.promise, question_takes(spec, question, held)
        trial_s = spec.settle.s + promise.window.s + promise.deadline.s
        assert taken.most > taken.least > test.trials(held) * trial_s
    without = spec.model_copy(update={"loss": None})
    assert search_takes(without).most < search_takes(spec).most
    killing = spec.model_copy(update={"kills": 6})
    assert search_takes(killing).least > search_takes(spec).least + 12


def test_what_is_left_gets_less_and_goes_by_how_long_it_took_so_far() -> None:
    spec, limits = shipped(), supposed(shipped().plan, 0.7)
    verdicts = [held for _, held in spec.plan.rehearsed(random.Random(3), (), limits)]
    assert left_s(spec, random.Random(3), verdicts, 900.0) == (0, 0.0)
    lefts = [
        left_s(spec, random.Random(3), verdicts[:done], 10.0 * done)
        for done in range(1, len(verdicts))
    ]
    assert lefts[-1][0] == 1 and lefts[0][0] > lefts[-1][0]
    assert lefts[0][1] > 10 * lefts[-1][1]
    slow = left_s(spec, random.Random(3), verdicts[:9], 200.0)[1]
    assert slow == pytest.approx(2 * left_s(spec, random.Random(3), verdicts[:9], 100.0)[1])
