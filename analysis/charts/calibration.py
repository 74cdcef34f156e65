"""The chart of a calibration: requested beside measured, pair by pair.

Panels: the error of each pair on a logarithmic scale, beside its tolerance and the bare path's own
RTT; requested against measured RTT; quantiles of one-way delays, requested against measured; and,
where they were requested, rates and what was to be lost, doubled or damaged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter, NullLocator
from numpy.typing import NDArray

from wanlat.analysis.bundle import Series
from wanlat.analysis.charts.frame import WIDTH_IN, Words, dress
from wanlat.analysis.charts.style import (
    ALARM,
    BODY_PT,
    FAINT,
    INK,
    QUIET,
    SMALL_PT,
    TINY_PT,
    SeriesStyle,
    applied,
    styles,
)
from wanlat.analysis.names import count, display_system, format_ms

_ERRORS_IN, _PANEL_IN = 3.6, 4.0
_NAMED_PAIRS = 42  # of more, the names could not be read
_FLOOR_MS = 0.001
_RATE_REACH = 20.0  # percent; what is further off is drawn at the edge
_AS_SHAPES = 60
_BLUE, _GOLD, _GREY = "#004488", "#ddaa33", "#8c8c8c"
# Paul Tol's "bright": told apart also by the colour-blind; marks differ too.
_SHAPE_LOOKS = (("#4477aa", "o"), ("#ee6677", "s"), ("#228833", "^"), ("#aa3377", "D"))

Document = Mapping[str, Any]
Pair = Mapping[str, Any]
Panel = Callable[[Axes, Document], None]
Values = NDArray[np.float64]


def draw(document: Document) -> Figure:
    """Draw a document of `wanlat calibrate --json`, or a bundle's, that has at least one pair.

    In a bundle each system had a lab of its own: its pairs share a place, each with its own mark.
    """
    pairs = document["pairs"]
    panels = [_draw_rtts]
    panels += [_draw_quantiles] if _ways(document) else []
    panels += [_draw_rates] if any(pair.get("rate") for pair in pairs) else []
    panels += [_draw_parts] if _parts(document) else []
    rows = -(-len(panels) // 2)
    looks = _looks_of_labs(pairs)
    words = _words(document)
    with applied():
        figure = Figure(figsize=(WIDTH_IN, _ERRORS_IN + rows * _PANEL_IN), layout="constrained")
        FigureCanvasAgg(figure)
        heights = (_ERRORS_IN, rows * _PANEL_IN)
        upper, lower = figure.subfigures(2, 1, squeeze=False, height_ratios=heights)[:, 0]
        _draw_errors(upper.subplots(), document, looks)
        places = list(lower.subplots(rows, 2, squeeze=False).flat)
        for panel, axes in zip(panels, places, strict=False):
            panel(axes, document)
        for spare in places[len(panels) :]:
            spare.remove()
        labs = [(look, f"lab of {display_system(name)}") for name, look in looks.items() if name]
        return dress(figure, words, labs)


def _looks_of_labs(pairs: Sequence[Pair]) -> dict[str, SeriesStyle]:
    """How the pairs of each system's lab are drawn; "" is a lab of none."""
    labs = list(dict.fromkeys(str(pair.get("system") or "") for pair in pairs))
    return {one.system: look for one, look in styles([Series(lab, "") for lab in labs]).items()}


def _words(document: Document) -> Words:
    pairs = document["pairs"]
    good = sum(pair["verdict"] == "pass" for pair in pairs)
    extended = sum(pair.get("rounds", 1) > 1 for pair in pairs)
    words = f"backend {document['backend']} · {good} of {count(len(pairs), 'ordered pair')} passed"
    words += f", {extended} of the pairs after more than one round of probes" if extended else ""
    passed = "passed" if document["verdict"] == "pass" else "FAILED"
    worst = max((pair["error_ms"]["p99"] for pair in pairs if pair["error_ms"]), default=None)
    found = "" if worst is None else f", p99 error at most {format_ms(worst)} ms"
    return Words(
        title=f"Calibration {passed}: {document['topology']}{found}",
        subtitle=words,
        x_label="",
        caption=tuple(_caption(document)),
    )


def _caption(document: Document) -> list[str]:
    lines = [
        "Error: how far single round trips were from the requested RTT, while jitter was off. "
        "Filled mark: median; open mark: 99th percentile; thin bar: allowed median; thick bar: "
        "allowed 99th percentile. Red: a pair that failed."
    ]
    if any(pair.get("bare_rtt_ms") for pair in document["pairs"]):
        lines[0] += (
            " Grey cross: RTT of the bare path, every impairment off; it is not subtracted from "
            "anything."
        )
    if _ways(document):
        lines.append(
            "Jitter: a line is a pair. On the diagonal, as many packets took that long as were to "
            "(IQR: the distance of the requested quartiles, where jitters differ). "
            "Requested: with the lateness of the same pair without jitter. "
            f"p: of the fit; below {document['tolerance']['ks_alpha']:g} a pair fails."
        )
    return lines


# -- errors ------------------------------------------------------------------------------------


def _draw_errors(axes: Axes, document: Document, looks: Mapping[str, SeriesStyle]) -> None:
    pairs = _in_order(document["pairs"])
    ends = list(dict.fromkeys((pair["from"], pair["to"]) for pair in pairs))
    _head(axes, "Error of each pair, ms")
    few = len(ends) <= _NAMED_PAIRS
    size = 5.0 if few else max(1.6, 5.0 * math.sqrt(60 / len(ends)))
    half = 0.42 if few else 0.5
    places = {each: place for place, each in enumerate(ends)}
    at = np.array([places[pair["from"], pair["to"]] for pair in pairs], dtype=float)
    for allowed_ms, width in zip(_allowed_ms(document, pairs), (1.0, 1.8), strict=True):
        axes.hlines(allowed_ms, at - half, at + half, colors=_GREY, linewidth=width, zorder=1)
    for number, lab in enumerate(looks):
        x = at + (number - (len(looks) - 1) / 2) * 0.7 / len(looks)
        mine = [n for n, pair in enumerate(pairs) if str(pair.get("system") or "") == lab]
        bare = [n for n in mine if pairs[n].get("bare_rtt_ms")]
        bare_ms = [pairs[n]["bare_rtt_ms"]["p50"] for n in bare]
        axes.plot(x[bare], bare_ms, "x", color=_GREY, markersize=size * 0.8, zorder=2)
        passed = [n for n in mine if pairs[n]["verdict"] == "pass"]
        failed = [n for n in mine if pairs[n]["verdict"] != "pass"]
        for n in failed:
            axes.axvspan(at[n] - 0.5, at[n] + 0.5, color=ALARM, alpha=0.06, linewidth=0, zorder=0)
        marker, colour = (looks[lab].marker, looks[lab].dark) if lab else ("o", _BLUE)
        _draw_error(axes, [pairs[n] for n in passed], x[passed], (marker, colour, size))
        _draw_error(axes, [pairs[n] for n in failed], x[failed], (marker, ALARM, size))
    axes.set_yscale("log")
    axes.set_ylim(_FLOOR_MS * 0.8, max(10.0, axes.get_ylim()[1]))
    axes.set_xlim(-0.7, len(ends) - 0.3)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.grid(True, color=FAINT, linewidth=0.6, zorder=0)
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", labelsize=SMALL_PT, colors=QUIET)
    _name_pairs(axes, ends, [pair["requested_rtt_ms"] for pair in pairs])


def _allowed_ms(document: Document, pairs: Sequence[Pair]) -> tuple[list[float], list[float]]:
    """Each pair's tolerances, of the median and of the 99th percentile; NaN where none is known."""
    tolerance = document.get("tolerance") or {}

    def of(key: str) -> float:
        value = tolerance.get(key)
        return math.nan if value is None else float(value)

    near_ms = tolerance.get("near_ms") or 0.0
    is_near = [(pair.get("requested_rtt_ms") or 0.0) < near_ms for pair in pairs]
    medians = [of("near_median_ms" if near else "median_ms") for near in is_near]
    return medians, [of("p99_ms")] * len(pairs)


def _draw_error(
    axes: Axes, pairs: Sequence[Pair], at: Values, look: tuple[str, str, float]
) -> None:
    """Median and 99th percentile of pairs' errors, or that nothing came back; alike in their look.

    ``look`` is marker, colour and size.
    """
    marker, colour, size = look
    for x, pair in zip(at, pairs, strict=True):
        if not pair["error_ms"]:
            axes.annotate(
                "nothing came back",
                (x, 1),
                (0, -2),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                ha="center",
                va="top",
                fontsize=TINY_PT,
                color=ALARM,
                rotation=90,
            )
    known = [n for n, pair in enumerate(pairs) if pair["error_ms"]]
    p50, p99 = (
        [max(pairs[n]["error_ms"][key], _FLOOR_MS) for n in known] for key in ("p50", "p99")
    )
    axes.vlines(at[known], p50, p99, colors=colour, linewidth=0.6, alpha=0.45, zorder=2)
    for values_ms, face, order in ((p50, colour, 4), (p99, "white", 3)):
        axes.plot(
            at[known],
            values_ms,
            linestyle="none",
            marker=marker,
            color=colour,
            markersize=size,
            markerfacecolor=face,
            markeredgewidth=0.9,
            zorder=order,
        )


def _in_order(pairs: Sequence[Pair]) -> list[Pair]:
    """By the requested RTT, in their own order where it is the same."""
    return sorted(pairs, key=lambda pair: float(pair.get("requested_rtt_ms") or 0.0))


def _name_pairs(axes: Axes, ends: Sequence[tuple[str, str]], rtts_ms: Sequence[float]) -> None:
    if len(ends) <= _NAMED_PAIRS:
        names = [f"{source} → {target}" for source, target in ends]
        axes.set_xticks(range(len(ends)), names, rotation=90)
        axes.tick_params(axis="x", length=0, labelsize=TINY_PT, pad=1)
        return
    marks = np.unique(np.linspace(0, len(ends) - 1, 9).astype(int))
    axes.set_xticks(marks, [format_ms(rtts_ms[mark]) for mark in marks])
    axes.tick_params(axis="x", length=3, labelsize=SMALL_PT)
    axes.set_xlabel("pairs in the order of their requested RTT, ms", fontsize=SMALL_PT)


# -- round trips -------------------------------------------------------------------------------


def _draw_rtts(axes: Axes, document: Document) -> None:
    _head(axes, "Round trips, ms: requested and measured")
    measured = [pair for pair in document["pairs"] if pair["rtt_ms"]]
    values = [v for p in measured for v in (p["requested_rtt_ms"], p["rtt_ms"]["p99"]) if v > 0]
    bare = [p["bare_rtt_ms"]["p50"] for p in measured if p.get("bare_rtt_ms")]
    low, high = min([*values, *bare], default=0.1) / 1.6, max(values, default=1.0) * 1.6
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.plot([low, high], [low, high], color=_GREY, linewidth=0.8, zorder=1)
    faint = max(0.15, min(0.8, 20 / max(1, len(measured))))
    for verdict, colour in (("pass", _BLUE), ("fail", ALARM)):
        mine = [pair for pair in measured if pair["verdict"] == verdict]
        # What is asked to take no time is drawn where the axis begins.
        x = [max(pair["requested_rtt_ms"], low) for pair in mine]
        least, middle, most = ([p["rtt_ms"][key] for p in mine] for key in ("min", "p50", "p99"))
        axes.vlines(x, least, most, colors=colour, linewidth=1.4, alpha=faint)
        axes.plot(x, middle, "o", color=colour, markersize=4, alpha=0.8, markeredgewidth=0)
    crossed = [pair for pair in measured if pair.get("bare_rtt_ms")]
    axes.plot(
        [max(pair["requested_rtt_ms"], low) for pair in crossed],
        [pair["bare_rtt_ms"]["p50"] for pair in crossed],
        "x",
        color=_GREY,
        markersize=4,
    )
    axes.set_xlim(low, high)
    axes.set_ylim(low, high)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
    _labelled(axes, "requested RTT", "measured: median; line: least to 99th percentile")


# -- jitter ------------------------------------------------------------------------------------


def _ways(document: Document) -> list[Mapping[str, Any]]:
    return [
        way
        for pair in document["pairs"]
        for way in ((pair.get("jitter") or {}).get("there"),)
        if way is not None
    ]


def _draw_quantiles(axes: Axes, document: Document) -> None:
    ways = _ways(document)
    names = list(dict.fromkeys(way["distribution"] for way in ways))
    probabilities = document["quantiles"]
    spreads_ms = [_spread_ms(way, probabilities) for way in ways]
    alike = max(spreads_ms) < 1.1 * min(spreads_ms)
    unit = "ms" if alike else "in IQR"
    _head(axes, f"Jitter: one-way delays from the median, {unit}")
    faint = max(0.15, min(0.8, 10 / len(ways)))
    reach = [0.0, 0.0]
    for way, spread_ms in zip(ways, spreads_ms, strict=True):
        asked, found = (
            np.asarray(way[f"{kind}_quantiles_ms"]) for kind in ("requested", "measured")
        )
        middle = np.interp(0.5, probabilities, asked)
        scale = 1.0 if alike else spread_ms
        x, y = (asked - middle) / scale, (found - middle) / scale
        reach = [min(reach[0], x[0]), max(reach[1], x[-1])]
        colour, marker = _look(names, way["distribution"])
        axes.plot(
            *(x, y, marker),
            color=colour,
            linestyle="-",
            markersize=3,
            markeredgewidth=0,
            linewidth=0.8,
            alpha=faint,
            rasterized=len(ways) > _AS_SHAPES,
        )
    margin = 0.08 * (reach[1] - reach[0]) or 1.0
    ends = (reach[0] - margin, reach[1] + margin)
    axes.plot(ends, ends, color=_GREY, linewidth=0.8, zorder=1)
    axes.set_xlim(*ends)
    axes.set_ylim(*ends)
    for name in names:
        colour, marker = _look(names, name)
        least = min(way["p_value"] for way in ways if way["distribution"] == name)
        pairs = count(sum(way["distribution"] == name for way in ways), "pair")
        label = f"{name}: {pairs}, least p {least:.2g}"
        axes.plot([], [], marker, linestyle="-", color=colour, markersize=4, label=label)
    axes.legend(loc="upper left", fontsize=TINY_PT, frameon=False, handlelength=1.6)
    _labelled(axes, "requested quantile", "measured quantile")


def _spread_ms(way: Mapping[str, Any], probabilities: Sequence[float]) -> float:
    """The distance of the requested quartiles."""
    low, high = np.interp([0.25, 0.75], probabilities, way["requested_quantiles_ms"])
    return float(high - low) or 1.0


def _look(names: Sequence[str], name: str) -> tuple[str, str]:
    return _SHAPE_LOOKS[names.index(name) % len(_SHAPE_LOOKS)]


# -- rates and what is delivered -----------------------------------------------------------------


def _draw_rates(axes: Axes, document: Document) -> None:
    _head(axes, "Rates: measured, % of requested")
    rates = [pair["rate"] for pair in document["pairs"] if pair.get("rate")]
    allowed = 100 * float(document["tolerance"].get("rate", 0.02))
    errors = [100 * rate["error"] for rate in rates if rate["error"] is not None]
    reach = min(max([1.6 * allowed, *(1.2 * abs(error) for error in errors)]), _RATE_REACH)
    axes.axhspan(100 - allowed, 100 + allowed, color=_GOLD, alpha=0.25, linewidth=0)
    axes.axhline(100, color=_GREY, linewidth=0.8)
    for rate in rates:
        x = rate["requested_bps"] / 1e6
        if rate["error"] is None:
            axes.plot([x], [100 - reach], "x", color=ALARM, markersize=6, clip_on=False)
            continue
        percent = 100 * rate["error"]
        shown = min(max(percent, -reach), reach)
        wrong = abs(rate["error"]) > rate["allowed_error"]
        axes.plot(
            [x],
            [100 + shown],
            marker="o" if shown == percent else "^" if percent > 0 else "v",
            color=ALARM if wrong else _BLUE,
            markersize=5,
            alpha=0.7,
            markeredgewidth=0,
            clip_on=False,
        )
    axes.set_ylim(100 - reach, 100 + reach)
    axes.set_xscale("log")
    asked = sorted({rate["requested_bps"] / 1e6 for rate in rates})
    axes.set_xlim(asked[0] / 2, asked[-1] * 2)
    axes.set_xticks(asked[:: -(-len(asked) // 6)])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    _labelled(axes, "requested rate, Mbit/s", "band: allowed; cross: could not be measured")


def _parts(document: Document) -> list[tuple[str, float, int, int, bool]]:
    """What was requested and counted: kind, part, number, of how many, whether it is right."""
    found = []
    for pair in document["pairs"]:
        delivery = pair.get("delivery")
        if not delivery:
            continue
        asked = delivery["requested"]
        for kind, part, number in (
            ("lost", asked["loss"], delivery["lost"]),
            ("duplicated", asked["duplicate"], delivery["duplicated"]),
            (
                "corrupted",
                asked["corrupt"],
                delivery["damaged"] + delivery["lost"] * (not asked["loss"]),
            ),
            ("sent ahead", asked["overtake"], delivery["undelayed"]),
        ):
            if part:
                found.append((kind, part, number, delivery["sent"], pair["verdict"] == "pass"))
    return found


def _draw_parts(axes: Axes, document: Document) -> None:
    from scipy.stats import binomtest

    _head(axes, "Packets: requested and counted, %")
    parts = _parts(document)
    kinds = list(dict.fromkeys(kind for kind, *_ in parts))
    top = 0.0
    for kind, part, number, sent, good in parts:
        interval = binomtest(number, sent).proportion_ci(0.99)
        colour, marker = _look(kinds, kind)
        colour = colour if good else ALARM
        x = 100 * part
        ends = [100 * interval.low, 100 * interval.high]
        axes.plot([x, x], ends, color=colour, linewidth=1, alpha=0.5)
        axes.plot(
            *([x], [100 * number / sent], marker),
            color=colour,
            markersize=5,
            alpha=0.8,
            markeredgewidth=0,
        )
        top = max(top, x, 100 * interval.high)
    for kind in kinds:
        colour, marker = _look(kinds, kind)
        axes.plot([], [], marker, color=colour, markersize=5, label=kind)
    axes.plot([0, top * 1.05], [0, top * 1.05], color=_GREY, linewidth=0.8, zorder=1)
    axes.set_xlim(0, top * 1.05)
    axes.set_ylim(0, top * 1.05)
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.yaxis.set_major_locator(MaxNLocator(6))
    axes.legend(loc="upper left", fontsize=TINY_PT, frameon=False)
    _labelled(axes, "requested", "counted, with its 99 % interval")


def _head(axes: Axes, text: str) -> None:
    axes.set_title(text, loc="left", fontsize=BODY_PT, fontweight="bold", color=INK, pad=6)


def _labelled(axes: Axes, x_label: str, y_label: str) -> None:
    axes.set_xlabel(x_label, fontsize=SMALL_PT)
    axes.set_ylabel(y_label, fontsize=SMALL_PT)
    axes.tick_params(labelsize=SMALL_PT, colors=QUIET)
