"""The picture of one calibration: what was asked for beside what was measured, pair by pair.

Panels: the error of each pair on a logarithmic scale, beside its tolerance and the bare path's own
RTT; requested against measured RTT; quantiles of one-way delays, requested against measured; and,
where they were asked for, rates and what was to be lost, doubled or damaged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from analysis.charts.lettering import ASIDE, SUBTITLE, TITLE, wrapped, write
from analysis.charts.style import ALARM, FAINT, INK, QUIET, SMALL_PT, TINY_PT, applied
from analysis.names import count, format_ms

_WIDTH_IN = 10.0
_MARGIN_IN = 0.18
_TITLE_IN, _LINE_IN = 0.27, 0.165
_ERRORS_IN, _PANEL_IN = 2.9, 3.3
_LABELS_IN, _AXIS_IN, _HEAD_IN = 0.62, 0.55, 0.42
_LEFT_IN, _BETWEEN_IN = 0.72, 0.85
_NAMED_PAIRS = 42  # of more, the names could not be read
_FLOOR_MS = 0.001
_BLUE, _GOLD, _GREY = "#004488", "#ddaa33", "#8c8c8c"
# Paul Tol's "bright": told apart also by the colour-blind; marks differ too.
_SHAPE_LOOKS = (("#4477aa", "o"), ("#ee6677", "s"), ("#228833", "^"), ("#aa3377", "D"))

Document = Mapping[str, Any]
Pair = Mapping[str, Any]
Panel = Callable[[Axes, Document], None]


def draw(document: Document) -> Figure:
    """Draw a document of `wanlat calibrate --json` that has at least one pair."""
    panels = [_draw_rtts]
    panels += [_draw_quantiles] if _ways(document) else []
    panels += [_draw_rates] if any(pair.get("rate") for pair in document["pairs"]) else []
    panels += [_draw_parts] if _parts(document) else []
    rows = -(-len(panels) // 2)
    with applied():
        caption = [
            line
            for text in _caption(document)
            for line in wrapped(text, _WIDTH_IN - 2 * _MARGIN_IN, ASIDE)
        ]
        below_in = _MARGIN_IN + _LINE_IN * len(caption) + 0.08
        panels_in = rows * (_HEAD_IN + _PANEL_IN + _AXIS_IN)
        above_in = _MARGIN_IN + _TITLE_IN + _LINE_IN + 0.1
        height_in = below_in + panels_in + _LABELS_IN + _ERRORS_IN + _HEAD_IN + above_in
        figure = Figure(figsize=(_WIDTH_IN, height_in))
        FigureCanvasAgg(figure)
        _write_words(figure, document, caption, height_in)

        def place(x: float, y: float, width: float, height: float) -> Axes:
            return figure.add_axes(
                (x / _WIDTH_IN, y / height_in, width / _WIDTH_IN, height / height_in)
            )

        full_in = _WIDTH_IN - _LEFT_IN - _MARGIN_IN
        _draw_errors(
            place(_LEFT_IN, below_in + panels_in + _LABELS_IN, full_in, _ERRORS_IN), document
        )
        half_in = (full_in - _BETWEEN_IN) / 2
        for number, panel in enumerate(panels):
            row, column = divmod(number, 2)
            x = _LEFT_IN + column * (half_in + _BETWEEN_IN)
            y = below_in + (rows - 1 - row) * (_HEAD_IN + _PANEL_IN + _AXIS_IN) + _AXIS_IN
            panel(place(x, y, half_in, _PANEL_IN), document)
    return figure


def _write_words(figure: Figure, document: Document, caption: Sequence[str], height: float) -> None:
    passed = document["verdict"] == "pass"
    y = height - _MARGIN_IN - _TITLE_IN + 0.07
    title = f"Calibration {'passed' if passed else 'FAILED'}: {document['topology']}"
    write(figure, (_MARGIN_IN, y), title, TITLE)
    pairs = document["pairs"]
    good = sum(pair["verdict"] == "pass" for pair in pairs)
    again = sum(pair.get("attempts", 1) > 1 for pair in pairs)
    words = f"backend {document['backend']} · {good} of {count(len(pairs), 'ordered pair')} passed"
    words += f", {again} of them measured more than once" if again else ""
    write(figure, (_MARGIN_IN, y - _LINE_IN - 0.03), words, SUBTITLE)
    for number, line in enumerate(reversed(caption)):
        write(figure, (_MARGIN_IN, _MARGIN_IN + number * _LINE_IN), line, ASIDE)


def _caption(document: Document) -> list[str]:
    lines = [
        "Error: how far single round trips were from the requested RTT, while jitter was off. Dot: "
        "median; ring: 99th percentile; bars: what is allowed of either. Grey cross: the RTT of "
        "the bare path, every impairment off; it is not subtracted from anything."
    ]
    if _ways(document):
        lines.append(
            "Delays one way, in the order of their size: each line is one pair. On the diagonal, as "
            "many packets took that long as were to. Requested are draws as asked for, with the "
            "lateness that the same pair had without jitter."
        )
    if _parts(document):
        lines.append("Bars over what was counted: its binomial 99 % interval.")
    return lines


# -- errors ------------------------------------------------------------------------------------


def _draw_errors(axes: Axes, document: Document) -> None:
    pairs = _in_order(document["pairs"])
    tolerance = document["tolerance"]
    _head(axes, "Error of each pair, ms")
    places = np.arange(len(pairs))
    size = 5.0 if len(pairs) <= _NAMED_PAIRS else max(1.6, 5.0 * math.sqrt(60 / len(pairs)))
    allowed50 = [
        tolerance["near_median_ms" if p["requested_rtt_ms"] < tolerance["near_ms"] else "median_ms"]
        for p in pairs
    ]
    for allowed, width in ((allowed50, 1.0), ([tolerance["p99_ms"]] * len(pairs), 1.8)):
        axes.hlines(allowed, places - 0.42, places + 0.42, colors=_GREY, linewidth=width, zorder=1)
    for x, pair in zip(places, pairs, strict=True):
        good = pair["verdict"] == "pass"
        colour = _BLUE if good else ALARM
        if not good:
            axes.axvspan(x - 0.5, x + 0.5, color=ALARM, alpha=0.06, linewidth=0, zorder=0)
        if pair.get("bare_rtt_ms"):
            bare_ms = pair["bare_rtt_ms"]["p50"]
            axes.plot([x], [bare_ms], "x", color=_GREY, markersize=size * 0.8, zorder=2)
        if not pair["error_ms"]:
            axes.annotate(
                "nothing\ncame back",
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
            continue
        p50, p99 = (max(pair["error_ms"][key], _FLOOR_MS) for key in ("p50", "p99"))
        axes.plot([x, x], [p50, p99], color=colour, linewidth=0.6, alpha=0.45, zorder=2)
        axes.plot([x], [p50], "o", color=colour, markersize=size, zorder=4, markeredgewidth=0)
        axes.plot(
            [x],
            [p99],
            "o",
            color=colour,
            markersize=size,
            markerfacecolor="white",
            markeredgewidth=0.9,
            zorder=3,
        )
    axes.set_yscale("log")
    axes.set_ylim(_FLOOR_MS * 0.8, max(10.0, axes.get_ylim()[1]))
    axes.set_xlim(-0.7, len(pairs) - 0.3)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.grid(True, color=FAINT, linewidth=0.6, zorder=0)
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", labelsize=SMALL_PT, colors=QUIET)
    _name_pairs(axes, pairs, places)


def _in_order(pairs: Sequence[Pair]) -> list[Pair]:
    """By the requested RTT, in their own order where it is the same."""
    return sorted(pairs, key=lambda pair: float(pair["requested_rtt_ms"]))


def _name_pairs(axes: Axes, pairs: Sequence[Pair], places: Any) -> None:
    if len(pairs) <= _NAMED_PAIRS:
        axes.set_xticks(places, [f"{pair['from']} → {pair['to']}" for pair in pairs], rotation=90)
        axes.tick_params(axis="x", length=0, labelsize=TINY_PT, pad=1)
        return
    rtts = [pair["requested_rtt_ms"] for pair in pairs]
    marks = np.unique(np.linspace(0, len(pairs) - 1, 9).astype(int))
    axes.set_xticks(marks, [f"{format_ms(rtts[mark])}" for mark in marks])
    axes.tick_params(axis="x", length=3, labelsize=SMALL_PT)
    axes.set_xlabel("pairs in the order of their requested RTT, ms", fontsize=SMALL_PT)


# -- round trips -------------------------------------------------------------------------------


def _draw_rtts(axes: Axes, document: Document) -> None:
    _head(axes, "Round trips, ms: requested → measured")
    measured = [pair for pair in document["pairs"] if pair["rtt_ms"]]
    highest = max((max(p["requested_rtt_ms"], p["rtt_ms"]["max"]) for p in measured), default=1.0)
    axes.plot([0, highest * 1.05], [0, highest * 1.05], color=_GREY, linewidth=0.8, zorder=1)
    for pair in measured:
        x, rtt = pair["requested_rtt_ms"], pair["rtt_ms"]
        colour = _BLUE if pair["verdict"] == "pass" else ALARM
        axes.plot(
            [x, x], [rtt["min"], rtt["max"]], color=colour, linewidth=1.0, alpha=0.25, zorder=2
        )
        axes.plot(
            [x],
            [rtt["p50"]],
            "o",
            color=colour,
            markersize=4,
            alpha=0.8,
            markeredgewidth=0,
            zorder=3,
        )
        if pair.get("bare_rtt_ms"):
            axes.plot([x], [pair["bare_rtt_ms"]["p50"]], "x", color=_GREY, markersize=4, zorder=2)
    axes.set_xlim(0, highest * 1.05)
    axes.set_ylim(0, highest * 1.05)
    _square(axes, "requested RTT", "measured: dot median, line least to most")


# -- jitter ------------------------------------------------------------------------------------


def _ways(document: Document) -> list[Mapping[str, Any]]:
    return [
        way
        for pair in document["pairs"]
        for way in ((pair.get("jitter") or {}).get("there"),)
        if way is not None
    ]


def _draw_quantiles(axes: Axes, document: Document) -> None:
    _head(axes, "Jitter: one-way delays, ms, quantile by quantile")
    ways = _ways(document)
    names = list(dict.fromkeys(way["distribution"] for way in ways))
    lows = [min(*w["requested_quantiles_ms"], *w["measured_quantiles_ms"]) for w in ways]
    highs = [max(*w["requested_quantiles_ms"], *w["measured_quantiles_ms"]) for w in ways]
    low, high = min(lows), max(highs)
    margin = 0.04 * (high - low) or 1.0
    axes.plot(
        [low - margin, high + margin], [low - margin, high + margin], color=_GREY, linewidth=0.8
    )
    faint = max(0.12, min(0.8, 8 / len(ways)))
    for way in ways:
        colour, marker = _SHAPE_LOOKS[names.index(way["distribution"]) % len(_SHAPE_LOOKS)]
        axes.plot(
            way["requested_quantiles_ms"],
            way["measured_quantiles_ms"],
            color=colour,
            marker=marker,
            markersize=2.6,
            markeredgewidth=0,
            linewidth=0.7,
            alpha=faint,
            rasterized=len(ways) > 60,
        )
    axes.set_xlim(low - margin, high + margin)
    axes.set_ylim(low - margin, high + margin)
    p_values = sorted(way["p_value"] for way in ways)
    lines = [f"{name}" for name in names]
    for number, name in enumerate(lines):
        colour, marker = _SHAPE_LOOKS[number % len(_SHAPE_LOOKS)]
        axes.plot([], [], color=colour, marker=marker, markersize=4, linewidth=1, label=name)
    low_p = f"smallest p of {len(p_values)}: {p_values[0]:.2g}"
    axes.plot(
        [], [], linestyle="none", label=f"{low_p} (allowed {document['tolerance']['ks_alpha']:g})"
    )
    axes.legend(loc="upper left", fontsize=TINY_PT, frameon=False, handlelength=1.6)
    _square(axes, "requested quantile", "measured quantile")


# -- rates and what is delivered -----------------------------------------------------------------


def _draw_rates(axes: Axes, document: Document) -> None:
    _head(axes, "Rates: measured by requested, %")
    pairs = [pair for pair in document["pairs"] if pair.get("rate")]
    allowed = 100 * float(document["tolerance"].get("rate", 0.02))
    axes.axhspan(100 - allowed, 100 + allowed, color=_GOLD, alpha=0.25, linewidth=0)
    axes.axhline(100, color=_GREY, linewidth=0.8)
    off = [allowed]
    for pair in pairs:
        rate = pair["rate"]
        x = rate["requested_bps"] / 1e6
        if rate["measured_bps"] is None:
            axes.plot([x], [100 - allowed], "v", color=ALARM, markersize=6, clip_on=False)
            continue
        percent = 100 * rate["measured_bps"] / rate["requested_bps"]
        off.append(abs(percent - 100))
        wrong = abs(rate["error"]) > rate["allowed_error"]
        axes.plot(
            [x],
            [percent],
            "o",
            color=ALARM if wrong else _BLUE,
            markersize=5,
            alpha=0.7,
            markeredgewidth=0,
        )
    reach = 1.3 * max(off)
    axes.set_ylim(100 - reach, 100 + reach)
    axes.set_xscale("log")
    asked = sorted({pair["rate"]["requested_bps"] / 1e6 for pair in pairs})
    axes.set_xlim(asked[0] / 2, asked[-1] * 2)
    shown = (
        asked
        if len(asked) <= 6
        else [asked[i] for i in np.linspace(0, len(asked) - 1, 6).astype(int)]
    )
    axes.set_xticks(shown, [f"{value:g}" for value in shown])
    axes.xaxis.set_minor_locator(MaxNLocator(1))
    axes.set_xlabel("requested rate, Mbit/s", fontsize=SMALL_PT)
    axes.tick_params(labelsize=SMALL_PT, colors=QUIET)


def _parts(document: Document) -> list[tuple[str, float, int, int, bool]]:
    """What was asked to be lost, doubled, damaged: kind, part, count, of how many, whether right."""
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

    _head(axes, "Packets, %: requested → counted")
    parts = _parts(document)
    kinds = list(dict.fromkeys(kind for kind, *_ in parts))
    top = 0.0
    for kind, part, number, sent, good in parts:
        interval = binomtest(number, sent).proportion_ci(0.99)
        colour, marker = _SHAPE_LOOKS[kinds.index(kind) % len(_SHAPE_LOOKS)]
        colour = colour if good else ALARM
        x = 100 * part
        axes.plot(
            [x, x], [100 * interval.low, 100 * interval.high], color=colour, linewidth=1, alpha=0.5
        )
        axes.plot(
            [x],
            [100 * number / sent],
            marker,
            color=colour,
            markersize=5,
            alpha=0.8,
            markeredgewidth=0,
        )
        top = max(top, x, 100 * interval.high)
    for kind in kinds:
        colour, marker = _SHAPE_LOOKS[kinds.index(kind) % len(_SHAPE_LOOKS)]
        axes.plot([], [], marker, color=colour, markersize=5, label=kind)
    axes.plot([0, top * 1.05], [0, top * 1.05], color=_GREY, linewidth=0.8, zorder=1)
    axes.set_xlim(0, top * 1.05)
    axes.set_ylim(0, top * 1.05)
    axes.legend(loc="upper left", fontsize=TINY_PT, frameon=False)
    _square(axes, "requested", "counted")


def _head(axes: Axes, text: str) -> None:
    axes.set_title(text, loc="left", fontsize=9, fontweight="bold", color=INK, pad=6)


def _square(axes: Axes, x_label: str, y_label: str) -> None:
    axes.set_xlabel(x_label, fontsize=SMALL_PT)
    axes.set_ylabel(y_label, fontsize=SMALL_PT)
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.yaxis.set_major_locator(MaxNLocator(6))
    axes.tick_params(labelsize=SMALL_PT, colors=QUIET)
