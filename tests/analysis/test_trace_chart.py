"""The sequence diagram has an arrow a message, the chain numbered, and words that can be read."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import pytest
from chart_checks import assert_readable, texts_of
from matplotlib.patches import FancyArrowPatch
from trace_bundles import MS, Traffic, rounds, traced

from wanlat.analysis.charts import sequence, style
from wanlat.analysis.charts.sequence_layout import Box, labels_of, scale_of
from wanlat.analysis.charts.sequence_words import bytes_text, shortened
from wanlat.analysis.trace_model import Trace


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """Three rounds, heartbeats between, and something that goes on after the answer."""

    def cleans_up(traffic: Traffic, at_ns: int) -> int:
        end = rounds(3)(traffic, at_ns)
        traffic.send(end + MS // 2, "a1", "b1", 333)
        return end

    def heartbeats(traffic: Traffic, at_ns: int) -> None:
        for number in range(60):
            traffic.send(at_ns + number * 73 * MS, "b1", "c1", 40)

    return traced(tmp_path_factory.mktemp("trace"), [cleans_up] * 3, between=heartbeats)


def test_every_message_has_an_arrow_from_its_entry_to_its_departure(trace: Trace) -> None:
    figure = sequence.draw(trace)
    arrows = [one for one in figure.axes[0].patches if isinstance(one, FancyArrowPatch)]
    assert len(arrows) == len(trace.messages)
    scale = scale_of(trace)
    for arrow, message in zip(arrows, trace.messages, strict=True):
        assert message.departure_ms is not None
        (x0, y0), (x1, y1) = arrow._posA_posB  # type: ignore[attr-defined]
        assert (x0, x1) == (scale.x(message.source), scale.x(message.target))
        assert (y0, y1) == pytest.approx(
            (scale.y(message.last_entry_ms), scale.y(message.departure_ms))
        )
        assert y1 > y0, "time goes downwards"


def test_the_chain_is_numbered_strong_and_told(trace: Trace) -> None:
    figure = sequence.draw(trace)
    axes = figure.axes[0]
    numbers = [t.get_text() for t in axes.texts if str(t.get_gid() or "").startswith("crossing-")]
    assert numbers == ["1", "2", "3", "4", "5", "6"]
    strong = [
        one for one in axes.patches if isinstance(one, FancyArrowPatch) and one.get_linewidth() > 2
    ]
    assert len(strong) == 6
    assert "3 of 6 crossings" in texts_of(figure)


def test_background_is_dashed_and_grey(trace: Trace) -> None:
    figure = sequence.draw(trace)
    arrows = [one for one in figure.axes[0].patches if isinstance(one, FancyArrowPatch)]
    dashed = [one for one in arrows if one.get_linestyle() in ("--", "dashed")]
    assert len(dashed) == sum(message.kind == "background" for message in trace.messages) > 0


def test_the_title_says_what_it_is_of(trace: Trace) -> None:
    words = " ".join(texts_of(sequence.draw(trace)))
    for part in ("Put on made-up", "3 round trips", "RTT 100.0 ms", "client on a1", "in a"):
        assert part in words
    assert f"answered after {trace.latency_ms:.1f} ms" in words


def test_what_follows_the_answer_is_drawn_below_its_line(trace: Trace) -> None:
    scale = scale_of(trace)
    (after,) = [one for one in trace.after_answer if one.kind == "request"]
    assert scale.y(after.entry_ms) > scale.y(trace.latency_ms)
    assert scale.y(after.departure_ms or 0) <= scale.height_in


def test_words_overlap_neither_each_other_nor_the_edge(trace: Trace) -> None:
    figure = sequence.draw(trace)
    # The lanes' heads, the labels and the telling; what is beside the plot is checked as well.
    assert_no_overlap([label.box for label in labels_of(trace, scale_of(trace))[0]])
    assert_readable(figure)


def assert_no_overlap(boxes: list[Box]) -> None:
    for one, other in combinations(boxes, 2):
        assert not one.overlaps(other)


def test_messages_that_leave_together_share_a_label(trace: Trace) -> None:
    labels, unlabelled = labels_of(trace, scale_of(trace))
    first = min((one for one in labels if not one.to_right), key=lambda one: one.y)
    assert first.lines[0].text == "2 × 266–267 B"
    assert unlabelled == 0


def test_many_messages_at_once_stay_apart(tmp_path: Path) -> None:
    def crowd(traffic: Traffic, at_ns: int) -> int:
        for number in range(60):
            traffic.send(at_ns + MS + number * 3 * MS // 2, "a1", "b1", 100 + number)
            traffic.send(at_ns + MS + number * 3 * MS // 2, "c1", "b1", 100 + number)
        return rounds(2)(traffic, at_ns)

    crowded = traced(tmp_path, [crowd] * 2)
    labels, _ = labels_of(crowded, scale_of(crowded))
    assert_no_overlap([label.box for label in labels])
    figure = sequence.draw(crowded)
    arrows = [one for one in figure.axes[0].patches if isinstance(one, FancyArrowPatch)]
    assert len(arrows) == len(crowded.messages) > 100


def test_a_lost_message_is_marked(tmp_path: Path) -> None:
    def loses(traffic: Traffic, at_ns: int) -> int:
        traffic.send(at_ns + MS, "a1", "c1", 100, fate="queue_full")
        return rounds(1)(traffic, at_ns)

    figure = sequence.draw(traced(tmp_path, [loses] * 2))
    assert "queue full" in texts_of(figure)
    assert any(line.get_marker() == "X" for line in figure.axes[0].get_lines())


def test_a_request_that_crosses_nothing_is_drawn_too(tmp_path: Path) -> None:
    def local(_: Traffic, at_ns: int) -> int:
        return at_ns + MS

    figure = sequence.draw(traced(tmp_path, [local, local, local, rounds(1)]))
    assert any("No message that the answer waited for" in text for text in texts_of(figure))


def test_the_same_trace_gives_the_same_bytes(trace: Trace, tmp_path: Path) -> None:
    once, again = (
        [path.read_bytes() for path in style.save(sequence.draw(trace), tmp_path / name)]
        for name in ("once", "again")
    )
    assert once == again
    assert len(re.findall(rb'id="message-\d+"', once[1])) == len(trace.messages)


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
    assert [bytes_text(n) for n in (66, 9999, 65536, 3 << 20)] == [
        "66 B",
        "9999 B",
        "64.0 KiB",
        "3.0 MiB",
    ]
