"""A study file: which endpoints it may ask for, and how a mistake in it is told."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wanlat.experiments.config.endpoints import MethodEndpoint, asked_of, name_of
from wanlat.experiments.config.study import StudyError, load
from wanlat.systems import registry
from wanlat.systems.errors import SystemMissing

TOP = "name: mine\ntopology: five-sites\n"


def loaded(directory: Path, text: str) -> object:
    file = directory / "study.yaml"
    file.write_text(TOP + text)
    return load(str(file))


def mistakes(directory: Path, text: str) -> list[tuple[int | None, str, str]]:
    with pytest.raises(StudyError) as caught:
        loaded(directory, text)
    return [(each.line, each.where, each.text) for each in caught.value.mistakes]


@pytest.mark.parametrize(
    "name", ["endpoint-latency", "endpoint-latency-datacenters", "round-trips"]
)
def test_a_shipped_study_of_all_endpoints_asks_both_apis(name: str) -> None:
    study = load(name)
    assert asked_of("s3", study.endpoints) == (
        *("ListBuckets", "ListObjects", "GetObject", "PutObject", "RemoveObject"),
    )
    assert asked_of("bob", study.endpoints) == ("Put", "Get", "Exist", "Delete", "Ping")
    assert asked_of("grpc", study.endpoints) == ()
    assert study.systems == ["quorum"]


def test_methods_are_names_or_mappings(tmp_path: Path) -> None:
    study = loaded(
        tmp_path,
        "endpoints:\n"
        "  - shop.Catalogue/Count\n"
        "  - method: shop.Catalogue/Find\n"
        '    request: {id: "{key}"}\n'
        "    response_object: item.picture\n"
        "    key_bytes: 16\n"
        "    prepare:\n"
        "      method: shop.Catalogue/Add\n"
        '      request: {id: "{key}", picture: "{body}"}\n',
    )
    count, find = study.endpoints  # type: ignore[attr-defined]
    assert [name_of(each) for each in (count, find)] == [
        *("shop.Catalogue/Count", "shop.Catalogue/Find"),
    ]
    assert isinstance(find, MethodEndpoint)
    measured = find.measured()
    assert (measured.key_bytes, measured.response_object) == (16, "item.picture")
    assert measured.prepare is not None
    assert measured.prepare.request == {"id": "{key}", "picture": "{body}"}
    assert type(study).model_validate(study.model_dump()) == study  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("endpoints", "line", "where", "says"),
    [
        ("[Gett]", 3, "endpoints[0]", "did you mean `Get`?"),
        ("[GetObjekt]", 3, "endpoints[0]", "of S3 there are ListBuckets"),
        ("[shop/]", 3, "endpoints[0]", "`package.Service/Method`"),
        ("[Get, Put, Get]", 3, "endpoints[2]", "given twice"),
        ("[7]", 3, "endpoints[0]", "text is wanted"),
        ("[a.B/C, {method: a.B/C}]", 3, "endpoints[1]", "given twice"),
        ("[{method: Find}]", 3, "endpoints[0].method", "`package.Service/Method`"),
        ("[{request: {}}]", 3, "endpoints[0]", "`method` is missing: a unary method"),
        ("[{method: a.B/C, requst: {}}]", 3, "endpoints[0].requst", "did you mean `request`?"),
        ("[{method: a.B/C, request: 3}]", 3, "endpoints[0].request", "a mapping is wanted"),
        ("[{method: a.B/C, key_bytes: 1}]", 3, "endpoints[0].key_bytes", "at least 4"),
        (
            "[{method: bob_storage.BobApi/Get, key_bytes: 9}]",
            *(3, "endpoints[0].key_bytes", "Bob's keys are 8 bytes"),
        ),
        (
            '\n - method: a.B/C\n   request:\n     a: [{b: "{boddy}"}]',
            6,
            "endpoints[0].request.a[0].b",
            "did you mean `{body}`?",
        ),
        (
            "\n - method: a.B/C\n   request:\n     id: {key}",
            6,
            "endpoints[0].request.id",
            'write "{key}"',
        ),
        (
            '\n - method: a.B/C\n   prepare:\n     method: a.B/D\n     request: {id: "{keys}"}',
            7,
            "endpoints[0].prepare.request.id",
            "did you mean `{key}`?",
        ),
        (
            "\n - method: a.B/C\n   prepare: {method: a.B/D, prepare: {method: a.B/E}}",
            5,
            "endpoints[0].prepare.prepare",
            "unknown key",
        ),
    ],
)
def test_a_mistake_is_told_with_its_line(
    endpoints: str, line: int, where: str, says: str, tmp_path: Path
) -> None:
    (told,) = mistakes(tmp_path, f"endpoints: {endpoints}\n")
    assert told[:2] == (line, where)
    assert says in told[2]


@pytest.mark.parametrize(("size", "says"), [("0", "from 1 byte"), ("2GiB", "to 1GiB long")])
def test_a_message_has_a_length_that_grpc_can_have(size: str, says: str, tmp_path: Path) -> None:
    (told,) = mistakes(tmp_path, f"endpoints: [Get]\nmax_message: {size}\n")
    assert told[1] == "max_message"
    assert says in told[2]


def test_braces_that_are_no_placeholder_are_text(tmp_path: Path) -> None:
    text = 'endpoints: [{method: a.B/C, request: {a: "{}", b: "{0}", c: "{key", d: "{other}"}}]\n'
    loaded(tmp_path, text)


def test_files_of_a_service_are_taken_from_where_the_study_is(tmp_path: Path) -> None:
    (tmp_path / "api").mkdir()
    (tmp_path / "api" / "shop.proto").touch()
    (tmp_path / "shop").touch()
    study = loaded(
        tmp_path,
        "systems: [service]\nendpoints: [shop.Catalogue/Count]\noptions:\n  service:\n"
        "    command: [./shop, --data, api]\n    protos: [api/shop.proto, /elsewhere.proto]\n"
        "    includes: [api]\n",
    )
    assert study.options["service"] == {  # type: ignore[attr-defined]
        "command": [str(tmp_path / "shop"), "--data", "api"],
        "protos": [str(tmp_path / "api" / "shop.proto"), "/elsewhere.proto"],
        "includes": [str(tmp_path / "api")],
    }


def test_a_program_beside_a_study_is_not_looked_for_on_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run from where the study is, so that the way to the program is the shortest there is."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for directory in (tmp_path, elsewhere):
        (directory / "shop").write_text(f"#!/bin/sh\n# of {directory}\n")
        (directory / "shop").chmod(0o755)
    monkeypatch.setenv("PATH", f"{elsewhere}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.yaml").write_text(
        "name: test\ntopology: one-site\nsystems: [service]\n"
        "endpoints: [shop.Catalogue/Count]\noptions: {service: {command: [./shop]}}\n"
    )
    service = registry.get("service")
    given = load("study.yaml").options["service"]
    found = service.binary_for(service.parse_options(given))
    assert found.path.samefile(tmp_path / "shop")
    (tmp_path / "shop").unlink()
    given = load("study.yaml").options["service"]
    with pytest.raises(SystemMissing, match=r"shop`, is not a program"):
        service.binary_for(service.parse_options(given))
