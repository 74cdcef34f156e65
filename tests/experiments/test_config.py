"""Files of studies, drills and claims: what they mean, and every mistake in them reported.

The tables have a case a line: what is written, where a mistake is reported, and what is said of it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import write_program
from wanlat.experiments.config.endpoints import api_of, measured
from wanlat.experiments.config.files import shipped
from wanlat.experiments.config.study import Study, changed, load
from wanlat.experiments.drill.claims import Claim, claims_on
from wanlat.experiments.drill.model import Drill
from wanlat.experiments.drill.prepare import load as load_drill
from wanlat.experiments.drill.timeline import scaled
from wanlat.experiments.matrix_points import points_of
from wanlat.systems import registry
from wanlat.systems.engine.protocols import PROTOCOLS
from wanlat.systems.engine.protocols.grpc import GrpcProtocol, MethodEndpoint
from wanlat.systems.errors import SystemMissing
from wanlat.topologies.errors import UserError
from wanlat.topologies.findings import YamlError

STUDY = "name: mine\ntopology: five-sites\nendpoints: [GetObject, Put]\n"
DRILL = """\
name: mine
topology: five-sites
roles: {victim: {select: one}, others: {select: rest}}
clients: {here: {node: others}, there: {node: victim, target: dc1}}
phases: {before: 20s, during: 40s, after: 40s}
faults: [{kill: victim, at: 1s, for: 30s}]
"""
CLAIMS = """\
system: quorum
claims:
- {id: a, claim: it goes on, source: here, drill: mine, FIGURE}
"""
READS = "availability: {of: reads, client: here, from: 10s, to: 20s, at_least: 90%}"


def study(directory: Path, text: str) -> Study:
    (directory / "study.yaml").write_text(text)
    return load(str(directory / "study.yaml"))


def drill(directory: Path, text: str = DRILL) -> Drill:
    (directory / "drill.yaml").write_text(text)
    return load_drill(str(directory / "drill.yaml"))


def claims(directory: Path, *figures: str, system: str = "quorum") -> tuple[Claim, ...]:
    """What applies of files of claims, of a figure or a whole text each."""
    paths = [directory / f"claims-{number}.yaml" for number in range(len(figures))]
    for path, figure in zip(paths, figures, strict=True):
        path.write_text(figure if "\n" in figure else CLAIMS.replace("FIGURE", figure))
    return claims_on(drill(directory), system, paths)


def mistakes(read: Callable[[], object]) -> list[tuple[int | None, str, str]]:
    with pytest.raises(YamlError) as caught:
        read()
    return [(each.line, each.where, each.text) for each in caught.value.mistakes]


def cases(table: str) -> list[list[str]]:
    """The columns of each line; `\\n` in a line stands for its own."""
    lines = table.strip().splitlines()
    return [[part.strip().replace("\\n", "\n") for part in line.split(" | ")] for line in lines]


IN_STUDIES = r"""
endpoints: [Gett] | endpoints[0] | did you mean `Get`?
endpoints: [GetObjekt] | endpoints[0] | of S3 there are ListBuckets
endpoints: [Get, Put, Get] | endpoints[2] | given twice
endpoints: [{method: Find}] | endpoints[0].method | `package.Service/Method`
endpoints: [{method: a.B/C, requst: {}}] | endpoints[0].requst | did you mean `request`?
endpoints: [{method: bob_storage.BobApi/Get, key_bytes: 9}] | endpoints[0].key_bytes | 8 bytes
endpoints: [{method: a.B/C, request: {a: [{b: "{boddy}"}]}}] | endpoints[0].request.a[0].b | body
endpoints: [{method: a.B/C, request: {id: {key}}}] | endpoints[0].request.id | write "{key}"
system: quorum | system | `systems` takes a list
warmup: 0\nbudget: {time: 5s} | warmup | judged from the warm-up
reclaim: {}\nprefill: {} | prefill | `reclaim.objects` says
prefill: {}\nload: {mix: {GetObject: 0.5, Put: 0.4}} | load.mix | add up to 1, not
prefill: {}\nload: {mix: {GetObjekt: 1.0}} | load.mix.GetObjekt | mean `GetObject`?
prefill: {}\nload: {}\nround_trips: {} | load | a study is of one kind
prefill: {}\nload: {}\nbudget: {bytes: 1GiB} | budget | single requests
load: {} | load | there is nothing to read
round_trips: {rtts: [0ms, 25ms, 25ms]} | round_trips.rtts[2] | given twice
round_trips: {settle: 0.2s} | round_trips.settle | without any request
envelope: {promise: {deadline: 3s}} | envelope.promise.window | 2s is shorter than `deadline`, 3s
envelope: {rtt: {low: 50ms, high: 20ms}} | envelope.rtt.high | not more than `low`, which is 50ms
envelope: {loss: {low: 0%}} | envelope.loss.low | searched by their ratio; give more than 0
envelope: {rtt: {precision: 0%}} | envelope.rtt.precision | no search ends at 0
envelope: {fails: 96%} | envelope.fails | less than `holds`
envelope: {error: 50%} | envelope.error | less than 50 %
envelope: {rtts: [5ms]} | envelope.rtts | `rtt` takes `low` and `high`
matrix: {nodes: [1, 0]} | matrix.nodes[1] | `0` is too small
matrix: {samples: [5], node: [1]} | matrix.node | did you mean `nodes`?
matrix: {name: [a, b]} | matrix.name | cannot be varied: it names the bundle
samples: 3\nmatrix: {samples.x: [1]} | matrix.samples.x | has no `x`
matrix: 3 | matrix | a mapping of parameters to lists of values
matrix: {systems: [garage]} | matrix.systems[0] | none of the study's `systems`
matrix: {options.minio.drives: [1]} | matrix.options.minio.drives | not measured here
warmup: 0\nmatrix: {budget.time: [5s]} | warmup | judged from the warm-up
matrix: {nodes: [1, 2], exclude: [{node: 1}]} | matrix.exclude[0].node | mean `nodes`?
matrix: {nodes: [1], include: [{nodes: 0}]} | matrix.include[0].nodes | `0`
"""


@pytest.mark.parametrize(("text", "where", "says"), cases(IN_STUDIES))
def test_a_mistake_in_a_study(text: str, where: str, says: str, tmp_path: Path) -> None:
    top = STUDY.replace("endpoints:", "#") if "endpoints" in text else STUDY
    (found,) = mistakes(lambda: study(tmp_path, f"{top}{text}\n"))
    assert (found[1], (found[0] or 0) > 3) == (where, True)
    assert says in found[2]


IN_DRILLS = r"""
kill: victim | kil: victim | faults[0].kil | did you mean `kill`?
kill: victim, at | at | faults[0] | no kind of fault is named
kill: victim | kill: {at: 1s} | faults[0].kill | settings stand beside it
at: 1s | at: 41s | faults[0].at | after `during`
kill: victim | kill: victm | faults[0] | did you mean `victim`?
kill: victim | restart: victim | faults[0] | leave out `for: 30s`
victim: {select: one} | n2: {select: one} | roles.n2 | is a node of
select: one | select: true | roles.victim.select | selects no nodes
select: rest | select: [n1]}, again: {select: [n1] | roles | both have n1
target: dc1 | target: dc9 | clients.there.target | no node or site
before: 20s | before: 2s | phases.before | fewer than 10 requests
name: mine | name: mine\ninterval: 5ms | interval | at least 20ms
name: mine | name: mine\nsystems: [service] | systems | does not say how
name: mine | name: mine\noptions: {bob: {}} | options.bob | not among `systems`
name: mine | name: mine\noptions: {quorum: {protocl: leader}} | options.quorum | `protocol`
name: mine | name: mine\nsystems: [bob]\noptions: {bob: {quorum: 9}} | systems | waits for more
name: mine | name: mine\ntimeouts: {redy: 1s} | timeouts.redy | mean `ready`?
"""


@pytest.mark.parametrize(("old", "new", "where", "says"), cases(IN_DRILLS))
def test_a_mistake_in_a_drill(old: str, new: str, where: str, says: str, tmp_path: Path) -> None:
    assert old in DRILL
    told = mistakes(lambda: drill(tmp_path, DRILL.replace(old, new)))
    assert any(each[1] == where and says in each[2] for each in told), told


IN_CLAIMS = r"""
durability: null | claims[0] | either `availability` or `durability`
durability: intact, of: reads | claims[0].of | stands in `availability`
durability: whole | claims[0].durability | allowed: intact or broken
availability: {of: reads, at_least: 90%, at_most: 99%} | claims[0].availability | give one bound
availability: {of: reads, client: her, at_least: 90%} | claims[0].availability.client | mean `here`?
availability: {of: reads, to: 41s, at_least: 90%} | claims[0].availability.to | over after 40s
availability: {of: reads, from: 9s, to: 9s, at_least: 9%} | claims[0].availability.from | nothing is
durability: intact, DRILL flaping | claims[0].drill | did you mean `flapping`?
durability: intact, DRILL [mine, min] | claims[0].drill[1] | did you mean `mine`?
availability: {of: reads, client: her, at_least: 1%}, DRILL flapping | claims[0].availability.client | drill flapping
"""  # noqa: E501


@pytest.mark.parametrize(("figure", "where", "says"), cases(IN_CLAIMS))
def test_a_mistake_in_a_claim(figure: str, where: str, says: str, tmp_path: Path) -> None:
    text = CLAIMS.replace("drill: mine, ", "") if "DRILL" in figure else CLAIMS
    text = text.replace("FIGURE", figure.replace("DRILL", "drill:"))
    told = mistakes(lambda: claims(tmp_path, text))
    assert any((line, place) == (3, where) and says in text for line, place, text in told), told


def test_all_mistakes_of_a_file_are_reported_at_once_each_with_its_line(tmp_path: Path) -> None:
    text = (
        "name: mine\ntopology: five-sites\nendpoints: [Gett]\nround_trips:\n  rtts: [0ms, -1ms]\n"
        "  repeats: 0\nsample: 3\nbudget: {bytes: 1GiB}\nload: {}\n"
    )
    found = mistakes(lambda: study(tmp_path, text))
    assert [(line, where) for line, where, _ in found] == [
        *((3, "endpoints[0]"), (5, "round_trips.rtts[1]"), (6, "round_trips.repeats")),
        *((7, "sample"), (8, "budget"), (9, "load")),
    ]
    assert "first in line 4" in found[-1][2]
    varied = "matrix:\n  nodes: [0, 1]\n  samples: [1, x]\n  warmup: [1, 2]\n"
    found = mistakes(lambda: study(tmp_path, STUDY + varied))
    assert [each[:2] for each in found] == [(5, "matrix.nodes[0]"), (6, "matrix.samples[1]")]
    head, _, _ = DRILL.replace("20s", "20").replace("select: one", "select: 1.5").partition("fau")
    faults = "faults: [{kil: victim}, {kill: a, stop: b}]\nclaim: x"
    assert [line for line, _, _ in mistakes(lambda: drill(tmp_path, head + faults))] == [
        *(3, 5, 6, 6, 7)
    ]
    roles = DRILL.replace("select: one", "select: oen").replace("select: rest", "select: rset")
    assert [each[1] for each in mistakes(lambda: drill(tmp_path, roles))] == [
        *("roles.victim", "roles.others")
    ]
    claim = CLAIMS.replace("quorum", "quorun").replace("FIGURE", READS.replace("90%", "9"))
    more = "- {id: a, claim: c, source: s, drill: min, durability: no}\n"
    assert [each[0] for each in mistakes(lambda: claims(tmp_path, claim + more))] == [1, 3, 4]


@pytest.mark.parametrize(
    ("settings", "axes", "says"),
    [
        ({"sample": 3}, {}, "sample: .*did you mean `samples`"),
        ({"samples.x": 0}, {}, "`samples` is 100 here, so it has no `x`"),
        ({"nodes": 1}, {"nodes": [1, 2]}, "`nodes` is set and varied"),
        ({}, {"nodes": [1, "many"]}, r"matrix\[0\].nodes\[1\]"),
        ({"matrix": {}}, {}, "is not set as a whole"),
        ({"load.workers": 3, "round_trips.repeats": 2}, {}, "a study is of one kind"),
    ],
)
def test_a_mistake_on_the_command_line(
    tmp_path: Path, settings: dict[str, Any], axes: dict[str, list[Any]], says: str
) -> None:
    with pytest.raises(UserError, match=says):
        changed(study(tmp_path, STUDY), settings, axes)


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_study_has_points_and_survives_its_bundle(name: str) -> None:
    read = load(name)
    assert points_of(read)
    assert Study.model_validate(read.to_dict()) == read


def test_files_are_taken_from_where_the_study_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("shop.proto", "shop", "near.yaml", "elsewhere/shop"):
        write_program(tmp_path / name, "")
    text = (
        "name: mine\ntopology: near.yaml\nsystems: [service]\nendpoints: [shop.Catalogue/Count]\n"
        "options: {service: {command: [./shop], protos: [shop.proto, /elsewhere.proto]}}\n"
        "matrix: {topology: [one-site, near.yaml], include: [{topology: near.yaml, nodes: 2}]}\n"
    )
    read = study(tmp_path, text)
    near, proto = str(tmp_path / "near.yaml"), str(tmp_path / "shop.proto")
    assert read.options["service"]["protos"] == [proto, "/elsewhere.proto"]
    assert [each.study.topology for each in points_of(read)] == ["one-site", near, near]
    # From where the study is, the way to the program is the shortest there is.
    monkeypatch.setenv("PATH", f"{tmp_path / 'elsewhere'}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    service = registry.get("service")
    own = load("study.yaml").options["service"] | {"protos": [proto]}
    assert service.binary_for(service.parse_options(own)).path.samefile(tmp_path / "shop")
    (tmp_path / "shop").unlink()
    own = load("study.yaml").options["service"] | {"protos": [proto]}
    with pytest.raises(SystemMissing, match=re.escape("shop`, is not a program")):
        service.binary_for(service.parse_options(own))


def test_a_tenth_of_a_drill_is_a_tenth_of_its_times(tmp_path: Path) -> None:
    head = f"{DRILL.partition('faults')[0]}deadline: 12s\n"
    faults = "faults: [{flapping: victim, period: 5s, at: 10s, for: 20s}]\n"
    read = drill(tmp_path, head + faults)
    values = scaled(read, 0.1).to_dict()
    assert values["phases"] == {"before": "2s", "during": "4s", "after": "4s"}
    assert (values["interval"], values["deadline"], values["objects"]) == ("25ms", "1.2s", 200)
    assert values["faults"] == [{"at": "1s", "for": "2s", "flapping": "victim", "period": "500ms"}]
    shortest = scaled(read, 0.02)
    assert (shortest.interval.ms, shortest.deadline.s) == (20, 1)
    assert scaled(read, 2).deadline == read.deadline, "nor longer"
    for factor, says in ((0.001, "too short"), (0, "more than 0")):
        with pytest.raises(UserError, match=says):
            scaled(read, factor)
    (claim,) = claims(tmp_path, READS)
    figure = claim.scaled(0.1).availability
    assert figure is not None and (str(figure.since), str(figure.to)) == ("1s", "2s")


def test_a_text_names_a_request_of_the_protocol_that_knows_its_form(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Shouted(GrpcProtocol):
        name = "shouted"

        def is_named(self, text: str) -> bool:
            return text.endswith("!")

        def named(self, text: str) -> MethodEndpoint:
            return MethodEndpoint(method=f"a.Service/{text[:-1]}")

    monkeypatch.setitem(PROTOCOLS, "shouted", Shouted())  # type: ignore[arg-type]
    assert [api_of(text) for text in ("Get!", "a.Service/Get", "Get")] == ["shouted", "grpc", "bob"]
    assert measured("Get!").endpoint == measured("a.Service/Get").endpoint == "a.Service/Get"
    with pytest.raises(ValueError, match="no endpoint"):
        api_of("Got")
