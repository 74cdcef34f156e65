"""What can be measured on a drawn figure: its words, its marks, and how eyes tell colours apart."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.collections import PathCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.transforms import Bbox

# Machado, Oliveira and Fernandes, A physiologically-based model for simulation of color vision
# deficiency, 2009, severity 1.0; on linear RGB.
_DEFICIENCIES = {
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}

# sRGB (linear) to XYZ and its white point, IEC 61966-2-1.
_TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
_WHITE = np.array([0.9505, 1.0, 1.089])

Rgb = Any


def shown_texts(figure: Figure) -> list[Text]:
    """Every text that is drawn and not empty."""
    texts = list(figure.texts)
    for axes in figure.axes:
        low, high = axes.get_xlim()
        ticks = [t for t in axes.get_xticklabels() if low <= t.get_position()[0] <= high]
        texts += [*axes.texts, *ticks, axes.xaxis.get_offset_text(), axes.xaxis.label, axes.title]
    return [text for text in texts if text.get_visible() and text.get_text().strip()]


def texts_of(figure: Figure) -> list[str]:
    """What is written on `figure`."""
    return [text.get_text() for text in shown_texts(figure)]


def assert_apart(figure: Figure) -> None:
    """No text lies on another: of a figure that is saved as large as all that is on it."""
    figure.canvas.draw()
    boxes = [(text.get_text(), text.get_window_extent()) for text in shown_texts(figure)]
    for (one, box), (other, other_box) in combinations(boxes, 2):
        assert not _overlap(box, other_box), f"overlap: {one!r} and {other!r}"


def bars_of(figure: Figure) -> list[Rectangle]:
    """The bars, from the top."""
    return [patch for patch in figure.axes[0].patches if isinstance(patch, Rectangle)]


def dots_of(figure: Figure) -> list[list[float]]:
    """The x of the dots of each row that has any, from the top."""
    return [
        [float(x) for x in np.asarray(dots.get_offsets())[:, 0]]
        for dots in figure.axes[0].collections
        if isinstance(dots, PathCollection)
    ]


def lightness(colour: str) -> float:
    """CIE L* of `colour`, 0 (black) to 100 (white): what greyscale leaves of it."""
    return float(_lab(_linear(colour))[0])


def seen_with(deficiency: str, colour: str) -> Rgb:
    """`colour` as somebody with the deficiency sees it; linear RGB."""
    return np.clip(np.array(_DEFICIENCIES[deficiency]) @ _linear(colour), 0, 1)


def contrast(one: Rgb, other: Rgb) -> float:
    """CIE 1976 colour difference of two linear RGB colours; 2 is just noticeable."""
    return float(np.linalg.norm(_lab(one) - _lab(other)))


def _overlap(one: Bbox, other: Bbox) -> bool:
    width = min(one.x1, other.x1) - max(one.x0, other.x0)
    height = min(one.y1, other.y1) - max(one.y0, other.y0)
    return bool(width > 0 and height > 0)


def _linear(colour: str) -> Rgb:
    rgb = np.array(to_rgb(colour))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def _lab(linear: Rgb) -> Rgb:
    xyz = _TO_XYZ @ linear / _WHITE
    x, y, z = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])
