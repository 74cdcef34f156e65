"""The colour of a share of requests that succeeded, alike on every chart of a drill.

Lightness falls with the share all the way, so that greyscale keeps the order, and "all of them"
has a hue of its own, so that one failure among hundreds is seen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.colors import LinearSegmentedColormap, Normalize, to_hex
from matplotlib.patches import Patch

UNSENT_COLOUR = "#c4c4c4"
"""Of requests that were due and never sent: they are in no share."""
ANCHORS = ((0.0, "#4d0a1c"), (0.5, "#c9563c"), (0.9, "#f0b45f"), (1.0, "#fbe3a4"))
SHARES = LinearSegmentedColormap.from_list("available", ANCHORS).with_extremes(
    over="#d6e8f5", bad=UNSENT_COLOUR, under="white"
)
NORM = Normalize(0.0, math.nextafter(1.0, 0.0))
"""What is above are all of them; below 0 none was due, NaN is none sent."""


def colour_of(share: float) -> str:
    """The colour of `share` (0..1)."""
    return to_hex(SHARES(NORM(share)))


def scale_of(colours: Sequence[str], text: str) -> tuple[Any, str]:
    """The entry of a legend for colours side by side."""
    return tuple(Patch(facecolor=colour, linewidth=0) for colour in colours), text


SHARES_KEY = scale_of([colour_of(n / 10) for n in range(11)], "0 to 100 % ok of what was sent")
