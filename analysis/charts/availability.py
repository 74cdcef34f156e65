"""The colour of a share of requests that succeeded, alike on every chart of a drill.

Lightness falls with the share all the way, so that greyscale keeps the order, and "all of them"
has a hue of its own, so that one failure among hundreds is seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from matplotlib.colors import to_rgb

from wanlat.analysis.charts.style import INK, mixed

ALL_OK = "#d6e8f5"
UNSENT_COLOUR = "#c4c4c4"
"""Of requests that were due and never sent: they are in no share."""
_ANCHORS: Sequence[tuple[float, str]] = (
    (0.0, "#4d0a1c"),
    (0.5, "#c9563c"),
    (0.9, "#f0b45f"),
    (1.0, "#fbe3a4"),
)


def colour_of(share: float) -> str:
    """The colour of `share` (0..1)."""
    if share >= 1.0:
        return ALL_OK
    share = max(share, 0.0)
    for (low, one), (high, other) in pairwise(_ANCHORS):
        if share <= high:
            return mixed(one, other, (share - low) / (high - low))
    return ALL_OK


def ink_on(colour: str) -> str:
    """Black or white, whichever can be read on `colour`."""
    red, green, blue = to_rgb(colour)
    return INK if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "white"
