"""A node's access line: its two directions differ, and it is not shared out."""

from __future__ import annotations

from pathlib import Path

import pytest

from wanlat.topologies.load import TopologyError, load
from wanlat.topologies.resolve import Impairment, resolve

HEAD = "name: homes\nlinks: {default: {rtt: 20ms}}\nsites:\n  - {name: far, nodes: [f]}\n"


def written(tmp_path: Path, site: str) -> Path:
    file = tmp_path / "homes.yaml"
    file.write_text(f"{HEAD}  - {{name: home, nodes: [h1, h2], {site}}}\n", encoding="utf-8")
    return file


def test_each_node_has_the_line_as_it_is_written(tmp_path: Path) -> None:
    line = "access: {up: {delay: 10ms, rate: 1mbit, loss: 1%}, down: {delay: 8ms, rate: 5mbit}}"
    plan = resolve(load(written(tmp_path, line)))
    up = Impairment(delay_ns=10**7, rate_bps=10**6, loss=0.01)
    down = Impairment(delay_ns=8 * 10**6, rate_bps=5 * 10**6)
    assert [(each.up, each.down) for each in plan.lan_links if each.site == "home"] == [
        (up, down),
        (up, down),
    ]
    assert plan.rtt_ms("h1", "f") == 20 + 18
    assert plan.rtt_ms("h1", "h2") == 2 * 18


def test_one_direction_alone_leaves_the_other_alone(tmp_path: Path) -> None:
    plan = resolve(load(written(tmp_path, "access: {up: {rate: 1mbit}}")))
    assert plan.lan_links[-1].down == Impairment()


@pytest.mark.parametrize(
    ("site", "says"),
    [
        ("access: {up: {delay: 1ms}}, lan: {rtt: 1ms}", "`access` stands in the place of `lan`"),
        ("access: {up: {jitter: 1ms}}", "sites[1].access.up.jitter: `1ms` is larger than the del"),
        ("access: {up: {queue: 64KiB}}", "needs a `rate` beside it"),
        ("access: {up: {rtt: 5ms}}", "one direction has a `delay`"),
        ("access: {left: {delay: 5ms}}", "allowed: up, down"),
        ("access: 5ms", "its keys are up and down"),
    ],
)
def test_mistakes_in_it_are_told_where_they_are(tmp_path: Path, site: str, says: str) -> None:
    with pytest.raises(TopologyError) as caught:
        load(written(tmp_path, site))
    assert says in str(caught.value)
    assert "homes.yaml:5:" in str(caught.value)
    assert len(caught.value.mistakes) == 1


def test_it_is_dumped_and_loads_to_the_same(tmp_path: Path) -> None:
    topology = load(written(tmp_path, "access: {up: {delay: 3ms}, down: {rate: 9mbit}}"))
    assert type(topology).model_validate(topology.to_dict()) == topology
