"""The packet record has every packet that crosses a WAN link, when it entered and when it left."""

from __future__ import annotations

import json
import resource
import time
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.emulator.capturing import a_moment, ask_and_answer, record_of, send_udp
from tests.emulator.plans import mesh, ms
from wanlat.emulator.backends import Counters
from wanlat.emulator.capture import Capture
from wanlat.emulator.capture.store import CaptureStore
from wanlat.emulator.capture.table import SCHEMA, write_table
from wanlat.emulator.interface_counters import InterfaceCounters
from wanlat.emulator.lab import Lab
from wanlat.emulator.links import Direction, wan
from wanlat.topologies.errors import MachineError, UserError


def counted(lab: Lab) -> dict[Direction, Counters]:
    """Return the counters of WAN links that double nothing, once all that they were given is in.

    What they were given is what the kernel counts. Twice, so that what a packet that has just
    arrived makes a node send is in it too.
    """
    kernel, deadline, agreed = InterfaceCounters(lab), time.monotonic() + 60, 0
    try:
        while agreed < 2:
            a_moment()
            given = {way: traffic.tx_packets for way, traffic in kernel.links().items()}
            counters = lab.counters()
            found = {
                way: each.packets + each.lost + each.queue_drops + each.overflows
                for way, each in counters.items()
                if way in given
            }
            agreed = agreed + 1 if found == given else 0
            assert time.monotonic() < deadline, (found, given)
    finally:
        kernel.close()
    return counters


@pytest.fixture
def pcapng(tmp_path: Path) -> Path:
    return tmp_path / "packets.pcapng"


def test_departure_minus_entry_is_the_delay_and_a_packet_departs_before_its_answer_enters(
    pcapng: Path,
) -> None:
    with Lab(mesh(2, wan=ms(20), back=ms(5)), capture=Capture(pcapng)) as lab:
        assert lab.backend == "wire"  # whatever the kernel has
        ask_and_answer(lab, "n1", "n2", 20)
    rows = record_of(pcapng)
    assert [row["source"] for row in rows] == ["dc1", "dc2"] * 20
    instants = [instant for row in rows for instant in (row["entry_ns"], row["departure_ns"])]
    assert instants == sorted(instants)
    for place, delay_ms in enumerate((20, 5)):
        held = [(row["departure_ns"] - row["entry_ns"]) / 1e6 for row in rows[place::2]]
        # Handed over up to 5 us early, see wire's README. How late the others are: benchmarks.
        assert delay_ms - 0.006 <= min(held) < delay_ms + 3


def test_every_packet_that_the_counters_count_is_in_the_record(pcapng: Path) -> None:
    plan = mesh(3, wan=ms(1, loss=0.2), back=ms(2, rate_bps=2_000_000, queue_bytes=8_000))
    with Lab(plan, capture=Capture(pcapng)) as lab:
        for target in ("n2", "n3"):
            send_udp(lab, "n1", target, 500, echo=True, size=400)
        counters = counted(lab)
        status = lab.capture
    assert status is not None
    rows = record_of(pcapng)
    found = Counter((row["source"], row["target"], row["fate"]) for row in rows)
    sent_bytes: Counter[tuple[str, str]] = Counter()
    for row in rows:
        assert (row["departure_ns"] is None) == (row["fate"] != "sent")
        if row["fate"] == "sent":
            sent_bytes[row["source"], row["target"]] += row["frame_bytes"]
    for direction, each in counters.items():
        ends = (direction.source, direction.target)
        assert found[*ends, "sent"] == each.packets, direction
        assert found[*ends, "lost"] == each.lost, direction
        assert found[*ends, "queue_full"] == each.queue_drops, direction
        assert sent_bytes[ends] == each.bytes, direction
    for target in ("dc2", "dc3"):
        assert found["dc1", target, "sent"] + found["dc1", target, "lost"] >= 500
    assert found["dc1", "dc2", "lost"] > 50
    assert found["dc2", "dc1", "queue_full"] > 50


def test_a_disk_that_takes_no_more_ends_the_record_and_not_the_lab(pcapng: Path) -> None:
    """It is a limit on the size of files, which the system tells as it tells of a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
    try:
        with Lab(mesh(2, wan=ms(1)), capture=Capture(pcapng)) as lab:
            send_udp(lab, "n1", "n2", 2_000, size=300)
            packets = counted(lab)[wan("dc1", "dc2")].packets
        status = lab.capture
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert status is not None and status.ended is not None and "too large" in status.ended
    assert len(record_of(pcapng)) == status.packets > 300
    assert status.packets + status.missed == packets > 1_000


def test_labs_of_a_run_share_the_limit_and_one_table(tmp_path: Path) -> None:
    table, limit = tmp_path / "packets.parquet", 100_000
    store = CaptureStore(tmp_path / "capture", table, limit_bytes=limit)
    for system, packets in (("garage", 100), ("minio", 50), ("bob", 1)):
        wanted = store.prepare(system)
        assert (wanted is None) == (system == "bob")  # it finds less room than the least
        with Lab(mesh(2, wan=ms(1)), capture=wanted) as lab:
            send_udp(lab, "n1", "n2", packets)
            a_moment()
        store.note(system, lab.capture)
    document = store.finish()
    found = pq.read_table(table)
    assert found.schema.equals(SCHEMA)
    assert Counter(found.column("system").to_pylist()) == {"garage": 100, "minio": 50}
    assert (document["packets"], document["rows"], document["missing"]) == (150, 150, 0)
    files = [each["file"] for each in document["files"]]
    assert files == ["garage.pcapng", "minio.pcapng", "bob.pcapng"]
    assert "used up" in document["ended"] and "bob" in store.remarks()[0]
    assert sum(each.stat().st_size for each in store.directory.iterdir()) == document["bytes"]
    assert document["bytes"] <= limit
    json.dumps(document)


def test_a_table_that_cannot_be_written_leaves_none_and_is_told(
    tmp_path: Path, pcapng: Path
) -> None:
    with Lab(mesh(2, wan=ms(1)), capture=Capture(pcapng)) as lab:
        send_udp(lab, "n1", "n2", 1)
        a_moment()
    with pytest.raises(MachineError, match="cannot be written"):
        write_table({None: pcapng}, tmp_path / "no" / "packets.parquet")
    table = tmp_path / "packets.parquet"
    newer = b'{"version":2,"row_bytes":112,"names":[]}\n'
    for junk in (b"", b"not a record at all", b"\xff\n", b"{}\n", b"[]\n", newer):
        (tmp_path / "junk.rows").write_bytes(junk)
        with pytest.raises(UserError, match="not a whole record"):
            write_table({None: tmp_path / "junk.pcapng"}, table)
    assert not table.exists()
    other = tmp_path / "other"
    other.write_text("of the user")
    planted = tmp_path / f".{table.name}.partial"
    planted.symlink_to(other)
    assert write_table({None: pcapng}, table).packets == 1
    assert planted.is_symlink() and other.read_text() == "of the user"
