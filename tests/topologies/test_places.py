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
from wanlat.emulator.prober import Prober
from wanlat.topologies.load import load, origin, shipped
from wanlat.topologies.matrix import asymmetry, read
from wanlat.topologies.matrix_import import import_matrix
from wanlat.topologies.resolve import resolve

TOPOLOGIES = Path(__file__).parents[2] / "topologies"
AZURE = TOPOLOGIES / "sources" / "azure-2026-07.csv"
PLACES = ["azure-regions", "community-hosting"]


@pytest.mark.parametrize("name", PLACES)
def test_a_shipped_place_says_where_its_figures_come_from_and_of_when(name: str) -> None:
    assert name in shipped()
    text = origin(name)
    assert "https://" in text
    assert re.search(r"20\d\d-\d\d", text)


def test_the_cloud_is_its_matrix() -> None:
    imported = import_matrix(AZURE, name="azure-regions")
    ours = load("azure-regions")
    assert imported.topology.model_copy(update={"description": ours.description}) == ours
    text = origin("azure-regions")
    assert "24 of the 45 pairs" in text and "24 of 45 pairs" in " ".join(imported.notes)
    assert "2 pairs break" in text and "2 of 45 pairs break" in " ".join(imported.notes)
    found = asymmetry(read(AZURE))
    assert found is not None
    assert found.worst[2] - found.worst[3] == 4 * 10**6  # as the file says


def test_every_pair_of_regions_has_the_round_trip_of_the_matrix() -> None:
    lines = [line for line in AZURE.read_text().splitlines() if not line.startswith("#")]
    rows = {row["from"]: row for row in csv.DictReader(lines)}
    plan = resolve(load("azure-regions"))
    assert len(rows) == len(plan.sites) == 10
    for a in rows:
        for b in rows:
            if a != b:
                mean = (float(rows[a][b]) + float(rows[b][a])) / 2
                assert plan.rtt_ms(node(a), node(b)) == mean


def node(region: str) -> str:
    return region.lower().replace(" ", "-") + "-1"


def test_homes_send_slower_than_they_receive() -> None:
    links = resolve(load("community-hosting")).lan_links
    for link in links:
        assert link.up.rate_bps is not None and link.down.rate_bps is not None
        assert link.up.rate_bps < link.down.rate_bps
    assert len({re.sub("-.*", "", link.site) for link in links}) == 3  # cities


@pytest.mark.parametrize("name", PLACES)
def test_packets_take_the_round_trips_of_the_file(name: str) -> None:
    plan = resolve(load(name))
    first = plan.nodes[0].name
    pairs = [(first, other.name) for other in plan.nodes[1:]]
    with (
        Lab(plan, backend="wire") as lab,
        Prober(lab, [each.name for each in plan.nodes]) as prober,
    ):
        echoes = prober.measure(pairs, 30, 0.05, 1)
    assert sum(each.lost for each in echoes.values()) == 0
    quickest_ms = [min(echoes[pair].rtt_ns) / 1e6 - plan.rtt_ms(*pair) for pair in pairs]
    assert min(quickest_ms) > -0.05  # a few ns, and the clocks' resolution
    # The quickest of thirty; 58 bytes take 0.3 ms through 1.4 Mbit/s.
    assert max(quickest_ms) < 20


def transfer_s(lab: Lab, ways: list[tuple[str, str]], size: int) -> float:
    """How long it takes to send `size` bytes over TCP on each way at once."""
    ends = []
    for a, b in ways:
        listener = lab.socket(b, socket.AF_INET, socket.SOCK_STREAM)
        listener.bind(("0.0.0.0", 0))
        listener.listen()
        address = resolve(load("community-hosting")).node(b).address
        sender = lab.connect(a, (address, listener.getsockname()[1]))
        receiver, _ = listener.accept()
        listener.close()
        ends.append((sender, receiver))

    def send(sender: socket.socket) -> None:
        sender.sendall(bytes(size))
        sender.shutdown(socket.SHUT_WR)

    def receive(receiver: socket.socket) -> None:
        while receiver.recv(65536):
            pass

    work = [threading.Thread(target=send, args=(sender,)) for sender, _ in ends]
    work += [threading.Thread(target=receive, args=(receiver,)) for _, receiver in ends]
    begin = time.monotonic()
    for each in work:
        each.start()
    for each in work:
        each.join()
    took = time.monotonic() - begin
    for sender, receiver in ends:
        sender.close()
        receiver.close()
    return took


def test_a_homes_upstream_is_slow_and_shared_by_all_that_it_sends() -> None:
    size = 300_000
    with Lab(resolve(load("community-hosting")), backend="wire") as lab:
        up_s = transfer_s(lab, [("n6", "n1")], size)
        down_s = transfer_s(lab, [("n1", "n6")], size)
        again_s = transfer_s(lab, [("n1", "n6")], size)
        both_s = transfer_s(lab, [("n6", "n1"), ("n6", "n5")], size)
    least_up_s, least_down_s = size * 8 / 1.4e6, size * 8 / 5e6
    # A busy machine makes it slower, nothing makes it faster: down is quicker than up can be.
    assert least_up_s * 0.97 < up_s
    assert least_down_s * 0.97 < down_s
    assert min(down_s, again_s) < least_up_s
    assert both_s > 2 * least_up_s * 0.97
