"""A bundle is read whole or refused with what to do; its names and endpoints are in order."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from synthetic_bundles import BOB, BOB_ENDPOINTS, BOTH, ENDPOINTS, GARAGE, MINIO, MakeBundle

from wanlat.analysis.bundle import Bundle, Series, read_bundle
from wanlat.analysis.endpoints import endpoint_order, row_names, row_of
from wanlat.analysis.names import format_ms, series_labels, short_version, shortened
from wanlat.bundle.errors import BundleError, NoSamplesError


def test_parquet_and_lines_give_the_same_samples(make_bundle: MakeBundle) -> None:
    table = read_bundle(make_bundle(name="table")).samples
    lines = read_bundle(make_bundle(name="lines", as_lines=True)).samples
    pd.testing.assert_frame_equal(table, lines[table.columns.to_list()])


def test_facts_come_from_the_manifest(make_bundle: MakeBundle) -> None:
    bundle = read_bundle(make_bundle(topology="three-datacenters", sites=3, nodes_a_site=2))
    assert (bundle.study, bundle.topology) == ("endpoint-latency", "three-datacenters")
    assert (bundle.status, bundle.seed) == ("complete", 7)
    assert bundle.systems == (Series(*GARAGE), Series(*MINIO))


@pytest.mark.parametrize(
    ("change", "truncated", "lost"),
    [
        (lambda raw: raw[:-20], True, 1),
        (lambda raw: raw.rstrip(b"\n"), False, 0),
        (lambda raw: raw + '{"system": "größ'.encode()[:-2], True, 0),
    ],
    ids=["cut", "without its newline", "cut inside a character"],
)
def test_a_last_line_counts_only_if_it_is_whole(
    make_bundle: MakeBundle, change: Callable[[bytes], bytes], truncated: bool, lost: int
) -> None:
    path = make_bundle(as_lines=True)
    whole = len(read_bundle(path).samples)
    lines = path / "samples.jsonl"
    lines.write_bytes(change(lines.read_bytes()))
    bundle = read_bundle(path)
    assert (bundle.truncated, len(bundle.samples)) == (truncated, whole - lost)


def test_a_broken_line_in_the_middle_is_damage(make_bundle: MakeBundle) -> None:
    path = make_bundle(as_lines=True)
    lines = (path / "samples.jsonl").read_text().splitlines()
    lines[4] = lines[4][:30]
    (path / "samples.jsonl").write_text("\n".join(lines) + "\n")
    with pytest.raises(BundleError, match=r"samples\.jsonl, line 5, is damaged"):
        read_bundle(path)


def test_lines_win_over_a_table_that_was_being_made_of_them(make_bundle: MakeBundle) -> None:
    path = make_bundle(as_lines=True)
    (path / "samples.parquet").write_bytes(b"PAR1 half of it")
    assert len(read_bundle(path).measured) == 1000


def test_columns_that_a_writer_left_out_are_there_and_empty(make_bundle: MakeBundle) -> None:
    path = make_bundle()
    table = pd.read_parquet(path / "samples.parquet").drop(columns=["retransmits", "status"])
    table.to_parquet(path / "samples.parquet")
    samples = read_bundle(path).samples
    assert samples["retransmits"].isna().all()
    assert samples["status"].isna().all()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"schema_version": 3, "wanlat": "3.1.4"},
            r"schema version 3, and this wanlat reads 2.*wanlat 3\.1\.4; .* or a newer one\.",
        ),
        ({"schema_version": 1}, r"schema version 1, and this wanlat reads 2"),
        ({"schema_version": None}, "its manifest.json has no number under `schema_version`"),
        ({"schema_version": True}, "is not a bundle"),
        ({"kind": "party"}, r"manifest\.json is damaged: .*'study', 'drill', 'matrix'"),
        ({"kind": "study", "sistems": []}, "damaged: sistems: Extra inputs are not permitted"),
        ({"kind": "study", "systems": 3, "seed": "x"}, "damaged: seed: .*; systems: .*"),
    ],
)
def test_a_manifest_that_is_newer_or_damaged_is_refused(
    make_bundle: MakeBundle, change: dict[str, Any], said: str
) -> None:
    with pytest.raises(BundleError, match=said):
        read_bundle(make_bundle(manifest=change))


def test_what_is_no_bundle_is_told_apart(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="there is no such directory"):
        read_bundle(tmp_path / "nowhere")
    with pytest.raises(BundleError, match=r"it has no manifest\.json"):
        read_bundle(tmp_path)
    (tmp_path / "manifest.json").write_text("{ not json")
    with pytest.raises(BundleError, match=r"manifest\.json is damaged: it is not JSON"):
        read_bundle(tmp_path)
    (tmp_path / "manifest.json").write_text("[1]")
    with pytest.raises(BundleError, match="a JSON object was expected"):
        read_bundle(tmp_path)


def test_a_bundle_without_samples_says_how_the_run_ended(make_bundle: MakeBundle) -> None:
    path = make_bundle(manifest={"status": "failed", "reason": "garage was not ready"})
    (path / "samples.parquet").unlink()
    with pytest.raises(NoSamplesError, match=r"neither samples\.parquet nor samples\.jsonl"):
        read_bundle(path)
    (path / "samples.jsonl").write_text("")
    with pytest.raises(NoSamplesError, match=r"It failed before.*garage was not ready"):
        read_bundle(path)


def test_warm_up_alone_is_nothing_measured(make_bundle: MakeBundle) -> None:
    path = make_bundle(n=0, manifest={"status": "interrupted"})
    with pytest.raises(NoSamplesError, match=r"\(20 of preparation and warm-up\).*interrupted"):
        read_bundle(path)


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("outcome", "maybe", "row 3 has an outcome that is not ok, fail, unknown"),
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
    path = make_bundle(as_lines=True)
    lines = (path / "samples.jsonl").read_text().splitlines()
    lines[2] = json.dumps({**json.loads(lines[2]), column: value})
    (path / "samples.jsonl").write_text("\n".join(lines) + "\n")
    with pytest.raises(BundleError, match=said):
        read_bundle(path)


def test_a_missing_column_and_a_broken_table_are_told(make_bundle: MakeBundle) -> None:
    path = make_bundle()
    pd.read_parquet(path / "samples.parquet").drop(columns="phase").to_parquet(
        path / "samples.parquet"
    )
    with pytest.raises(BundleError, match="lacks the column phase"):
        read_bundle(path)
    (path / "samples.parquet").write_bytes(b"PAR1")
    with pytest.raises(BundleError, match="cannot be read as Parquet"):
        read_bundle(path)


def test_measured_rtt_is_that_between_sites(make_bundle: MakeBundle) -> None:
    bundle = read_bundle(make_bundle(sites=3, nodes_a_site=2, jitter_ms=0))
    between, within = bundle.measured_rtt, bundle.measured_rtt_within
    assert between is not None
    assert within is not None
    assert (between.pairs, within.pairs) == (24, 6)
    assert 100 < between.median_ms < 100.3
    assert 0.5 < within.median_ms < 0.7
    assert between.is_uniform


def calibrated(path: Path, change: Callable[[list[dict[str, Any]]], object]) -> Bundle:
    """The bundle in `path` after its calibration's pairs were changed."""
    document = json.loads((path / "calibration.json").read_text())
    change(document["pairs"])
    failed = any(pair["verdict"] == "fail" for pair in document["pairs"])
    document["verdict"] = "fail" if failed else "pass"
    (path / "calibration.json").write_text(json.dumps(document))
    return read_bundle(path)


def test_calibration_says_what_rtt_there_was_and_whose_lab_was_right(
    make_bundle: MakeBundle,
) -> None:
    path = make_bundle()
    unequal = calibrated(path, lambda pairs: pairs[0]["rtt_ms"].update(p50=8.0)).measured_rtt
    assert unequal is not None and not unequal.is_uniform
    assert unequal.low_pair_ms == 8.0
    calibration = calibrated(path, lambda pairs: pairs[-1].update(verdict="fail")).calibration
    assert calibration is not None and calibration.trusts("garage")
    assert not calibration.trusts("minio")
    nothing = {"rtt_ms": None, "error_ms": None, "verdict": "fail"}
    silent = calibrated(path, lambda pairs: [pair.update(nothing) for pair in pairs])
    assert silent.measured_rtt is None
    assert silent.calibration is not None and not silent.calibration.passed


def test_a_damaged_calibration_is_refused(make_bundle: MakeBundle) -> None:
    path = make_bundle()
    (path / "calibration.json").write_text('{"pairs": [], "verdict": "perhaps"}')
    with pytest.raises(BundleError, match=r"calibration\.json is damaged"):
        read_bundle(path)


def test_bundles_without_placement_read_as_unknown_and_no_other_is_taken(
    make_bundle: MakeBundle,
) -> None:
    path = make_bundle(systems=[GARAGE])
    table = pd.read_parquet(path / "samples.parquet")
    for frame in (table, table.assign(placement=None), table.assign(placement="unknown")):
        frame.to_parquet(path / "samples.parquet")
        assert set(read_bundle(path).samples["placement"]) == {"unknown"}
    path = make_bundle(name="bob", systems=[BOB], endpoints=["Get"], placed={"bob": BOTH})
    table = pd.read_parquet(path / "samples.parquet")
    table.loc[4, "placement"] = "nearby"
    table.to_parquet(path / "samples.parquet")
    with pytest.raises(BundleError, match="row 5 has a placement that is not local, remote, unk"):
        read_bundle(path)


@pytest.mark.parametrize(
    ("version", "short"),
    [
        ("2.5.0", "2.5.0"),
        ("v2.5.0", "2.5.0"),
        ("RELEASE.2026-02-12T20-18-48Z", "2026-02-12"),
        ("v0.0.0-20260212201848-7aac2a2c5b7c", "2026-02-12"),
        ("v1.2.4-0.20260212201848-7aac2a2c5b7c", "2026-02-12"),
        ("v1.2.3-rc.1.0.20260212201848-7aac2a2c5b7c", "2026-02-12"),
        ("v3.0.0-beta.12345.dirty+build.99", "3.0.0-be…uild.99"),
        ("unknown", "unknown"),
    ],
)
def test_versions_are_shortened_sensibly(version: str, short: str) -> None:
    assert short_version(version) == short


def test_versions_that_shorten_alike_are_written_out() -> None:
    release = Series("minio", "RELEASE.2026-02-12T20-18-48Z")
    pseudo = Series("minio", "v0.0.0-20260212201848-7aac2a2c5b7c")
    labels = series_labels([release, pseudo])
    assert labels[release] == "MinIO RELEASE.2026-02-12T20-18-48Z"
    assert labels[pseudo] == "MinIO v0.0.0-20260212201848-7aac2a2c5b7c"
    assert shortened([release, pseudo]) == []


def test_what_was_shortened_is_given_in_full() -> None:
    series = [Series("garage", "v2.5.0"), Series("minio", "RELEASE.2026-02-12T20-18-48Z")]
    assert shortened(series) == ["MinIO RELEASE.2026-02-12T20-18-48Z"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0512, "0.051"), (2.345, "2.35"), (99.96, "100.0"), (1106.7, "1107"), (None, "–")],
)
def test_milliseconds_have_about_three_digits(value: float | None, text: str) -> None:
    assert format_ms(value) == text


def test_what_corresponds_shares_a_row_named_after_what_is_there() -> None:
    for s3, bob in (("GetObject", "Get"), ("PutObject", "Put"), ("RemoveObject", "Delete")):
        assert row_of(s3) == row_of(bob) == (s3, bob)
        assert row_names([bob, s3]) == {s3: f"{s3} ·\n{bob}", bob: f"{s3} ·\n{bob}"}
    for alone in ("ListBuckets", "HeadObject", "Exist", "Ping", "kv.Store/Get"):
        assert row_of(alone) == (alone,)
        assert row_names([alone, "Put"]) == {alone: alone, "Put": "Put"}
    long = "some.package.v1.KeyValueStore/Read"
    assert row_names([long])[long] == "some.package.v1.KeyValueStore/\nRead"


@pytest.mark.parametrize(
    ("present", "study", "order"),
    [
        (
            [*BOB_ENDPOINTS, *ENDPOINTS],
            None,
            "ListBuckets ListObjects GetObject Get PutObject Put RemoveObject Delete Exist Ping",
        ),
        (
            [*BOB_ENDPOINTS, *ENDPOINTS],
            {"endpoints": [*ENDPOINTS, *BOB_ENDPOINTS]},
            "ListBuckets ListObjects GetObject Get PutObject Put RemoveObject Delete Exist Ping",
        ),
        (BOB_ENDPOINTS, None, "Get Put Delete Exist Ping"),
        (BOB_ENDPOINTS, {"endpoints": list(BOB_ENDPOINTS)}, "Put Get Exist Delete Ping"),
        (["GetObject", "Get", "Ping"], {"endpoints": ["Ping", "Get"]}, "Ping GetObject Get"),
        (
            ["kv.Store/Read", "Ping", "kv.Store/Erase", "kv.Store/Write"],
            {"endpoints": [{"method": "kv.Store/Write", "request": {"key": "{key}"}}]},
            "kv.Store/Write Ping kv.Store/Erase kv.Store/Read",
        ),
    ],
    ids=["page", "both of the study", "bob", "study of bob", "study first", "methods"],
)
def test_rows_are_in_order_and_whole(present: list[str], study: Any, order: str) -> None:
    assert endpoint_order(reversed(present), study) == order.split()
