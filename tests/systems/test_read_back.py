"""Settings that a running server has in effect are read back, and compared with what was meant."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow
import pytest
from pyarrow import parquet
from systems_doubles import TOY_PORT, StandInLab, plan_of, toy

from wanlat.experiments.check import Checked, check
from wanlat.experiments.session import Outcome
from wanlat.systems import registry
from wanlat.systems.engine.read_back import EffectiveSetting, grouped, is_same
from wanlat.systems.engine.scene import scene_of
from wanlat.systems.engine.text import evaluate, render
from wanlat.systems.engine.wait import distance_remark, ready_timeout_s
from wanlat.systems.errors import SystemFailed
from wanlat.topologies.load import load as load_topology
from wanlat.topologies.resolve import resolve
from wanlat.topologies.units import Duration

REPORTS = """
import http.server, json, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        text = "sync = 120s" if self.path == "/text" else json.dumps(dict(interval=2000000))
        body = text.encode()
        self.send_response(404 if self.path == "/none" else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
http.server.HTTPServer((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
"""


def source(path: str, read: str, expected: str) -> dict[str, Any]:
    http = {"port": TOY_PORT, "path": path}
    return {"http": http, "settings": {path: {"read": read, "expected": expected}}}


def test_a_cluster_reports_what_its_servers_have_in_effect_beside_what_was_meant(
    lab: StandInLab, tmp_path: Path
) -> None:
    sources = [
        source("/json", "answer.interval", "120"),
        source("/text", "search('sync = ([0-9]+)s', answer)", "120"),
        source("/lacks", "answer.no.such.key", "1"),
        source("/none", "answer", "1"),
        {**source("/left-out", "answer", "1"), "when": "nodes | length > 99"},
    ]
    command = ["toy", "-c", REPORTS, "{node.address}", "{ports.s3}"]
    system, events = toy(command=command, settings=sources), list[tuple[str, str, Any]]()
    cluster = system.start(
        cast("Any", lab),
        system.parse_options(),
        tmp_path,
        60,
        lambda _: None,
        on_event=lambda kind, node, facts: events.append((kind, node, facts)),
    )
    read = {setting.name: setting for setting in cluster.read_settings()}
    assert set(read) == {"/json", "/text", "/lacks", "/none"}
    assert {name for name, setting in read.items() if setting.is_as_expected} == {"/text"}
    assert read["/json"].nodes == ("n1", "n2", "n3"), "one entry for nodes that agree"
    assert "is 2000000, and 120 was configured" in str(read["/json"])
    assert "answer.no.such.key" in str(read["/lacks"].error)
    assert "404" in str(read["/none"].error)
    # And the bundle gets each step of becoming ready, of each node, in its order.
    kinds = [kind for kind, node, _ in events if node == "n2"]
    assert kinds == ["process started", "listening", "readiness step"]
    assert ("readiness step", "n2", {"step": "serves"}) in events


@pytest.mark.parametrize(
    ("value", "expected", "same"),
    [
        ("60", 60.0, True),
        ("2", 2.5, False),
        ("1.073741824e+09", 2**30, True),
        (True, "true", True),
        (True, 1.5, False),
        (["n1", "n3"], ["n1", "n3"], True),
        ("ANY 2 (n2, n3)", "ANY 2 (n2, n3)", True),
        (None, 0, False),
    ],
)
def test_values_are_equal_as_they_are_as_numbers_or_as_texts(
    value: Any, expected: Any, same: bool
) -> None:
    assert is_same(value, expected) is same


def test_nodes_that_differ_are_entries_of_their_own() -> None:
    values = {"a": 1, "b": 2, "c": 1}
    settings = [EffectiveSetting("id", (node,), value, 1) for node, value in values.items()]
    assert [(each.nodes, each.is_as_expected) for each in grouped(settings)] == [
        (("a", "c"), True),
        (("b",), False),
    ]


@pytest.mark.parametrize("sync", ["2m", "10s", "500ms", "always"])
def test_nats_gets_its_sync_interval_as_a_text_and_is_expected_to_read_that(sync: str) -> None:
    """Without quotes nats-server takes `2m` for two million seconds."""
    nats = registry.get("nats")
    scene = nats.scene(plan_of(3), nats.parse_options({"sync": sync}))
    scene |= {"node": scene["nodes"][0]}
    assert f'sync_interval: "{sync}"' in render(nats.directory / "nats.conf.j2", scene)
    ns = {"2m": 120 * 10**9, "10s": 10**10, "500ms": 5 * 10**8, "always": 120 * 10**9}
    assert scene["sync_ns"] == ns[sync]


@pytest.mark.parametrize(
    ("sizes", "options", "members"),
    [
        ((2, 2, 1), {}, ["n1", "n3", "n5"]),
        ((2, 2, 1), {"leader": "n4"}, ["n4", "n1", "n5"]),
        ((2, 2, 1), {"replicas": 5}, ["n1", "n3", "n5", "n2", "n4"]),
        ((4,), {}, ["n1", "n2", "n3"]),
    ],
)
def test_the_replicas_of_nats_are_in_as_many_sites_as_can_be(
    sizes: tuple[int, ...], options: dict[str, Any], members: list[str]
) -> None:
    nats = registry.get("nats")
    scene = nats.scene(plan_of(*sizes), nats.parse_options(options))
    assert [node.name for node in scene["members"]] == members


def test_case_v1_three_replicas_on_three_datacenters_are_in_three_sites() -> None:
    nats, plan = registry.get("nats"), resolve(load_topology("three-datacenters"))
    scene = nats.scene(plan, nats.parse_options({"replicas": 3}))
    assert len({node.site for node in scene["members"]}) == 3
    assert nats.indispensable_sites(plan, nats.parse_options({"replicas": 3})) == []


@pytest.mark.parametrize(
    ("name", "sizes", "options", "sites"),
    [
        ("nats", (3, 1), {}, ["dc1"]),
        ("nats", (2, 2, 1), {}, []),
        ("nats", (5,), {}, []),
        ("etcd", (3, 1, 1), {}, ["dc1"]),
        ("etcd", (1, 1, 1), {}, []),
        ("zookeeper", (2, 2), {}, ["dc1", "dc2"]),
        ("redis", (3, 2), {"wait": 2}, ["dc1"]),
        ("postgresql", (1, 3), {}, ["dc2"]),
        ("minio", (2, 2), {}, ["dc1", "dc2"]),
        ("minio", (12, 12, 12), {}, []),  # three sets of twelve, each in all sites
        ("quorum", (3, 1, 1), {}, ["dc1"]),
        ("garage", (2, 2), {}, ["dc1", "dc2"]),
        ("versitygw", (3, 1), {}, []),
    ],
)
def test_a_site_without_which_no_write_is_acknowledged_is_named(
    name: str, sizes: tuple[int, ...], options: dict[str, Any], sites: list[str]
) -> None:
    system = registry.get(name)
    remarks = system.indispensable_sites(plan_of(*sizes), system.parse_options(options))
    assert [site for remark in remarks for site in ("dc1", "dc2", "dc3") if site in remark] == sites


def test_versitygw_keeps_connections_unless_a_study_does_not_want_it() -> None:
    gateway, plan = registry.get("versitygw"), plan_of(1)
    for keep, words in ((True, ["--keep-alive"]), (False, [])):
        options = gateway.parse_options({"keep_alive": keep})
        scene = scene_of(gateway.definition, gateway.hooks, plan, options)
        flag = next(a for a in gateway.definition.command if not isinstance(a, str))
        assert ([*flag.run] if evaluate(str(flag.when), scene) else []) == words


@pytest.mark.parametrize(
    ("read", "differing"),
    [([], []), ([("a", 1, 1)], []), ([("a", 1, 1), ("b", 2, 3)], ["b"]), ([("a", 1, 2)], ["a"])],
)
def test_a_check_keeps_its_bundle_and_names_the_settings_that_are_not_as_meant(
    read: list[tuple[str, int, int]],
    differing: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("wanlat.experiments.check.demand_lab", lambda *_: None)
    monkeypatch.setattr(
        "wanlat.experiments.check.prepare",
        lambda _, directory: SimpleNamespace(directory=directory, plan=None, backend=None),
    )
    settings = [EffectiveSetting(name, ("n1",), value, meant) for name, value, meant in read]

    def measure(prepared: Any) -> Outcome:
        prepared.directory.mkdir()
        entries = {"toy": [setting.as_recorded() for setting in settings]} if settings else {}
        (prepared.directory / "manifest.json").write_text(json.dumps({"settings": entries}))
        parquet.write_table(
            pyarrow.Table.from_pylist([{"endpoint": "Get", "outcome": "ok"}]),
            prepared.directory / "samples.parquet",
        )
        return Outcome(prepared.directory, status="complete")

    checked = check(toy(), ["GetObject"], measure)
    assert checked.is_answered
    assert list(checked.settings) == settings
    assert [setting.name for setting in checked.differing] == differing
    assert checked.ended.directory.exists() is bool(differing)


def test_a_server_that_closes_each_connection_is_noticed_and_a_first_one_is_no_sign() -> None:
    def closing(*made: bool) -> list[str]:
        rows = [
            {"endpoint": f"Get{number % 2}", "start_ns": number, "new_connection": new}
            for number, new in enumerate(made)
        ]
        return sorted(Checked(Outcome(Path("run")), rows, []).closes_connections())

    assert closing(True, False, False, False) == []
    assert closing(True, True, True, True) == ["Get0", "Get1"]
    assert closing(True, True, False, True) == ["Get1"]


def test_a_cluster_may_take_longer_the_further_apart_it_is_and_an_error_says_that() -> None:
    near, far = plan_of(2), plan_of(1, 1, rtt_ms=400)
    assert ready_timeout_s(near, Duration(120 * 10**9)) == 120
    assert ready_timeout_s(far, Duration(120 * 10**9)) == 360
    assert ready_timeout_s(None, Duration(10**9)) == 1
    assert distance_remark(near) == ""
    assert "400 ms" in distance_remark(far)
    assert "ready_timeout" in distance_remark(far)


def test_who_waited_in_vain_learns_the_step_and_that_distance_may_be_why(tmp_path: Path) -> None:
    lab = StandInLab(plan_of(1, 1, rtt_ms=400), tmp_path / "nodes")
    system = toy()
    options = system.parse_options({"bad_node": "n2", "bad_behaviour": "refuses"})
    try:
        with pytest.raises(SystemFailed, match=r"waiting for: serves.*largest RTT .* is 400 ms"):
            system.start(cast("Any", lab), options, tmp_path / "logs", 5, lambda _: None)
    finally:
        lab.close()
