"""Files of drills and of claims: what they mean, and how mistakes in them are reported."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from wanlat.experiments.drill.claims import Claim, claims_on
from wanlat.experiments.drill.files import ClaimsError, DrillError, load
from wanlat.experiments.drill.model import Drill
from wanlat.experiments.drill.prepare import prepare
from wanlat.experiments.drill.timeline import scaled, stated
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
CLAIM = "system: quorum\nclaims:\n- {id: a, claim: it goes on, source: here, drill: mine, "
READS = CLAIM + "availability: {of: reads, client: here, from: 10s, to: 20s, at_least: 90%}}\n"


def loaded(directory: Path, text: str = TOP + FAULTS) -> Drill:
    file = directory / "drill.yaml"
    file.write_text(text)
    return load(str(file))


def mistakes(directory: Path, text: str) -> list[tuple[int | None, str, str]]:
    with pytest.raises(DrillError) as caught:
        loaded(directory, text)
    return [(each.line, each.where, each.text) for each in caught.value.mistakes]


def claims_in(directory: Path, *texts: str, system: str = "quorum") -> tuple[Claim, ...]:
    files = [directory / f"claims-{number}.yaml" for number in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text)
    return claims_on(loaded(directory), system, files)


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
    ("fault", "where", "says"),
    [
        ("[{kil: victim}]", "faults[0].kil", "did you mean `kill`?"),
        ("[{kill: victim, stop: victim}]", "faults[0].stop", "an entry is one fault"),
        ("[{at: 1s}]", "faults[0]", "no kind of fault is named"),
        ("[{kill: {at: 1s}}]", "faults[0].kill", "settings stand beside it"),
        ("[]", "faults", "at least 1"),
        ("[{kill: victim, at: 41s}]", "faults[0].at", "after `during`"),
        ("[{kill: victim, at: 20s, for: 30s}]", "faults[0].for", "healed by its end"),
        ("[{kill: victim, for: 0s}]", "faults[0].for", "more than 0"),
        ("[{kill: victm}]", "faults[0]", "did you mean `victim`?"),
        ("[{kill: victim, period: 5s}]", "faults[0]", "`period`"),
        ("[{slow: victim}]", "faults[0]", "it needs `delay`"),
        ("[{restart: victim, for: 5s}]", "faults[0]", "leave out `for: 5s`"),
        (
            "[{disk-full: victim, size: 64MiB}, {disk-full: victim, size: 32MiB, at: 1s}]",
            *("faults[1]", "it has one size"),
        ),
    ],
)
def test_a_mistake_in_a_fault_is_reported_with_its_line(
    fault: str, where: str, says: str, tmp_path: Path
) -> None:
    (told,) = mistakes(tmp_path, f"{TOP}faults: {fault}\n")
    assert told[:2] == (6, where)
    assert says in told[2]


ONE = "victim: {select: one}"
NAME = "name: mine"


@pytest.mark.parametrize(
    ("old", "new", "where", "says"),
    [
        (NAME, "name: Mine", "name", "should match"),
        ("five-sites", "five-site", "topology", "did you mean `five-sites`?"),
        (ONE, "victim: {select: oen}", "roles.victim", "did you mean `one`?"),
        (ONE, "n2: {select: one}", "roles.n2", "must not have its name"),
        (ONE, "victim: {select: 9}", "roles.victim", "9"),
        (ONE, "victim: {select: 0}", "roles.victim", "1 or more"),
        (ONE, "victim: {select: [n1]}, again: {select: [n1]}", "roles", "both have n1"),
        (ONE, "victim: {select: true}", "roles.victim.select", "selects no nodes"),
        ("node: others", "node: other", "clients.here.node", "did you mean `others`?"),
        ("target: dc1", "target: dc9", "clients.there.target", "no node or site"),
        ("node: others", "nod: others", "clients.here.nod", "did you mean `node`?"),
        ("here: {", "9: {", "clients", "text"),
        ("here: {", "he/re: {", "clients.he/re", "should match"),
        ("{select: one}", "one", "roles.victim", "mapping"),
        ("before: 20s", "before: 2s", "phases.before", "fewer than 10 requests"),
        ("before: 20s", "before: 20", "phases.before", "has no unit"),
        (NAME, f"{NAME}\ninterval: 5ms", "interval", "at least 20ms"),
        (NAME, f"{NAME}\nobject_size: 0", "object_size", "of an empty object"),
        (NAME, f"{NAME}\nsystems: [quorun]", "systems[0]", "did you mean `quorum`?"),
        (NAME, f"{NAME}\nsystems: [bob, bob]", "systems[1]", "given twice"),
        (NAME, f"{NAME}\nsystems: [service]", "systems[0]", "API of its own"),
        (NAME, f"{NAME}\noptions: {{bob: {{}}}}", "options.bob", "not among `systems`"),
        (NAME, f"{NAME}\noptions: {{quorum: {{protocl: leader}}}}", "options.quorum", "`protocol`"),
        (
            *(NAME, f"{NAME}\nsystems: [bob]\noptions: {{bob: {{quorum: 9}}}}"),
            *("systems[0]", "waits for more replicas"),
        ),
        (NAME, f"{NAME}\nsystem: bob", "system", "`systems` takes a list"),
        (NAME, f"{NAME}\nclaims: []", "claims", "in files of their own"),
        (NAME, f"{NAME}\ntimeouts: {{redy: 1s}}", "timeouts.redy", "mean `ready`?"),
    ],
)
def test_a_mistake_elsewhere_is_reported_where_it_is(
    old: str, new: str, where: str, says: str, tmp_path: Path
) -> None:
    told = mistakes(tmp_path, TOP.replace(old, new) + FAULTS)
    assert any(each[1] == where and says in each[2] for each in told), told


def test_all_mistakes_are_reported_at_once(tmp_path: Path) -> None:
    text = TOP.replace("20s", "20").replace("select: one", "select: 1.5")
    told = mistakes(tmp_path, f"{text}faults: [{{kil: victim}}, {{kill: a, stop: b}}]\nclaim: x")
    assert [line for line, _, _ in told] == [3, 5, 6, 6, 7]
    on_topology = TOP.replace("select: one", "select: oen").replace("select: rest", "select: rset")
    assert [where for _, where, _ in mistakes(tmp_path, on_topology + FAULTS)] == [
        *("roles.victim", "roles.others")
    ]
    apart = TOP.replace("20s", "2s").replace("40s", "1s")
    assert len(mistakes(tmp_path, apart + FAULTS)) == 4, "three phases, and a fault after the end"


def test_a_role_is_one_of_the_systems(tmp_path: Path) -> None:
    head = TOP.replace("select: one", "select: leader")
    (told,) = mistakes(tmp_path, head + FAULTS)
    assert told[1] == "roles.victim"
    led = loaded(tmp_path, f"{head}options: {{quorum: {{protocol: leader}}}}\n{FAULTS}")
    assert led.selects["victim"] == "leader"


def test_a_topology_is_taken_from_where_the_drill_is_or_from_who_asks(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text("name: own\nsites: [{name: a, nodes: [n1, n2, n3]}]\n")
    text = TOP.replace("five-sites", "own.yaml").replace(", target: dc1", "")
    assert loaded(tmp_path, text + FAULTS).topology == str(tmp_path / "own.yaml")
    file = tmp_path / "drill.yaml"
    file.write_text(TOP.replace("five-sites", "nowhere") + FAULTS)
    assert load(str(file), topology="three-datacenters").topology == "three-datacenters"
    with pytest.raises(DrillError, match="no topology named `nowhere`"):
        load(str(file))


SCALED = f"{TOP}deadline: 12s\nfaults: [{{flapping: victim, period: 5s, at: 10s, for: 20s}}]\n"


def test_a_tenth_of_a_drill_is_a_tenth_of_its_times(tmp_path: Path) -> None:
    short = scaled(loaded(tmp_path, SCALED), 0.1)
    values = short.to_dict()
    assert values["phases"] == {"before": "2s", "during": "4s", "after": "4s"}
    assert (values["interval"], values["deadline"]) == ("25ms", "1.2s")
    (fault,) = values["faults"]
    assert fault == {"at": "1s", "for": "2s", "flapping": "victim", "period": "500ms"}
    assert values["objects"] == 200
    (claim,) = claims_in(tmp_path, READS)
    figure = claim.scaled(0.1).availability
    assert figure is not None and (str(figure.since), str(figure.to)) == ("1s", "2s")


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


def test_claims_apply_to_their_system_and_to_the_drills_that_they_name(tmp_path: Path) -> None:
    more = "- {id: b, claim: c, source: s, drill: [flapping, mine], durability: broken}\n"
    other = "- {id: c, claim: c, source: s, drill: flapping, durability: intact}\n"
    read, durable = claims_in(tmp_path, READS + more + other)
    assert read.applied() == {
        "id": "a",
        "claim": "it goes on",
        "source": "here",
        "availability": {
            **{"of": "reads", "client": "here", "phase": "during"},
            **{"from": "10s", "to": "20s", "at_least": "90%"},
        },
    }
    assert durable.applied()["durability"] == "broken"
    assert claims_in(tmp_path, READS, system="bob") == ()


def test_the_example_of_the_documentation_is_one(tmp_path: Path) -> None:
    page = Path(__file__).parents[3] / "docs" / "drills.md"
    drill, claims = re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL)
    (tmp_path / "claims.yaml").write_text(claims)
    applied = claims_on(loaded(tmp_path, drill), "garage", [tmp_path / "claims.yaml"])
    assert [each.id for each in applied] == ["our-hanging-node-writes", "our-data"]


def test_a_file_of_the_users_comes_after_the_shipped_claims(tmp_path: Path) -> None:
    file = tmp_path / "claims.yaml"
    file.write_text(READS.replace("mine", "one-node-killed").replace("here,", "survivor,"))
    out = tmp_path / "b"
    shipped = prepare("one-node-killed", system="quorum", directory=out).claims
    assert {each.durability for each in shipped} == {None, "intact"}
    with_mine = prepare("one-node-killed", system="quorum", claims=[file], directory=out).claims
    assert with_mine[:-1] == shipped
    assert with_mine[-1].id == "a"


@pytest.mark.parametrize(
    ("claim", "where", "says"),
    [
        ("}", "claims[0]", "either `availability` or `durability`"),
        ("durability: intact, of: reads}", "claims[0].of", "stands in `availability`"),
        ("durability: whole}", "claims[0].durability", "allowed: intact or broken"),
        ("availability: {at_least: 90%}}", "claims[0].availability", "`of`"),
        ("availability: {of: reads}}", "claims[0].availability", "give one bound"),
        (
            "availability: {of: reads, at_least: 90%, at_most: 99%}}",
            *("claims[0].availability", "give one bound"),
        ),
        (
            "availability: {of: reads, client: her, at_least: 90%}}",
            *("claims[0].availability.client", "did you mean `here`?"),
        ),
        (
            "availability: {of: reads, to: 41s, at_least: 90%}}",
            *("claims[0].availability.to", "over after 40s"),
        ),
        (
            "availability: {of: reads, from: 9s, to: 9s, at_least: 90%}}",
            *("claims[0].availability.from", "nothing is left"),
        ),
        ("durability: intact, drill: flaping}", "claims[0].drill", "did you mean `flapping`?"),
        ("durability: intact, drill: [mine, min]}", "claims[0].drill[1]", "did you mean `mine`?"),
        ("durability: intact, id: A b}", "claims[0].id", "should match"),
        (
            # Of a shipped drill as well as of the one at hand.
            "availability: {of: reads, client: her, at_least: 1%}, drill: flapping}",
            *("claims[0].availability.client", "drill flapping has no client `her`"),
        ),
    ],
)
def test_a_mistake_in_a_claim_is_reported_where_it_is(
    claim: str, where: str, says: str, tmp_path: Path
) -> None:
    text = CLAIM.replace("drill: mine, ", "") if "drill:" in claim else CLAIM
    text = text.replace("id: a, ", "") if "id: A" in claim else text
    with pytest.raises(ClaimsError) as caught:
        claims_in(tmp_path, text + claim + "\n")
    told = [(each.line, each.where, each.text) for each in caught.value.mistakes]
    assert any(line == 3 and place == where for line, place, _ in told), told
    assert any(place == where and says in text for _, place, text in told), told


def test_mistakes_of_claims_are_reported_at_once(tmp_path: Path) -> None:
    text = READS.replace("system: quorum", "system: quorun").replace("at_least: 90%", "at_least: 9")
    with pytest.raises(ClaimsError) as caught:
        claims_in(tmp_path, text + "- {id: a, claim: c, source: s, drill: min, durability: no}\n")
    assert [each.line for each in caught.value.mistakes] == [1, 3, 4]


def test_an_id_is_unique_within_and_over_files(tmp_path: Path) -> None:
    double = READS + "- {id: a, claim: c, source: s, drill: mine, durability: intact}\n"
    with pytest.raises(ClaimsError, match=r":4: claims\[1\].*`a` is given twice.*line 3"):
        claims_in(tmp_path, double)
    with pytest.raises(
        ClaimsError, match=r"claims-1\.yaml.*`a` is the id of a claim in .*claims-0"
    ):
        claims_in(tmp_path, READS, READS)
