"""What a report says, computed again from the raw files: on one bundle of each kind.

Bundles are made here, on the reference store; the small ones of tests/data, which it left too, are
computed again where nothing may take time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.command_line import here
from tests.experiments.commands import run, study
from tests.late_network import accepting_late_packets
from tests.second_person import raw

STORED = Path(__file__).parents[1] / "data" / "bundles" / "2"
SINGLE = "endpoints: [GetObject, PutObject]\nsamples: 60\nwarmup: 2\nresources: false\n"
TRIPS = """
endpoints: [GetObject, PutObject]
options: {quorum: {protocol: leader, leader: n1}}
target: n2
client: n2
round_trips: {rtts: [0ms, 60ms, 120ms], repeats: 2, settle: 1s}
samples: 10
warmup: 1
"""
SIZES = f"{SINGLE}matrix: {{object_size: [1KiB, 64KiB]}}\n"
LOAD = """
endpoints: [GetObject, PutObject]
warmup: 1
object_size: 64KiB
resources: {interval: 100ms, idle: 500ms}
prefill: {objects: 20, buckets: 2, writers: 4}
load: {workers: 4, probe_interval: 20ms, duration: 4s, idle: 1s, mix: {Get: 0.6, Put: 0.4}}
"""
RECLAIM = """
endpoints: [RemoveObject]
object_size: 64KiB
resources: {interval: 200ms}
reclaim: {objects: 60, remove: 0.5, settle: 300ms, watch: 2s}
"""
ENVELOPE = """
options: {quorum: {refuse_above: 60}}
endpoints: [GetObject, PutObject]
resources: false
envelope:
  promise: {deadline: 400ms, rate: 10, share: 80%, window: 400ms, cut: 200ms, recovery: 2s}
  rtt: {low: 10ms, high: 300ms, precision: 100%}
  settle: 200ms
  fails: 10%
  error: 10%
"""
PROMISED_SHARE = 0.8

Make = Callable[[str], Path]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Measure one of these kinds, once, and return its bundle with its summary."""

    @cache
    def measure(kind: str) -> Path:
        directory = tmp_path_factory.mktemp(kind)
        bundle = directory / "bundle"
        if kind == "drill":
            short = ("objects=20", "interval=500ms")
            changes = [word for each in short for word in ("--set", each)]
            words = ["one-node-killed", "--systems", "quorum", "--scale", "0.1", *changes]
            with accepting_late_packets("drill"):
                done = here("drill", "run", *words, "--seed", "7", "--out", str(bundle))
            assert done.returncode in (0, 1), done.stderr
        else:
            text = {"single": SINGLE, "trips": TRIPS, "sizes": SIZES, "load": LOAD}
            text |= {"reclaim": RECLAIM, "envelope": ENVELOPE}
            sites = 1 if kind in ("load", "reclaim") else 3
            more = ["--replicates", "2", "--jobs", "2"] if kind in ("envelope", "sizes") else []
            done = run(study(directory, text[kind], sites=sites), *more, out=bundle)
            assert done.returncode == 0, done.stderr
        return bundle

    return measure


def summary_of(bundle: Path) -> Any:
    return json.loads((bundle / "summary.json").read_text("utf-8"))


def points_of(matrix: Path) -> Iterator[tuple[Any, Path]]:
    for point in raw.document(matrix / "points.json")["points"]:
        yield point, matrix / point["directory"]


def same(value: float | None, figure: float, digits: float = 1e-4) -> bool:
    return value is not None and value == pytest.approx(figure, rel=digits, abs=1e-4)


def check_latencies(rows: list[Any], bundle: Path) -> None:
    again = raw.latencies(bundle).set_index(["endpoint", "placement"])
    assert len(rows) == len(again) > 0
    for row in rows:
        figures = again.loc[row["endpoint"], row["placement"]]
        assert [row[k] for k in ("n", "ok", "fail", "unknown")] == [
            int(figures[k]) for k in ("n", "ok", "fail", "unknown")
        ]
        for name in ("mean_ms", "median_ms", "min_ms", "max_ms", "p95_ms", "p99_ms", "outliers"):
            assert same(row[name], figures[name]), (row["endpoint"], name)


def check_round_trips(rows: list[Any], bundle: Path, within: float) -> None:
    again = raw.round_trips(bundle)
    assert rows
    for row in rows:
        line = again[row["endpoint"], row["placement"]][0]
        assert row["round_trips"] is not None
        assert abs(row["round_trips"] - line.slope) <= within, row["endpoint"]
        assert abs(row["modes"][0]["share"] - line.share) <= within


def check_sizes(matrix: Path) -> None:
    entries = summary_of(matrix)["sizes"]["entries"]
    points = {point["name"]: directory for point, directory in points_of(matrix)}
    assert {entry["point"] for entry in entries} == {*points}
    for entry in entries:
        again = raw.latencies(points[entry["point"]]).set_index("endpoint").loc[entry["endpoint"]]
        assert entry["n"] == again["n"]
        assert same(entry["mean_ms"], again["mean_ms"])
        assert same(entry["median_ms"], again["median_ms"])
        rate = 1e3 / again["mean_ms"]
        assert same(entry["requests_per_s"], rate)
        assert same(entry["bytes_per_s"], rate * entry["object_bytes"])
        ratio = again["mean_ms"] / again["median_ms"]
        assert same(entry["mean_over_median"]["ratio"], ratio)
        assert sum(v for k, v in entry["outliers"].items() if k != "share") == again["outliers"]


def check_drill(bundle: Path) -> None:
    drill = summary_of(bundle)["drill"]
    for phase in drill["phases"]:
        for operation in ("read", "write"):
            figures, again = phase[f"{operation}s"], raw.served(bundle, phase["name"], operation)
            for name in ("attempted", "ok", "not_sent"):
                assert figures[name] == again[name], (phase["name"], operation, name)
            for name in ("availability", "p50_ms", "p99_ms"):
                assert same(figures[name], again[name]), (phase["name"], operation, name)
    durability = drill["durability"]
    assert durability["acknowledged"] == raw.acknowledged(bundle)
    wrong = raw.wrong_objects(bundle)
    assert {kind: durability[kind] for kind in wrong} == wrong


def check_load(row: Any, bundle: Path) -> None:
    assert row["operations"]
    begin_s, end_s = row["operations"][0]["begin_s"], row["operations"][0]["end_s"]
    again = raw.load(bundle, begin_s, end_s).set_index("operation")
    for figures in row["operations"]:
        mine = again.loc[figures["operation"]]
        assert (figures["ok"], figures["fail"], figures["bytes"]) == (
            *(mine["ok"], mine["fail"], mine["bytes"]),
        )
        for name in ("operations_per_s", "mean_ms", "p50_ms", "p95_ms", "p99_ms"):
            assert same(figures[name], mine[name]), (figures["operation"], name)
    idle = raw.probe_client_idle(bundle)
    for client in row["probe_client"]:
        assert same(client["idle"]["from_start_median_ms"], idle[client["endpoint"]])


def check_reclaim(row: Any, bundle: Path) -> None:
    again = raw.reclaim(bundle)
    assert (row["full_bytes"], row["removed"]) == (again["full_bytes"], again["removed"])
    assert same(row["freed_at_end"], again["freed_at_end"], 1e-3)


def check_envelope(rows: list[Any], clusters: list[Path], promised_share: float) -> None:
    (row,) = [each for each in rows if each["axis"] == "rtt" and each["at"] == "no loss"]
    again = raw.limit(clusters)
    assert same(row["limit"], again.limit)
    assert row["limit_ci95"] == pytest.approx([again.low, again.high], rel=1e-4)
    held = 0
    for bundle in clusters:
        (about,) = raw.document(bundle / "envelope.json")["systems"]
        for test in about["tests"]:
            shares = raw.share_in_window(bundle, test)
            if test["verdict"] == "holds" and shares:
                held += 1
                assert pd.Series(shares).median() >= promised_share, test["number"]
    assert held


def test_single_requests_as_stored() -> None:
    check_latencies(summary_of(STORED / "study")["endpoints"], STORED / "study")


def test_sizes_as_stored() -> None:
    check_sizes(STORED / "matrix")


def test_a_drill_as_stored() -> None:
    check_drill(STORED / "drill")


@pytest.mark.minutes
def test_single_requests(made: Make) -> None:
    bundle = made("single")
    check_latencies(summary_of(bundle)["endpoints"], bundle)


@pytest.mark.minutes
def test_round_trips(made: Make) -> None:
    bundle = made("trips")
    rows = summary_of(bundle)["round_trips"]
    check_round_trips(rows, bundle, within=0.1)
    trips = {row["endpoint"]: round(row["round_trips"]) for row in rows}
    assert trips == {"GetObject": 1, "PutObject": 2}, "systems/quorum/README.md"


@pytest.mark.minutes
def test_sizes(made: Make) -> None:
    check_sizes(made("sizes"))


@pytest.mark.minutes
def test_a_load(made: Make) -> None:
    bundle = made("load")
    (row,) = summary_of(bundle)["load"]["systems"]
    check_load(row, bundle)


@pytest.mark.minutes
def test_reclaimed_space(made: Make) -> None:
    bundle = made("reclaim")
    (row,) = summary_of(bundle)["reclaim"]["systems"]
    check_reclaim(row, bundle)


@pytest.mark.minutes
def test_an_envelope(made: Make) -> None:
    matrix = made("envelope")
    clusters = [directory for _, directory in points_of(matrix)]
    assert len(clusters) == 2
    check_envelope(summary_of(matrix)["envelope"]["limits"], clusters, PROMISED_SHARE)


@pytest.mark.minutes
def test_a_drill(made: Make) -> None:
    check_drill(made("drill"))
