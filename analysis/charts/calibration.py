"""The chart of a calibration: requested beside measured, pair by pair.

Panels: the error of each pair on a logarithmic scale, beside its tolerance and the bare path's own
RTT; requested against measured RTT, and rates where they were requested; and quantiles of one-way
delays, requested against measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from wanlat.analysis.charts.frame import WIDTH_IN, Words, dress, log_ticks, sheet
from wanlat.analysis.charts.style import ALARM, BODY_PT, TINY_PT, applied, styles
from wanlat.analysis.names import count, format_ms
from wanlat.bundle.documents import Titles
from wanlat.bundle.run import Series

Document = Mapping[str, Any]
Frame = Any
"""A pandas.DataFrame: of a column its types know nothing."""

_ERRORS_IN, _PANEL_IN = 3.4, 3.6
_NAMED_PAIRS = 42  # of more, the names could not be read
_FLOOR_MS = 0.001
_BLUE, _GREY = "#004488", "#8c8c8c"
# Paul Tol's "bright": distinct to the colour-blind; marks differ too.
_KINDS = (("#4477aa", "o"), ("#ee6677", "s"), ("#228833", "^"), ("#aa3377", "D"))
_JITTER = ("distribution", "p_value", "requested_quantiles_ms", "measured_quantiles_ms")
_COLUMNS = [
    *("from", "to", "system", "verdict", "requested_rtt_ms", "error_ms.p50", "error_ms.p99"),
    *("bare_rtt_ms.p50", "rtt_ms.p50", "rtt_ms.min", "rtt_ms.p99", "rate.requested_bps"),
    *("rate.error", "rate.allowed_error", *(f"jitter.there.{name}" for name in _JITTER)),
]


def draw(document: Document, titles: Titles) -> Figure:
    """Draw a document of `wanlat calibrate --json`, or a bundle's, that has at least one pair.

    In a bundle each system had a lab of its own: its pairs share a place, each with its own mark.
    The legend has the systems' `titles`.
    """
    pairs: Frame = pd.json_normalize(document["pairs"]).reindex(columns=_COLUMNS)
    pairs["system"] = pairs["system"].astype(object).fillna("")
    pairs["requested_rtt_ms"] = pairs["requested_rtt_ms"].astype(float).fillna(0.0)
    pairs = pairs.sort_values("requested_rtt_ms", kind="stable")
    drawn = {
        "RTT, ms: median, least to 99th percentile": _rtts(pairs),
        "Rate, Mbit/s; cross: could not be measured": _rates(pairs),
    }
    panels = {title: marks for title, marks in drawn.items() if len(marks)}
    ways = pairs.filter(like="jitter.").dropna().set_axis(_JITTER, axis=1)
    rows = -(-(len(panels) + (len(ways) > 0)) // 2) or 1
    with applied():
        heights = _ERRORS_IN, rows * _PANEL_IN
        figure = sheet(WIDTH_IN, sum(heights))
        upper, lower = figure.subfigures(2, 1, squeeze=False, height_ratios=heights).flat
        looks = _draw_errors(upper.subplots(), document.get("tolerance") or {}, pairs, titles)
        free = iter(lower.subplots(rows, 2, squeeze=False).flat)
        for title, marks in panels.items():
            _draw_marks(next(free), title, marks)
        if len(ways):
            _draw_jitter(next(free), ways, document["quantiles"])
        for spare in free:
            spare.remove()
        return dress(figure, _words(document, pairs, has_jitter=len(ways) > 0), looks)


def _words(document: Document, pairs: Frame, *, has_jitter: bool) -> Words:
    passed = "passed" if document["verdict"] == "pass" else "FAILED"
    worst = pairs["error_ms.p99"].max()
    error = "" if pd.isna(worst) else f", p99 error at most {format_ms(worst)} ms"
    caption = (
        "Error: how far single round trips were from the requested RTT, while jitter was off. "
        "Filled mark: median; open mark: 99th percentile; lines: allowed median (thin) and "
        "99th percentile (thick). Red: a pair that failed."
    )
    if (pairs["bare_rtt_ms.p50"] > 0).any():
        caption += " Gray cross: RTT of the bare path, every impairment off; it is not subtracted "
        caption += "from anything."
    if has_jitter:
        caption += " Jitter: a line is a pair; on the diagonal, as many packets took that long as "
        caption += "were to; p: of the fit."
    return Words(
        f"Calibration {passed}: {document['topology']}{error}",
        f"backend {document['backend']} · {(pairs['verdict'] == 'pass').sum()} of "
        f"{count(len(pairs), 'ordered pair')} passed",
        caption=(caption,),
    )


def _draw_errors(
    axes: Axes, tolerance: Document, pairs: Frame, titles: Titles
) -> list[tuple[Any, str]]:
    """Each pair's error; what is returned is how the labs of systems look, and their names."""
    labs = list(dict.fromkeys(pairs["system"]))
    looks = dict(zip(labs, styles([Series(lab, "") for lab in labs]).values(), strict=True))
    ends = pairs["from"] + " → " + pairs["to"]
    names = list(dict.fromkeys(ends))
    place = ends.map({name: float(n) for n, name in enumerate(names)})
    aside = 0.7 * (pairs["system"].map(labs.index) - (len(labs) - 1) / 2) / len(labs)
    pairs = pairs.assign(x=place + aside)
    near = pairs["requested_rtt_ms"] < (tolerance.get("near_ms") or 0.0)
    median_ms, near_ms = (tolerance.get(key, math.nan) for key in ("median_ms", "near_median_ms"))
    allowed_ms = np.where(near, near_ms, median_ms)
    axes.hlines(allowed_ms, place - 0.4, place + 0.4, colors=_GREY, lw=1, zorder=1)
    axes.axhline(tolerance.get("p99_ms") or math.nan, color=_GREY, lw=1.8, zorder=1)
    size = 5.0 if len(names) <= _NAMED_PAIRS else max(1.6, 5.0 * math.sqrt(60 / len(names)))
    for (lab, verdict), mine in pairs.groupby(["system", "verdict"], sort=False):
        x, colour = mine["x"], ALARM if verdict == "fail" else looks[lab].dark
        p50, p99, bare = (
            mine[name].astype(float).clip(lower=_FLOOR_MS)
            for name in ("error_ms.p50", "error_ms.p99", "bare_rtt_ms.p50")
        )
        mark: dict[str, Any] = {"marker": looks[lab].marker, "ms": size, "color": colour, "ls": ""}
        axes.vlines(x, p50, p99, colors=colour, linewidth=0.6, alpha=0.45, zorder=2)
        axes.plot(x, p50, zorder=4, **mark)
        axes.plot(x, p99, zorder=3, mfc="white", mew=0.9, **mark)
        axes.plot(x, bare, "x", color=_GREY, ms=size * 0.8, zorder=2)
        for nothing in x[p50.isna()]:
            note = axes.text(nothing, 2 * _FLOOR_MS, "nothing came back", rotation=90, ha="center")
            note.set(color=ALARM, fontsize=TINY_PT)
        if verdict == "fail":
            axes.bar(x, 1e9, 0.9, color=ALARM, alpha=0.06, linewidth=0, zorder=0)
    axes.set_yscale("log")
    axes.set_ylim(_FLOOR_MS * 0.8, np.nanmax([10.0, 2 * pairs["error_ms.p99"].max()]))
    axes.set_xlim(-0.7, len(names) - 0.3)
    axes.grid(visible=True, axis="y")
    log_ticks(axes.yaxis)
    _title(axes, "Error of each pair, ms")
    if len(names) <= _NAMED_PAIRS:
        axes.set_xticks(range(len(names)), names, rotation=90)
    else:
        axes.set_xlabel("pairs in the order of their requested RTT")
    return [(looks[lab], f"lab of {titles[lab]}") for lab in labs if lab]


def _rtts(pairs: Frame) -> Frame:
    """What was requested (`x`) and found (`y`, from `low` to `high`), and whether it is right."""
    x, good = pairs["requested_rtt_ms"].clip(lower=0.01), pairs["verdict"] == "pass"
    y, low, high = (pairs[f"rtt_ms.{quantile}"].astype(float) for quantile in ("p50", "min", "p99"))
    return pd.DataFrame({"x": x, "y": y, "low": low, "high": high, "good": good}).dropna()


def _rates(pairs: Frame) -> Frame:
    """The same of rates, Mbit/s; nothing is known of `low` where they could not be measured."""
    error, x = pairs["rate.error"].astype(float), pairs["rate.requested_bps"].astype(float) / 1e6
    rate, good = x * (1 + error), error.abs() <= pairs["rate.allowed_error"]
    rates = pd.DataFrame({"x": x, "y": rate.fillna(x), "low": rate, "high": rate, "good": good})
    return rates[x.notna()]


def _draw_marks(axes: Axes, title: str, marks: Frame) -> None:
    """Measured against requested; red is what is wrong, a cross what could not be measured."""
    for good, colour in ((True, _BLUE), (False, ALARM)):
        mine, faint = marks[marks["good"] == good], _faint(marks)
        known, unknown = mine[mine["low"].notna()], mine[mine["low"].isna()]
        axes.vlines(known["x"], known["low"], known["high"], colors=colour, lw=1.4, alpha=faint)
        axes.plot(known["x"], known["y"], "o", color=colour, ms=4.5, mew=0, alpha=faint)
        axes.plot(unknown["x"], unknown["y"], "x", color=colour, ms=6)
    values = marks[["x", "y", "low", "high"]]
    least, greatest = values.min(axis=None) / 1.6, values.max(axis=None) * 1.6
    axes.set(xscale="log", yscale="log")
    log_ticks(axes.xaxis, greatest / least)
    log_ticks(axes.yaxis, greatest / least)
    _diagonal(axes, title, least, greatest)


def _draw_jitter(axes: Axes, ways: Frame, probabilities: Sequence[float]) -> None:
    """Quantiles of one-way delays from their median, in distances of the requested quartiles."""
    reach = 0.0
    kinds = ways.groupby("distribution", sort=False)
    for (colour, marker), (name, mine) in zip(cycle(_KINDS), kinds, strict=False):
        for quantiles in zip(*(mine[column] for column in _JITTER[2:]), strict=True):
            low, middle, high = np.interp([0.25, 0.5, 0.75], probabilities, quantiles[0])
            x, y = ((np.array(values) - middle) / ((high - low) or 1.0) for values in quantiles)
            reach = max(reach, 1.1 * np.abs(x).max())
            axes.plot(x, y, marker, ls="-", color=colour, ms=3, mew=0, lw=0.8, alpha=_faint(ways))
        label = f"{name}: {count(len(mine), 'pair')}, least p {mine['p_value'].min():.2g}"
        axes.plot([], [], marker, ls="-", color=colour, ms=4, label=label)
    axes.legend(loc="upper left", fontsize=TINY_PT, handlelength=1.6)
    _diagonal(axes, "Jitter: quantiles of one-way delays, in IQR", -reach, reach)


def _faint(marks: Frame) -> float:
    """So that one mark on another is seen where there are many."""
    return max(0.2, min(0.8, 20 / len(marks)))


def _diagonal(axes: Axes, title: str, low: float, high: float) -> None:
    axes.plot([low, high], [low, high], color=_GREY, linewidth=0.8, zorder=1)
    axes.set(xlim=(low, high), ylim=(low, high), xlabel="requested", ylabel="measured")
    _title(axes, title)


def _title(axes: Axes, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=BODY_PT, fontweight="bold", pad=6)
