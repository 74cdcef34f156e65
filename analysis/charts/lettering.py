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


@cache
def _ruler() -> Any:
    """A renderer to measure with. Fine grained, because Agg rounds to whole pixels."""
    renderer: Any = backend_agg.RendererAgg  # untyped in matplotlib
    return renderer(16, 16, _RULER_DPI)
