"""The packet record of a netem lab: both instants of every packet, seen at the routers."""

from __future__ import annotations

import socket
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.emulator.capturing import (
    a_moment,
    ask_and_answer,
    record_of,
    send_udp,
    transfer_tcp,
)
from tests.emulator.plans import mesh, ms
from tests.kernel.packets import QUICKEST_LATE_NS
from wanlat.emulator.capture import Capture
from wanlat.emulator.lab import Lab
from wanlat.emulator.links import wan


@pytest.fixture
def pcapng(tmp_path: Path) -> Path:
    return tmp_path / "packets.pcapng"


def test_departure_minus_entry_is_the_delay_that_was_asked_for(pcapng):
    plan = mesh(2, wan=ms(20), back=ms(5))
    with Lab(plan, backend="netem", capture=Capture(pcapng)) as lab:
        send_udp(lab, "n1", "n2", 50, echo=True, gap_s=0.005)
        counters = lab.counters()
    rows = record_of(pcapng)
    for source, target, delay_ms in (("dc1", "dc2", 20), ("dc2", "dc1", 5)):
        mine = [row for row in rows if row["source"] == source]
        assert len(mine) == 50 == counters[wan(source, target)].packets
        held = sorted((row["departure_ns"] - row["entry_ns"]) / 1e6 for row in mine)
        assert delay_ms <= held[0] < delay_ms + QUICKEST_LATE_NS / 1e6


def test_a_packet_departs_before_its_answer_enters(pcapng):
    with Lab(mesh(2, wan=ms(2)), backend="netem", capture=Capture(pcapng)) as lab:
        ask_and_answer(lab, "n1", "n2", 20)
    rows = record_of(pcapng)
    assert [row["source"] for row in rows] == ["dc1", "dc2"] * 20
    instants = [instant for row in rows for instant in (row["entry_ns"], row["departure_ns"])]
    assert instants == sorted(instants)


def test_lost_packets_are_the_ones_that_netem_dropped(pcapng):
    plan = mesh(3, wan=ms(5, loss=0.2), back=ms(1))
    with Lab(plan, backend="netem", capture=Capture(pcapng)) as lab:
        send_udp(lab, "n1", "n3", 1_000, echo=True, gap_s=0.0002)
        a_moment(0.3)
        counters = lab.counters()
        time.sleep(2.5)  # longer than any packet can be on its way
    found = Counter((row["source"], row["target"], row["fate"]) for row in record_of(pcapng))
    there = counters[wan("dc1", "dc3")]
    assert found["dc1", "dc3", "sent"] == there.packets
    assert found["dc1", "dc3", "lost"] == there.lost == 1_000 - there.packets
    assert there.lost > 100
    assert found["dc3", "dc1", "sent"] == counters[wan("dc3", "dc1")].packets == there.packets
    assert sum(found.values()) == 1_000 + there.packets


def test_a_full_queue_shows_as_lost(pcapng):
    plan = mesh(2, wan=ms(1, rate_bps=1_000_000, queue_bytes=20_000), back=ms(1))
    with Lab(plan, backend="netem", capture=Capture(pcapng)) as lab:
        send_udp(lab, "n1", "n2", 200, size=1_000)
        a_moment(0.5)
        counters = lab.counters()[wan("dc1", "dc2")]
        time.sleep(2.5)
    found = Counter(row["fate"] for row in record_of(pcapng) if row["source"] == "dc1")
    assert found["sent"] == counters.packets
    assert found["lost"] == counters.queue_drops > 50


def test_a_tcp_stream_is_whole(pcapng):
    length = 1_000_000
    with Lab(mesh(2, wan=ms(1)), backend="netem", capture=Capture(pcapng)) as lab:
        port = transfer_tcp(lab, "n1", "n2", length)
        a_moment(0.3)
        counters = lab.counters()[wan("dc1", "dc2")]
    rows = [row for row in record_of(pcapng) if row["protocol"] == socket.IPPROTO_TCP]
    data = [row for row in rows if row["target_port"] == port]
    assert not any(row["entry_ns"] is None or row["corrupted"] for row in rows)
    first = min(row["tcp_seq"] for row in data if row["tcp_flags"] & 2)
    ends = [
        (row["tcp_seq"] - first - 1) % 2**32 + row["payload_bytes"]
        for row in data
        if row["payload_bytes"]
    ]
    assert max(ends) == length
    assert len(data) <= counters.packets  # netem counts the packets of a segment that is uncut
    assert sum(row["segments"] for row in data) == counters.packets
    assert sum(row["bytes"] for row in data) == counters.bytes


def test_copies_and_damage_are_recognised(pcapng):
    plan = mesh(2, wan=ms(5, duplicate=0.2, corrupt=0.2), back=ms(1))
    with Lab(plan, backend="netem", capture=Capture(pcapng)) as lab:
        send_udp(lab, "n1", "n2", 300, size=100, gap_s=0.001)
        a_moment(0.3)
        counters = lab.counters()[wan("dc1", "dc2")]
    rows = [row for row in record_of(pcapng) if row["source"] == "dc1"]
    assert len(rows) == counters.packets
    assert all(row["entry_ns"] is not None and row["fate"] == "sent" for row in rows)
    assert sum(row["duplicate"] for row in rows) == len(rows) - 300
    assert 30 < sum(row["corrupted"] for row in rows) < 120
