"""What can be measured on the chart of a drill."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.text import Text


def axes_named(figure: Figure, name: str) -> Axes:
    """The axes with this label."""
    return next(axes for axes in figure.axes if axes.get_label() == name)


def words_of(figure: Figure) -> list[Text]:
    """Every text that is drawn and not empty, those at the ticks of both axes too."""
    words = list(figure.texts)
    for axes in figure.axes:
        words += axes.texts
        for axis, limits in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
            low, high = sorted(limits)
            for tick in axis.get_major_ticks():
                if tick.label1.get_visible() and low <= tick.get_loc() <= high:
                    words.append(tick.label1)
    return [word for word in words if word.get_visible() and word.get_text().strip()]


def assert_nothing_overlaps(figure: Figure) -> None:
    """No text reaches out of the figure or into another text."""
    figure.canvas.draw()
    page = figure.bbox
    boxes = [(word.get_text(), Text.get_window_extent(word)) for word in words_of(figure)]
    for text, box in boxes:
        inside = box.x0 >= page.x0 and box.y0 >= page.y0 and box.x1 <= page.x1 and box.y1 <= page.y1
        assert inside, f"clipped: {text!r}"
    for (one, box), (other, other_box) in combinations(boxes, 2):
        width = min(box.x1, other_box.x1) - max(box.x0, other_box.x0)
        height = min(box.y1, other_box.y1) - max(box.y0, other_box.y0)
        # Boxes of neighbouring lines touch by the part of a pixel that is the font's own leading.
        assert width <= 0 or height <= 0.5, f"overlap: {one!r} and {other!r}"


def points_of(figure: Figure) -> dict[str, Any]:
    """What is drawn of each kind of request of each client: an array of x and y, shape (n, 2)."""
    return {
        str(dots.get_gid()): np.asarray(dots.get_offsets(), dtype=float)
        for axes in figure.axes
        for dots in axes.collections
        if isinstance(dots, PathCollection) and dots.get_gid()
    }


def text_of(figure: Figure) -> str:
    """All words, one after another."""
    return "\n".join(word.get_text() for word in words_of(figure))
