"""The comparison as a picture: seconds by size, and what one node of a lab costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes

from benchmarks.size.contenders import OURS, PEER

_COLOURS = {OURS: "#0b6e4f", PEER: "#7a8ba3"}
_MARKERS = {OURS: "o", PEER: "s"}


def draw(report: Mapping[str, Any], paths: Sequence[Path]) -> None:
    """Write the picture to each of ``paths``, in the format of its suffix."""
    table = pd.DataFrame(
        [
            {
                "emulator": row["emulator"],
                "nodes": row["nodes"],
                "seconds": row["both_s"]["median"],
                "least": row["both_s"]["min"],
                "most": row["both_s"]["max"],
                "ms a node": row["ms_per_further_node"],
            }
            for row in report["sizes"]
        ]
    ).sort_values("nodes")
    sns.set_theme(style="whitegrid", font_scale=0.9)
    mpl.rcParams["svg.hashsalt"] = "wanlat"
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.0), layout="constrained")
    _seconds(left, table)
    _per_node(right, table.dropna())
    figure.suptitle(
        "A network up and down again, by its number of nodes (median; band: least to most)",
        x=0.01,
        ha="left",
    )
    for path in paths:
        figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)
    plt.close(figure)


def _lines(axis: Axes, table: pd.DataFrame, column: str) -> None:
    sns.lineplot(
        table,
        x="nodes",
        y=column,
        hue="emulator",
        style="emulator",
        palette=_COLOURS,
        markers=_MARKERS,
        dashes=False,
        linewidth=2,
        markersize=7,
        ax=axis,
    )
    sizes = sorted(set(table["nodes"]))
    axis.set_xscale("log")
    axis.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axis.minorticks_off()
    axis.set_xlabel("nodes")
    axis.get_legend().remove()


def _seconds(axis: Axes, table: pd.DataFrame) -> None:
    _lines(axis, table, "seconds")
    for name, rows in table.groupby("emulator"):
        axis.fill_between(
            rows["nodes"], rows["least"], rows["most"], color=_COLOURS[str(name)], alpha=0.18, lw=0
        )
        last = rows.iloc[-1]
        axis.annotate(
            str(name),
            (last["nodes"], last["seconds"]),
            xytext=(-8, 12),
            textcoords="offset points",
            ha="right",
            color=_COLOURS[str(name)],
            fontweight="bold",
        )
    axis.set_yscale("log")
    axis.set_ylim(top=table["most"].max() * 2)
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_ylabel("seconds, up and down")


def _per_node(axis: Axes, table: pd.DataFrame) -> None:
    _lines(axis, table, "ms a node")
    for _, row in table.dropna().iterrows():
        axis.annotate(
            f"{row['ms a node']:.1f}",
            (row["nodes"], row["ms a node"]),
            xytext=(0, 8),
            textcoords="offset points",
            ha="center",
            color=_COLOURS[row["emulator"]],
            fontsize="small",
        )
    axis.set_ylim(0, table["ms a node"].max() * 1.15)
    axis.set_ylabel("milliseconds a node beyond the first two")
