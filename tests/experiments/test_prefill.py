"""Which prefilled objects are read back, and when nodes count as idle afterwards."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from wanlat.experiments.config.load import PrefillSpec
from wanlat.experiments.workloads.prefill import sampled
from wanlat.experiments.workloads.settle import settle


@pytest.mark.parametrize("total", [0, 1, 2, 3, 100, 101, 100_000])
def test_the_first_and_the_last_object_are_read_back_and_others_between(total: int) -> None:
    read = sampled(PrefillSpec.model_validate({"objects": total}), 1024, seed=1)
    assert len(read) == len(set(read)) == min(total, 100)
    assert not total or {("wanlat", 0), ("wanlat", total - 1)} <= set(read)


def test_all_buckets_are_read_back_and_fewer_objects_where_they_are_large() -> None:
    spec = PrefillSpec.model_validate({"objects": 1000, "buckets": 3})
    assert {bucket for bucket, _ in sampled(spec, 1024, 1)} == {"wanlat", "wanlat-2", "wanlat-3"}
    assert len(sampled(spec, 100 << 20, 1)) == 2


@pytest.mark.parametrize(
    ("cores", "before", "limit_s", "waited_s", "is_idle"),
    [
        pytest.param(lambda _: 0.02, 0.0, 60, 2.0, True, id="idle for a while"),
        pytest.param(lambda t: 1.5 if t < 10 else 0.02, 0.0, 60, 12.0, True, id="over a window"),
        pytest.param(lambda t: 1.9 if t < 5 else 1.2, 1.0, 60, 7.0, True, id="as before"),
        pytest.param(lambda _: 0.5, 0.1, 8, 8.0, False, id="nobody waits for ever"),
    ],
)
def test_nodes_are_settled_once_they_are_idle_or_as_before(
    cores: Callable[[float], float], before: float, limit_s: float, waited_s: float, is_idle: bool
) -> None:
    now_s = used_s = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now_s, used_s
        used_s += seconds * cores(now_s)
        now_s += seconds

    clock = {"clock": lambda: now_s, "sleep": sleep}
    found = settle(lambda: used_s, before, limit_s, lambda *_: None, **clock)
    assert (found.seconds, found.is_idle, found.cores_before) == (waited_s, is_idle, before)
    assert found.cores == cores(waited_s)
