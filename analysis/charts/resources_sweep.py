"""Charts of resources over a sweep: usage per node or per request against what was swept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isnan, nan
from statistics import mean
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from wanlat.analysis.charts.legend import LegendEntry
from wanlat.analysis.charts.lines import Line, LinePanel, XAxis, YAxis, draw_lines
from wanlat.analysis.charts.panels import Panel
from wanlat.analysis.charts.rows import Words
from wanlat.analysis.charts.style import styles
from wanlat.analysis.names import count, series_labels
from wanlat.analysis.resources.tables import KIB, MIB
from wanlat.analysis.resources.windows import LOADED
from wanlat.analysis.sweep import Parameter, number_of

if TYPE_CHECKING:
    from wanlat.analysis.resources.block import ResourcesOfSweep, SystemResources

_A_ROW = 3
_REPEATED = "seed"


def _per_request(figure: str, unit: float) -> Callable[[SystemResources], float]:
    return lambda each: getattr(each.per_request, figure, nan) / unit


_CHARTS: tuple[tuple[str, str, str, Callable[[SystemResources], float]], ...] = (
    (
        "resources-memory",
        "Memory per node",
        "resident memory of a node, MiB",
        lambda each: each.memory(LOADED) / MIB,
    ),
    (
        "resources-cpu",
        "CPU time per request",
        "CPU time of all nodes, ms a request",
        _per_request("cpu_ms", 1),
    ),
    (
        "resources-sent",
        "Bytes sent per request",
        "sent by all nodes, KiB a request",
        _per_request("sent_bytes", KIB),
    ),
)


def charts_of(block: ResourcesOfSweep) -> dict[str, Figure]:
    """The charts by the stems of their files; none where only words were swept."""
    swept = [p for p in block.sweep.parameters if len(p.values) > 1]
    numeric = [p for p in swept if all(number_of(value) is not None for value in p.values)]
    numeric = [p for p in numeric if p.name != _REPEATED]
    if not numeric:
        return {}
    x = max(numeric, key=lambda parameter: len(parameter.values))
    charts = {}
    for stem, title, label, figure_of in _CHARTS:
        panels = _panels(block, x, figure_of)
        if panels:
            charts[stem] = draw_lines(
                _words(block, title, x), _in_rows(panels), _axis(x), YAxis(label)
            )
    return charts


def _panels(
    block: ResourcesOfSweep, x: Parameter, figure_of: Callable[[SystemResources], float]
) -> list[LinePanel]:
    """One for each combination of the other parameters that something is known of."""
    beside = sorted(dict.fromkeys(_beside(each, x) for each in block.systems), key=_by_number)
    panels = []
    for others in beside:
        mine = [each for each in block.systems if _beside(each, x) == others]
        lines = _lines(mine, x, figure_of, block)
        if lines:
            head = ", ".join(f"{name} {value}" for name, value in others)
            panels.append(LinePanel(Panel(head or x.name), lines))
    return panels


def _by_number(others: tuple[tuple[str, str], ...]) -> tuple[float, ...]:
    return tuple(number_of(value) or 0.0 for _, value in others)


def _beside(each: SystemResources, x: Parameter) -> tuple[tuple[str, str], ...]:
    apart = (x.name, _REPEATED)
    return tuple((name, str(value)) for name, value in each.where if name not in apart)


def _lines(
    points: Sequence[SystemResources],
    x: Parameter,
    figure_of: Callable[[SystemResources], float],
    block: ResourcesOfSweep,
) -> tuple[Line, ...]:
    series = list(dict.fromkeys(each.series for each in block.systems))
    colours = styles(series)
    lines = []
    for one in series:
        at: dict[float, list[float]] = {}
        for each in points:
            value = figure_of(each)
            place = number_of(dict(each.where).get(x.name))
            if each.series == one and not isnan(value) and place is not None:
                at.setdefault(place, []).append(value)
        if at:
            places = sorted(at)
            heights = tuple(mean(at[place]) for place in places)
            lines.append(Line(colours[one], tuple(places), heights, (None,) * len(places)))
    return tuple(lines)


def _in_rows(panels: Sequence[LinePanel]) -> list[list[LinePanel | None]]:
    width = min(_A_ROW, len(panels))
    flat: list[LinePanel | None] = [*panels, *[None] * (-len(panels) % width)]
    return [flat[at : at + width] for at in range(0, len(flat), width)]


def _axis(x: Parameter) -> XAxis:
    def written(value: Any) -> tuple[float, str]:
        return number_of(value) or 0.0, str(value)

    return XAxis(x.name, tuple(sorted(written(value) for value in x.values)))


def _words(block: ResourcesOfSweep, title: str, x: Parameter) -> Words:
    series = list(dict.fromkeys(each.series for each in block.systems))
    labels, colours = series_labels(series), styles(series)
    return Words(
        title=f"{title}: {block.sweep.study} on {block.sweep.topology}",
        subtitle=f"{count(len(block.systems), 'point')}, each on a cluster of its own, loaded",
        headers=(),
        x_label=x.name,
        caption=("One mark a point; of points that were repeated, the mean.",),
        legend=tuple(LegendEntry(colours[one], labels[one]) for one in series),
    )
