"""Lines with intervals: the marks decide what is shown of the axis."""

from __future__ import annotations

from chart_checks import assert_readable, texts_of
from matplotlib.figure import Figure
from synthetic_bundles import GARAGE

from wanlat.analysis.bundle import Series
from wanlat.analysis.charts.lines import Line, LinePanel, XAxis, YAxis, draw_lines
from wanlat.analysis.charts.panels import Panel
from wanlat.analysis.charts.rows import Words
from wanlat.analysis.charts.style import styles

SERIES = Series(*GARAGE)
GOES_ON = "A bar that leaves its panel goes on."


def chart(highest_bound: float) -> Figure:
    intervals = ((0.9, 1.1), (9.0, 11.0), (80.0, highest_bound))
    line = Line(styles([SERIES])[SERIES], (0.0, 1.0, 2.0), (1.0, 10.0, 100.0), intervals)
    words = Words("Title", "subtitle", (), "x", ("Caption.",))
    ticks = tuple((float(at), str(at)) for at in range(3))
    return draw_lines(
        words, [[LinePanel(Panel("one", ""), (line,))]], XAxis("x", ticks), YAxis("y")
    )


def test_a_bar_without_end_does_not_press_the_marks_into_a_line() -> None:
    figure = chart(1e7)
    low, high = figure.axes[0].get_ylim()
    assert low < 0.9 and 100 < high < 1000
    assert GOES_ON in texts_of(figure)
    assert_readable(figure)


def test_bars_that_fit_are_whole() -> None:
    figure = chart(130.0)
    assert figure.axes[0].get_ylim()[1] > 130
    assert GOES_ON not in texts_of(figure)
