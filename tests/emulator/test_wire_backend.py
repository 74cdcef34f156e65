"""Tables of quantiles that links draw from: each is sent to wire once, under a name of its own."""

from __future__ import annotations

from dataclasses import replace

from tests.emulator.plans import ms
from wanlat.emulator.backends.wire import Tables
from wanlat.topologies import shapes

CUSTOM = shapes.empirical((1.0, 1.0, 2.0, 9.0, 30.0))
TABLE = ms(40, jitter=8, distribution="table", table=CUSTOM)


def test_a_table_is_sent_once_however_many_links_draw_from_it() -> None:
    tables = Tables()
    names = {tables.as_json(replace(TABLE, loss=place / 100))["table"] for place in range(50)}
    assert tables.unsent() == dict.fromkeys(names, CUSTOM) and len(names) == 1
    tables.are_sent()
    tables.as_json(TABLE)
    assert tables.unsent() == {}
    assert tables.as_json(replace(TABLE, jitter_ns=0))["table"] is None
    others = [
        tables.as_json(replace(TABLE, table=table)) for table in ((-1.0, 1.0), (-1.0, 0.0, 1.0))
    ]
    assert len({other["table"] for other in others} | names) == 3
    assert tables.as_json(ms(40, jitter=8, distribution="normal"))["table"] == "normal"
