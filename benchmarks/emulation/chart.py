"""The comparison as a picture: the spread of the errors at each RTT, and the throughput."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes

from benchmarks.emulation.contender import Found
from benchmarks.emulation.results import BARE, OURS

_OURS_COLOUR, _PEER_COLOUR, _BARE_COLOUR = "#0b6e4f", "#7a8ba3", "#d5dbe3"
_FLOOR_MS = 0.001


def draw(found: Mapping[str, Sequence[Found]], paths: Sequence[Path]) -> None:
    """Write the picture to each of ``paths``, in the format of its suffix."""
    rtts_ms = list(next(iter(found.values()))[0].rtt_ns)
    sns.set_theme(style="whitegrid", font_scale=0.9)
    figure, axes = plt.subplots(
        1, len(rtts_ms) + 1, figsize=(4.2 * (len(rtts_ms) + 1), 3.6), layout="constrained"
    )
    for axis, rtt_ms in zip(axes, rtts_ms, strict=False):
        _errors(axis, found, rtt_ms)
    _throughput(axes[-1], found)
    for axis in axes[1:]:
        axis.set_yticklabels([])
    figure.suptitle("How far from the delay that was asked for, and how fast", x=0.01, ha="left")
    for path in paths:
        figure.savefig(path, dpi=150)
    plt.close(figure)


def _colour(name: str) -> str:
    if name == OURS:
        return _OURS_COLOUR
    return _BARE_COLOUR if name in BARE else _PEER_COLOUR


def _errors(axis: Axes, found: Mapping[str, Sequence[Found]], rtt_ms: float) -> None:
    table = pd.DataFrame(
        [
            (name, max(_FLOOR_MS, abs(time_ns / 1e6 - (0 if name in BARE else rtt_ms))))
            for name, rounds in found.items()
            for each in rounds
            for time_ns in each.rtt_ns[rtt_ms]
        ],
        columns=["emulator", "error"],
    )
    names = list(found)
    sns.boxplot(
        table,
        x="error",
        y="emulator",
        order=names,
        hue="emulator",
        hue_order=names,
        palette=[_colour(name) for name in names],
        whis=(1, 99),
        fliersize=1.5,
        linewidth=0.8,
        legend=False,
        ax=axis,
    )
    axis.set(xscale="log", ylabel="", xlabel="error, ms (box: quartiles; whiskers: p1, p99)")
    axis.set_title(f"RTT {rtt_ms:g} ms", loc="left", fontsize=10)


def _throughput(axis: Axes, found: Mapping[str, Sequence[Found]]) -> None:
    names = list(found)
    speeds = [float(np.median([each.gbit_per_s for each in rounds])) for rounds in found.values()]
    bars = axis.barh(names, speeds, color=[_colour(name) for name in names])
    axis.bar_label(bars, [f"{speed:.2f}" for speed in speeds], padding=3, fontsize=8)
    axis.invert_yaxis()
    axis.margins(x=0.15)
    axis.set(xlabel="Gbit/s, one TCP stream (median of rounds)")
    axis.set_title("throughput of a link of 1 ms", loc="left", fontsize=10)
