"""A study file: what it may say, and every mistake in it reported with its line."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from wanlat.experiments.config.endpoints import MethodEndpoint, asked_of, name_of
from wanlat.experiments.config.files import shipped
from wanlat.experiments.config.load import LoadSpec
from wanlat.experiments.config.rtt_steps import RoundTripsSpec
from wanlat.experiments.config.study import Study, StudyError, load
from wanlat.experiments.matrix_points import points_of
from wanlat.systems import registry
from wanlat.systems.errors import SystemMissing
from wanlat.topologies.units import Duration

TOP = "name: mine\ntopology: five-sites\n"
ENDPOINTS = "endpoints: [GetObject, PutObject]\n"


def loaded(directory: Path, text: str) -> Study:
    file = directory / "study.yaml"
    file.write_text(TOP + text)
    return load(str(file))


def mistakes(directory: Path, text: str) -> list[tuple[int | None, str, str]]:
    with pytest.raises(StudyError) as caught:
        loaded(directory, text)
    return [(each.line, each.where, each.text) for each in caught.value.mistakes]


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
            *(6, "endpoints[0].request.a[0].b", "did you mean `{body}`?"),
        ),
        (
            "\n - method: a.B/C\n   request:\n     id: {key}",
            *(6, "endpoints[0].request.id", 'write "{key}"'),
        ),
        (
            '\n - method: a.B/C\n   prepare:\n     method: a.B/D\n     request: {id: "{keys}"}',
            *(7, "endpoints[0].prepare.request.id", "did you mean `{key}`?"),
        ),
        (
            "\n - method: a.B/C\n   prepare: {method: a.B/D, prepare: {method: a.B/E}}",
            *(5, "endpoints[0].prepare.prepare", "unknown key"),
        ),
    ],
)
def test_a_mistake_in_endpoints_is_reported_with_its_line(
    endpoints: str, line: int, where: str, says: str, tmp_path: Path
) -> None:
    (told,) = mistakes(tmp_path, f"endpoints: {endpoints}\n")
    assert told[:2] == (line, where)
    assert says in told[2]


PREFILLED = "prefill: {objects: 10}\n"


@pytest.mark.parametrize(
    ("text", "where", "says"),
    [
        ("systems: [quorum, quorum]", "systems[1]", "given twice"),
        ("system: quorum", "system", "`systems` takes a list"),
        ("max_message: 0", "max_message", "more than 0"),
        ("max_message: 2GiB", "max_message", "at most 1GiB"),
        ("budget: {}", "budget", "`time`, or `bytes`"),
        ("warmup: 0\nbudget: {time: 5s}", "warmup", "judged from the warm-up"),
        ("resources: {interval: 1ms}", "resources.interval", "at least 50ms"),
        ("reclaim: {watch: 0s}", "reclaim.watch", "more than 0"),
        ("reclaim: {}\nprefill: {}", "prefill", "`reclaim.objects` says"),
        (PREFILLED + "load: {mix: {GetObject: 0.5, Put: 0.4}}", "load.mix", "add up to 1, not"),
        (PREFILLED + "load: {mix: {GetObjekt: 1.0}}", "load.mix.GetObjekt", "mean `GetObject`?"),
        (PREFILLED + "load: {mix: {Get: 1.5}}", "load.mix.Get", "from 0 to 1, not 1.5"),
        (PREFILLED + "load: {duration: 0s}", "load.duration", "more than 0"),
        (PREFILLED + "load: {rate: 0}", "load.rate", "more than 0"),
        (PREFILLED + "load: {object_size: 1KiB}", "load.object_size", "it is the study's"),
        (PREFILLED + "load: {}\nround_trips: {}", "load", "a study is of one kind"),
        (PREFILLED + "load: {}\nbudget: {bytes: 1GiB}", "budget", "single requests"),
        ("load: {}", "load", "there is nothing to read"),
        ("prefill: {objects: 0}\nload: {}", "prefill.objects", "there is nothing to read"),
        ("prefill: {object_size: 2KiB}\nload: {}", "prefill.object_size", "objects of one size"),
        ("round_trips: {rtts: [0ms, 25ms, 25ms]}", "round_trips.rtts[2]", "given twice"),
        ("round_trips: {rtts: [0ms, 11s]}", "round_trips.rtts[1]", "at most 10s"),
        ("round_trips: {settle: 0.2s}", "round_trips.settle", "without any request"),
        ("round_trips: {rtts: [3s], settle: 2s}", "round_trips.settle", "an RTT of 3s"),
        ("round_trips: {rtt: 5ms}", "round_trips.rtt", "`rtts` takes a list"),
        ("load: {mix: {PutObject: 0.9, RemoveObject: 0.1}}", None, ""),
        ("load: {mix: {Put: 0.33, Delete: 0.33, PutObject: 0.33}}", None, ""),
        ("load: {}\nmatrix: {prefill.objects: [10]}", None, ""),
    ],
)
def test_a_mistake_is_reported_where_it_is(
    text: str, where: str | None, says: str, tmp_path: Path
) -> None:
    if where is None:
        assert loaded(tmp_path, f"{ENDPOINTS}{text}\n")
        return
    (told,) = mistakes(tmp_path, f"{ENDPOINTS}{text}\n")
    assert told[0] is not None
    assert told[0] > 3
    assert told[1] == where
    assert says in told[2]


def test_all_mistakes_of_a_file_are_reported_at_once(tmp_path: Path) -> None:
    text = (
        "endpoints: [Gett]\nround_trips:\n  rtts: [0ms, -1ms]\n  repeats: 0\nsample: 3\n"
        "budget: {bytes: 1GiB}\nload: {}\n"
    )
    found = mistakes(tmp_path, text)
    assert [(line, where) for line, where, _ in found] == [
        *((3, "endpoints[0]"), (5, "round_trips.rtts[1]"), (6, "round_trips.repeats")),
        *((7, "sample"), (8, "budget"), (9, "load")),
    ]
    assert "first in line 4" in found[-1][2]


def test_methods_are_names_or_mappings(tmp_path: Path) -> None:
    study = loaded(
        tmp_path,
        "endpoints:\n"
        "  - shop.Catalogue/Count\n"
        "  - method: shop.Catalogue/Find\n"
        '    request: {id: "{key}", braces: ["{}", "{0}", "{key", "{other}"]}\n'
        "    response_object: item.picture\n"
        "    key_bytes: 16\n"
        "    prepare:\n"
        "      method: shop.Catalogue/Add\n"
        '      request: {id: "{key}", picture: "{body}"}\n',
    )
    count, find = study.endpoints
    assert [name_of(each) for each in (count, find)] == [
        *("shop.Catalogue/Count", "shop.Catalogue/Find"),
    ]
    assert isinstance(find, MethodEndpoint)
    measured = find.measured()
    assert (measured.key_bytes, measured.response_object) == (16, "item.picture")
    assert measured.prepare is not None
    assert measured.prepare.request == {"id": "{key}", "picture": "{body}"}
    assert Study.model_validate(study.model_dump()) == study


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_study_has_points_and_survives_its_bundle(name: str) -> None:
    study = load(name)
    assert points_of(study)
    assert Study.model_validate(study.to_dict()) == study


def test_the_shipped_studies_are_those_that_are_documented() -> None:
    for name in ("endpoint-latency", "endpoint-latency-datacenters", "round-trips"):
        endpoints = load(name).endpoints
        assert asked_of("s3", endpoints) == (
            *("ListBuckets", "ListObjects", "GetObject", "PutObject", "RemoveObject"),
        )
        assert asked_of("bob", endpoints) == ("Put", "Get", "Exist", "Delete", "Ping")
    spec = load("round-trips").round_trips
    assert spec == RoundTripsSpec(), "the defaults are the shipped study's"
    assert spec is not None
    assert [rtt.ms for rtt in spec.rtts] == [0, 25, 50, 100, 200]
    sizes = points_of(load("object-sizes"))
    assert sorted({each.study.object_size.bytes for each in sizes}) == [
        *(1024, 50 * 1024, 1024**2, 4 * 1024**2 - 1024, 4 * 1024**2, 4 * 1024**2 + 1024),
        100 * 1024**2,
    ]
    assert {each.study.nodes for each in sizes} == {1, 2, 4}
    mixed = load("mixed-load")
    assert mixed.load is not None
    assert (mixed.load.workers, mixed.load.duration.s) == (16, 600)
    assert [(p.system, p.study.nodes, p.study.options) for p in points_of(mixed)] == [
        ("minio", 1, {"minio": {"drives": 1}}),
        ("minio", 1, {"minio": {"drives": 4}}),
        ("minio-nginx", 4, {"minio-nginx": {"drives": 4}}),
        ("garage", 4, {}),
    ]


@pytest.mark.parametrize(
    ("spec", "doubt"),
    [
        ({"rtts": ["0ms", "50ms"]}, "has 2 RTTs"),
        ({"rtts": ["50ms"]}, "has 1 RTT,"),
        ({"jitter": "5ms"}, "jitter of 5ms"),
        ({}, None),
    ],
)
def test_what_gives_no_number_of_round_trips_is_doubted(
    spec: dict[str, Any], doubt: str | None
) -> None:
    said = RoundTripsSpec.model_validate(spec).doubts()
    assert len(said) == (doubt is not None)
    assert all(doubt is not None and doubt in each for each in said)


def test_a_jitter_has_no_more_room_than_the_rtt() -> None:
    spec = RoundTripsSpec(jitter=Duration(5 * 10**6))
    assert [spec.jitter_at(Duration(ms * 10**6)).ms for ms in (0, 2, 100)] == [0, 2, 5]


def test_a_mix_has_the_names_of_the_api_that_is_asked() -> None:
    spec = LoadSpec(mix={"Get": 0.5, "PutObject": 0.25, "Put": 0.25})
    assert spec.mix_of("s3") == {"GetObject": 0.5, "PutObject": 0.5}
    assert spec.mix_of("bob") == {"Get": 0.5, "Put": 0.5}


def test_files_are_taken_from_where_the_study_is(tmp_path: Path) -> None:
    (tmp_path / "api").mkdir()
    for name in ("api/shop.proto", "shop", "near.yaml"):
        (tmp_path / name).touch()
    study = loaded(
        tmp_path,
        "systems: [service]\nendpoints: [shop.Catalogue/Count]\noptions:\n  service:\n"
        "    command: [./shop, --data, api]\n    protos: [api/shop.proto, /elsewhere.proto]\n"
        "    includes: [api]\n"
        "matrix: {topology: [one-site, near.yaml], include: [{topology: near.yaml, nodes: 2}]}\n",
    )
    assert study.options["service"] == {
        "command": [str(tmp_path / "shop"), "--data", "api"],
        "protos": [str(tmp_path / "api" / "shop.proto"), "/elsewhere.proto"],
        "includes": [str(tmp_path / "api")],
    }
    near = str(tmp_path / "near.yaml")
    assert [each.study.topology for each in points_of(study)] == ["one-site", near, near]


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
    loaded(
        tmp_path,
        "systems: [service]\nendpoints: [shop.Catalogue/Count]\n"
        "options: {service: {command: [./shop]}}\n",
    )
    service = registry.get("service")
    options = service.parse_options(load("study.yaml").options["service"])
    assert service.binary_for(options).path.samefile(tmp_path / "shop")
    (tmp_path / "shop").unlink()
    options = service.parse_options(load("study.yaml").options["service"])
    with pytest.raises(SystemMissing, match=re.escape("shop`, is not a program")):
        service.binary_for(options)
