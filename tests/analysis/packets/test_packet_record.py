"""The record has the packets of the store, by node and connection, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from packet_traffic import MS, THINKS_NS, Traffic, majority_rounds, one_after_another, samples
from packet_traffic import topology as topology_of

from wanlat.analysis.bundle import Bundle
from wanlat.analysis.packets.chains import chains
from wanlat.analysis.packets.evidence import evidence_of
from wanlat.analysis.packets.record import read_record, why_no_record
from wanlat.analysis.packets.rtts import counting
from wanlat.bundle.errors import BundleError


def bundle_of(directory: Path, traffic: Traffic, rows: pd.DataFrame, **manifest: object) -> Bundle:
    traffic.frame().to_parquet(directory / "packets.parquet", index=False)
    document = {
        "topology": topology_of(),
        "capture": {"files": []},
        **manifest,
    }
    return Bundle(directory, document, None, rows, truncated=False)


def a_run() -> tuple[Traffic, pd.DataFrame]:
    traffic = Traffic()
    return traffic, samples(one_after_another(traffic, [("Do", majority_rounds(2))] * 30))


def test_addresses_have_the_names_of_the_manifest(tmp_path: Path) -> None:
    record = read_record(bundle_of(tmp_path, *a_run()), "made-up")
    assert record is not None
    assert record.nodes == ("a1", "b1", "c1", "d1", "e1")
    assert record.sites == ("a", "b", "c", "d", "e")
    assert record.node_site.tolist() == [0, 1, 2, 3, 4]


def test_a_topology_that_the_record_contradicts_names_nobody(tmp_path: Path) -> None:
    other = topology_of(("e", "d", "c", "b", "a"))
    record = read_record(bundle_of(tmp_path, *a_run(), topology=other), "made-up")
    assert record is not None
    assert "10.1.0.1" in record.nodes
    assert record.node_of("c1") is not None  # the middle one is right
    assert record.sites[record.node_site[record.nodes.index("10.1.0.1")]] == "a"


def test_calibration_is_left_out_and_a_stores_datagrams_are_not(tmp_path: Path) -> None:
    traffic, rows = a_run()
    first = int(rows["start_ns"].min())
    for at_ns in range(first - 900 * MS, first - 500 * MS, 20 * MS):
        traffic.datagram(at_ns, "a1", "c1", 1472, source_port=1024, target_port=7)
        traffic.datagram(at_ns, "b1", "c1", 64, source_port=946, target_port=946)
        traffic.echo(at_ns, "a1", "c1")
    traffic.datagram(first + MS, "b1", "c1", 64, source_port=946, target_port=946)
    visit = {"system": "made-up", "rtt_step": 0, "requested_rtt_ms": 200.0}
    visit["calibrated_ns"] = [first - 10**9, first - 400 * MS]
    (tmp_path / "rtt_steps.json").write_text(json.dumps({"rtt_steps": [visit]}))
    record = read_record(bundle_of(tmp_path, traffic, rows), "made-up")
    assert record is not None
    assert 7 not in record.target_port
    assert np.count_nonzero(record.target_port == 946) == 21
    assert record.is_tcp[record.target_port != 946].all()


def test_the_two_directions_of_a_connection_differ_in_one_bit() -> None:
    traffic = Traffic(acknowledges=False)
    there = traffic.send(10**9, "a1", "b1")
    traffic.send(there, "b1", "a1")
    traffic.send(there, "a1", "c1")
    record = traffic.record()
    assert record.stream[0] == record.stream[1] ^ 1 or record.stream[0] == record.stream[2] ^ 1
    assert len(set((record.stream // 2).tolist())) == 2


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
    from wanlat.analysis.packets.record import record_of

    record = record_of(frame, "made-up", {"topology": topology_of()})
    first, second = record.stream[record.payload_bytes > 0]
    assert first != second
    assert np.count_nonzero(record.flags == 2) == 2


def test_sequence_numbers_go_on_beyond_32_bits() -> None:
    traffic = Traffic(first_seq=(1 << 32) - 250)
    rows = samples(one_after_another(traffic, [("Do", majority_rounds(2))] * 3))
    record = traffic.record()
    assert record.seq.max() > 1 << 32
    assert chains(record, rows).round_trips.tolist() == [2.0] * 3


def test_a_damaged_table_says_how_to_make_it_again(tmp_path: Path) -> None:
    bundle = bundle_of(tmp_path, *a_run())
    (tmp_path / "packets.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(BundleError, match="wanlat capture table"):
        read_record(bundle, "made-up")


def test_why_there_is_no_record(tmp_path: Path) -> None:
    bundle = bundle_of(tmp_path, *a_run())
    assert why_no_record(bundle, "made-up") is None
    (tmp_path / "packets.parquet").unlink()
    assert "capture table" in str(why_no_record(bundle, "made-up"))
    none = Bundle(tmp_path, {}, None, bundle.samples, truncated=False)
    assert "kept no packet record" in str(why_no_record(none, "made-up"))
    assert evidence_of(none, "made-up").why is not None


def test_evidence_is_the_most_frequent_chain_with_all_shares(tmp_path: Path) -> None:
    traffic = Traffic()
    requests = [("Do", majority_rounds(3 if number % 10 < 3 else 1)) for number in range(60)]
    rows = samples(one_after_another(traffic, requests))
    found = evidence_of(bundle_of(tmp_path, traffic, rows), "made-up")
    (group,) = found.groups.values()
    assert group.chain_round_trips == 1.0
    assert group.chains == ((1.0, pytest.approx(0.7)), (3.0, pytest.approx(0.3)))
    assert group.n == 60
    assert group.cost is not None
    assert found.trips is not None
    assert found.trips.index.equals(rows.index)


def test_only_great_rtts_count() -> None:
    rows = pd.DataFrame({"rtt_ms": [0.0, 25.0, 50.0, 100.0, 200.0]})
    assert counting(rows).tolist() == [False, False, False, True, True]
    assert counting(rows.iloc[:2]).tolist() == [False, True]
    assert not counting(pd.DataFrame({"rtt_ms": [0.0, 10.0]})).any()
    assert counting(pd.DataFrame({"rtt_ms": [None, None]})).all()


def test_a_request_at_a_small_rtt_has_no_evidence(tmp_path: Path) -> None:
    traffic = Traffic(one_way_ns=5 * MS)
    there = traffic.send(10**9, "a1", "b1")
    end = traffic.send(there + THINKS_NS, "b1", "a1")
    rows = samples([("Do", 10**9 - 1, end + MS)], rtt_ms=10.0)
    found = evidence_of(bundle_of(tmp_path, traffic, rows), "made-up")
    (group,) = found.groups.values()
    assert group.chain_round_trips is None
    assert "20 ms" in str(group.why)
