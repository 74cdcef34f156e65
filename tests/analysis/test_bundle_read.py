"""A bundle is read whole or refused with what to do; its names and endpoints are in order."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from answers import changing

from tests.bundles import BOB_ENDPOINTS, ENDPOINTS, GARAGE, MINIO, MakeBundle
from wanlat.analysis.endpoints import endpoint_order
from wanlat.analysis.names import short_version
from wanlat.bundle.documents import Study
from wanlat.bundle.errors import BundleError, NoSamplesError
from wanlat.bundle.run import Run, Series, read_run

Change = Callable[[Any], Any]


def rewritten(path: Path, change: Change) -> Path:
    """The bundle in `path` with its table of samples changed."""
    import pandas as pd

    change(pd.read_parquet(path / "samples.parquet")).to_parquet(path / "samples.parquet")
    return path


def test_parquet_and_lines_give_the_same_samples_and_facts(make_bundle: MakeBundle) -> None:
    import pandas as pd

    settings = {"topology": "three-datacenters", "sites": 3, "nodes_a_site": 2}
    table, lines = (
        read_run(make_bundle(name=str(as_lines), as_lines=as_lines, n=20, **settings))
        for as_lines in (False, True)
    )
    pd.testing.assert_frame_equal(table.samples, lines.samples[table.samples.columns.to_list()])
    for bundle in (table, lines):
        assert (bundle.study, bundle.topology) == ("endpoint-latency", "three-datacenters")
        assert (bundle.status, bundle.seed) == ("complete", 7)
        assert bundle.systems == (Series(*GARAGE), Series(*MINIO))
        assert len(bundle.timed) == len(bundle.measured) == 200
        assert bundle.timed["total_ns"].equals(bundle.measured["total_ns"])


@pytest.mark.parametrize(
    ("change", "truncated", "lost"),
    [
        (lambda raw: raw[:-20], True, 1),
        (lambda raw: raw.rstrip(b"\n"), False, 0),
        (lambda raw: raw + '{"system": "größ'.encode()[:-2], True, 0),
    ],
    ids=["cut", "without its newline", "cut inside a character"],
)
def test_a_last_line_counts_only_if_it_is_whole_and_lines_win_over_a_table(
    make_bundle: MakeBundle, change: Change, truncated: bool, lost: int
) -> None:
    path = make_bundle(as_lines=True, n=10)
    whole = len(read_run(path).samples)
    (path / "samples.parquet").write_bytes(b"PAR1 half of it")  # was being made of them
    (path / "samples.jsonl").write_bytes(change((path / "samples.jsonl").read_bytes()))
    bundle = read_run(path)
    assert (bundle.truncated, len(bundle.samples)) == (truncated, whole - lost)


def test_a_bundle_without_samples_says_how_the_run_ended(make_bundle: MakeBundle) -> None:
    path = make_bundle(n=0, manifest={"status": "failed", "reason": "garage was not ready"})
    with pytest.raises(NoSamplesError, match=r"\(20 of preparation and warm-up\).*not ready"):
        read_run(path)
    (path / "samples.parquet").unlink()
    with pytest.raises(NoSamplesError, match=r"neither samples\.parquet nor samples\.jsonl"):
        read_run(path)
    (path / "samples.jsonl").write_text("")
    with pytest.raises(NoSamplesError, match=r"It failed before.*garage was not ready"):
        read_run(path)


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("outcome", "maybe", "row 3 has an outcome that is not ok, fail, unknown"),
        ("placement", "nearby", "row 3 has a placement that is not local, remote, unknown"),
        ("endpoint", None, "row 3 has no endpoint"),
        ("total_ns", None, "row 3 succeeded but has no total_ns"),
        ("total_ns", -1, "row 3 has a negative total_ns"),
        ("topology", "elsewhere", "row 3 is not of the manifest's topology, five-sites"),
        ("total_ns", "soon", "column total_ns, is damaged"),
    ],
)
def test_a_row_that_cannot_be_counted_is_refused(
    make_bundle: MakeBundle, column: str, value: object, said: str
) -> None:
    path = make_bundle(as_lines=True, n=2, endpoints=["GetObject"])
    lines = (path / "samples.jsonl").read_text().splitlines()
    lines[2] = json.dumps({**json.loads(lines[2]), column: value})
    (path / "samples.jsonl").write_text("\n".join(lines) + "\n")
    with pytest.raises(BundleError, match=said):
        read_run(path)
    lines[1] = lines[1][:30]
    (path / "samples.jsonl").write_text("\n".join(lines) + "\n")
    with pytest.raises(BundleError, match=r"samples\.jsonl, line 2, is damaged"):
        read_run(path)


def test_columns_may_lack_only_where_a_writer_may_leave_them_out(make_bundle: MakeBundle) -> None:
    path = rewritten(make_bundle(n=5), lambda t: t.drop(columns=["retransmits", "status"]))
    samples = read_run(path).samples
    assert samples["retransmits"].isna().all() and samples["status"].isna().all()
    for placement in (None, "unknown"):
        rewritten(path, lambda table, to=placement: table.assign(placement=to))
        assert set(read_run(path).timed["placement"]) == {"unknown"}
    rewritten(path, lambda table: table.assign(status="soon"))
    with pytest.raises(BundleError, match="column status, is damaged"):
        _ = read_run(path).samples
    rewritten(path, lambda table: table.drop(columns="phase"))
    with pytest.raises(BundleError, match="lacks the column phase"):
        read_run(path)
    (path / "samples.parquet").write_bytes(b"PAR1")
    with pytest.raises(BundleError, match="cannot be read as Parquet"):
        read_run(path)


def calibrated(path: Path, change: Callable[[list[dict[str, Any]]], object]) -> Run:
    """The bundle in `path` after its calibration's pairs were changed."""
    with changing(path / "calibration.json") as document:
        change(document["pairs"])
        failed = any(pair["verdict"] == "fail" for pair in document["pairs"])
        document["verdict"] = "fail" if failed else "pass"
    return read_run(path)


def test_calibration_says_what_rtt_there_was_and_whose_lab_was_right(
    make_bundle: MakeBundle,
) -> None:
    sites = read_run(make_bundle(name="sites", n=1, sites=3, nodes_a_site=2, jitter_ms=0))
    between, within = sites.measured_rtt, sites.measured_rtt_within
    assert between is not None and within is not None
    assert (between.pairs, within.pairs) == (24, 6)
    assert 100 < between.median_ms < 100.3 and between.is_uniform
    assert 0.5 < within.median_ms < 0.7
    path = make_bundle(n=1)
    unequal = calibrated(path, lambda pairs: pairs[0]["rtt_ms"].update(p50=8.0)).measured_rtt
    assert unequal is not None and not unequal.is_uniform
    assert unequal.low_pair_ms == 8.0
    calibration = calibrated(path, lambda pairs: pairs[-1].update(verdict="fail")).calibration
    assert calibration is not None and calibration.trusts("garage")
    assert not calibration.trusts("minio")
    nothing = {"rtt_ms": None, "error_ms": None, "verdict": "fail"}
    assert calibrated(path, lambda pairs: [p.update(nothing) for p in pairs]).measured_rtt is None
    (path / "calibration.json").write_text('{"pairs": [], "verdict": "perhaps"}')
    with pytest.raises(BundleError, match=r"calibration\.json is damaged"):
        read_run(path)


@pytest.mark.parametrize(
    ("version", "short"),
    [
        ("v2.5.0", "2.5.0"),
        ("RELEASE.2026-02-12T20-18-48Z", "2026-02-12"),
        ("v0.0.0-20260212201848-7aac2a2c5b7c", "2026-02-12"),
        ("v1.2.3-rc.1.0.20260212201848-7aac2a2c5b7c", "2026-02-12"),
        ("v3.0.0-beta.12345.dirty+build.99", "3.0.0-be…uild.99"),
        ("5:7.0.15-1~deb12u10", "7.0.15"),  # Debian's: an epoch and a revision
        ("3.4.23-4+b4", "3.4.23"),
        ("2.1.0-alpha.12", "2.1.0-alpha.12"),
        ("unknown", "unknown"),
    ],
)
def test_versions_are_shortened_sensibly(version: str, short: str) -> None:
    assert short_version(version) == short


METHODS = [{"method": "kv.Store/Write", "request": {"key": "{key}"}}]
PAGE = "ListBuckets ListObjects GetObject Get PutObject Put RemoveObject Delete Exist Ping"


@pytest.mark.parametrize(
    ("present", "studied", "order"),
    [
        ([*BOB_ENDPOINTS, *ENDPOINTS], [], PAGE),
        ([*BOB_ENDPOINTS, *ENDPOINTS], [*ENDPOINTS, *BOB_ENDPOINTS], PAGE),
        (BOB_ENDPOINTS, [], "Get Put Delete Exist Ping"),
        (BOB_ENDPOINTS, BOB_ENDPOINTS, "Put Get Exist Delete Ping"),
        (["GetObject", "Get", "Ping"], ["Ping", "Get"], "Ping GetObject Get"),
        (["kv.S/Read", "Ping", "kv.Store/Write"], METHODS, "kv.Store/Write Ping kv.S/Read"),
        (["A", "b", "Z"], [{"get": "/z", "name": "Z"}, {"op": "b"}, {"put": "/a"}], "Z b A"),
    ],
)
def test_rows_are_in_order_and_whole(present: Any, studied: Any, order: str) -> None:
    assert endpoint_order(reversed(present), Study(endpoints=studied)) == order.split()
