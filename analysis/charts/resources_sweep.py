"""Charts of resources over a sweep: a figure of a node or a request against what was swept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import mean
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from wanlat.analysis.charts.legend import LegendEntry
from wanlat.analysis.charts.lines import Line, LinePanel, XAxis, YAxis, draw_lines
from wanlat.analysis.charts.panels import Panel
from wanlat.analysis.charts.rows import Words
from wanlat.analysis.charts.style import styles
from wanlat.analysis.names import count, series_labels
from wanlat.analysis.resources.model import ASKED, Resources
from wanlat.analysis.resources.table import MIB
from wanlat.analysis.sweep import Parameter, number_of

if TYPE_CHECKING:
    from wanlat.analysis.resources.sweep_block import AtPoint, ResourcesOfSweep

_A_ROW = 3
_REPEATED = "seed"


def _memory(resources: Resources) -> float | None:
    found = resources.memory(ASKED)
    return None if found is None else found / MIB


def _cpu(resources: Resources) -> float | None:
    of_all = resources.of_all
    return None if of_all is None or of_all.cpu_ms is None else of_all.cpu_ms.value


def _sent(resources: Resources) -> float | None:
    of_all = resources.of_all
    return None if of_all is None or of_all.sent_bytes is None else of_all.sent_bytes.value / 1024


_CHARTS: tuple[tuple[str, str, str, Callable[[Resources], float | None]], ...] = (
    ("resources-memory", "Memory of a node", "resident memory of a node, MiB", _memory),
    ("resources-cpu", "CPU time of a request", "CPU time of all nodes, ms a request", _cpu),
    ("resources-sent", "Bytes of a request", "sent by all nodes, KiB a request", _sent),
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
    block: ResourcesOfSweep, x: Parameter, figure_of: Callable[[Resources], float | None]
) -> list[LinePanel]:
    """One for each combination of the other parameters that something is known of."""
    beside = sorted(dict.fromkeys(_beside(each, x) for each in block.points), key=_by_number)
    panels = []
    for others in beside:
        mine = [each for each in block.points if _beside(each, x) == others]
        lines = _lines(mine, x, figure_of, block)
        if lines:
            head = ", ".join(f"{name} {value}" for name, value in others)
            panels.append(LinePanel(Panel(head or x.name), lines))
    return panels


def _by_number(others: tuple[tuple[str, str], ...]) -> tuple[float, ...]:
    return tuple(number_of(value) or 0.0 for _, value in others)


def _beside(each: AtPoint, x: Parameter) -> tuple[tuple[str, str], ...]:
    apart = (x.name, _REPEATED)
    return tuple((name, str(value)) for name, value in each.where if name not in apart)


def _lines(
    points: Sequence[AtPoint],
    x: Parameter,
    figure_of: Callable[[Resources], float | None],
    block: ResourcesOfSweep,
) -> tuple[Line, ...]:
    series = list(dict.fromkeys(each.resources.series for each in block.points))
    looks = styles(series)
    lines = []
    for one in series:
        at: dict[float, list[float]] = {}
        for each in points:
            value = figure_of(each.resources)
            place = number_of(dict(each.where).get(x.name))
            if each.resources.series == one and value is not None and place is not None:
                at.setdefault(place, []).append(value)
        if at:
            places = sorted(at)
            heights = tuple(mean(at[place]) for place in places)
            lines.append(Line(looks[one], tuple(places), heights, (None,) * len(places)))
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
    series = list(dict.fromkeys(each.resources.series for each in block.points))
    labels, looks = series_labels(series), styles(series)
    return Words(
        title=f"{title}: {block.sweep.study} on {block.sweep.topology}",
        subtitle=f"{count(len(block.points), 'point')}, each on a cluster of its own, while it was "
        "asked",
        headers=(),
        x_label=x.name,
        caption=("One mark a point; of points that were repeated, the mean.",),
        legend=tuple(LegendEntry(looks[one], labels[one]) for one in series),
    )
