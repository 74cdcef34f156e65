"""The shipped places are what their sources say, and packets meet what the files say."""

from __future__ import annotations

import csv
import re
import socket
import threading
import time
from pathlib import Path

import pytest

from wanlat.emulator.lab import Lab
from wanlat.topologies.load import find, load
from wanlat.topologies.matrix_import import import_matrix
from wanlat.topologies.resolve import resolve

AZURE = Path(__file__).parents[2] / "topologies" / "sources" / "azure-2026-07.csv"


@pytest.mark.parametrize("name", ["azure-regions", "community-hosting"])
def test_a_shipped_place_says_where_its_figures_come_from_and_of_when(name: str) -> None:
    head, _, _ = find(name).read_text(encoding="utf-8").partition("name:")
    assert "https://" in head and re.search(r"20\d\d-\d\d", head)


def test_the_cloud_is_its_matrix() -> None:
    imported = import_matrix(AZURE, name="azure-regions")
    ours = load("azure-regions")
    assert imported.topology.model_copy(update={"description": ours.description}) == ours
    notes = " ".join(imported.notes)
    assert "24 of 45 pairs have two" in notes
    assert "24 of the 45 pairs" in find("azure-regions").read_text(encoding="utf-8")
    lines = [line for line in AZURE.read_text().splitlines() if not line.startswith("#")]
    rows = {row["from"]: row for row in csv.DictReader(lines)}
    plan = resolve(ours)
    assert len(rows) == len(plan.sites) == 10
    for a in rows:
        for b in rows:
            if a != b:
                mean = (float(rows[a][b]) + float(rows[b][a])) / 2
                nodes = (f"{each.lower().replace(' ', '-')}-1" for each in (a, b))
                assert plan.rtt_ms(*nodes) == mean


def test_homes_send_slower_than_they_receive_over_the_lines_of_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "real-places.md").read_text(encoding="utf-8")
    for link in resolve(load("community-hosting")).lan_links:
        assert link.up.rate_bps is not None and link.down.rate_bps is not None
        assert link.up.rate_bps < link.down.rate_bps
        rtt_ms = (link.up.delay_ns + link.down.delay_ns) / 1e6
        down, up = link.down.rate_bps / 1e6, link.up.rate_bps / 1e6
        assert f"| {down:g} Mbit/s | {up:g} Mbit/s | {rtt_ms:g} ms |" in page


def transfer_s(lab: Lab, ways: list[tuple[str, str]], size: int) -> float:
    """How long it takes to send `size` bytes over TCP on each way at once."""
    plan = resolve(load("community-hosting"))

    def send(sender: socket.socket) -> None:
        with sender:
            sender.sendall(bytes(size))
            sender.shutdown(socket.SHUT_WR)
            sender.recv(1)  # until the other side has all

    work = []
    receivers = []
    for a, b in ways:
        with lab.socket(b, socket.AF_INET, socket.SOCK_STREAM) as listener:
            listener.bind(("0.0.0.0", 0))
            listener.listen()
            sender = lab.connect(a, (plan.node(b).address, listener.getsockname()[1]))
            receivers.append(listener.accept()[0])
        work.append(threading.Thread(target=send, args=(sender,)))
    begin = time.monotonic()
    for each in work:
        each.start()
    for receiver in receivers:
        while receiver.recv(65536):
            pass
    took = time.monotonic() - begin
    for receiver in receivers:
        receiver.close()
    for each in work:
        each.join()
    return took


def test_a_homes_upstream_is_slow_and_shared_by_all_that_it_sends() -> None:
    size = 200_000
    with Lab(resolve(load("community-hosting")), backend="wire") as lab:
        up_s = transfer_s(lab, [("n6", "n1")], size)
        both_s = transfer_s(lab, [("n6", "n1"), ("n6", "n5")], size)
        down_s = min(transfer_s(lab, [("n1", "n6")], size) for _ in range(2))
    least_up_s = size * 8 / 1.4e6 * 0.97
    # A busy machine makes it slower, nothing makes it faster: down is quicker than up can be.
    assert up_s > least_up_s
    assert both_s > 2 * least_up_s
    assert size * 8 / 5e6 * 0.97 < down_s < least_up_s
