"""The tables of object sizes: times and rates, and one key against fresh ones."""

from __future__ import annotations

from collections.abc import Sequence

from wanlat.analysis.grid import Grid
from wanlat.analysis.names import EN_DASH, count, display_system, format_ms, row_labels
from wanlat.analysis.placement import MEANING, is_known
from wanlat.analysis.ratios import Ratio
from wanlat.analysis.sizes import FRESH, ONE, At, Entry, KeysDifference, Sizes

MEAN, MEDIAN = "mean ms [95 %]", "median ms [95 %]"
_OUTLIERS, _SKEW = "outliers (severe)", "mean \N{MINUS SIGN} median"
_WORDS = frozenset(("operation", "system", "keys", "placement"))
_MIB = 2**20
_MINUS = "\N{MINUS SIGN}"


def grids_of(sizes: Sizes) -> list[Grid]:
    """Times and rates of all entries; where one key was asked for too, what that changes."""
    return [_rates(sizes), *([_keys(sizes)] if sizes.keys else [])]


def format_size(size_bytes: int) -> str:
    """A size in the largest binary unit that writes it exactly: 50KiB, 4194303B."""
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if size_bytes and size_bytes % 1024**power == 0:
            return f"{size_bytes // 1024**power}{unit}"
    return f"{size_bytes}B"


def percent_more(ratio: float) -> str:
    """A ratio as how much more or less it is: 1.19 is "+19 %"; below 10 % with a decimal."""
    percent = 100 * (ratio - 1)
    text = f"{abs(percent):.1f}" if abs(percent) < 10 else f"{abs(percent):.0f}"
    sign = "" if float(text) == 0 else _MINUS if percent < 0 else "+"
    return f"{sign}{text} %"


def percent_interval(ratio: Ratio) -> str:
    """How much more or less, and the interval in brackets."""
    if ratio.ci95 is None:
        return f"{percent_more(ratio.estimate)} [{EN_DASH}]"
    low, high = (percent_more(bound).removesuffix(" %") for bound in ratio.ci95)
    return f"{percent_more(ratio.estimate)} [{low}, {high}]"


def _rates(sizes: Sizes) -> Grid:
    where = _Where([entry.at for entry in sizes.entries])
    labels = row_labels(sizes.series)
    rows = [
        (*where.cells(entry.at, labels[entry.series]), *_figures(entry)) for entry in sizes.entries
    ]
    failed = [entry for entry in sizes.entries if entry.failed]
    notes = [
        "Requests a second and throughput are of one request in flight: 1 / mean, and size times "
        "that. No load was tried.",
        *([MEANING] if where.placement else where.one_placement),
        *([f"Failures are in no figure: {len(failed)} rows have some."] if failed else []),
        *_on_budget(sizes.entries),
        *_on_bodies(sizes.entries),
        *(["Keys: fresh, each written once; one, written again and again."] if where.keys else []),
    ]
    return Grid(
        title=f"{sizes.study} on {sizes.topology}",
        headers=(*where.headers, "ok", MEAN, MEDIAN, "requests/s", "MiB/s", _OUTLIERS, _SKEW),
        rows=tuple(rows),
        text=_WORDS | set(where.others),
        notes=tuple(notes),
        troubled=frozenset(n for n, entry in enumerate(sizes.entries) if entry.failed),
        sections=frozenset(
            n
            for n, (one, other) in enumerate(zip(sizes.entries, sizes.entries[1:], strict=False))
            if (one.at.nodes, one.at.operation) != (other.at.nodes, other.at.operation)
        ),
    )


_LIMITS = {
    "time": "time ran out for {}",
    "bytes": "bytes for {}",
    "min_samples": "the least that is measured, whatever it costs, for {}",
}


def _on_budget(entries: Sequence[Entry]) -> list[str]:
    limits = [entry.limited_by for entry in entries if entry.limited_by is not None]
    parts = [
        text.format(count(limits.count(limit), "row"))
        for limit, text in _LIMITS.items()
        if limit in limits
    ]
    if not parts:
        return []
    return [f"Fewer samples than asked for, because of the budget: {', '.join(parts)}."]


def _on_bodies(entries: Sequence[Entry]) -> list[str]:
    """What the probe itself cost, where it is most."""
    notes = []
    for what, shares in (
        ("Comparing the bodies that came", [entry.verified for entry in entries]),
        ("Making the bodies that were sent", [entry.made for entry in entries]),
    ):
        most = max(shares)
        if most <= 0:
            continue
        worst = entries[shares.index(most)]
        notes.append(
            f"{what} is in the times, and took at most {100 * most:.1f} % of them "
            f"({display_system(worst.series.system)}, {format_size(worst.at.object_bytes)})."
        )
    return notes


def _figures(entry: Entry) -> list[str]:
    latency, rate, outliers = entry.latency, entry.rate, entry.outliers
    share, severe = 100 * outliers.share, 100 * outliers.severe / outliers.n
    return [
        str(entry.ok),
        _with_interval(latency.mean_ms, latency.mean_ci95_ms),
        _with_interval(latency.median_ms, latency.median_ci95_ms),
        _digits(rate.requests_per_s),
        _digits(rate.bytes_per_s / _MIB),
        f"{share:.0f} % ({severe:.0f} %)",
        percent_more(entry.skew.estimate),
    ]


def _keys(sizes: Sizes) -> Grid:
    where = _Where([difference.at for difference in sizes.keys], with_keys=False)
    labels = row_labels(sizes.series)
    return Grid(
        title="One key written again and again, against fresh keys",
        headers=(
            *where.headers,
            f"{FRESH}, mean ms",
            f"{ONE}, mean ms",
            "means differ by [95 %]",
            "medians differ by [95 %]",
        ),
        rows=tuple(
            (*where.cells(each.at, labels[each.series]), *_difference(each)) for each in sizes.keys
        ),
        text=_WORDS | set(where.others),
        notes=(
            "Positive: one key takes longer. Intervals that hold 0 decide nothing. They cover the "
            "requests of this run, and not how two clusters of a kind differ.",
        ),
    )


def _difference(each: KeysDifference) -> list[str]:
    return [
        format_ms(each.fresh_mean_ms),
        format_ms(each.one_mean_ms),
        percent_interval(each.of_means),
        percent_interval(each.of_medians),
    ]


class _Where:
    """The columns that say of what a row is: only what differs between rows, but for the size."""

    def __init__(self, places: Sequence[At], *, with_keys: bool = True) -> None:
        self.nodes = any(at.nodes is not None for at in places)
        self.keys = with_keys and any(at.keys != FRESH for at in places)
        known = sorted({at.placement for at in places if is_known(at.placement)})
        self.placement = len(known) > 1
        self.one_placement = [f"Every key whose place is known was {one}." for one in known][:1]
        self.others = [name for name, _ in places[0].others] if places else []

    @property
    def headers(self) -> list[str]:
        return [
            *(["nodes"] if self.nodes else []),
            "operation",
            "size",
            "system",
            *(["placement"] if self.placement else []),
            *(["keys"] if self.keys else []),
            *self.others,
        ]

    def cells(self, at: At, label: str) -> list[str]:
        return [
            *([str(at.nodes) if at.nodes is not None else EN_DASH] if self.nodes else []),
            at.operation,
            format_size(at.object_bytes),
            label,
            *([at.placement] if self.placement else []),
            *([at.keys] if self.keys else []),
            *(value for _, value in at.others),
        ]


def _digits(value: float) -> str:
    """Four digits, never fewer than the whole part has."""
    return format_ms(value, _places(value))


def _with_interval(value: float, interval: tuple[float, float] | None) -> str:
    if interval is None:
        return f"{_digits(value)} [{EN_DASH}]"
    low, high = (format_ms(bound, _places(value)) for bound in interval)
    return f"{_digits(value)} [{low}{EN_DASH}{high}]"


def _places(value: float) -> int:
    """Decimals that make four digits."""
    return next((places for below, places in _PLACES if abs(value) < below), 0)


_PLACES = ((0.1, 5), (1, 4), (10, 3), (100, 2), (1000, 1))
