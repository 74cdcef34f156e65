"""The wire backend passes on what a topology can ask, and the program does it."""

from __future__ import annotations

import json
from dataclasses import replace

from wanlat.emulator.backends.wire import Tables
from wanlat.topologies import shapes
from wanlat.topologies.resolve import GilbertElliott, Impairment

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
