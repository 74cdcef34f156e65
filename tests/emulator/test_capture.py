"""The packet record has every packet that crosses a WAN link, when it entered and when it left."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.emulator.capturing import (
    a_moment,
    ask_and_answer,
    interface_counts,
    record_of,
    send_udp,
    transfer_tcp,
)
from tests.emulator.entries import Clocks
from tests.emulator.plans import mesh, ms
from tests.needs import needs
from wanlat.emulator.backends import Counters
from wanlat.emulator.capture import Capture
from wanlat.emulator.capture.store import CaptureStore
from wanlat.emulator.capture.table import SCHEMA, write_table
from wanlat.emulator.interface_counters import InterfaceCounters
from wanlat.emulator.lab import Lab
from wanlat.emulator.links import Direction, wan
from wanlat.topologies.errors import MachineError, UserError

BACKEND = "wire"

# Programs of these tests import what the tests import.
_ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


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


def send_a_last_one(lab: Lab, source: str, target: str) -> None:
    """Send a datagram of one byte, to a port of its own, and return when it has arrived."""
    where = (lab.node(target).address, 7_001)
    receiver = lab.socket(target, socket.AF_INET, socket.SOCK_DGRAM)
    with receiver, lab.socket(source, socket.AF_INET, socket.SOCK_DGRAM) as sender:
        receiver.bind(where)
        receiver.settimeout(60)
        sender.sendto(b".", where)
        assert receiver.recv(2) == b"."


@pytest.fixture
def pcapng(tmp_path: Path) -> Path:
    return tmp_path / "packets.pcapng"


def test_departure_minus_entry_is_the_delay_that_was_asked_for(pcapng):
    with Lab(mesh(2, wan=ms(20), back=ms(5)), backend=BACKEND, capture=Capture(pcapng)) as lab:
        send_udp(lab, "n1", "n2", 100, echo=True, gap_s=0.002)
    rows = record_of(pcapng)
    for source, delay_ms in (("dc1", 20), ("dc2", 5)):
        held = [
            (row["departure_ns"] - row["entry_ns"]) / 1e6 for row in rows if row["source"] == source
        ]
        assert len(held) == 100
        # Handed over up to 5 us early, see wire's README. How late the others are: benchmarks.
        assert delay_ms - 0.006 <= min(held) < delay_ms + 3


def test_a_packet_departs_before_its_answer_enters(pcapng):
    with Lab(mesh(2, wan=ms(2)), backend=BACKEND, capture=Capture(pcapng)) as lab:
        ask_and_answer(lab, "n1", "n2", 20)
    rows = record_of(pcapng)
    assert [row["source"] for row in rows] == ["dc1", "dc2"] * 20
    instants = [instant for row in rows for instant in (row["entry_ns"], row["departure_ns"])]
    assert instants == sorted(instants)


def test_every_packet_that_the_counters_count_is_in_the_record(pcapng):
    plan = mesh(3, wan=ms(1, loss=0.2), back=ms(2, rate_bps=2_000_000, queue_bytes=8_000))
    with Lab(plan, backend=BACKEND, capture=Capture(pcapng)) as lab:
        for target in ("n2", "n3"):
            send_udp(lab, "n1", target, 500, echo=True, size=400)
        counters = counted(lab)
        status = lab.capture
    assert status is not None
    rows = record_of(pcapng)
    found = Counter((row["source"], row["target"], row["fate"]) for row in rows)
    for direction, each in counters.items():
        ends = (direction.source, direction.target)
        assert found[*ends, "sent"] == each.packets, direction
        assert found[*ends, "lost"] == each.lost, direction
        assert found[*ends, "queue_full"] == each.queue_drops, direction
        sent = [
            row for row in rows if (row["source"], row["target"], row["fate"]) == (*ends, "sent")
        ]
        assert sum(row["frame_bytes"] for row in sent) == each.bytes
    for target in ("dc2", "dc3"):
        assert found["dc1", target, "sent"] + found["dc1", target, "lost"] >= 500
    assert found["dc1", "dc2", "lost"] > 50
    assert found["dc2", "dc1", "queue_full"] > 50
    assert len(rows) == sum(found.values())
    assert all((row["departure_ns"] is None) == (row["fate"] != "sent") for row in rows)


def test_copies_and_damage_that_the_link_makes_are_marked(pcapng):
    plan = mesh(2, wan=ms(1, duplicate=0.2, corrupt=0.2), back=ms(1))
    with Lab(plan, backend=BACKEND, capture=Capture(pcapng)) as lab:
        send_udp(lab, "n1", "n2", 500, size=100, gap_s=0.0002)
        lab.change({wan("dc1", "dc2"): ms(1)})
        send_a_last_one(lab, "n1", "n2")  # it leaves after all those, and their copies
        counters = lab.counters()[wan("dc1", "dc2")]
    first = [row for row in record_of(pcapng) if row["source"] == "dc1"]
    *rows, last = sorted(first, key=lambda row: row["entry_ns"])
    assert last["payload_bytes"] == 1
    assert len(rows) == counters.packets - 1 == 500 + sum(row["duplicate"] for row in rows)
    assert 50 < sum(row["duplicate"] for row in rows) < 150
    assert 60 < sum(row["corrupted"] for row in rows) < 180
    # Of the rest every datagram is whole: UDP's checksum would show it otherwise.
    assert all(row["payload_bytes"] == 100 for row in rows if not row["corrupted"])


def test_what_is_on_its_way_at_the_end_is_held(pcapng):
    with Lab(mesh(2, wan=ms(5_000)), backend=BACKEND, capture=Capture(pcapng)) as lab:
        send_udp(lab, "n1", "n2", 7)
        a_moment()
    assert Counter(row["fate"] for row in record_of(pcapng)) == {"held": 7}


def test_a_tcp_stream_can_be_put_together_from_its_rows(pcapng):
    length = 3_000_000
    with Lab(mesh(2, wan=ms(1)), backend=BACKEND, capture=Capture(pcapng)) as lab:
        port = transfer_tcp(lab, "n1", "n2", length)
        a_moment()
    rows = [row for row in record_of(pcapng) if row["protocol"] == socket.IPPROTO_TCP]
    data = [row for row in rows if row["target_port"] == port and row["payload_bytes"]]
    syn = next(row for row in rows if row["target_port"] == port and row["tcp_flags"] & 2)
    covered = 0
    for row in sorted(data, key=lambda row: (row["tcp_seq"] - syn["tcp_seq"]) % 2**32):
        start = (row["tcp_seq"] - syn["tcp_seq"] - 1) % 2**32
        assert start <= covered
        covered = max(covered, start + row["payload_bytes"])
    assert covered == length
    assert {(row["source_address"], row["target_address"]) for row in data} == {
        (lab.node("n1").address, lab.node("n2").address)
    }
    # Segments that the kernel has yet to cut are one row each, which says how many they are.
    assert max(row["segments"] for row in data) > 1
    for row in data:
        headers = row["frame_bytes"] - row["payload_bytes"]
        assert row["bytes"] == row["payload_bytes"] + row["segments"] * headers
        assert row["captured_bytes"] == min(row["frame_bytes"], 256)


@pytest.mark.programs
def test_wireshark_opens_the_file_and_shows_links_and_instants(pcapng):
    needs("tshark")
    with Lab(mesh(2, wan=ms(3)), backend=BACKEND, capture=Capture(pcapng)) as lab:
        transfer_tcp(lab, "n1", "n2", 200_000)
        offset_ns = Clocks.read().ahead_ns
        a_moment()
    rows = record_of(pcapng)
    fields = ("frame.interface_name", "frame.time_epoch", "frame.comment", "tcp.len")
    shown = subprocess.run(
        [
            "tshark",
            "-r",
            pcapng,
            "-T",
            "fields",
            *(word for name in fields for word in ("-e", name)),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "cut short" not in shown.stderr and "malformed" not in shown.stderr.lower()
    lines = [line.split("\t") for line in shown.stdout.splitlines()]
    assert len(lines) == len(rows)
    for (name, epoch, comment, _), row in zip(lines, rows, strict=True):
        assert name == f"{row['source']}->{row['target']}"
        seconds, _, fraction = epoch.partition(".")
        wall_ns = int(seconds) * 10**9 + int(fraction.ljust(9, "0"))
        assert wall_ns - row["entry_ns"] == pytest.approx(offset_ns, abs=5e6)
        held_ms = (row["departure_ns"] - row["entry_ns"]) / 1e6
        assert comment.startswith(f"departed {held_ms:.6f} ms later")


def test_a_limit_ends_the_record_and_not_the_lab(pcapng):
    limit = 100_000
    plan = mesh(2, wan=ms(1))
    with Lab(plan, backend=BACKEND, capture=Capture(pcapng, limit_bytes=limit)) as lab:
        send_udp(lab, "n1", "n2", 1_000, size=300)
        packets = counted(lab)[wan("dc1", "dc2")].packets
        ask_and_answer(lab, "n1", "n2", 1)
    status = lab.capture
    assert status is not None and status.ended is not None and "limit" in status.ended
    assert limit * 0.95 < pcapng.stat().st_size <= limit
    assert len(record_of(pcapng)) == status.packets
    assert status.packets + status.missing["dc1->dc2"] == packets + 1
    assert status.missing["dc2->dc1"] == 1


def test_a_full_disk_ends_the_record_cleanly_and_the_lab_goes_on(tmp_path):
    """The disk is a memory file system of 256 KiB in a mount namespace of its own."""
    script = textwrap.dedent(
        """
        import json, sys, time
        from pathlib import Path
        from wanlat.emulator.capture import Capture
        from wanlat.emulator.lab import Lab
        from tests.emulator.capturing import ask_and_answer, record_of, send_udp
        from tests.emulator.plans import mesh, ms
        from tests.emulator.test_capture import counted
        file = Path(sys.argv[1], "packets.pcapng")
        with Lab(mesh(2, wan=ms(1)), backend="wire", capture=Capture(file)) as lab:
            send_udp(lab, "n1", "n2", 3000, size=300)
            packets = sum(each.packets for each in counted(lab).values())
            ask_and_answer(lab, "n1", "n2", 1)
        status = lab.capture
        print(json.dumps({"crossed": packets + 2, "packets": status.packets,
            "missed": status.missed, "ended": status.ended, "size": file.stat().st_size,
            "rows": len(record_of(file, Path(sys.argv[2])))}))
        """
    )
    program = tmp_path / "small.py"
    program.write_text(script)
    disk = tmp_path / "disk"
    disk.mkdir()
    command = f"{sys.executable} {program} {disk} {tmp_path}"
    mount = f"mount -t tmpfs -o size=256k tmpfs {disk} && exec {command}"
    namespaces = ["unshare", "--user", "--map-root-user", "--mount"]
    done = subprocess.run(
        [*namespaces, "sh", "-c", mount],
        capture_output=True,
        text=True,
        env=_ENVIRONMENT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert "No space left" in told["ended"]
    assert told["rows"] == told["packets"] > 300
    assert told["packets"] + told["missed"] == told["crossed"] > 1_000
    assert told["size"] <= 256 << 10


def test_a_limit_on_file_sizes_ends_the_record_like_a_full_disk(pcapng):
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
    try:
        with Lab(mesh(2, wan=ms(1)), backend=BACKEND, capture=Capture(pcapng)) as lab:
            send_udp(lab, "n1", "n2", 2_000, size=300)
            packets = counted(lab)[wan("dc1", "dc2")].packets
        status = lab.capture
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert status is not None and status.ended is not None and "too large" in status.ended
    assert len(record_of(pcapng)) == status.packets
    assert status.packets + status.missed == packets > 1_000


def test_a_killed_command_leaves_a_file_that_can_be_read(pcapng):
    script = textwrap.dedent(
        """
        import sys, time
        from pathlib import Path
        from wanlat.emulator.capture import Capture
        from wanlat.emulator.lab import Lab
        from tests.emulator.capturing import send_udp
        from tests.emulator.plans import mesh, ms
        with Lab(mesh(2, wan=ms(1)), backend="wire", capture=Capture(Path(sys.argv[1]))) as lab:
            send_udp(lab, "n1", "n2", 100)
            print("sent", flush=True)
            for _ in range(200):
                send_udp(lab, "n1", "n2", 1)
                time.sleep(0.02)
        """
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(pcapng)],
        stdout=subprocess.PIPE,
        env=_ENVIRONMENT,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"sent\n"
        a_moment(1.5)
        child.send_signal(signal.SIGKILL)
    a_moment(0.5)  # the guard ends the lab
    rows = record_of(pcapng)
    assert len(rows) >= 100  # a second old and more: written
    assert {row["fate"] for row in rows} == {"sent"}


def test_malformed_frames_are_recorded_as_far_as_they_make_sense(pcapng):
    with Lab(mesh(2, wan=ms(1)), backend=BACKEND, capture=Capture(pcapng)) as lab:
        sender = lab.spawn("n1", [sys.executable, "-c", _JUNK])
        assert sender.wait(20) == 0
        send_udp(lab, "n1", "n2", 1)
        crossed = sum(each.packets for each in counted(lab).values())
    assert len(record_of(pcapng)) == crossed > 300


_JUNK = """
import os, random, socket
random.seed(1)
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
for number in range(300):
    total = random.randrange(20, 1400)
    header = bytearray(20)
    header[0] = 0x45
    header[2:4] = total.to_bytes(2, "big")
    header[8] = 64
    header[9] = random.choice([1, 6, 17, 47, 58, 132, random.randrange(256)])
    header[16:20] = socket.inet_aton("10.2.0.1")
    try:
        s.sendto(bytes(header) + os.urandom(total - 20), ("10.2.0.1", 0))
    except OSError:
        pass
"""


def test_what_cannot_be_recorded_is_refused_before_anything_starts(tmp_path, pcapng):
    with pytest.raises(UserError, match="no WAN link"):
        Lab(mesh(1, 2), backend=BACKEND, capture=Capture(pcapng)).__enter__()
    with pytest.raises(UserError, match="cannot be recorded to"):
        Lab(mesh(2), backend=BACKEND, capture=Capture(tmp_path / "no" / "file")).__enter__()
    with pytest.raises(UserError, match="64KiB"):
        Capture(pcapng, limit_bytes=10)
    with pytest.raises(UserError, match="headers"):
        Capture(pcapng, snap_bytes=10)


def test_labs_of_a_run_share_the_limit_and_one_table(tmp_path):
    store = CaptureStore(tmp_path / "capture", tmp_path / "packets.parquet", limit_bytes=300_000)
    for system, packets in (("garage", 100), ("minio", 50)):
        with Lab(mesh(2, wan=ms(1)), backend=BACKEND, capture=store.prepare(system)) as lab:
            send_udp(lab, "n1", "n2", packets)
            a_moment()
        store.note(system, lab.capture)
    document = store.finish()
    table = pq.read_table(tmp_path / "packets.parquet")
    assert table.schema.equals(SCHEMA)
    assert Counter(table.column("system").to_pylist()) == {"garage": 100, "minio": 50}
    assert (document["packets"], document["rows"], document["missing"]) == (150, 150, 0)
    assert [each["file"] for each in document["files"]] == ["garage.pcapng", "minio.pcapng"]
    assert document["ended"] is None and store.remarks() == []
    json.dumps(document)


def test_a_table_that_cannot_be_written_leaves_none_and_is_told(tmp_path, pcapng):
    with Lab(mesh(2, wan=ms(1)), backend=BACKEND, capture=Capture(pcapng)) as lab:
        send_udp(lab, "n1", "n2", 1)
        a_moment()
    assert lab.capture is not None
    with pytest.raises(MachineError, match="cannot be written"):
        write_table({None: pcapng}, tmp_path / "no" / "packets.parquet")
    (tmp_path / "junk").write_bytes(b"not a record at all")
    with pytest.raises(UserError, match="not a whole record"):
        write_table({None: tmp_path / "junk"}, tmp_path / "packets.parquet")
    assert not (tmp_path / "packets.parquet").exists()
    assert interface_counts(pcapng) == {"dc1->dc2": 1}
