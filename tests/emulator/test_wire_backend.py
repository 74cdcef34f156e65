"""The wire backend passes on all that a topology can ask, and the program does it."""

from __future__ import annotations

import json
import os
import sys

import pytest

from tests.emulator.plans import mesh, ms
from wanlat.emulator.backends import choice
from wanlat.emulator.backends.wire import Tables, unsupported
from wanlat.emulator.lab import Lab
from wanlat.emulator.links import wan
from wanlat.topologies import shapes
from wanlat.topologies.resolve import GilbertElliott, Impairment

LINK = wan("dc1", "dc2")
CUSTOM = shapes.empirical((1.0, 1.0, 2.0, 9.0, 30.0))
EVERYTHING = Impairment(
    delay_ns=40_000_000,
    jitter_ns=8_000_000,
    distribution="normal",
    correlation=0.25,
    reorder=True,
    overtake=0.01,
    bursts=GilbertElliott(0.01, 0.3, 0.1, 0.999),
    duplicate=0.02,
    corrupt=0.03,
    rate_bps=10**9,
    queue_bytes=10**6,
)

# Sends 2,000 numbered datagrams, a few at a time, and then the end.
SEND = """
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect((sys.argv[1], 7007))
for number in range(2000):
    s.send(number.to_bytes(4, "big") + bytes(100))
    if number % 20 == 0:
        time.sleep(0.002)
"""

# Prints how many datagrams came, how many different ones, and whether in order.
RECEIVE = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
s.bind(("", 7007))
print("ready", flush=True)
s.settimeout(30)
numbers = []
try:
    while True:
        data = s.recv(2000)
        assert data[4:] == bytes(100), "corrupted"
        numbers.append(int.from_bytes(data[:4], "big"))
        s.settimeout(1)
except TimeoutError:
    print(len(numbers), len(set(numbers)), int(numbers == sorted(numbers)))
"""


def test_nothing_is_left_that_it_does_not_do():
    assert unsupported(EVERYTHING) is None
    assert choice.choose("wire", {LINK: EVERYTHING}, netem_available=False) == "wire"


def test_a_table_is_sent_once_however_many_links_draw_from_it():
    tables = Tables()
    asked = [
        Impairment(10**8, 10**6, distribution="table", table=CUSTOM, loss=place / 100)
        for place in range(50)
    ]
    names = {tables.as_json(each)["table"] for each in asked}
    assert len(names) == 1
    assert tables.unsent() == {names.pop(): CUSTOM}
    tables.are_sent()
    tables.as_json(asked[0])
    assert tables.unsent() == {}


def test_tables_of_other_values_have_other_names():
    tables = Tables()
    for values in ((-1.0, 1.0), (-1.0, 0.0, 1.0)):
        tables.as_json(Impairment(10**8, 10**6, distribution="table", table=values))
    tables.as_json(Impairment(10**8, 10**6, distribution="pareto"))
    assert sorted(map(len, tables.unsent().values())) == [2, 3, shapes.QUANTILES]
    assert tables.unsent()["pareto"] == shapes.quantiles("pareto")


def test_without_jitter_no_table_is_sent():
    tables = Tables()
    assert tables.as_json(Impairment(10**8, distribution="normal"))["table"] is None
    assert tables.unsent() == {}


def test_a_lab_of_20_sites_asks_in_one_line_that_is_short_enough():
    tables = Tables()
    links = [tables.as_json(EVERYTHING) for _ in range(2 * 1190)]
    assert len(json.dumps([links, tables.unsent()])) < 2 * 10**6


@pytest.fixture(scope="module")
def lab():
    with Lab(mesh(2, wan=EVERYTHING), backend="wire") as made:
        yield made


def received(lab: Lab) -> tuple[int, int, int]:
    """Send across the link; return how many came, how many different ones, whether in order."""
    read, write = os.pipe()
    with open(read, "rb") as answers:
        with open(write, "wb") as output:
            receiver = lab.spawn("n2", [sys.executable, "-c", RECEIVE], stdout=output)
        assert answers.readline() == b"ready\n"
        assert lab.spawn("n1", [sys.executable, "-c", SEND, "10.2.0.1"]).wait(30) == 0
        came, different, in_order = map(int, answers.read().split())
    assert receiver.wait(10) == 0
    return came, different, in_order


def within(count: int, n: int, probability: float) -> bool:
    """Whether a count is within five standard deviations of the binomial distribution."""
    return abs(count - n * probability) <= 5 * (n * probability * (1 - probability)) ** 0.5 + 1


def test_everything_at_once_spares_the_payload(lab):
    came, different, in_order = received(lab)
    assert 1700 < different < came
    assert not in_order


def test_tables_come_along_with_changes(lab):
    lab.change(LINK, Impairment(40_000_000, 10_000_000, distribution="table", table=CUSTOM))
    assert received(lab) == (2000, 2000, 1)
    lab.change(LINK, Impairment(40_000_000, 10_000_000, distribution="pareto", correlation=0.5))
    assert received(lab) == (2000, 2000, 1)


def test_duplication_and_loss_are_what_the_receiver_sees(lab):
    lab.change(LINK, ms(1, 0.5, duplicate=0.2, loss=0.1))
    came, different, in_order = received(lab)
    assert within(2000 - different, 2000, 0.1)
    assert within(came - different, different, 0.2)
    assert in_order
    assert lab.counters()[LINK].overflows == 0
