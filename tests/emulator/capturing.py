"""Traffic for tests of the packet record, and the record read back."""

from __future__ import annotations

import select
import socket
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from wanlat.emulator.capture.table import write_table
from wanlat.emulator.lab import Lab

_PORT = 7_000


def record_of(pcapng: Path, scratch: Path | None = None) -> list[dict[str, Any]]:
    """Return the rows of a record."""
    with tempfile.TemporaryDirectory(dir=scratch) as name:
        table = Path(name, "packets.parquet")
        write_table({None: pcapng}, table)
        rows: list[dict[str, Any]] = pq.read_table(table).to_pylist()
        return rows


def interface_counts(pcapng: Path) -> dict[str, int]:
    """Return how many packets each interface has."""
    return dict(Counter(f"{row['source']}->{row['target']}" for row in record_of(pcapng)))


def comes(receiver: socket.socket) -> bool:
    """Wait for a datagram; return whether there is one after a third of a second.

    In steps, so that a stall of the machine, and of what is on its way, uses up but one of them.
    """
    return any(select.select([receiver], [], [], 0.01)[0] for _ in range(33))


def a_moment(seconds: float = 0.1) -> None:
    """Let packets that were sent get through, in steps as well."""
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

    To a port on which somebody listens: nothing else crosses the links.
    """
    receiver = lab.socket(target, socket.AF_INET, socket.SOCK_DGRAM)
    sender = lab.socket(source, socket.AF_INET, socket.SOCK_DGRAM)
    with receiver, sender:
        receiver.bind((lab.node(target).address, _PORT))
        reflected = 0

        def reflect() -> None:
            nonlocal reflected
            while reflected < count and comes(receiver):
                data, where = receiver.recvfrom(65_536)
                if echo:
                    receiver.sendto(data, where)
                reflected += 1

        reflector = threading.Thread(target=reflect)
        reflector.start()
        for number in range(count):
            sender.sendto(
                number.to_bytes(4, "big").ljust(size, b"."), (lab.node(target).address, _PORT)
            )
            if gap_s:
                time.sleep(gap_s)
        reflector.join()
        # Answers arrive at an open socket: no ICMP error crosses back.
        answered = 0
        while echo and answered < reflected and comes(sender):
            sender.recv(65_536)
            answered += 1


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


def transfer_tcp(lab: Lab, source: str, target: str, length: int) -> int:
    """Send ``length`` bytes over one connection; return the port they went to."""
    with lab.socket(target, socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.bind((lab.node(target).address, 0))
        listener.listen()
        port: int = listener.getsockname()[1]
        received = 0

        def drain() -> None:
            nonlocal received
            connection, _ = listener.accept()
            with connection:
                while chunk := connection.recv(1 << 16):
                    received += len(chunk)

        reader = threading.Thread(target=drain)
        reader.start()
        with lab.connect(source, (lab.node(target).address, port)) as connection:
            connection.sendall(b"x" * length)
        reader.join()
        assert received == length
    return port
