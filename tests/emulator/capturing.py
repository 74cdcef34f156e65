"""Traffic for tests of the packet record, and the record read back."""

from __future__ import annotations

import select
import socket
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from wanlat.emulator.capture.table import write_table
from wanlat.emulator.lab import Lab

_PORT = 7_000


def record_of(pcapng: Path) -> list[dict[str, Any]]:
    """Return the rows of a record."""
    with tempfile.TemporaryDirectory() as name:
        table = Path(name, "packets.parquet")
        write_table({None: pcapng}, table)
        rows: list[dict[str, Any]] = pq.read_table(table).to_pylist()
        return rows


def a_moment(seconds: float = 0.1) -> None:
    """Let packets that were sent get through; in steps, of which a stall uses up but one."""
    for _ in range(round(seconds / 0.01)):
        time.sleep(0.01)


def send_udp(
    lab: Lab,
    source: str,
    target: str,
    count: int,
    *,
    size: int = 32,
    echo: bool = False,
    gap_s: float = 0.0,
) -> None:
    """Send numbered datagrams from node to node; with ``echo``, each that arrives comes back.

    To a port on which somebody listens, until nothing arrives any more: nothing else crosses the
    links.
    """
    receiver = lab.socket(target, socket.AF_INET, socket.SOCK_DGRAM)
    sender = lab.socket(source, socket.AF_INET, socket.SOCK_DGRAM)
    where = (lab.node(target).address, _PORT)

    def take(steps: int) -> None:
        """Take what has arrived, until for so many steps nothing has."""
        silent = 0
        while silent < steps:
            ready, _, _ = select.select([receiver, sender], [], [], 0.01 if steps > 1 else 0)
            silent = 0 if ready else silent + 1
            for each in ready:
                data, origin = each.recvfrom(65_536)
                if echo and each is receiver:
                    receiver.sendto(data, origin)

    with receiver, sender:
        receiver.bind(where)
        for number in range(count):
            sender.sendto(number.to_bytes(4, "big").ljust(size, b"."), where)
            take(1)
            if gap_s:
                time.sleep(gap_s)
        take(33)


def ask_and_answer(lab: Lab, source: str, target: str, count: int) -> None:
    """Send ``count`` datagrams, each after the answer to the one before it has come."""
    server = lab.socket(target, socket.AF_INET, socket.SOCK_DGRAM)
    client = lab.socket(source, socket.AF_INET, socket.SOCK_DGRAM)
    with server, client:
        server.bind((lab.node(target).address, _PORT))
        for each in (server, client):
            each.settimeout(60)
        for number in range(count):
            client.sendto(bytes([number]), (lab.node(target).address, _PORT))
            server.sendto(*server.recvfrom(64))
            client.recv(64)
        a_moment()
