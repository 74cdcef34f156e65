"""A study of round trips before it is run: what it may ask for, in which order, with which keys."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from wanlat.commands.run import _capture
from wanlat.experiments.config.rtt_steps import RoundTripsSpec, check_visits
from wanlat.experiments.config.study import Study, StudyError, load
from wanlat.experiments.prepare import check_study_options, prepare
from wanlat.experiments.session import CaptureWanted
from wanlat.experiments.workloads.rtt_steps import schedule
from wanlat.probes.bob_plan import bob_visits
from wanlat.probes.method_plan import Call, Measured, method_visits
from wanlat.probes.plan import VisitsPlan
from wanlat.probes.s3_plan import S3Endpoint, s3_visits
from wanlat.topologies.errors import UserError
from wanlat.topologies.load import load as load_topology
from wanlat.topologies.resolve import resolve
from wanlat.topologies.units import Duration, Size

TOP = "name: mine\ntopology: five-sites\nendpoints: [GetObject, PutObject]\n"
S3: tuple[S3Endpoint, ...] = ("ListObjects", "GetObject", "PutObject", "RemoveObject")


def loaded(directory: Path, text: str) -> Study:
    file = directory / "study.yaml"
    file.write_text(TOP + text)
    return load(str(file))


def mistakes(directory: Path, text: str) -> list[tuple[int | None, str, str]]:
    with pytest.raises(StudyError) as caught:
        loaded(directory, text)
    return [(each.line, each.where, each.text) for each in caught.value.mistakes]


def ms(*values: float) -> list[Duration]:
    return [Duration(round(value * 1e6)) for value in values]


def test_the_shipped_study_is_the_one_that_is_documented() -> None:
    spec = load("round-trips").round_trips
    assert spec is not None
    assert spec.rtts == ms(0, 25, 50, 100, 200)
    assert (spec.visits, spec.settle.s, spec.jitter.ns) == (3, 2, 0)
    assert spec == RoundTripsSpec(), "the defaults are the shipped study's"
    assert spec.doubts() == []


def test_every_mistake_is_told_with_its_line(tmp_path: Path) -> None:
    found = mistakes(
        tmp_path,
        "round_trips:\n  rtts: [0ms, 25ms, -1ms, 25ms]\n  visits: 0\n  settle: 0.2s\n  rtt: 5ms\n",
    )
    by_place = {where: (line, text) for line, where, text in found}
    assert by_place["round_trips.rtts[3]"][0] == 5
    assert "twice" in by_place["round_trips.rtts[3]"][1]
    assert by_place["round_trips.rtts[2]"][0] == 5
    assert by_place["round_trips.visits"][0] == 6
    assert "without any request" in by_place["round_trips.settle"][1]
    assert "`rtts` takes a list" in by_place["round_trips.rtt"][1]
    assert len(found) == 5


def test_no_visit_begins_with_packets_of_the_one_before_on_their_way(tmp_path: Path) -> None:
    ((line, where, text),) = mistakes(
        tmp_path, "round_trips:\n  rtts: [0ms, 100ms, 3s]\n  settle: 2s\n"
    )
    assert (line, where) == (6, "round_trips.settle")
    assert "3s" in text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{rtts: [0ms, 50ms]}", "has 2 RTTs"),
        ("{rtts: [50ms]}", "has 1 RTT,"),
        ("{jitter: 5ms}", "jitter of 5ms"),
    ],
)
def test_what_gives_no_number_is_run_with_a_warning(tmp_path: Path, text: str, words: str) -> None:
    spec = loaded(tmp_path, f"round_trips: {text}\n").round_trips
    assert spec is not None
    (doubt,) = spec.doubts()
    assert words in doubt
    assert "no number of round trips" in doubt


def test_a_jitter_has_no_more_room_than_the_rtt() -> None:
    spec = RoundTripsSpec(jitter=Duration(5 * 10**6))
    assert [spec.jitter_at(rtt) for rtt in ms(0, 2, 100)] == ms(0, 2, 5)


def test_every_rtt_is_visited_equally_often_at_any_time() -> None:
    rtts = [0, 25, 50, 100, 200]
    visits = schedule(rtts, 7, seed=3)
    assert Counter(visits) == dict.fromkeys(rtts, 7)
    for end in range(len(visits)):
        counted = Counter(visits[:end])
        times = [counted[rtt] for rtt in rtts]
        assert max(times) - min(times) <= 1


def test_the_seed_decides_the_order_of_visits() -> None:
    rtts = [0, 25, 50, 100, 200]
    orders = {schedule(rtts, 3, seed) for seed in range(20)}
    assert len(orders) == 20
    assert schedule(rtts, 3, 5) == schedule(rtts, 3, 5)
    blocks = [tuple(schedule(rtts, 3, 1)[begin : begin + 5]) for begin in (0, 5, 10)]
    assert len(set(blocks)) > 1, "each repetition has an order of its own"


def test_a_topology_of_one_site_is_refused_with_a_way_out(tmp_path: Path) -> None:
    file = tmp_path / "one.yaml"
    file.write_text("name: one\nsites: [{name: dc1, nodes: [n1, n2], lan: {rtt: 1ms}}]\n")
    changed = check_study_options(load("round-trips"), {"topology": str(file)})
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
        check_visits("mine", RoundTripsSpec(), plan)


def test_what_is_proven_is_the_network_that_is_measured(tmp_path: Path) -> None:
    prepared = prepare(load("round-trips"), directory=tmp_path / "bundle")
    assert {prepared.plan.rtt_ms("n1", each) for each in ("n2", "n3", "n4", "n5")} == {200.0}
    assert prepared.plan.jitter_ms("n1", "n2") == 0
    assert prepared.topology.links.default is not None
    assert prepared.topology.links.default.rtt == Duration(100 * 10**6)


def s3(visits: int = 4, seed: int = 1) -> VisitsPlan:
    return s3_visits(
        S3, visits=visits, samples=5, warmup=2, object_bytes=100, seed=seed, bucket="b"
    )


def bob(visits: int = 4) -> VisitsPlan:
    return bob_visits(
        ["Put", "Get", "Exist", "Delete", "Ping"],
        visits=visits,
        samples=5,
        warmup=2,
        object_bytes=100,
        seed=1,
        target="n1",
        replicas=lambda key: ("n1",) if key[0] % 2 else ("n2",),
    )


@pytest.mark.parametrize("plan", [s3(), bob()], ids=["s3", "bob"])
def test_no_visit_disturbs_another(plan: VisitsPlan) -> None:
    everything = [*plan.prepare, *(each for v in plan.visits for each in (*v.warmup, *v.measure))]
    assert [each.seq for each in everything] == list(range(len(everything)))
    written = Counter(each.key for each in everything if each.endpoint in ("PutObject", "Put"))
    removed = Counter(
        each.key for each in everything if each.endpoint in ("RemoveObject", "Delete")
    )
    assert set(written.values()) == {1}
    assert set(removed.values()) == {1}
    prepared = {each.key for each in plan.prepare}
    assert removed.keys() <= prepared
    read = [each.key for each in everything if each.endpoint in ("GetObject", "Get", "Exist")]
    assert set(read) <= prepared - removed.keys()


@pytest.mark.parametrize("plan", [s3(), bob()], ids=["s3", "bob"])
def test_every_visit_asks_the_same_in_another_order(plan: VisitsPlan) -> None:
    turns = [[(each.endpoint, each.placement) for each in visit.measure] for visit in plan.visits]
    assert all(Counter(each) == Counter(turns[0]) for each in turns)
    assert set(Counter(turns[0]).values()) == {5}
    assert len({tuple(each) for each in turns}) == len(turns)
    for visit in plan.visits:
        assert set(Counter((e.endpoint, e.placement) for e in visit.warmup).values()) == {2}


def test_the_visits_of_a_seed_are_the_same_again() -> None:
    assert s3() == s3()
    assert s3().visits != s3(seed=2).visits


def test_every_call_of_a_service_has_a_key_of_its_own() -> None:
    find = Measured("shop.C/Find", {"id": "{key}"}, prepare=Call("shop.C/Add", {"id": "{key}"}))
    plan = method_visits([find], visits=3, samples=4, warmup=1, object_bytes=10, seed=1)
    asked = [each.key for visit in plan.visits for each in (*visit.warmup, *visit.measure)]
    assert len(set(asked)) == len(asked) == 15
    assert sorted(each.key or "" for each in plan.prepare) == sorted(key or "" for key in asked)


def test_packets_are_recorded_unless_they_are_not_wanted() -> None:
    round_trips, latency = load("round-trips"), load("endpoint-latency")
    assert _capture(round_trips, None, None, Size(256)) == CaptureWanted(1 << 30, 256)
    assert _capture(round_trips, True, Size(1 << 20), Size(200)) == CaptureWanted(1 << 20, 200)
    assert _capture(round_trips, False, None, Size(256)) is None
    assert _capture(latency, None, None, Size(256)) is None
    assert _capture(latency, True, None, Size(256)) == CaptureWanted(256 << 20, 256)
