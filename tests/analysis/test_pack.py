"""A packed matrix says what its points said; instants to a tenth of a millisecond."""

from __future__ import annotations

import json
import shutil
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from drill_bundles import Fault, stalled, write_drill

from wanlat.analysis.figures.drill.read import read_drill
from wanlat.analysis.report import beside, report
from wanlat.bundle.errors import BundleError
from wanlat.bundle.pack import pack
from wanlat.bundle.read import bundles_below, read_json, read_records, read_table
from wanlat.bundle.tables import SAMPLES

STORED = Path(__file__).parents[1] / "data" / "bundles" / "2" / "matrix"
TABLES = ("samples", "resources", "events")
EXACT = ("connect_ns", "first_byte_ns", "total_ns", "network_error_ns", "t_ns", "space_began_ns")
POINTS = ("one-quorum-1", "one-quorum-2")
PLACEMENTS = ("local", "unknown")


@pytest.fixture(params=["lines", "tables"])
def matrix(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Two drills below one directory, as their writer was killed, or done."""
    for seed, name in enumerate(POINTS):
        directory = tmp_path / "points" / name
        directory.parent.mkdir(exist_ok=True)
        fault = Fault("stop", "n2", 20.0, 50.0)
        spoil = {"lost": seed + 1, "stale": 1}
        lines = request.param == "lines"
        write_drill(
            directory,
            faults=[fault],
            troubles=[stalled()],
            spoil=spoil,
            as_lines=lines,
            in_flight=9,
            seed=seed,
            placement=PLACEMENTS[seed],
        )
    (tmp_path / "manifest.json").write_text('{"kind": "drills", "schema_version": 2}')
    return tmp_path


def test_a_packed_drill_has_the_same_figures(matrix: Path) -> None:
    points = [matrix / "points" / name for name in POINTS]
    before = [dict(read_drill(point).document) for point in points]
    numbers = [numbers_of(point) for point in points]
    pack(matrix)
    for point in points:
        assert not [*point.glob("*.parquet"), *point.glob("*.jsonl")]
    after = [dict(read_drill(point).document) for point in points]
    assert before[0] != before[1]
    for one, other, number in zip(before, after, numbers, strict=True):
        for examples in one["durability"]["examples"].values():
            for example in examples:
                example["key"] = number[example["key"]]
        compare(one, other, "")
    for point, number, placement in zip(points, numbers, PLACEMENTS, strict=True):
        ledger = read_table(point, "ledger")
        assert ledger is not None
        both = ledger[0].dropna(subset="name")
        is_needed = placement == "local"  # to say which nodes have an object
        assert both.set_index("name")["key"].to_dict() == (number if is_needed else {})


def numbers_of(point: Path) -> dict[str, str]:
    """The number on the ledger of each key's first write."""
    path = point / "ledger.parquet"
    is_table = path.is_file()
    rows = pq.read_table(path).to_pylist() if is_table else read_records(point, "ledger")[0]
    found: dict[str, str] = {}
    for row in rows:
        if row.get("key"):
            found.setdefault(row["key"], f"{row['id']:06}")
    return found


def test_instants_of_what_was_written_first_are_kept_to_10_ms(tmp_path: Path) -> None:
    point = tmp_path / "points" / "one"
    point.mkdir(parents=True)
    (tmp_path / "manifest.json").write_text('{"kind": "drills", "schema_version": 2}')
    start_ns, written = 1_234_567_890, ("prepare", "before")
    rows = [{"seq": n, "phase": phase, "start_ns": start_ns} for n, phase in enumerate(written)]
    text = "".join(
        f"{json.dumps(row | {'outcome': 'ok', 'elapsed_ns': 5 * 10**7})}\n" for row in rows
    )
    (point / "samples.jsonl").write_text(text)
    pack(tmp_path)
    table = read_table(point, "samples")
    assert table is not None
    kept = table[0].set_index("phase")["start_ns"]
    assert kept.to_dict() == {"prepare": 1_230_000_000, "before": 1_234_600_000}


def test_the_report_of_a_packed_point_is_written_where_it_would_be(matrix: Path) -> None:
    pack(matrix)
    point = matrix / "points" / POINTS[0]
    assert not point.exists()
    written = report(point).summary_path
    assert written == point / "summary.json" and json.loads(written.read_text())["drill"]
    with pytest.raises(BundleError, match="drill matrix"):
        beside([matrix], matrix / "beside.html", lambda _system: None)


def test_a_key_of_an_envelope_is_the_number_of_its_first_write(tmp_path: Path) -> None:
    point = tmp_path / "points" / "etcd"
    point.mkdir(parents=True)
    (tmp_path / "manifest.json").write_text('{"kind": "matrix", "schema_version": 2}')
    (point / "envelope.json").write_text('{"systems": []}')
    keys = ["a/b", "0aff", "a/b"]
    written = [
        {"state": "invoked", "id": number, "op": "put", "key": key, "t_ns": 10**6}
        for number, key in enumerate(keys, start=7)
    ]
    said = [{"round": "test 1", "node": "n1", "key": key, "found": "yes"} for key in keys[:2]]
    asked = [
        {"seq": seq, "key": key, "operation": operation, "phase": phase, "outcome": outcome}
        for seq, (key, operation, phase, outcome) in enumerate(
            (
                ("0aff", "write", "window", "ok"),
                ("elsewhere", "write", "back", "unknown"),
                ("0aff", "read", "cut", "ok"),
                ("0aff", "write", "settle", "ok"),  # no verdict rests on it
                ("a/b", "write", "settle", "fail"),
            )
        )
    ]
    for name, rows in (("ledger", written), ("verification", said), ("samples", asked)):
        (point / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    pack(tmp_path)
    for name, found in (
        ("ledger", ["000007", "000008", "000007"]),
        ("verification", ["000007", "000008"]),
        ("samples", ["000008", "elsewhere", "of a read", "000007"]),
    ):
        table = read_table(point, name)
        assert table is not None
        assert sorted(table[0]["key"].fillna("of a read")) == sorted(found)


def compare(one: Any, other: Any, at: str) -> None:
    """Whatever is a number may differ by what instants are rounded to, at either end."""
    if isinstance(one, dict):
        assert one.keys() == other.keys(), at
        for key in one:
            compare(one[key], other[key], f"{at}.{key}")
    elif isinstance(one, list):
        assert len(one) == len(other), at
        for number, pair in enumerate(zip(one, other, strict=True)):
            compare(*pair, f"{at}[{number}]")
    elif isinstance(one, float) and isinstance(other, float):
        assert one == pytest.approx(other, abs=0.11 if at.endswith("_ms") else 2e-4), at
    else:
        assert one == other, at


def test_what_an_attempt_left_is_no_bundle_of_its_matrix(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    shutil.copytree(STORED, whole)
    every, point = bundles_below(whole), next((whole / "points").iterdir())
    aside = point.with_name(f"{point.name}.attempt-1")
    shutil.copytree(point, aside)
    assert point in every and bundles_below(whole) == every
    assert bundles_below(aside) == [aside]


def test_a_packed_matrix_of_a_study_has_the_same_tables(tmp_path: Path) -> None:
    plain, packed = STORED, tmp_path / "packed"
    shutil.copytree(plain, packed)
    pack(packed)
    assert {*TABLES} <= {path.stem for path in packed.glob("*.parquet")}
    points = sorted(each.name for each in (plain / "points").iterdir())
    assert len(points) > 1 and not [*packed.glob("points/*")]
    inside = [each.relative_to(packed) for each in bundles_below(packed)]
    assert inside == [each.relative_to(plain) for each in bundles_below(plain)]
    for file in plain.glob("points/*/*.json"):
        assert read_json(packed / file.relative_to(plain)) == read_json(file)
    for point, name in product(points, TABLES):
        before, after = (read_table(each / "points" / point, name) for each in (plain, packed))
        assert before and after and len(before[0]) > 0
        one, other = after[0][[*before[0]]], before[0]
        if name != "events":  # when a request was under way, and CPU time
            instants = [each for each in one if each.endswith("_ns") and each not in EXACT]
            off_ns = (one[instants] - other[instants]).abs().max()
            assert off_ns[{"samples": "start_ns", "resources": "cpu_ns"}[name]] > 0
            assert off_ns.max() <= 50_000
            one, other = one.drop(columns=instants), other.drop(columns=instants)
        assert "total_ns" in one or name != "samples"
        pd.testing.assert_frame_equal(one, other, check_dtype=False, check_categorical=False)


def test_a_damaged_packed_table_is_refused(matrix: Path) -> None:
    pack(matrix)
    (matrix / "samples.parquet").write_bytes(b"PAR1")
    with pytest.raises(BundleError, match=r"samples\.parquet is damaged"):
        read_drill(matrix / "points" / POINTS[0])
    (matrix / "documents.parquet").write_bytes(b"PAR1")
    with pytest.raises(BundleError, match=r"documents\.parquet is damaged"):
        read_drill(matrix / "points" / POINTS[0])


def test_a_column_without_values_has_its_type(matrix: Path) -> None:
    pack(matrix)
    held = pq.read_schema(matrix / "samples.parquet")
    for name in ("status", "grpc_status"):
        assert held.field(name).type == SAMPLES.field(name).type
