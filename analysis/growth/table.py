"""The tables of growth: what a step costs, and the medians it is read from."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from wanlat.analysis.grid import Grid
from wanlat.analysis.growth.block import GrowthBlock
from wanlat.analysis.growth.fit import CONSTANT_WITHIN, REJECTED
from wanlat.analysis.growth.model import AXES, Axis, Growth, Noise
from wanlat.analysis.names import EN_DASH, format_ms, row_labels
from wanlat.analysis.placement import MEANING, is_known
from wanlat.analysis.statistics import Interval

_MINUS = "\N{MINUS SIGN}"


def grids_of(block: GrowthBlock) -> list[Grid]:
    """Of each thing that grows: verdicts with costs, and medians."""
    grids = []
    for axis in AXES.values():
        growths = [each for each in block.growths if each.axis == axis]
        if growths:
            grids += [_verdicts(block, growths, axis), _medians(block, growths, axis)]
    return grids


def _verdicts(block: GrowthBlock, growths: Sequence[Growth], axis: Axis) -> Grid:
    where = _Where(block, growths)
    with_forecast = any(each.forecast for each in growths)
    noises = dict.fromkeys((each.series, each.noise) for each in growths)
    notes = [
        "Change: of the median from the fewest to the most "
        f"{axis.noun}. A shape is named where it is the only one that fits; constant: it changes "
        f"by less than {100 * CONSTANT_WITHIN:.0f} % for certain.",
        *(f"{where.labels[series]}: {_noise(noise)}" for series, noise in noises),
        *(
            ["A swept seed (--sweep seed=1,2,3) repeats points and measures how runs differ."]
            if any(noise.runs is None for _, noise in noises)
            else []
        ),
        *(
            [
                "At a million: nobody measured it. The 95 % interval of one more run, if a shape "
                "that fits goes on that far."
            ]
            if with_forecast
            else []
        ),
        *([MEANING] if where.placed else []),
    ]
    return Grid(
        title=f"{block.study} on {block.topology}: the cost of {axis.noun}",
        headers=(
            *where.headers,
            "verdict",
            "change [95 %]",
            "adds, ms [95 %]",
            *(("at a million, ms",) if with_forecast else ()),
        ),
        rows=tuple(
            (*where.cells(each), *_costs(each), *([_forecast(each)] if with_forecast else []))
            for each in growths
        ),
        text=frozenset((*where.headers, "verdict", "adds, ms [95 %]")),
        notes=tuple(notes),
        sections=_sections(growths),
    )


def _costs(growth: Growth) -> list[str]:
    return [growth.verdict, _change(growth), _added(growth)]


def _added(growth: Growth) -> str:
    """What a step adds, by each shape that is left; a dash where no growth is shown."""
    if growth.decided is not None:
        left = [growth.decided]
    elif growth.verdict == "grows, shape not decided":
        left = [fit for fit in growth.fits if fit.chance >= REJECTED]
    else:
        left = []
    said = [
        f"{_ms(fit.slope_ms)} {_interval(fit.slope_ci95_ms)} a {fit.axis.unit(fit.shape)}"
        for fit in left
        if fit.shape != "constant"
    ]
    return ", or ".join(said).replace("a 1,000", "per 1,000") or EN_DASH


def _medians(block: GrowthBlock, growths: Sequence[Growth], axis: Axis) -> Grid:
    where = _Where(block, growths)
    sizes = sorted({level.x for each in growths for level in each.levels})
    rows, troubled = [], set()
    for number, each in enumerate(growths):
        failed = sum(level.failed for level in each.levels)
        if failed:
            troubled.add(number)
        cells = []
        for size in sizes:
            here = [at for at, level in enumerate(each.levels) if level.x == size]
            cells.append(", ".join(_median(each, at) for at in here) or EN_DASH)
        rows.append((*where.cells(each), *cells, str(failed)))
    return Grid(
        title=f"Medians by number of {axis.noun}, ms",
        headers=(*where.headers, *(f"{size:,.0f}" for size in sizes), "failed"),
        rows=tuple(rows),
        text=frozenset(where.headers),
        troubled=frozenset(troubled),
        sections=_sections(growths),
        notes=(
            (
                "Where requests take one of two times: the median of each, and how many took the "
                "longer.",
            )
            if any(each.splits for each in growths)
            else ()
        ),
    )


def _median(growth: Growth, at: int) -> str:
    """Where there are two modes, the median of each, and how many requests are in the slow one."""
    if growth.splits is None:
        return format_ms(growth.levels[at].median_ms)
    split = growth.splits[at]
    both = [format_ms(each) for each in (split.fast_ms, split.slow_ms) if each is not None]
    return f"{' / '.join(both)} ({100 * split.slow:.0f} %)"


class _Where:
    """The columns that say of what a row is: only what differs between rows."""

    def __init__(self, block: GrowthBlock, growths: Sequence[Growth]) -> None:
        self.labels = row_labels(list(dict.fromkeys(each.series for each in block.growths)))
        self.placed = any(is_known(each.placement) for each in growths)
        self.others = tuple(growths[0].others)
        short = [name.rpartition(".")[2] for name in self.others]
        self.headers = (*short, "system", "endpoint", *(("placement",) if self.placed else ()))

    def cells(self, growth: Growth) -> tuple[str, ...]:
        known = growth.placement if is_known(growth.placement) else EN_DASH
        placement = (known,) if self.placed else ()
        others = (str(growth.others[name]) for name in self.others)
        return (*others, self.labels[growth.series], growth.endpoint, *placement)


def _sections(growths: Sequence[Growth]) -> frozenset[int]:
    return frozenset(
        n
        for n, (one, other) in enumerate(pairwise(growths))
        if (one.series, one.others) != (other.series, other.others)
    )


def _noise(noise: Noise) -> str:
    share = f"{100 * noise.share:.1f} %"
    if noise.runs is None:
        return f"no point was run twice; two runs of the same are taken to differ by {share}."
    return f"two runs of the same differ by {share} (from {noise.runs} repeated runs)."


def _change(growth: Growth) -> str:
    if growth.change is None:
        return EN_DASH
    value = _percent(growth.change)
    if growth.change_ci95 is None:
        return f"{value} %"
    return f"{value} % [{_percent(growth.change_ci95[0])}, {_percent(growth.change_ci95[1])}]"


def _forecast(growth: Growth) -> str:
    return EN_DASH if growth.forecast is None else _interval(growth.forecast.ci95_ms)


def _interval(interval: Interval | None) -> str:
    return f"[{EN_DASH}]" if interval is None else f"[{_ms(interval[0])}, {_ms(interval[1])}]"


def _ms(value: float) -> str:
    is_small = value != 0 and abs(value) < 0.001
    text = f"{abs(value):.1e}" if is_small else format_ms(abs(value))
    return f"{_MINUS}{text}" if value < 0 and float(text) else text


def _percent(share: float) -> str:
    text = f"{abs(100 * share):.0f}"
    sign = "" if text == "0" else _MINUS if share < 0 else "+"
    return f"{sign}{text}"
