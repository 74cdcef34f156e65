"""The looks of all charts: colours, marks, type, and how a figure becomes a file."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path
from typing import Any

import matplotlib.style
from matplotlib.colors import LinearSegmentedColormap, Normalize, to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from wanlat.bundle import beneath
from wanlat.bundle.documents import REMOTE
from wanlat.bundle.errors import unwritable
from wanlat.bundle.run import Series

# A bundle's words may be in any script, and may be no words; what they are stands in the tables.
warnings.filterwarnings("ignore", "Glyph .* missing")
warnings.filterwarnings("ignore", "constrained_layout not applied")

DPI = 160
WIDEST_PX = 1700
"""Wider pictures are shrunk by whoever shows them, so a wide figure gets fewer dots an inch."""

INK, QUIET, FAINT, ALARM = "#1a1a1a", "#5c5c5c", "#d9d9d9", "#a3001b"
FONT = "DejaVu Sans"
TITLE_PT, BODY_PT, SMALL_PT, TINY_PT = 13.0, 9.0, 8.0, 7.0

Look = dict[str, Any]
"""Properties of an artist by matplotlib's names."""
TITLE: Look = {"fontsize": TITLE_PT, "fontweight": "bold"}
SUBTITLE: Look = {"fontsize": SMALL_PT, "color": QUIET}
VERDICT: Look = {"fontsize": SMALL_PT, "fontweight": "bold"}
ALARMING: Look = {**VERDICT, "color": ALARM}
ASIDE: Look = {"fontsize": TINY_PT, "color": QUIET}

# Colour, hatch and marker. The first three colours are Paul Tol's "high-contrast" scheme
# (https://personal.sron.nl/~pault/), made to survive colour blindness and greyscale; the others
# extend it to lightnesses it leaves free.
_LOOKS = {
    "quorum": ("#004488", "", "o"),
    "minio": ("#bb5566", "////", "s"),
    "garage": ("#ddaa33", "....", "^"),
    "bob": ("#a5e0d8", "xxxx", "D"),
    "minio-nginx": ("#5b8fd6", "++++", "P"),
}
_SPARE = (
    ("#117755", "----", "v"),
    ("#b79be0", "||||", "X"),
    ("#8a8a8a", "\\\\\\\\", "h"),
    ("#d9622b", "//..", "<"),
    ("#3d2a5c", "++..", ">"),
    ("#c9c46a", "xx..", "p"),
    ("#ef9fbd", "--..", "d"),
    ("#5d7038", "||..", "8"),
)
_REMOTE_HATCH = "oo"

_SETTINGS: Look = {
    "font.family": [FONT],  # matplotlib brings it, so charts look alike everywhere
    "font.size": BODY_PT,
    "text.color": INK,
    "text.parse_math": False,  # a "$" in somebody's topology is a "$"
    "axes.axisbelow": True,
    "axes.edgecolor": QUIET,
    "axes.labelcolor": INK,
    "axes.labelsize": SMALL_PT,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "lines.solid_capstyle": "round",
    "patch.edgecolor": "white",
    "patch.force_edgecolor": True,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "xtick.labelsize": TINY_PT,
    "ytick.labelsize": TINY_PT,
    "hatch.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": SMALL_PT,
    # Without a salt of its own every SVG would get random ids and differ from the one before.
    "svg.hashsalt": "wanlat",
}
# What would differ from run to run. Of zlib's nine levels the third packs nearly as well.
_SAVED: dict[str, dict[str, Any]] = {
    ".png": {"metadata": {"Software": None}, "pil_kwargs": {"compress_level": 3}},
    ".svg": {"metadata": {"Date": None}},
    ".pdf": {"metadata": {"CreationDate": None}},
}


@dataclass(frozen=True)
class SeriesStyle:
    """How one series looks. Colour, lightness, hatch and marker each distinguish series alone.

    `is_remote` is the look of its remote requests: rings on the bar, and dots that are open.
    """

    colour: str
    hatch: str
    marker: str
    is_remote: bool = False

    @property
    def dark(self) -> str:
        """For dots and outlines, to be seen on `colour` and on white."""
        return mixed(self.colour, "#000000", 0.5)

    @property
    def fill(self) -> str:
        """For bars, light enough for dots to be seen on it."""
        return mixed(self.colour, "#ffffff", 0.35)

    @property
    def dot(self) -> tuple[str, str]:
        """Face and edge of a dot: open ones are remote."""
        return ("white", self.dark) if self.is_remote else (self.dark, "white")

    def at(self, placement: str) -> SeriesStyle:
        """The look of requests of this `placement`: the same, but for remote ones."""
        return replace(self, hatch=_REMOTE_HATCH, is_remote=True) if placement == REMOTE else self


# The share of requests that succeeded. Lightness falls with it all the way, so that greyscale keeps
# the order, and "all of them" has a hue of its own, so that one failure among hundreds is seen.
UNSENT_COLOUR = "#c4c4c4"
"""Of requests that were due and expired, and of times at which this machine sent nothing."""
SHARES = LinearSegmentedColormap.from_list(
    "available", ((0.0, "#4d0a1c"), (0.5, "#c9563c"), (0.9, "#f0b45f"), (1.0, "#fbe3a4"))
).with_extremes(over="#d6e8f5", bad=UNSENT_COLOUR, under="white")
SHARES_NORM = Normalize(0.0, math.nextafter(1.0, 0.0))
"""What is above are all of them; below 0 none was due, NaN is none sent."""


def colour_of(share: float) -> str:
    """The colour of a `share` (0..1) of requests that succeeded."""
    return to_hex(SHARES(SHARES_NORM(share)))


def scale_of(colours: Sequence[str], text: str) -> tuple[Any, str]:
    """The entry of a legend for colours side by side."""
    return tuple(Patch(facecolor=colour, linewidth=0) for colour in colours), text


SHARES_KEY = scale_of([colour_of(n / 10) for n in range(11)], "0 to 100 % ok of what was due")


def styles(series: Sequence[Series]) -> dict[Series, SeriesStyle]:
    """A style for each of `series`: a known system always has the same, whoever stands beside it.

    A second version of a system, and systems unknown here, get the spare ones in order.
    """
    chosen: dict[Series, SeriesStyle] = {}
    spare = cycle(_SPARE)
    for one in series:
        is_first = one.system not in {other.system for other in chosen}
        known = _LOOKS.get(one.system) if is_first else None
        chosen[one] = SeriesStyle(*(known or next(spare)))
    return chosen


def mixed(colour: str, other: str, share: float) -> str:
    """`colour` with a `share` (0..1) of `other` mixed in."""
    pairs = zip(to_rgb(colour), to_rgb(other), strict=True)
    red, green, blue = (a * (1 - share) + b * share for a, b in pairs)
    return to_hex((red, green, blue))


def applied() -> AbstractContextManager[None]:
    """Within this context figures are made in our style, whatever is in the user's matplotlibrc."""
    return matplotlib.style.context(["default", _SETTINGS])


def save(figure: Figure, stem: Path, *, svg: bool = True) -> list[Path]:
    """Write `figure` to `stem`.png, and `stem`.svg if wanted, and return their paths.

    The same figure gives the same bytes. Raises BundleError.
    """
    paths = [stem.with_name(stem.name + suffix) for suffix in (".png", ".svg")[: 1 + svg]]
    for path in paths:
        save_as(figure, path)
    return paths


def save_as(figure: Figure, path: Path) -> None:
    """Write `figure` to `path`, in the format of its suffix (.png, .svg, .pdf), in one step.

    Raises BundleError if it cannot be written.
    """
    suffix = path.suffix.lower()
    try:
        # Some settings count only now, the salt of ids among them.
        with beneath.replacing(path) as file, applied():
            dpi = min(DPI, WIDEST_PX / figure.get_figwidth())
            figure.savefig(file, format=suffix[1:], dpi=dpi, **_SAVED[suffix])
    except OSError as error:
        raise unwritable(path, error) from error
