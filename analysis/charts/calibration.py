"""The chart of a calibration: requested beside measured, pair by pair.

Panels: the error of each pair on a logarithmic scale, beside its tolerance and the bare path's own
RTT; requested against measured RTT, and rates where they were requested; and quantiles of one-way
delays, requested against measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from wanlat.analysis.bundle import Series
from wanlat.analysis.charts.frame import WIDTH_IN, Words, dress, log_ticks
from wanlat.analysis.charts.style import ALARM, BODY_PT, TINY_PT, applied, styles
from wanlat.analysis.names import count, display_system, format_ms

Document = Mapping[str, Any]

_ERRORS_IN, _PANEL_IN = 3.4, 3.6
_NAMED_PAIRS = 42  # of more, the names could not be read
_FLOOR_MS = 0.001
_BLUE, _GREY = "#004488", "#8c8c8c"
# Paul Tol's "bright": told apart also by the colour-blind; marks differ too.
_KINDS = (("#4477aa", "o"), ("#ee6677", "s"), ("#228833", "^"), ("#aa3377", "D"))

Mark = tuple[bool, float, float, float, float]
"""Whether it is right; what was requested, and what was found, from, to."""

_OF_BARE = (
    " Grey cross: RTT of the bare path, every impairment off; it is not subtracted from anything."
)
_OF_JITTER = (
    " Jitter: a line is a pair; on the diagonal, as many packets took that long as were to; p: of "
    "the fit."
)


def draw(document: Document) -> Figure:
    """Draw a document of `wanlat calibrate --json`, or a bundle's, that has at least one pair.

    In a bundle each system had a lab of its own: its pairs share a place, each with its own mark.
    """
    pairs = document["pairs"]
    ways = [pair["jitter"]["there"] for pair in pairs if (pair.get("jitter") or {}).get("there")]
    drawn: dict[str, list[Mark]] = {
        "RTT, ms: median, least to 99th percentile": list(_rtts(pairs)),
        "Rate, Mbit/s; cross: could not be measured": list(_rates(pairs)),
    }
    panels = {title: marks for title, marks in drawn.items() if marks}
    rows = -(-(len(panels) + bool(ways)) // 2) or 1
    with applied():
        heights = _ERRORS_IN, rows * _PANEL_IN
        figure = Figure(figsize=(WIDTH_IN, sum(heights)), layout="constrained")
        FigureCanvasAgg(figure)
        upper, lower = figure.subfigures(2, 1, squeeze=False, height_ratios=heights).flat
        looks = _draw_errors(upper.subplots(), document)
        free = iter(lower.subplots(rows, 2, squeeze=False).flat)
        for title, marks in panels.items():
            _draw_marks(next(free), title, marks)
        if ways:
            _draw_jitter(next(free), ways, document["quantiles"])
        for spare in free:
            spare.remove()
        return dress(figure, _words(document), looks)


def _good(pair: Mapping[str, Any]) -> bool:
    return bool(pair["verdict"] == "pass")


def _words(document: Document) -> Words:
    pairs = document["pairs"]
    passed = "passed" if document["verdict"] == "pass" else "FAILED"
    worst = max((pair["error_ms"]["p99"] for pair in pairs if pair["error_ms"]), default=None)
    error = "" if worst is None else f", p99 error at most {format_ms(worst)} ms"
    return Words(
        f"Calibration {passed}: {document['topology']}{error}",
        f"backend {document['backend']} · {sum(map(_good, pairs))} of "
        f"{count(len(pairs), 'ordered pair')} passed",
        caption=(
            "Error: how far single round trips were from the requested RTT, while jitter was off. "
            "Filled mark: median; open mark: 99th percentile; lines: allowed median (thin) and "
            "99th percentile (thick). Red: a pair that failed."
            + (
                _OF_BARE
                if any((pair.get("bare_rtt_ms") or {}).get("p50") for pair in pairs)
                else ""
            )
            + (
                _OF_JITTER if any((pair.get("jitter") or {}).get("there") for pair in pairs) else ""
            ),
        ),
    )


def _has(pairs: Sequence[Document], key: str, part: str) -> bool:
    return any((pair.get(key) or {}).get(part) for pair in pairs)


def _draw_errors(axes: Axes, document: Document) -> list[tuple[Any, str]]:
    """Each pair's error; what is returned is how the labs of systems look, and their names."""
    pairs = sorted(document["pairs"], key=lambda pair: float(pair["requested_rtt_ms"] or 0.0))
    labs = list(dict.fromkeys(str(pair.get("system") or "") for pair in pairs))
    looks = dict(zip(labs, styles([Series(lab, "") for lab in labs]).values(), strict=True))
    ends = list(dict.fromkeys((pair["from"], pair["to"]) for pair in pairs))
    places = {each: float(place) for place, each in enumerate(ends)}
    size = 5.0 if len(ends) <= _NAMED_PAIRS else max(1.6, 5.0 * math.sqrt(60 / len(ends)))
    tolerance = document.get("tolerance") or {}
    for lab, verdict in product(labs, ("pass", "fail")):
        mine = [p for p in pairs if (p.get("system") or "", p["verdict"]) == (lab, verdict)]
        aside = 0.7 * (labs.index(lab) - (len(labs) - 1) / 2) / len(labs)
        x = np.array([places[pair["from"], pair["to"]] + aside for pair in mine])
        p50, p99, bare = (
            np.maximum([(pair.get(key) or {}).get(of, math.nan) for pair in mine], _FLOOR_MS)
            for key, of in (("error_ms", "p50"), ("error_ms", "p99"), ("bare_rtt_ms", "p50"))
        )
        colour = ALARM if verdict == "fail" else looks[lab].dark
        mark: dict[str, Any] = {"marker": looks[lab].marker, "ms": size, "color": colour, "ls": ""}
        axes.vlines(x, p50, p99, colors=colour, linewidth=0.6, alpha=0.45, zorder=2)
        axes.plot(x, p50, zorder=4, **mark)
        axes.plot(x, p99, zorder=3, mfc="white", mew=0.9, **mark)
        axes.plot(x, bare, "x", color=_GREY, ms=size * 0.8, zorder=2)
        for nothing in x[np.isnan(p50)]:
            said = axes.text(nothing, 2 * _FLOOR_MS, "nothing came back", rotation=90, ha="center")
            said.set(color=ALARM, fontsize=TINY_PT)
        if verdict == "fail":
            axes.bar(x, 1e9, 0.9, color=ALARM, alpha=0.06, linewidth=0, zorder=0)
        near_ms = tolerance.get("near_ms") or 0.0
        near = [float(pair["requested_rtt_ms"] or 0.0) < near_ms for pair in mine]
        keys = ["near_median_ms" if is_near else "median_ms" for is_near in near]
        allowed_ms = np.array([tolerance.get(key) for key in keys], float)
        axes.hlines(allowed_ms, x - aside - 0.4, x - aside + 0.4, colors=_GREY, lw=1, zorder=1)
    axes.axhline(tolerance.get("p99_ms") or math.nan, color=_GREY, lw=1.8, zorder=1)
    most = max((pair["error_ms"]["p99"] for pair in pairs if pair["error_ms"]), default=0.0)
    axes.set_yscale("log")
    axes.set_ylim(_FLOOR_MS * 0.8, max(10.0, 2 * most))
    axes.set_xlim(-0.7, len(ends) - 0.3)
    axes.grid(visible=True, axis="y")
    log_ticks(axes.yaxis)
    _title(axes, "Error of each pair, ms")
    if len(ends) <= _NAMED_PAIRS:
        axes.set_xticks(range(len(ends)), [f"{a} → {b}" for a, b in ends], rotation=90)
    else:
        axes.set_xlabel("pairs in the order of their requested RTT")
    return [(looks[lab], f"lab of {display_system(lab)}") for lab in labs if lab]


def _draw_marks(axes: Axes, title: str, marks: Sequence[Mark]) -> None:
    """Measured against requested; red is what is wrong, a cross what could not be measured."""
    for good, colour in ((True, _BLUE), (False, ALARM)):
        chosen = [mark[1:] for mark in marks if mark[0] == good]
        x, y, low, high = np.array(chosen).reshape(-1, 4).T
        unknown, faint = np.isnan(low), _faint(marks)
        axes.vlines(x, low, high, colors=colour, linewidth=1.4, alpha=faint)
        axes.plot(x[~unknown], y[~unknown], "o", color=colour, ms=4.5, mew=0, alpha=faint)
        axes.plot(x[unknown], y[unknown], "x", color=colour, ms=6)
    values = np.array([mark[1:] for mark in marks])
    least, greatest = float(np.nanmin(values)) / 1.6, float(np.nanmax(values)) * 1.6
    axes.set(xscale="log", yscale="log")
    log_ticks(axes.xaxis, greatest / least)
    log_ticks(axes.yaxis, greatest / least)
    _diagonal(axes, title, least, greatest)


def _faint(marks: Sequence[object]) -> float:
    """So that one mark on another is seen where there are many."""
    return max(0.2, min(0.8, 20 / len(marks)))


def _rtts(pairs: Sequence[Mapping[str, Any]]) -> Iterator[Mark]:
    for pair in pairs:
        if rtt := pair["rtt_ms"]:
            requested = max(pair["requested_rtt_ms"], 0.01)
            yield _good(pair), requested, rtt["p50"], rtt["min"], rtt["p99"]


def _rates(pairs: Sequence[Mapping[str, Any]]) -> Iterator[Mark]:
    for rate in (pair["rate"] for pair in pairs if pair.get("rate")):
        requested, error = rate["requested_bps"] / 1e6, rate["error"]
        if error is None:
            yield False, requested, requested, math.nan, math.nan
        else:
            found = requested * (1 + error)
            yield abs(error) <= rate["allowed_error"], requested, found, found, found


def _draw_jitter(
    axes: Axes, ways: Sequence[Mapping[str, Any]], probabilities: Sequence[float]
) -> None:
    """Quantiles of one-way delays from their median, in distances of the requested quartiles."""
    names, reach = list(dict.fromkeys(way["distribution"] for way in ways)), 0.0
    for way in ways:
        asked, found = (np.array(way[f"{of}_quantiles_ms"]) for of in ("requested", "measured"))
        low, middle, high = np.interp([0.25, 0.5, 0.75], probabilities, asked)
        x, y = ((each - middle) / ((high - low) or 1.0) for each in (asked, found))
        reach = max(reach, 1.1 * np.abs(x).max())
        colour, marker = _KINDS[names.index(way["distribution"]) % len(_KINDS)]
        axes.plot(x, y, marker, ls="-", color=colour, ms=3, mew=0, lw=0.8, alpha=_faint(ways))
    for (colour, marker), name in zip(_KINDS, names, strict=False):
        mine = [way["p_value"] for way in ways if way["distribution"] == name]
        label = f"{name}: {count(len(mine), 'pair')}, least p {min(mine):.2g}"
        axes.plot([], [], marker, ls="-", color=colour, ms=4, label=label)
    axes.legend(loc="upper left", fontsize=TINY_PT, handlelength=1.6)
    _diagonal(axes, "Jitter: quantiles of one-way delays, in IQR", -reach, reach)


def _diagonal(axes: Axes, title: str, low: float, high: float) -> None:
    axes.plot([low, high], [low, high], color=_GREY, linewidth=0.8, zorder=1)
    axes.set(xlim=(low, high), ylim=(low, high), xlabel="requested", ylabel="measured")
    _title(axes, title)


def _title(axes: Axes, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=BODY_PT, fontweight="bold", pad=6)
