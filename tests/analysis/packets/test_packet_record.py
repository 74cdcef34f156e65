"""The record has the store's packets, by node and connection; what was found in it is kept."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from packet_traffic import MS, Traffic, majority_rounds, one_after_another, relay, samples, topology

from wanlat.analysis.bundle import Bundle
from wanlat.analysis.packets.cost import counting
from wanlat.analysis.packets.critical_path import critical_paths
from wanlat.analysis.packets.evidence import NAME, evidence_of, to_keep
from wanlat.analysis.packets.record import Record, read_record, record_of, why_no_record
from wanlat.bundle.errors import BundleError


def bundle_of(directory: Path, traffic: Traffic, rows: pd.DataFrame, **manifest: object) -> Bundle:
    traffic.frame().to_parquet(directory / "packets.parquet", index=False)
    document = {"topology": topology(), "capture": {"files": []}, **manifest}
    return Bundle(directory, document, None, rows, truncated=False)


def a_run() -> tuple[Traffic, pd.DataFrame]:
    """Of ten requests three take three round trips, the others one."""
    traffic = Traffic()
    requests = [("Do", majority_rounds(3 if number % 10 < 3 else 1)) for number in range(60)]
    return traffic, samples(one_after_another(traffic, requests))


@pytest.fixture
def run(tmp_path: Path) -> Bundle:
    return bundle_of(tmp_path, *a_run())


def read(bundle: Bundle) -> Record:
    record = read_record(bundle, "made-up")
    assert record is not None
    return record


def test_addresses_have_the_names_of_the_manifest(run: Bundle) -> None:
    record = read(run)
    assert record.nodes == ("a1", "b1", "c1", "d1", "e1")
    assert record.sites == ("a", "b", "c", "d", "e")
    assert record.node_site.tolist() == [0, 1, 2, 3, 4]


def test_a_topology_that_the_record_contradicts_names_nobody(tmp_path: Path) -> None:
    other = topology(("e", "d", "c", "b", "a"))
    record = read(bundle_of(tmp_path, *a_run(), topology=other))
    assert record.node_of("c1") is not None  # the middle one is right
    assert record.sites[record.node_site[record.nodes.index("10.1.0.1")]] == "a"


def test_calibration_is_left_out_and_a_stores_datagrams_are_not(tmp_path: Path) -> None:
    traffic, rows = a_run()
    first = int(rows["start_ns"].min())
    for at_ns in range(first - 900 * MS, first - 500 * MS, 20 * MS):
        traffic.datagram(at_ns, "a1", "c1", 1472, source_port=1024, target_port=7)
        traffic.echo(at_ns, "a1", "c1")
    traffic.datagram(first + MS, "b1", "c1", 64, source_port=946, target_port=946)
    step = {"system": "made-up", "rtt_step": 0, "requested_rtt_ms": 200.0}
    step["calibrated_ns"] = [first - 10**9, first - 400 * MS]
    (tmp_path / "rtt_steps.json").write_text(json.dumps({"rtt_steps": [step]}))
    record = read(bundle_of(tmp_path, traffic, rows))
    assert record.target_port[~record.is_tcp].tolist() == [946]


def test_the_two_directions_of_a_connection_differ_in_one_bit() -> None:
    traffic = Traffic(acknowledges=False)
    there = traffic.send(10**9, "a1", "b1")
    traffic.send(there, "b1", "a1")
    traffic.send(there, "a1", "c1")
    stream = traffic.record().stream.tolist()
    assert stream[0] in (stream[1] ^ 1, stream[2] ^ 1)
    assert len({one // 2 for one in stream}) == 2


def test_ports_that_are_used_again_make_another_connection() -> None:
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
    record = record_of(frame, "made-up", {"topology": topology()})
    first, second = record.stream[record.payload_bytes > 0]
    assert first != second
    assert np.count_nonzero(record.flags == 2) == 2


def test_sequence_numbers_go_on_beyond_32_bits() -> None:
    traffic = Traffic(first_seq=(1 << 32) - 250)
    rows = samples(one_after_another(traffic, [("Do", majority_rounds(2))] * 3))
    record = traffic.record()
    assert record.seq.max() > 1 << 32
    assert critical_paths(record, rows).round_trips.tolist() == [2.0] * 3


def test_the_copies_that_a_link_makes_are_left_out() -> None:
    traffic = Traffic()
    back = relay(traffic, 10**9, "a1 b1 a1")
    traffic.again(back + MS, traffic.rows[0], duplicate=True)
    assert len(traffic.record()) == 2 + 1  # and an acknowledgement


def test_a_damaged_table_says_how_to_make_it_again(run: Bundle) -> None:
    (run.directory / "packets.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(BundleError, match="wanlat capture table"):
        read_record(run, "made-up")


def test_why_there_is_no_record(run: Bundle) -> None:
    assert why_no_record(run, "made-up") is None
    (run.directory / "packets.parquet").unlink()
    assert "capture table" in str(why_no_record(run, "made-up"))
    none = Bundle(run.directory, {}, None, run.samples, truncated=False)
    assert "kept no packet record" in str(evidence_of(none, "made-up").why)
    assert to_keep(none.directory, none.derived) is None


# --- what it is evidence of ---


def test_evidence_is_the_most_frequent_path_with_all_shares(run: Bundle) -> None:
    found = evidence_of(run, "made-up")
    (group,) = found.groups.values()
    assert group.chain_round_trips == 1.0
    assert group.chains == ((1.0, pytest.approx(0.7)), (3.0, pytest.approx(0.3)))
    assert group.n == 60
    assert group.cost is not None
    assert found.trips is not None
    assert found.trips.index.equals(run.samples.index)


def test_only_great_rtts_count(tmp_path: Path) -> None:
    rows = pd.DataFrame({"rtt_ms": [0.0, 25.0, 50.0, 100.0, 200.0]})
    assert counting(rows).tolist() == [False, False, False, True, True]
    assert counting(rows.iloc[:2]).tolist() == [False, True]
    assert not counting(pd.DataFrame({"rtt_ms": [0.0, 10.0]})).any()
    assert counting(pd.DataFrame({"rtt_ms": [None, None]})).all()
    traffic, requests = a_run()
    found = evidence_of(bundle_of(tmp_path, traffic, requests.assign(rtt_ms=10.0)), "made-up")
    (group,) = found.groups.values()
    assert (group.chain_round_trips, "20 ms" in str(group.why)) == (None, True)


def kept(run: Bundle) -> Bundle:
    """The bundle of which only what was found in the packets was kept."""
    evidence_of(run, "made-up")
    (run.directory / NAME).write_text(str(to_keep(run.directory, run.derived)))
    (run.directory / "packets.parquet").unlink()
    return Bundle(run.directory, run.manifest, None, run.samples, truncated=False)


def test_what_was_kept_is_read_as_it_was_found(run: Bundle) -> None:
    found, again = evidence_of(run, "made-up"), evidence_of(kept(run), "made-up")
    assert again.trips is not None
    assert found.trips is not None
    pd.testing.assert_series_equal(again.trips, found.trips, check_names=False)
    assert again.groups == found.groups


def test_what_was_kept_is_refused_where_it_is_damaged_or_of_other_samples(run: Bundle) -> None:
    bundle = kept(run)
    path = bundle.directory / NAME
    path.write_text(path.read_text().replace('"rows":[0,', '"rows":[999999,'))
    other = evidence_of(bundle, "made-up")
    assert (other.trips, "is not in the bundle" in str(other.why)) == (None, True)
    bundle.derived.clear()
    path.write_text('{"systems": {"made-up": {"rows": [1]}}}')
    with pytest.raises(BundleError, match="damaged"):
        evidence_of(bundle, "made-up")
