"""The record has the store's packets, by node and connection; what was found in it is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from packet_traffic import (
    MS,
    Traffic,
    majority_rounds,
    one_after_another,
    relay,
    samples,
    sites_of,
    topology,
)

from wanlat.analysis.packets.critical_path import critical_paths
from wanlat.analysis.packets.evidence import NAME, counting, evidence_of, to_keep
from wanlat.analysis.packets.record import Record, read_record, record_of, why_no_record
from wanlat.bundle.documents import Manifest
from wanlat.bundle.errors import BundleError
from wanlat.bundle.run import Run


def a_run(directory: Path, traffic: Traffic | None = None, **columns: Any) -> Run:
    """Of ten requests three take three round trips, the others one."""
    traffic = traffic or Traffic()
    requests = [("Do", majority_rounds(3 if number % 10 < 3 else 1)) for number in range(60)]
    rows = samples(one_after_another(traffic, requests)).assign(**columns)
    traffic.frame().to_parquet(directory / "packets.parquet", index=False)
    document = {"schema_version": 2, "kind": "study", "topology": topology(), "capture": {}}
    return Run(directory, Manifest.model_validate(document), None, rows, truncated=False)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return a_run(tmp_path)


def read(bundle: Run) -> Record:
    record = read_record(bundle, "made-up")
    assert record is not None
    return record


def test_calibration_is_left_out_and_a_stores_datagrams_are_not(tmp_path: Path) -> None:
    traffic, first = Traffic(), 10**9
    for at_ns in range(first - 900 * MS, first - 500 * MS, 20 * MS):
        traffic.send(at_ns, "a1", "c1", 1472, protocol=17, target_port=7)
        traffic.send(at_ns, "a1", "c1", protocol=1, source_port=None, target_port=None)
    traffic.send(first + MS, "b1", "c1", 64, protocol=17, target_port=946)
    step = {"system": "made-up", "rtt_step": 0, "requested_rtt_ms": 200.0}
    step["calibrated_ns"] = [first - 10**9, first - 400 * MS]
    (tmp_path / "rtt_steps.json").write_text(json.dumps({"rtt_steps": [step]}))
    packets = read(a_run(tmp_path, traffic)).packets
    assert packets[~packets.is_tcp].target_port.tolist() == [946]


def test_each_connection_has_two_streams_though_its_ports_are_used_again() -> None:
    traffic = Traffic(acknowledges=False)
    ready = traffic.opening(10**9, "a1", "b1")
    port = traffic.ports[frozenset(("a1", "b1"))]
    traffic.send(ready, "a1", "b1")
    traffic.first_seq = 5000
    again = traffic.opening(ready + 10**9, "a1", "b1")
    traffic.rows[-1]["target_port"] = traffic.rows[-2]["source_port"] = port[1]
    traffic.ports[frozenset(("a1", "b1"))] = port
    traffic.send(again, "a1", "b1")
    frame = traffic.frame()
    late = frame["entry_ns"] > 1.5 * 10**9
    frame.loc[late & (frame["tcp_flags"] == 2), "tcp_seq"] = 777
    stream = record_of(frame, "made-up", sites_of(topology())).packets.stream.tolist()
    assert stream[0] == stream[2] == stream[1] ^ 1
    assert stream[3] == stream[5] == stream[4] ^ 1
    assert stream[0] != stream[3]


def test_sequence_numbers_go_on_beyond_32_bits() -> None:
    traffic = Traffic(first_seq=(1 << 32) - 250)
    rows = samples(one_after_another(traffic, [("Do", majority_rounds(2))] * 3))
    record = traffic.record()
    assert record.packets.seq.max() > 1 << 32
    assert critical_paths(record, rows).round_trips.tolist() == [2.0] * 3


def test_the_copies_that_a_link_makes_are_left_out() -> None:
    traffic = Traffic()
    back = relay(traffic, 10**9, "a1 b1 a1")
    traffic.again(back + MS, traffic.rows[0], duplicate=True)
    assert len(traffic.record()) == 2 + 1  # and an acknowledgement


def test_why_there_is_no_record(run: Run) -> None:
    assert why_no_record(run, "made-up") is None
    (run.directory / "packets.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(BundleError, match="wanlat capture table"):
        read_record(run, "made-up")
    (run.directory / "packets.parquet").unlink()
    assert "capture table" in str(why_no_record(run, "made-up"))
    none = Run(
        run.directory, Manifest(schema_version=2, kind="study"), None, run.samples, truncated=False
    )
    assert "kept no packet record" in str(evidence_of(none, "made-up").why)
    assert to_keep(none.directory, none.derived) is None


@pytest.mark.parametrize("column", ["source_address", "target_address", "duplicate", "corrupted"])
def test_rows_that_are_damaged_name_their_file(column: str, run: Run) -> None:
    file = run.directory / "packets.parquet"
    rows = pd.read_parquet(file)
    kind = "string" if column.endswith("address") else "boolean"
    rows[column] = pd.array([None] * len(rows), dtype=kind)
    rows.to_parquet(file)
    with pytest.raises(BundleError, match=r"packets\.parquet is damaged.*wanlat capture table"):
        read_record(run, "made-up")


def test_only_great_rtts_count(tmp_path: Path) -> None:
    rows = pd.DataFrame({"rtt_ms": [0.0, 25.0, 50.0, 100.0, 200.0]})
    assert counting(rows).tolist() == [False, False, False, True, True]
    assert counting(rows.iloc[:2]).tolist() == [False, True]
    assert not counting(pd.DataFrame({"rtt_ms": [0.0, 10.0]})).any()
    assert counting(pd.DataFrame({"rtt_ms": [None, None]})).all()
    (group,) = evidence_of(a_run(tmp_path, rtt_ms=10.0), "made-up").groups.values()
    assert (group.chain_round_trips, "20 ms" in str(group.why)) == (None, True)


def test_evidence_is_the_most_frequent_path_with_all_shares_and_is_kept(run: Run) -> None:
    found = evidence_of(run, "made-up")
    (group,) = found.groups.values()
    assert (group.chain_round_trips, group.n) == (1.0, 60)
    assert [trips for trips, _ in group.chains] == [1.0, 3.0]
    assert [share for _, share in group.chains] == pytest.approx([0.7, 0.3])
    assert group.cost is not None
    assert found.trips is not None
    path = run.directory / NAME
    path.write_text(str(to_keep(run.directory, run.derived)))
    (run.directory / "packets.parquet").unlink()
    bundle = Run(run.directory, run.manifest, None, run.samples, truncated=False)
    again = evidence_of(bundle, "made-up")
    assert again.trips is not None
    pd.testing.assert_series_equal(again.trips, found.trips, check_names=False)
    assert again.groups == found.groups
    # Of other samples, and damaged.
    path.write_text(path.read_text().replace('"rows":[0,', '"rows":[999999,'))
    bundle.derived.clear()
    assert "is not in the bundle" in str(evidence_of(bundle, "made-up").why)
    bundle.derived.clear()
    path.write_text('{"systems": {"made-up": {"rows": [1]}}}')
    with pytest.raises(BundleError, match="damaged"):
        evidence_of(bundle, "made-up")
