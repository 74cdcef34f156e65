"""The wire backend passes on what a topology can ask, and the program does it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.emulator.plans import mesh, ms
from tests.kernel import packets
from wanlat.emulator.backends.wire import Tables
from wanlat.emulator.lab import Lab
from wanlat.emulator.links import wan
from wanlat.topologies import shapes
from wanlat.topologies.resolve import GilbertElliott, Impairment

LINK = wan("dc1", "dc2")
CUSTOM = shapes.empirical((1.0, 1.0, 2.0, 9.0, 30.0))
TABLE = Impairment(40_000_000, 8_000_000, distribution="table", table=CUSTOM)
EVERYTHING = Impairment(
    delay_ns=40_000_000,
    jitter_ns=8_000_000,
    distribution="normal",
    reorder=True,
    overtake=0.01,
    bursts=GilbertElliott(0.01, 0.3, 0.1, 0.999),
    duplicate=0.02,
    rate_bps=10**9,
    queue_bytes=10**6,
)


def test_a_table_is_sent_once_however_many_links_draw_from_it():
    tables = Tables()
    names = {tables.as_json(replace(TABLE, loss=place / 100))["table"] for place in range(50)}
    assert len(names) == 1
    assert tables.unsent() == {names.pop(): CUSTOM}
    tables.are_sent()
    tables.as_json(TABLE)
    assert tables.unsent() == {}
    assert tables.as_json(replace(EVERYTHING, jitter_ns=0))["table"] is None
    others = [tables.as_json(replace(TABLE, table=each)) for each in ((-1.0, 1.0), (-1.0, 0, 1.0))]
    assert len({each["table"] for each in others} | names) == 2
    assert tables.as_json(EVERYTHING)["table"] == "normal"
    assert len(json.dumps([tables.as_json(EVERYTHING)] * 2 * 1190)) < 2 * 10**6, "of 20 sites"


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab(mesh(2, wan=EVERYTHING), backend="wire") as made:
        yield made


def test_tables_come_along_with_changes_and_duplication_and_loss_are_what_the_receiver_sees(lab):
    for asked in (TABLE, replace(TABLE, distribution="pareto", table=())):
        lab.change(LINK, asked)
        found = packets.send(lab, "n1", "n2", 500)
        assert (found.lost, found.doubled, found.overtaken) == (0, 0, 0)
    lab.change(LINK, ms(1, 0.5, duplicate=0.2, loss=0.1))
    before = lab.counters()[LINK].lost
    found = packets.send(lab, "n1", "n2", 2000, interval_s=0.0002)
    # Five standard deviations.
    assert found.lost == pytest.approx(200, abs=67)
    assert found.doubled == pytest.approx(0.2 * (2000 - found.lost), abs=90)
    assert found.overtaken == 0
    counters = lab.counters()[LINK]
    assert (counters.lost - before, counters.overflows) == (found.lost, 0)
