"""What of an interrupted prefill is gone on with, and what is not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from wanlat.experiments.config.prefill import PrefillSpec
from wanlat.experiments.workloads.prefill import sampled
from wanlat.experiments.workloads.settle import Settled, settle

PREFILL = {"objects": 100}


@pytest.mark.parametrize("total", [1, 2, 3, 50, 100, 101, 100_000])
def test_the_first_and_the_last_object_are_read_back_and_others_between(total: int) -> None:
    spec = PrefillSpec.model_validate({"objects": total})
    read = sampled(spec, 1024, seed=1)
    assert len(read) == len(set(read)) == min(total, 100)
    assert {("wanlat", 0), ("wanlat", total - 1)} <= set(read)


def test_all_buckets_are_read_back_and_fewer_objects_where_they_are_large() -> None:
    spec = PrefillSpec.model_validate({"objects": 1000, "buckets": 3})
    assert {bucket for bucket, _ in sampled(spec, 1024, 1)} == {"wanlat", "wanlat-2", "wanlat-3"}
    assert len(sampled(spec, 100 << 20, 1)) == 2
    assert sampled(PrefillSpec.model_validate({"objects": 0}), 1024, 1) == []


def settled(use: Callable[[float], float], *, before: float = 0.0, limit_s: float = 60) -> Settled:
    """Wait for nodes that use so many cores at each instant (s), on a clock of our own."""
    now_s, used_s = 0.0, 0.0

    def sleep(seconds: float) -> None:
        nonlocal now_s, used_s
        used_s += seconds * use(now_s)
        now_s += seconds

    told: list[float] = []
    return settle(
        lambda: used_s,
        before,
        limit_s,
        lambda waited_s, _: told.append(waited_s),
        clock=lambda: now_s,
        sleep=sleep,
    )


def test_nodes_are_at_rest_once_they_were_idle_for_a_while() -> None:
    assert settled(lambda _: 0.02) == Settled(2.0, 0.0, 0.02, is_quiet=True)
    # Busy for 10 s, and idle over a whole window after that.
    assert settled(lambda t: 1.5 if t < 10 else 0.02).seconds == 12.0


def test_nodes_that_are_never_idle_are_at_rest_when_they_are_as_before() -> None:
    assert settled(lambda t: 1.9 if t < 5 else 1.2, before=1.0).seconds == 7.0


def test_nobody_waits_for_ever_and_what_goes_on_is_known() -> None:
    assert settled(lambda _: 0.5, before=0.1, limit_s=8) == Settled(8.0, 0.1, 0.5, is_quiet=False)
