"""The sequence diagram has an arrow a message, the path numbered, and words that can be read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from chart_checks import assert_apart, texts_of
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Polygon
from trace_bundles import MS, Request, Traffic, rounds, traced

from wanlat.analysis.charts import sequence, style
from wanlat.analysis.charts.sequence_words import bytes_text, shortened
from wanlat.analysis.trace_model import Trace


def arrows_of(figure: Figure) -> list[FancyArrowPatch]:
    return [one for one in figure.axes[0].patches if isinstance(one, FancyArrowPatch)]


def and_then(after_ns: int) -> Request:
    """Three rounds, something lost, and something that goes on after the answer."""

    def run(traffic: Traffic, at_ns: int) -> int:
        traffic.send(at_ns + MS, "a1", "c2", 100, fate="queue_full")
        end = rounds(3)(traffic, at_ns)
        traffic.send(end + after_ns, "a1", "b1", 333)
        return end

    return run


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    def heartbeats(traffic: Traffic, at_ns: int) -> None:
        for number in range(60):
            traffic.send(at_ns + number * 73 * MS, "b1", "c1", 40)

    directory = tmp_path_factory.mktemp("trace")
    return traced(directory, [and_then(MS // 2)] * 3, between=heartbeats)


@pytest.fixture(scope="module")
def figure(trace: Trace) -> Figure:
    return sequence.draw(trace)


def test_every_message_has_an_arrow_from_its_entry_to_its_departure(
    trace: Trace, figure: Figure
) -> None:
    arrows = arrows_of(figure)
    assert len(arrows) == len(trace.messages)
    lanes = [lane.node for lane in trace.lanes]
    for arrow, message in zip(arrows, trace.messages, strict=True):
        (x0, y0), (x1, y1) = arrow._posA_posB  # type: ignore[attr-defined]
        assert y1 > y0, "time goes downwards"
        assert (lanes[x0], y0) == (message.source, message.last_entry_ms)
        if not message.is_lost:
            assert (lanes[x1], y1) == (message.target, message.departure_ms)


def test_the_path_is_numbered_strong_and_told(trace: Trace, figure: Figure) -> None:
    axes = figure.axes[0]
    numbers = [text.get_text() for text in axes.texts if str(text.get_gid()).startswith("hop-")]
    assert numbers == ["1", "2", "3", "4", "5", "6"]
    assert sum(arrow.get_linewidth() > 2 for arrow in arrows_of(figure)) == 6
    said = " ".join(texts_of(figure))
    for part in ("Put on made-up", "3 round trips", "RTT 100.0 ms", "client on a1", "3 of 6 hops"):
        assert part in said
    assert f"answered after {trace.latency_ms:.1f} ms" in said


def test_what_is_nobodys_is_grey_and_what_is_lost_is_marked(trace: Trace, figure: Figure) -> None:
    dashed = [one for one in arrows_of(figure) if one.get_linestyle() in ("--", "dashed")]
    assert len(dashed) == sum(message.kind == "background" for message in trace.messages) > 0
    assert "queue full" in texts_of(figure)
    assert any(line.get_marker() == "X" for line in figure.axes[0].get_lines())


def test_words_lie_apart_and_messages_that_leave_together_share_them(figure: Figure) -> None:
    assert_apart(figure)
    assert "2 × 266–267 B" in texts_of(figure)


def test_the_same_trace_gives_the_same_bytes(trace: Trace, tmp_path: Path) -> None:
    paths = [tmp_path / "once.svg", tmp_path / "again.svg"]
    for path in paths:
        style.save_as(sequence.draw(trace), path)
    once, again = (path.read_bytes() for path in paths)
    assert once == again
    assert len(re.findall(rb'id="message-\d+"', once)) == len(trace.messages)


def crowd(times: int, every_ns: int) -> Request:
    """Two rounds, and so many times besides different messages to four nodes at once."""

    def run(traffic: Traffic, at_ns: int) -> int:
        for number in range(times):
            for other in ("b1", "b2", "c1", "c2"):
                traffic.send(at_ns + 5 * MS + number * every_ns, "a1", other, 100 + number)
        return rounds(2)(traffic, at_ns)

    return run


def test_every_message_has_a_label_or_is_counted(tmp_path: Path) -> None:
    trace = traced(tmp_path, [crowd(12, 4 * MS)] * 2)
    figure = sequence.draw(trace)
    assert len(arrows_of(figure)) == len(trace.messages) > 50
    said = texts_of(figure)
    labels = [re.match(r"(?:(\d+) × )?[\d–]+ B$", text) for text in said]
    without = [re.match(r"(\d+) messages? ha", text) for text in said if " no label" in text]
    assert sum(int(one[1] or 1) for one in (*labels, *without) if one) == len(trace.messages)
    assert_apart(figure)


def test_above_60_arrows_a_fan_out_is_one_shape(tmp_path: Path) -> None:
    figure = sequence.draw(traced(tmp_path, [crowd(15, 19 * MS // 2)] * 2))
    shapes = [one for one in figure.axes[0].patches if isinstance(one, Polygon)]
    assert len(shapes) >= 15
    assert len(arrows_of(figure)) < 15
    assert any("triangle" in text for text in texts_of(figure))


@pytest.mark.parametrize(
    ("label", "short"),
    [
        ("bob_storage.BobApi/Put", "BobApi/Put"),
        ("GET /minio/storage/run/nodes/n6/minio/drive/v63/rxl", "GET …/drive/v63/rxl"),
        ("200 OK", "200 OK"),
        ("reply to LockRLock", "reply to LockRLock"),
    ],
)
def test_labels_are_shortened_to_what_tells(label: str, short: str) -> None:
    assert shortened(label, 24) == short


def test_sizes_have_a_unit() -> None:
    sizes = [bytes_text(n) for n in (66, 9999, 65536, 3 << 20)]
    assert sizes == ["66 B", "9999 B", "64.0 KiB", "3.0 MiB"]
