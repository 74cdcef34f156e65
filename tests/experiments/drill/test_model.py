"""A drill's file: what it means, and how mistakes in it are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from wanlat.experiments.drill.files import DrillError, load
from wanlat.experiments.drill.model import Drill
from wanlat.experiments.drill.scale import scaled
from wanlat.experiments.drill.timing import stated
from wanlat.topologies.errors import UserError
from wanlat.topologies.units import Duration

TOP = """\
name: mine
topology: five-sites
roles: {victim: {select: one}, others: {select: rest}}
clients: {here: {node: others}, there: {node: victim, target: dc1}}
phases: {before: 20s, during: 40s, after: 40s}
"""
FAULTS = "faults: [{kill: victim, at: 1s, for: 30s}]\n"


def loaded(directory: Path, text: str) -> Drill:
    file = directory / "drill.yaml"
    file.write_text(text)
    return load(str(file))


def mistakes(directory: Path, text: str) -> list[tuple[int | None, str, str]]:
    with pytest.raises(DrillError) as caught:
        loaded(directory, text)
    return [(each.line, each.where, each.text) for each in caught.value.mistakes]


def test_what_it_says_can_be_written_down_and_read_again(tmp_path: Path) -> None:
    text = (
        f"{TOP}faults:\n  - {{slow: victim, delay: 200ms, at: 1s}}\n  - {{partition: [dc1, dc2]}}\n"
    )
    drill = loaded(tmp_path, text)
    slow, partition = drill.faults
    assert (slow.kind, slow.target, slow.settings) == ("slow", "victim", {"delay": "200ms"})
    assert (slow.at, slow.lasts) == (Duration(10**9), None)
    assert (partition.kind, partition.target) == ("partition", ["dc1", "dc2"])
    assert (drill.interval, drill.deadline) == (Duration(250 * 10**6), Duration(10 * 10**9))
    assert Drill.model_validate(drill.to_dict()) == drill
    assert Drill.model_validate(drill.model_dump()) == drill


@pytest.mark.parametrize(
    ("text", "line", "where", "says"),
    [
        ("faults: [{kil: victim}]", 6, "faults[0].kil", "did you mean `kill`?"),
        ("faults: [{kill: victim, stop: victim}]", 6, "faults[0].stop", "an entry is one fault"),
        ("faults: [{at: 1s}]", 6, "faults[0]", "no kind of fault is named"),
        ("faults: [{kill: {at: 1s}}]", 6, "faults[0].kill", "settings stand beside it"),
        ("faults: []", 6, "faults", "at least 1"),
        ("faults: [{kill: victim, at: 41s}]", 6, "faults[0].at", "after `during`"),
        ("faults: [{kill: victim, at: 20s, for: 30s}]", 6, "faults[0].for", "healed by its end"),
        ("faults: [{kill: victim, for: 0s}]", 6, "faults[0].for", "leaves no time"),
        ("faults: [{kill: victm}]", 6, "faults[0]", "did you mean `victim`?"),
        ("faults: [{kill: victim, period: 5s}]", 6, "faults[0]", "`period`"),
        ("faults: [{slow: victim}]", 6, "faults[0]", "it needs `delay`"),
        ("faults: [{restart: victim, for: 5s}]", 6, "faults[0]", "leave out `for: 5s`"),
    ],
)
def test_a_mistake_in_a_fault_is_told_with_its_line(
    text: str, line: int, where: str, says: str, tmp_path: Path
) -> None:
    (told,) = mistakes(tmp_path, f"{TOP}{text}\n")
    assert told[:2] == (line, where)
    assert says in told[2]


@pytest.mark.parametrize(
    ("old", "new", "where", "says"),
    [
        ("name: mine", "name: Mine", "name", "should match"),
        ("five-sites", "five-site", "topology", "did you mean `five-sites`?"),
        ("victim: {select: one}", "victim: {select: oen}", "roles.victim", "did you mean `one`?"),
        ("victim: {select: one}", "n2: {select: one}", "roles.n2", "must not have its name"),
        ("victim: {select: one}", "victim: {select: 9}", "roles", "9"),
        (
            "victim: {select: one}",
            "victim: {select: true}",
            "roles.victim.select",
            "selects no nodes",
        ),
        ("node: others", "node: other", "clients.here.node", "did you mean `others`?"),
        ("target: dc1", "target: dc9", "clients.there.target", "no node or site"),
        ("node: others", "nod: others", "clients.here.nod", "did you mean `node`?"),
        ("node: others", "at: others", "clients.here.at", "is `node`"),
        ("{select: one}", "one", "roles.victim", "mapping"),
        ("{select: one}", "{mode: one}", "roles.victim.mode", "is `select`"),
        ("before: 20s", "before: 2s", "phases.before", "fewer than 10 requests"),
        ("before: 20s", "before: 20", "phases.before", "has no unit"),
        ("name: mine", "name: mine\ninterval: 5ms", "interval", "at least 20ms"),
        ("name: mine", "name: mine\nsystems: [quorun]", "systems[0]", "did you mean `quorum`?"),
        ("name: mine", "name: mine\nsystems: [bob, bob]", "systems[1]", "given twice"),
        ("name: mine", "name: mine\noptions: {bob: {}}", "options.bob", "not among `systems`"),
        (
            *("name: mine", "name: mine\noptions: {quorum: {protocl: leader}}"),
            *("options.quorum", "did you mean `protocol`?"),
        ),
        (
            *("name: mine", "name: mine\nsystems: [bob]\noptions: {bob: {quorum: 9}}"),
            *("systems[0]", "waits for more replicas"),
        ),
        ("name: mine", "name: mine\nsystem: bob", "system", "`systems` takes a list"),
        ("name: mine", "name: mine\nevery: 1s", "every", "is `interval`"),
        ("name: mine", "name: mine\nclaims: []", "claims", "in files of their own"),
        ("name: mine", "name: mine\ntimeouts: {redy: 1s}", "timeouts.redy", "mean `ready`?"),
    ],
)
def test_a_mistake_elsewhere_is_told_where_it_is(
    old: str, new: str, where: str, says: str, tmp_path: Path
) -> None:
    told = mistakes(tmp_path, TOP.replace(old, new) + FAULTS)
    assert any(each[1] == where and says in each[2] for each in told), told


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    text = TOP.replace("20s", "2s").replace("node: others", "node: nowhere")
    told = mistakes(tmp_path, f"{text}faults: [{{kil: victim}}, {{kill: a, stop: b}}]\nclaim: x")
    assert [line for line, _, _ in told] == [5, 6, 6, 7]


def test_a_role_is_one_of_the_systems(tmp_path: Path) -> None:
    head = TOP.replace("select: one", "select: leader")
    (told,) = mistakes(tmp_path, head + FAULTS)
    assert told[1] == "roles.victim"
    led = loaded(tmp_path, f"{head}options: {{quorum: {{protocol: leader}}}}\n{FAULTS}")
    assert led.selects["victim"] == "leader"


def test_another_topology_takes_the_place_of_the_files(tmp_path: Path) -> None:
    file = tmp_path / "drill.yaml"
    file.write_text(TOP.replace("five-sites", "nowhere") + FAULTS)
    assert load(str(file), topology="three-datacenters").topology == "three-datacenters"
    with pytest.raises(DrillError, match="no topology named `nowhere`"):
        load(str(file))


def test_a_topology_is_taken_from_where_the_drill_is(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text("name: own\nsites: [{name: a, nodes: [n1, n2, n3]}]\n")
    text = TOP.replace("five-sites", "own.yaml").replace(", target: dc1", "")
    assert loaded(tmp_path, text + FAULTS).topology == str(tmp_path / "own.yaml")


SCALED = f"{TOP}deadline: 12s\nfaults: [{{flapping: victim, period: 5s, at: 10s, for: 20s}}]\n"


def test_a_tenth_of_a_drill_is_a_tenth_of_its_times(tmp_path: Path) -> None:
    short = scaled(loaded(tmp_path, SCALED), 0.1)
    values = short.to_dict()
    assert values["phases"] == {"before": "2s", "during": "4s", "after": "4s"}
    assert (values["interval"], values["deadline"]) == ("25ms", "1.2s")
    (fault,) = values["faults"]
    assert fault == {"at": "1s", "for": "2s", "flapping": "victim", "period": "500ms"}
    assert values["objects"] == 200


def test_neither_the_interval_nor_the_deadline_becomes_too_short(tmp_path: Path) -> None:
    drill = loaded(tmp_path, SCALED)
    shortest = scaled(drill, 0.02)
    assert shortest.interval == Duration(20 * 10**6)
    assert shortest.deadline == Duration(10**9)
    assert scaled(drill, 2).deadline == drill.deadline, "nor longer"
    for factor, says in ((0.001, "too short"), (0, "more than 0"), (-1, "more than 0")):
        with pytest.raises(UserError, match=says):
            scaled(drill, factor)


@pytest.mark.parametrize("factor", [0.0333, 0.05001, 0.3337, 1.7])
def test_a_fault_that_ends_with_its_phase_does_so_at_every_scale(
    factor: float, tmp_path: Path
) -> None:
    text = f"{TOP.replace('during: 40s', 'during: 40.001s')}faults: [{{kill: victim, at: 12.5s, "
    short = scaled(loaded(tmp_path, text + "for: 27.501s}]\n"), factor)
    (fault,) = short.faults
    assert fault.lasts is not None
    assert fault.at.ns + fault.lasts.ns == short.phases.during.ns


def test_the_stated_time_holds_every_stage(tmp_path: Path) -> None:
    drill = loaded(tmp_path, SCALED)
    told = stated(drill)
    most = drill.timeouts
    least = 100 + 12 + most.ready.s + 2 * most.serve_after_restart.s
    assert told.total_s > least + most.verify_after_heal.s + most.verify_after_restart.s
    assert stated(scaled(drill, 0.5)).total_s == pytest.approx(told.total_s - 50 - 6)
