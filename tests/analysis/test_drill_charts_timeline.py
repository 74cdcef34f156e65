"""The timeline of a drill shows every request and every fault where it was, and can be read."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import drill_bundles as played
import numpy as np
import pandas as pd
import pytest
from chart_checks import contrast, lightness, seen_with
from drill_bundles import Fault, Trouble
from drill_chart_checks import assert_nothing_overlaps, axes_named, points_of, text_of
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from wanlat.analysis.charts import drill_timeline, style
from wanlat.analysis.charts.availability import colour_of
from wanlat.analysis.charts.drill_lanes import NAME, Span, place
from wanlat.analysis.charts.drill_layout import bin_width_s
from wanlat.analysis.charts.drill_looks import READ_COLOUR, UNKNOWN_COLOUR, WRITE_COLOUR
from wanlat.analysis.charts.drill_panel import AS_SHAPES, shares_by_bin
from wanlat.analysis.charts.lettering import text_width
from wanlat.analysis.drill.model import Drill
from wanlat.analysis.drill.read import read_drill

SHORT = (5.0, 10.0, 10.0)
LONG_NAME = "a-drill-whose-name-is-longer-than-any-page-is-wide-and-goes-on-" * 2
LONG_CLIENT = "a-client-with-a-rather-long-name-that-somebody-chose"
MANY_NODES = ", ".join(f"n{number}" for number in range(1, 30))

CASES: dict[str, dict[str, Any]] = {
    "stall": {
        "troubles": [played.stalled(3.0, 7.0)],
        "faults": [Fault("stop", "n2", 7, 10, nodes=("n2",))],
    },
    "partition": {
        "faults": [Fault("partition", "n1, n2 | n3, n4", 5, 15)],
        "troubles": [Trouble("silent", 5, 15.5, operations=["write"])],
        "deadline_ms": 2000.0,
    },
    "rolling loss": {
        "faults": [Fault("kill", f"n{number}", 4 + number, 15) for number in (1, 2, 4)],
        "troubles": [Trouble("down", 5, 15, clients=["victim"])],
        "extra_events": [(9.0, "died", "n3", "exit 1")],
    },
    "flapping": {
        "faults": [
            Fault("flapping", "dc1 / dc2", 5, 15, "every 2 s", occurrences_s=[5, 7, 9, 11, 13])
        ],
        "troubles": [Trouble("silent", at, at + 1) for at in (5, 7, 9, 11, 13)],
        "deadline_ms": 1000.0,
    },
    "nothing ok at all": {"troubles": [Trouble("down", -10, 100)]},
    "killed early": {"killed_at_s": 8.0, "troubles": [Trouble("down", 5, 15)]},
    "killed before the fault": {"killed_at_s": 3.0},
    "never began": {"killed_at_s": -4.0},
    "long names": {
        "name": LONG_NAME,
        "clients": {
            **played.CLIENTS,
            LONG_CLIENT: {"node": "n1", "site": "dc1", "target": "n4"},
        },
        "faults": [
            Fault("slow", MANY_NODES, 5, 15, "+1.5 s ± 200 ms, and some more words"),
            *(Fault("crash-loop", f"n{n}", 5 + n, 6 + n, "every 1 s") for n in range(8)),
            Fault("restart", "n2", 14.9, 14.9),
            Fault("kill", "n4", 14.9, 15),
        ],
        "troubles": [Trouble("slow", 5, 15, extra_ms=900)],
    },
}

MakeDrill = Callable[[str], Drill]


@pytest.fixture(scope="module")
def drill_of(tmp_path_factory: pytest.TempPathFactory) -> MakeDrill:
    """Each case, played and read once."""
    read: dict[str, Drill] = {}

    def make(case: str) -> Drill:
        if case not in read:
            directory = tmp_path_factory.mktemp("drill") / "bundle"
            settings = {"phases_s": SHORT, "interval_ms": 250.0, **CASES[case]}
            read[case] = read_drill(played.write_drill(directory, **settings))
        return read[case]

    return make


@pytest.fixture(scope="module")
def chart_of(drill_of: MakeDrill) -> Callable[[str], Figure]:
    """Each case's timeline, drawn once."""
    drawn: dict[str, Figure] = {}

    def draw(case: str) -> Figure:
        if case not in drawn:
            drawn[case] = drill_timeline.draw(drill_of(case))
        return drawn[case]

    return draw


@pytest.mark.minutes
@pytest.mark.parametrize("case", CASES)
def test_no_word_is_clipped_or_overlaps_another(
    chart_of: Callable[[str], Figure], case: str
) -> None:
    assert_nothing_overlaps(chart_of(case))


@pytest.mark.parametrize("case", ["stall", "partition", "flapping", "killed early"])
def test_every_request_is_a_point_where_it_was_due(
    drill_of: MakeDrill, chart_of: Callable[[str], Figure], case: str
) -> None:
    drill, points = drill_of(case), points_of(chart_of(case))
    assert sum(len(each) for each in points.values()) == len(drill.requests)
    for name, drawn in points.items():
        client, operation, kind = re.split("[/ ]", name, maxsplit=2)
        every = drill.requests
        asked = every[(every["client"] == client) & (every["operation"] == operation)]
        sent = asked["sent"].to_numpy(dtype=bool)
        rows = asked[~sent if kind == "not sent" else sent & (asked["outcome"] == kind).to_numpy()]
        due_s = rows["due_s"].to_numpy(dtype=float) - 5.0
        assert drawn[:, 0] == pytest.approx(due_s)
        if kind == "not sent":
            assert set(drawn[:, 1]) == {drill.deadline_ms}
        else:
            took_ms = rows["latency_ms"].to_numpy(dtype=float)
            known = np.isfinite(took_ms)
            assert drawn[known, 1] == pytest.approx(took_ms[known], rel=1e-6)
            assert set(drawn[~known, 1]) <= {drill.deadline_ms}


def test_a_stall_is_a_ramp_that_falls_as_fast_as_time_passes(
    chart_of: Callable[[str], Figure],
) -> None:
    points = points_of(chart_of("stall"))["survivor/read ok"]
    ramp = points[points[:, 1] > 300]
    assert len(ramp) >= 10
    fall_ms = np.diff(ramp[np.argsort(ramp[:, 0])], axis=0)
    # Waiting requests are served one after another, each some milliseconds after the one before.
    assert fall_ms[:, 1] / fall_ms[:, 0] == pytest.approx(np.full(len(fall_ms), -1000), abs=60)


def shaded(figure: Figure) -> list[tuple[float, float]]:
    """Begin and end of each shaded stretch."""
    spans = [p for p in axes_named(figure, "ground").patches if isinstance(p, Rectangle)]
    return sorted((span.get_x(), span.get_x() + span.get_width()) for span in spans)


def test_faults_are_shaded_from_injection_to_heal(chart_of: Callable[[str], Figure]) -> None:
    assert shaded(chart_of("stall")) == [pytest.approx((2.0, 5.0))]
    rolling = shaded(chart_of("rolling loss"))
    assert rolling == [pytest.approx((begin, 10.0)) for begin in (0.0, 1.0, 3.0)]


def test_a_fault_that_nobody_healed_reaches_to_the_end_and_has_none(
    drill_of: MakeDrill, chart_of: Callable[[str], Figure]
) -> None:
    figure, drill = chart_of("killed early"), drill_of("killed early")
    assert drill.faults[0].end_s is None
    lanes = axes_named(figure, "lanes")
    assert shaded(figure) == [pytest.approx((0.0, lanes.get_xlim()[1]))]
    assert [line.get_marker() for line in lanes.get_lines()].count(">") == 1
    assert "The drill was killed in the stage `during`" in text_of(figure)
    assert "Durability unknown" in text_of(figure)


def test_each_occurrence_has_a_tick_and_a_death_its_name(chart_of: Callable[[str], Figure]) -> None:
    lanes = axes_named(chart_of("flapping"), "lanes")
    ticks = [
        float(np.asarray(line.get_xdata())[0])
        for line in lanes.get_lines()
        if line.get_linestyle() == "-" and np.size(line.get_xdata()) == 2
    ]
    assert ticks == pytest.approx([0.0, 2.0, 4.0, 6.0, 8.0])
    assert "n3 died" in text_of(chart_of("rolling loss"))


def test_the_longest_outage_and_the_recovery_stand_where_they_were(
    drill_of: MakeDrill, chart_of: Callable[[str], Figure]
) -> None:
    drill, figure = drill_of("stall"), chart_of("stall")
    assert drill.recovery_s is not None
    worst = max(drill.outages, key=lambda outage: outage.duration_s)
    axes = axes_named(figure, f"{worst.client}/{worst.operation}")
    bars = [line for line in axes.get_lines() if line.get_gid() == "outage"]
    longest = max(bars, key=lambda bar: float(np.ptp(np.asarray(bar.get_xdata()))))
    assert list(np.asarray(longest.get_xdata())) == pytest.approx(
        [worst.begin_s - 5, worst.end_s - 5]
    )
    assert f"longest outage, {worst.duration_s:.2f} s" in text_of(figure)
    lanes = axes_named(figure, "lanes")
    (back,) = [line for line in lanes.get_lines() if line.get_marker() == "^"]
    first = drill.faults[0].begin_s - 5
    assert float(np.asarray(back.get_xdata())[0]) == pytest.approx(first + drill.recovery_s)


def test_a_cluster_that_never_answered_is_not_called_free_of_outages(
    chart_of: Callable[[str], Figure],
) -> None:
    text = text_of(chart_of("nothing ok at all"))
    assert "No outage" not in text
    assert "0 % of" in text


def test_a_drill_that_measured_nothing_says_so_and_draws_no_axes(
    chart_of: Callable[[str], Figure],
) -> None:
    figure = chart_of("never began")
    assert "Nothing was measured" in text_of(figure)
    assert not figure.axes


def test_strips_show_the_share_of_each_bin_and_leave_empty_ones_empty() -> None:
    due_s = np.array([-1.0, 0.1, 0.2, 1.5, 1.6, 1.7, 3.0])
    is_ok = np.array([True, True, False, False, False, False, True])
    edges, shares = shares_by_bin(due_s, is_ok, (-1.5, 3.5), 1.0)
    assert edges == pytest.approx([-1.5, -1, 0, 1, 2, 3, 3.5])
    assert shares == pytest.approx([np.nan, 1, 0.5, 0, np.nan, 1], nan_ok=True)


def test_an_empty_bin_is_hatched_and_a_full_one_coloured(drill_of: MakeDrill) -> None:
    drill = drill_of("rolling loss")
    silent = drill.requests[~drill.requests["due_s"].between(8.0, 9.999)]
    figure = drill_timeline.draw(replace(drill, requests=silent.reset_index(drop=True)))
    strip = axes_named(figure, "victim/read strip").patches
    empty = [bar for bar in strip if bar.get_hatch()]
    assert [(bar.get_x(), bar.get_width()) for bar in empty if isinstance(bar, Rectangle)] == [
        pytest.approx((3.0 + 0.5 * step, 0.5)) for step in range(4)
    ]
    (down,) = [bar for bar in strip if isinstance(bar, Rectangle) and bar.get_x() == 5.0]
    assert to_hex(down.get_facecolor()) == colour_of(0.0)


@pytest.mark.parametrize(
    ("length_s", "every_s", "bin_s"), [(100, 0.25, 1), (10, 0.025, 0.1), (100, 4, 10), (600, 1, 5)]
)
def test_bins_have_round_widths_and_a_few_requests_each(
    length_s: float, every_s: float, bin_s: float
) -> None:
    assert bin_width_s(length_s, every_s) == pytest.approx(bin_s)


def test_the_same_drill_gives_the_same_bytes(drill_of: MakeDrill, tmp_path: Path) -> None:
    drawn = [
        style.save(drill_timeline.draw(drill_of("killed before the fault")), tmp_path / str(turn))
        for turn in range(2)
    ]
    for one, other in zip(*drawn, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_twenty_thousand_requests_are_all_drawn_and_the_svg_stays_small(
    drill_of: MakeDrill, tmp_path: Path
) -> None:
    drill = drill_of("stall")
    times = -(-20_000 // len(drill.requests))
    many = pd.concat([drill.requests] * times).sort_values("due_s").reset_index(drop=True)
    assert len(drill.requests) <= AS_SHAPES < len(many)
    figure = drill_timeline.draw(replace(drill, requests=many))
    assert sum(len(each) for each in points_of(figure).values()) == len(many)
    style.save_as(figure, tmp_path / "many.svg")
    assert (tmp_path / "many.svg").stat().st_size < 1_000_000


def test_marks_differ_in_colour_for_everybody_and_the_scale_of_shares_in_greyscale() -> None:
    colours = (READ_COLOUR, WRITE_COLOUR, UNKNOWN_COLOUR, style.ALARM)
    for one, other in combinations(colours[:2] + colours[3:], 2):
        for deficiency in ("protanopia", "deuteranopia", "tritanopia"):
            assert contrast(seen_with(deficiency, one), seen_with(deficiency, other)) > 15
    levels = [lightness(colour_of(share)) for share in (0, 0.25, 0.5, 0.75, 0.9, 0.99, 1)]
    assert all(high > low + 1 for low, high in pairwise(levels))


def test_lanes_never_put_one_bar_or_name_on_another() -> None:
    rng = np.random.default_rng(5)
    for _ in range(15):
        spans = [
            Span(begin, begin + float(rng.exponential(8)), "x" * int(rng.integers(1, 60)), "#fff")
            for begin in rng.uniform(0, 100, int(rng.integers(1, 20)))
        ]
        used: dict[int, list[tuple[float, float]]] = {}
        for one in place(spans, 0.0, 100.0, 8.0):
            left, right = one.span.begin * 0.08, min(one.span.end, 100) * 0.08
            end = one.name_at + text_width(one.name, NAME)
            assert one.name_at >= 0 and end <= 8.0 + 1e-9
            used.setdefault(one.lane, []).append((min(left, one.name_at), max(right, end)))
        for extents in used.values():
            assert all(a[1] < b[0] for a, b in pairwise(sorted(extents)))
