"""Text on a figure: measured before it is set, so that it can be given the room it needs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from matplotlib.backends import backend_agg
from matplotlib.font_manager import FontProperties

from wanlat.analysis.charts.style import (
    ALARM,
    BODY_PT,
    FONT,
    INK,
    QUIET,
    SMALL_PT,
    TINY_PT,
    TITLE_PT,
)

_RULER_DPI = 288.0


@dataclass(frozen=True)
class Lettering:
    """How a text is set."""

    size_pt: float
    colour: str = INK
    bold: bool = False


TITLE = Lettering(TITLE_PT, bold=True)
GROUP = Lettering(BODY_PT, bold=True)
LABEL = Lettering(SMALL_PT)
ALARMING = Lettering(SMALL_PT, ALARM, bold=True)
SUBTITLE = Lettering(SMALL_PT, QUIET)
ASIDE = Lettering(TINY_PT, QUIET)


@lru_cache(maxsize=10_000)  # a millisecond each, and the same words come again and again
def text_width(text: str, lettering: Lettering) -> float:
    """Width of `text` in inches."""
    weight = "bold" if lettering.bold else "normal"
    font = FontProperties(family=FONT, size=lettering.size_pt, weight=weight)
    width, _, _ = _ruler().get_text_width_height_descent(text, font, False)
    return float(width) / _RULER_DPI


def wrapped(text: str, width_in: float, lettering: Lettering) -> list[str]:
    """`text` in lines of at most `width_in`, broken at spaces, and inside a word if it must be."""
    whole = " ".join(text.split())
    if not whole or text_width(whole, lettering) <= width_in:
        return [whole] if whole else []
    # Word by word: the width of a line is measured by its parts, each of which comes again.
    space = text_width("x x", lettering) - 2 * text_width("x", lettering)
    lines, reached = [""], 0.0
    for word in _fitting_words(text, width_in, lettering):
        width = text_width(word, lettering)
        if lines[-1] and reached + space + width > width_in:
            lines.append("")
            reached = 0.0
        reached += width + (space if lines[-1] else 0.0)
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _fitting_words(text: str, width_in: float, lettering: Lettering) -> list[str]:
    """The words of `text`, those that are wider than a line cut to pieces."""
    words: list[str] = []
    for word in text.split():
        rest = word
        while text_width(rest, lettering) > width_in:
            kept = len(rest) - 1
            while kept > 1 and text_width(rest[:kept], lettering) > width_in:
                kept -= 1
            words.append(rest[:kept])
            rest = rest[kept:]
        words.append(rest)
    return words


@cache
def _ruler() -> Any:
    """A renderer to measure with. Fine grained, because Agg rounds to whole pixels."""
    renderer: Any = backend_agg.RendererAgg  # untyped in matplotlib
    return renderer(16, 16, _RULER_DPI)
