"""The limits that the search finds on real clusters are those that were planted in the store."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.experiments.commands import document_of, run, study
from tests.experiments.envelope.test_search import steps
from wanlat.bundle.documents import Envelopes, Points
from wanlat.experiments.envelope.search import Axis

AXIS = Axis("rtt", 50.0, 800.0, 0.03)
STUDY = """
endpoints: [GetObject, PutObject]
resources: false
envelope:
  promise: {deadline: 600ms, rate: 20, share: 80%, window: 600ms, cut: 0ms, recovery: 0s}
  rtt: {low: 50ms, high: 800ms, precision: 3%}
  settle: 200ms
  regions: null
matrix:
  - options.quorum.refuse_above: [400]
    options.quorum.refuse_percent: [100]
    options.quorum.refuse_until: [240]
  - options.quorum.refuse_above: [450]
    options.quorum.refuse_percent: [60]
    options.quorum.refuse_until: [450]
"""


@pytest.mark.minutes
def test_planted_limits_and_hysteresis_are_found_within_3_percent(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    done = run(study(tmp_path, STUDY), "--jobs", "2", out=bundle)
    assert done.returncode == 0, done.stderr
    points = document_of(bundle, Points)
    assert len(points.points) == 2
    for point in points.points:
        document = document_of(bundle / point.directory, Envelopes)
        (mine,) = document.systems
        (limit,) = mine.limits
        assert mine.is_complete
        assert limit.inside is not None
        assert limit.outside is not None
        planted_ms = point.values["options.quorum.refuse_above"]
        back_ms = point.values["options.quorum.refuse_until"]
        # What it refuses takes longer than the RTT, by what the store and this machine need: some
        # milliseconds, on a busy one, which are less than 3 % of limits as far away as these.
        assert math.sqrt(limit.inside * limit.outside) == pytest.approx(planted_ms, rel=0.03)
        assert limit.has_hysteresis == (back_ms < planted_ms)
        # The greatest at which it held, which is up to 3 % below.
        assert limit.back is not None
        assert 0.95 * back_ms <= limit.back <= 1.01 * back_ms
        trials = sum(len(test.trials) for test in mine.tests)
        of_grid = sum(5 if rtt_ms <= planted_ms else 2 for rtt_ms in steps(AXIS))
        assert trials <= of_grid / 3, "far more than the search alone allows"
