"""A study of round trips before it is run: what it may ask for, in which order, with which keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from wanlat.commands.run import _capture
from wanlat.experiments.config.overrides import changed as with_changes
from wanlat.experiments.config.rtt_steps import RoundTripsSpec, check_rtt_steps
from wanlat.experiments.config.study import load
from wanlat.experiments.prepare import prepare
from wanlat.experiments.session import CaptureWanted
from wanlat.experiments.workloads.rtt_steps import schedule
from wanlat.probes.bob_plan import bob_steps
from wanlat.probes.method_plan import Call, Measured, method_steps
from wanlat.probes.plan import Request, StepsPlan
from wanlat.probes.s3_plan import S3Endpoint, s3_steps
from wanlat.topologies.errors import UserError
from wanlat.topologies.load import load as load_topology
from wanlat.topologies.resolve import resolve
from wanlat.topologies.units import Duration, Size

S3: tuple[S3Endpoint, ...] = ("ListObjects", "GetObject", "PutObject", "RemoveObject")


def test_every_rtt_is_a_step_equally_often_at_any_time_in_an_order_of_the_seed() -> None:
    rtts = [0, 25, 50, 100, 200]
    steps = schedule(rtts, 7, seed=3)
    assert Counter(steps) == dict.fromkeys(rtts, 7)
    for end in range(len(steps)):
        counted = Counter(steps[:end])
        times = [counted[rtt] for rtt in rtts]
        assert max(times) - min(times) <= 1
    assert len({steps[begin : begin + 5] for begin in range(0, 35, 5)}) > 1, "shuffled anew"
    assert schedule(rtts, 7, seed=3) == steps != schedule(rtts, 7, seed=4)


def test_a_topology_of_one_site_is_refused_with_a_way_out(tmp_path: Path) -> None:
    file = tmp_path / "one.yaml"
    file.write_text("name: one\nsites: [{name: dc1, nodes: [n1, n2], lan: {rtt: 1ms}}]\n")
    changed = with_changes(load("round-trips"), {"topology": str(file)})
    with pytest.raises(UserError, match=r"crosses a WAN link.*--topology"):
        prepare(changed, directory=tmp_path / "bundle")


def test_a_link_that_cannot_have_an_rtt_is_told_before_anything_starts(tmp_path: Path) -> None:
    file = tmp_path / "two.yaml"
    file.write_text(
        "name: two\nsites: [{name: a, nodes: [n1]}, {name: b, nodes: [n2]}]\n"
        "links: {default: {rtt: 100ms, jitter: 10ms, reorder: 5%}}\n"
    )
    plan = resolve(load_topology(str(file)))
    with pytest.raises(UserError, match="a/b of topology two an RTT of 0ms"):
        check_rtt_steps("mine", RoundTripsSpec(), plan)


def test_what_is_proven_is_the_network_that_is_measured(tmp_path: Path) -> None:
    prepared = prepare(load("round-trips"), directory=tmp_path / "bundle")
    assert {prepared.plan.rtt_ms("n1", each) for each in ("n2", "n3", "n4", "n5")} == {200.0}
    assert prepared.plan.jitter_ms("n1", "n2") == 0
    assert prepared.topology.links.default is not None
    assert prepared.topology.links.default.rtt == Duration(100 * 10**6)


def steps_of(api: str, seed: int = 1) -> StepsPlan:
    counts = {"steps": 4, "samples": 5, "warmup": 2, "object_bytes": 100, "seed": seed}
    if api == "s3":
        return s3_steps(S3, bucket="b", **counts)
    if api == "bob":
        return bob_steps(
            ["Put", "Get", "Exist", "Delete", "Ping"],
            target="n1",
            replicas=lambda key: ("n1",) if key[0] % 2 else ("n2",),
            **counts,
        )
    find = Measured("shop.C/Find", {"id": "{key}"}, prepare=Call("shop.C/Add", {"id": "{key}"}))
    count = Measured("shop.C/Count", {"id": "{key}"})
    return method_steps([find, count], **counts)


@pytest.mark.parametrize("api", ["s3", "bob", "grpc"])
def test_every_visit_asks_the_same_in_another_order_and_disturbs_no_other(api: str) -> None:
    plan = steps_of(api)
    assert plan == steps_of(api)
    assert plan.steps != steps_of(api, seed=2).steps
    turns = [[(each.endpoint, each.placement) for each in step.measure] for step in plan.steps]
    assert all(Counter(each) == Counter(turns[0]) for each in turns)
    assert set(Counter(turns[0]).values()) == {5}
    assert len({tuple(each) for each in turns}) == len(turns)
    for step in plan.steps:
        assert set(Counter((e.endpoint, e.placement) for e in step.warmup).values()) == {2}
    later = [each for step in plan.steps for each in (*step.warmup, *step.measure)]
    everything = [*plan.prepare, *later]
    assert [each.seq for each in everything] == list(range(len(everything)))

    def keys(requests: Sequence[Request], *endpoints: str) -> list[str | None]:
        return [each.key for each in requests if each.endpoint in endpoints]

    for changing in (keys(everything, "PutObject", "Put"), keys(later, "RemoveObject", "Delete")):
        assert len(set(changing)) == len(changing), "a key is written, or removed, once"
    prepared = {each.key for each in plan.prepare}
    removed = {*keys(later, "RemoveObject", "Delete")}
    assert removed <= prepared
    assert {*keys(later, "GetObject", "Get", "Exist")} <= prepared - removed
    found = keys(later, "shop.C/Find")
    assert len(set(found)) == len(found)
    assert prepared >= {*found}


def test_packets_are_recorded_unless_they_are_not_wanted() -> None:
    round_trips, latency = load("round-trips"), load("endpoint-latency")
    assert _capture(round_trips, None, None, Size(256)) == CaptureWanted(1 << 30, 256)
    assert _capture(round_trips, True, Size(1 << 20), Size(200)) == CaptureWanted(1 << 20, 200)
    assert _capture(round_trips, False, None, Size(256)) is None
    assert _capture(latency, None, None, Size(256)) is None
    assert _capture(latency, True, None, Size(256)) == CaptureWanted(256 << 20, 256)
