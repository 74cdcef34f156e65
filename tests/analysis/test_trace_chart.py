"""The sequence diagram has an arrow a message, the path numbered, and words that can be read."""

from __future__ import annotations

import re
from pathlib import Path

from chart_checks import assert_apart, texts_of
from trace_bundles import MS, Request, Traffic, heartbeats, rounds, traced


def lossy(traffic: Traffic, at_ns: int) -> int:
    """Three rounds, something lost, and something that goes on after the answer."""
    traffic.send(at_ns + MS, "a1", "c2", 100, fate="queue_full")
    end = rounds(3)(traffic, at_ns)
    traffic.send(end + MS // 2, "a1", "b1", 333)
    return end


def test_messages_are_arrows_and_the_path_is_numbered_strong_and_told(tmp_path: Path) -> None:
    from matplotlib.patches import FancyArrowPatch

    from wanlat.analysis.charts import sequence, style

    trace = traced(tmp_path, [lossy] * 3, between=heartbeats)
    figure = sequence.draw(trace)
    (axes, *_), said = figure.axes, texts_of(figure)
    arrows = [one for one in axes.patches if isinstance(one, FancyArrowPatch)]
    lanes = [lane["node"] for lane in trace["nodes"]]
    for arrow, message in zip(arrows, trace["messages"], strict=True):
        (x0, y0), (x1, y1) = arrow._posA_posB  # type: ignore[attr-defined]
        assert (lanes[x0], y0) == (message["from"], message["last_entry_ms"])
        if message["departure_ms"] is not None:
            assert (lanes[x1], y1) == (message["to"], message["departure_ms"])
        assert (arrow.get_linewidth() > 2) == bool(message["on_chain"])
        assert (arrow.get_linestyle() == "--") == (message["kind"] == "background")
    assert [text for text in said if text.isdigit()] == ["1", "2", "3", "4", "5", "6"]
    assert {"queue full", "2 × 266–267 B", "3 of 6 hops"} <= {*said}
    for part in ("Put on made-up", "3 round trips", "RTT 100.0 ms", "client on a1"):
        assert part in " ".join(said)
    assert f"answered after {trace['latency_ms']:.1f} ms" in said
    assert any(line.get_marker() == "X" for line in axes.get_lines())
    assert_apart(figure)
    paths = [tmp_path / "once.svg", tmp_path / "again.svg"]
    for path, drawn in zip(paths, (figure, sequence.draw(trace)), strict=True):
        style.save_as(drawn, path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert len(re.findall(rb'id="message-\d+"', paths[0].read_bytes())) == len(arrows)


def crowd(times: int, every_ns: int) -> Request:
    """Two rounds, and so many times besides messages to four nodes and a SYN, all at once."""

    def run(traffic: Traffic, at_ns: int) -> int:
        for number in range(times):
            for other in ("b1", "b2", "c1", "c2"):
                traffic.send(at_ns + 5 * MS + number * every_ns, "a1", other, 100 + number)
            traffic.send(at_ns + 5 * MS + number * every_ns, "a1", "b1", 0, tcp_flags=2)
        return rounds(2)(traffic, at_ns)

    return run


def test_every_message_has_a_label_or_is_counted(tmp_path: Path) -> None:
    from wanlat.analysis.charts import sequence

    trace = traced(tmp_path, [crowd(9, 4 * MS)] * 2)
    figure = sequence.draw(trace)
    said = texts_of(figure)
    labels = [re.match(r"(?:(\d+) × )?(?:SYN )?[\d–]+ B$", text) for text in said]
    without = [re.search(r"(\d+) × label", text) for text in said]
    found = [one for one in (*labels, *without) if one]
    assert sum(int(one[1] or 1) for one in found) == len(trace["messages"]) > 50
    assert_apart(figure)
