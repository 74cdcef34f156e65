"""A bundle is read whole or refused with a sentence that says what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from synthetic_bundles import GARAGE, MINIO, MakeBundle

from wanlat.analysis.bundle import Series, read_bundle
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


def test_a_cut_last_line_is_left_out_and_told(make_bundle: MakeBundle) -> None:
    path = make_bundle(as_lines=True)
    whole = len(read_bundle(path).samples)
    raw = (path / "samples.jsonl").read_bytes()
    (path / "samples.jsonl").write_bytes(raw[:-20])
    bundle = read_bundle(path)
    assert bundle.truncated
    assert len(bundle.samples) == whole - 1


def test_a_last_line_that_only_lacks_its_newline_is_kept(make_bundle: MakeBundle) -> None:
    path = make_bundle(as_lines=True)
    whole = len(read_bundle(path).samples)
    raw = (path / "samples.jsonl").read_bytes()
    (path / "samples.jsonl").write_bytes(raw.rstrip(b"\n"))
    bundle = read_bundle(path)
    assert not bundle.truncated
    assert len(bundle.samples) == whole


def test_a_last_line_cut_inside_a_character_is_left_out(make_bundle: MakeBundle) -> None:
    path = make_bundle(as_lines=True)
    with (path / "samples.jsonl").open("ab") as file:
        file.write('{"system": "größ'.encode()[:-2])
    assert read_bundle(path).truncated


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


def test_unequal_pairs_have_no_single_rtt(make_bundle: MakeBundle) -> None:
    path = make_bundle()
    document = json.loads((path / "calibration.json").read_text())
    document["pairs"][0]["rtt_ms"] |= {"p50": 8.0}
    (path / "calibration.json").write_text(json.dumps(document))
    rtt = read_bundle(path).measured_rtt
    assert rtt is not None
    assert not rtt.is_uniform
    assert rtt.low_pair_ms == 8.0


def test_a_pair_from_which_nothing_came_back_has_no_rtt(make_bundle: MakeBundle) -> None:
    path = make_bundle()
    document = json.loads((path / "calibration.json").read_text())
    for pair in document["pairs"]:
        pair |= {"rtt_ms": None, "error_ms": None, "verdict": "fail"}
    document["verdict"] = "fail"
    (path / "calibration.json").write_text(json.dumps(document))
    bundle = read_bundle(path)
    assert bundle.measured_rtt is None
    assert bundle.calibration is not None
    assert not bundle.calibration.passed


def test_a_failed_lab_does_not_taint_another(make_bundle: MakeBundle) -> None:
    path = make_bundle()
    document = json.loads((path / "calibration.json").read_text())
    document["pairs"][-1]["verdict"] = document["verdict"] = "fail"
    (path / "calibration.json").write_text(json.dumps(document))
    calibration = read_bundle(path).calibration
    assert calibration is not None
    assert calibration.trusts("garage")
    assert not calibration.trusts("minio")


def test_a_damaged_calibration_is_refused(make_bundle: MakeBundle) -> None:
    path = make_bundle()
    (path / "calibration.json").write_text('{"pairs": [], "verdict": "perhaps"}')
    with pytest.raises(BundleError, match=r"calibration\.json is damaged"):
        read_bundle(path)
