"""One style for all charts: colours, marks, type, and how a figure becomes files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import matplotlib as mpl
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from wanlat.analysis.bundle import Series
from wanlat.analysis.placement import REMOTE
from wanlat.bundle.errors import BundleError

DPI = 160
WIDEST_PX = 1700
"""Wider pictures are shrunk by whoever shows them, so a wide figure gets fewer dots an inch."""

INK = "#1a1a1a"
QUIET = "#5c5c5c"
FAINT = "#d9d9d9"
ALARM = "#a3001b"

FONT = "DejaVu Sans"
TITLE_PT = 13.0
BODY_PT = 9.0
SMALL_PT = 8.0
TINY_PT = 7.0

# The first three are Paul Tol's "high-contrast" scheme (https://personal.sron.nl/~pault/), made
# to survive colour blindness and greyscale; the others extend it to lightnesses it leaves free.
_COLOURS = {
    "quorum": "#004488",
    "minio": "#bb5566",
    "garage": "#ddaa33",
    "bob": "#a5e0d8",
    "minio-nginx": "#5b8fd6",
}
_SPARE_COLOURS = ("#117755", "#7a5fb0", "#8a8a8a")
_HATCHES = {"quorum": "", "minio": "////", "garage": "....", "bob": "xxxx", "minio-nginx": "++++"}
_SPARE_HATCHES = ("----", "||||", "\\\\\\\\")
_REMOTE_HATCH = "oo"
_MARKERS = {"quorum": "o", "minio": "s", "garage": "^", "bob": "D", "minio-nginx": "P"}
_SPARE_MARKERS = ("v", "X", "h")

_SETTINGS: dict[str, Any] = {
    "font.family": [FONT],  # matplotlib brings it, so charts look alike everywhere
    "font.size": BODY_PT,
    "text.color": INK,
    "text.parse_math": False,  # a "$" in somebody's topology is a "$"
    "axes.axisbelow": True,
    "axes.edgecolor": QUIET,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": True,
    "lines.solid_capstyle": "round",
    "patch.edgecolor": "white",
    "patch.force_edgecolor": True,
    "xtick.color": QUIET,
    "xtick.labelsize": SMALL_PT,
    "hatch.linewidth": 0.6,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    # Without a salt of its own every SVG would get random ids and differ from the one before.
    "svg.hashsalt": "wanlat",
}


_PADDING_IN = 0.1
_PACKED = 3
"""Of zlib's nine: one more in a hundred bytes, for a tenth of the time of a report."""
_BOUNDS: WeakKeyDictionary[Figure, Bbox] = WeakKeyDictionary()
"""How large a figure is with all that stands beyond its edges, inches."""


@dataclass(frozen=True)
class SeriesStyle:
    """How one series looks. Colour, lightness, hatch and marker each tell series apart alone.

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


def styles(series: Sequence[Series]) -> dict[Series, SeriesStyle]:
    """A style for each of `series`: a known system always has the same, whoever stands beside it.

    A second version of a system, and systems unknown here, get the spare ones in order.
    """
    chosen: dict[Series, SeriesStyle] = {}
    taken: set[str] = set()
    spare = 0
    for one in series:
        if one.system in _COLOURS and one.system not in taken:
            taken.add(one.system)
            chosen[one] = SeriesStyle(
                _COLOURS[one.system], _HATCHES[one.system], _MARKERS[one.system]
            )
        else:
            chosen[one] = SeriesStyle(
                _SPARE_COLOURS[spare % len(_SPARE_COLOURS)],
                _SPARE_HATCHES[spare % len(_SPARE_HATCHES)],
                _SPARE_MARKERS[spare % len(_SPARE_MARKERS)],
            )
            spare += 1
    return chosen


def mixed(colour: str, other: str, share: float) -> str:
    """`colour` with a `share` (0..1) of `other` mixed in."""
    pairs = zip(to_rgb(colour), to_rgb(other), strict=True)
    red, green, blue = (a * (1 - share) + b * share for a, b in pairs)
    return to_hex((red, green, blue))


@contextmanager
def applied() -> Iterator[None]:
    """Within this context figures are made in our style, whatever the user's matplotlibrc says."""
    defaults = {
        name: value
        for name, value in mpl.rcParamsDefault.items()
        # Settings of a running program and not of the looks; figures here touch no backend.
        if not name.startswith(("backend", "interactive", "toolbar", "webagg", "tk.", "date."))
    }
    settings: Any = {**defaults, **_SETTINGS}
    with mpl.rc_context(settings):
        yield


def lay_out(figure: Figure, above_in: float, below_in: float) -> Figure:
    """Give everything in `figure` its place once, for all files that it is saved as.

    A picture of it is as large as what stands so far above its upper edge, and below its lower one.
    """
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        figure.set_layout_engine(None)
    width, height = figure.get_size_inches()
    whole = Bbox.from_extents(0, -below_in, width, height + above_in)
    _BOUNDS[figure] = whole.padded(_PADDING_IN)
    return figure


def save(figure: Figure, stem: Path, *, svg: bool = True) -> list[Path]:
    """Write `figure` to `stem`.png, and `stem`.svg if wanted, and return their paths.

    The same figure gives the same bytes. Each file is replaced in one step, so that nobody
    sees half a picture. Raises BundleError if they cannot be written.
    """
    suffixes = (".png", ".svg") if svg else (".png",)
    paths = [stem.with_name(stem.name + suffix) for suffix in suffixes]
    for path in paths:
        save_as(figure, path)
    return paths


def save_as(figure: Figure, path: Path) -> None:
    """Write `figure` to `path`, as what its suffix (.png, .svg, .pdf) says. Else as `save`."""
    suffix = path.suffix.lower()
    metadata = {"Software": None} if suffix == ".png" else {"Date": None}
    if suffix == ".pdf":
        metadata = {"CreationDate": None}
    packed: Any = {"pil_kwargs": {"compress_level": _PACKED}} if suffix == ".png" else {}
    partial = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with applied():  # some settings count only now, the salt of ids among them
            dpi = min(DPI, WIDEST_PX / figure.get_figwidth())
            figure.savefig(
                partial,
                format=suffix[1:],
                dpi=dpi,
                metadata=metadata,
                bbox_inches=_BOUNDS.get(figure),
                **packed,
            )
        os.replace(partial, path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink()
        raise BundleError(
            f"{path} cannot be written: {error.strerror or error}. Make the directory writable "
            "or write to where you may."
        ) from error
