"""Definitions: mistakes are reported at once, with lines; texts and what is inherited."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wanlat.probes.protocols import header_to
from wanlat.systems import registry
from wanlat.systems.base import Binary
from wanlat.systems.engine.definition import SHIPPED, Definition, DefinitionError, read
from wanlat.systems.engine.text import NotYetError, evaluate, fill, judge
from wanlat.topologies.errors import UserError

NODES = [{"name": "n1", "address": "10.0.0.1"}, {"name": "n2", "address": "10.0.0.2"}]


def written(directory: Path, text: str) -> Path:
    directory.mkdir(exist_ok=True)
    (directory / "system.yaml").write_text(text)
    return directory


@pytest.mark.parametrize("name", registry.names())
def test_every_shipped_definition_is_right(name: str) -> None:
    assert registry.get(name).name == name


@pytest.mark.parametrize("protocol", ["s3", "grpc", "http", "exec"])
def test_what_a_new_system_begins_with_is_right(tmp_path: Path, protocol: str) -> None:
    text = (SHIPPED / "engine" / f"new-{protocol}.yaml").read_text().replace("NAME", "mine")
    assert read(written(tmp_path / "mine", text))[0].protocol == protocol


WRONG = """schema: 1
name: mine
instal: {path: mine}
options: {size: {type: integer, derivd: 3}}
command: [mine, "{nod.name}", "{node.adress}", "{options.siz}", "{node.name"]
values: {x: "1 +"}
files: {a.conf: no-such.j2}
ready: [{name: up, hook: is_up}, {name: two, tcp: 1, log: x}]
"""


def test_all_mistakes_are_reported_at_once_each_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError) as caught:
        read(written(tmp_path, WRONG))
    message = str(caught.value)
    for line, part in (
        (3, "did you mean `install`"),
        (4, "did you mean `derived`"),
        (5, "`nod` is not known here (did you mean `node`"),
        (5, "did you mean `address`"),
        (5, "did you mean `size`"),
        (5, "a brace is not closed"),
        (6, "values.x"),
        (7, "no-such.j2"),
        (8, "hooks.py has no function `is_up`"),
        (8, "not 2 of them"),
    ):
        assert any(f":{line}:" in row and part in row for row in message.splitlines()), part


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("plain {{braces}}", "plain {braces}"),
        ("{port + 1}", 9001),
        ("at {port}", "at 9000"),
        ("{nodes:{node.name}=http://{node.address}:{port}}", "n1=http://10.0.0.1:9000,n2=http://10.0.0.2:9000"),
        ({"a": ["{port}", True]}, {"a": [9000, True]}),
        ("{'a}' ~ port}", "a}9000"),
    ],
)  # fmt: skip
def test_texts_are_filled_in(text: object, value: object) -> None:
    assert fill(text, {"port": 9000, "nodes": NODES}) == value


def test_an_unknown_attribute_is_an_error() -> None:
    with pytest.raises(UserError, match=r"nothing\.deeper"):
        evaluate("nothing.deeper", {})


@pytest.mark.parametrize("answer", [{}, {"x": None}, None, {"x": {"y": None}}, {"x": "n/a"}])
@pytest.mark.parametrize(
    "expression",
    [
        *("answer.x | int != 0", "answer.x | int == 0", "answer.x.y | float < 1"),
        *("answer.x.y.z", "answer.x.y[0].z == 1", "answer.x.y != 3", "answer.x.y == answer.a"),
        *("not answer.x.y", "not (answer.x.y or answer.a)", "1 if answer.x.y else 2"),
        *("answer.x.y | length == 0", "answer.x.y | first", "answer.x.y | items | list == []"),
        *("answer.x.y | map('int')", "answer.x.y | select | list | length == 0"),
        *("'a' not in answer.x.y", "answer.x.y not in [1]", "answer.x.y + 1 > 0", "-answer.x < 1"),
        *("answer.x.y ~ ''", "answer.x.y() | list == []", "answer.x.y is not string"),
    ],
)
def test_what_rests_on_what_an_answer_lacks_is_not_yet(expression: str, answer: object) -> None:
    with pytest.raises(NotYetError):
        judge(expression, {"answer": answer})


@pytest.mark.parametrize(
    ("expression", "answer", "value"),
    [
        ("answer.leader | int != 0", {"leader": "7"}, True),
        ("answer.x | default(0) | int == 0", {}, True),
        ("answer.x | int(0) == 0", {"x": "n/a"}, True),
        ("answer.x is none", {"x": None}, True),
        ("answer.x is not defined", {}, True),
        ("answer.x or answer.y", {"y": True}, True),
        ("answer.x and answer.y", {"y": False}, False),
        ("answer | rejectattr('down') | list | length == 2", [{}, {"down": None}], True),
        ("answer.m | selectattr('up') | list | length", {"m": [{"up": 1}, {}, {"up": None}]}, 1),
        ("answer.count('online') == 2", "online online", True),
        ("answer.m | map('int')", {"m": ["1", "2"]}, [1, 2]),
    ],
)
def test_what_rests_on_what_an_answer_has_has_a_value(
    expression: str, answer: object, value: object
) -> None:
    assert judge(expression, {"answer": answer}) == value


def test_a_name_that_is_no_answers_is_a_mistake_of_the_definition(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="answr"):
        judge("answr.x | int", {"answer": {}})
    text = "schema: 1\nname: mine\nready: [{name: up, run: [x], where: answr.x | int != 0}]\n"
    with pytest.raises(DefinitionError, match="`answr` is not known"):
        read(written(tmp_path, text))


def test_a_directory_is_adopted_by_its_name_and_not_under_a_name_that_is_taken(
    tmp_path: Path,
) -> None:
    text = "schema: 1\nname: {}\nextends: quorum\nports: {{s3: 9007}}\n"
    mine = written(tmp_path / "a", text.format("adopted"))
    assert registry.adopt(f"{mine}/") == "adopted"
    system = registry.get("adopted")
    assert system.definition.ports == {"s3": 9007, "peer": 9001, "health": 9002, "grpc": 20000}
    assert registry.adopt("garage") == "garage"
    with pytest.raises(UserError, match="already"):
        registry.adopt(f"{written(tmp_path / 'b', text.format('garage'))}/")


@pytest.mark.parametrize("base", ["garage", "redis", "etcd"])
def test_what_extends_another_has_the_files_of_that(base: str, tmp_path: Path) -> None:
    mine, _ = read(written(tmp_path / "mine", f"schema: 1\nname: mine\nextends: {base}\n"))
    theirs = SHIPPED / base
    named = [
        *mine.files.values(),
        *(mine.grpc.protos if mine.grpc else ()),
        *(word for word in (mine.exec.command if mine.exec else ()) if "client.py" in str(word)),
    ]
    assert named
    assert {Path(str(each)).parent for each in named} == {theirs}


def test_the_schema_names_every_key() -> None:
    assert {"schema", "install", "after_start"} <= set(Definition.model_json_schema()["properties"])


def test_what_every_call_is_sent_with_is_filled_in_for_its_node(lab: Any, tmp_path: Path) -> None:
    text = (
        "schema: 1\nname: guarded\nprotocol: grpc\nports: {grpc: 70}\ncommand: [guarded]\n"
        "grpc: {protos: [a.proto], metadata: {authorization: 'Bearer of {node.name}'}}\n"
    )
    system = registry.get(registry.adopt(f"{written(tmp_path / 'guarded', text)}/"))
    binary = Binary(Path("/bin/true"), "1", "0")
    cluster = system.configure(lab, system.parse_options(), binary, tmp_path)
    header = header_to(cluster.target("n2"), deadline_ms=1000)
    assert json.loads(header.line())["metadata"] == {"authorization": "Bearer of n2"}
