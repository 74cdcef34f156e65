"""The tables of a load: operations, latencies, its state, its client, failures, quiet user."""

from __future__ import annotations

from collections.abc import Sequence

from wanlat.analysis.grid import Grid
from wanlat.analysis.load.block import LoadBlock
from wanlat.analysis.load.model import Estimate, Load, Operation, Quiet
from wanlat.analysis.load.wording import digits, percent, share, size, volume, with_interval
from wanlat.analysis.names import EN_DASH, row_labels
from wanlat.analysis.placement import MEANING, is_known

PER_S, MEAN = "ops/s", "mean ms"
_REACH = "± %"
_FROM_DUE = (
    "From when each request was due to its answer, its wait for the one before it included: what "
    "a user feels. From start: from when it was sent."
)
_SYSTEM, _OPERATION = "system", "operation"
_MB = 1e6


def grids_of(block: LoadBlock) -> list[Grid]:
    """Every table that `block` has rows for."""
    loads = block.loads
    return [
        operations(f"{block.study} on {block.topology}: operations", loads, list(loads)),
        _latencies(loads),
        _states(loads),
        _clients(loads),
        *([_failures(loads)] if any(load.failures for load in loads) else []),
        *([_quiet(loads)] if any(load.quiet for load in loads) else []),
    ]


def operations(
    title: str,
    loads: Sequence[Load],
    labelled: Sequence[Load],
    places: Sequence[tuple[str, ...]] = (),
    headers: tuple[str, ...] = (),
) -> Grid:
    """Counts, rates and means; `places` are cells of `headers` before those of each load.

    `labelled` are the loads whose systems names must tell apart.
    """
    labels = row_labels(list(dict.fromkeys(load.series for load in labelled)))
    rows: list[tuple[str, ...]] = []
    troubled: set[int] = set()
    sections: set[int] = set()
    for number, load in enumerate(loads):
        before = places[number] if places else ()
        for operation in load.operations:
            if operation.figures.fail or operation.figures.unknown:
                troubled.add(len(rows))
            rows.append((*before, labels[load.series], *_rates(operation)))
        sections.add(len(rows) - 1)
    notes = [
        f"{_REACH}: half of the 95 % interval of ops/s. In flight: mean × ops/s (Little).",
        *(note for load in loads if not places for note in load.notes),
    ]
    return Grid(
        title=title,
        headers=(
            *headers,
            _SYSTEM,
            _OPERATION,
            "object",
            "ok",
            "failed",
            "moved",
            PER_S,
            _REACH,
            MEAN,
            "MB/s",
            "in flight",
        ),
        rows=tuple(rows),
        text=frozenset((_SYSTEM, _OPERATION, *headers)),
        notes=tuple(notes),
        troubled=frozenset(troubled),
        sections=frozenset(sections - {len(rows) - 1}),
    )


def _rates(operation: Operation) -> list[str]:
    figures = operation.figures
    is_one_size = operation.object_bytes is not None
    return [
        operation.operation,
        size(operation.object_bytes),
        str(figures.ok),
        str(figures.fail + figures.unknown),
        volume(figures.bytes),
        digits(figures.per_s.value),
        _reach(figures.per_s),
        EN_DASH if figures.mean_ms is None else digits(figures.mean_ms.value),
        digits(figures.bytes_per_s / _MB) if is_one_size else EN_DASH,
        digits(figures.in_flight),
    ]


def _reach(estimate: Estimate) -> str:
    """Half of its 95 % interval, in percent of it."""
    if estimate.ci95 is None or estimate.value <= 0:
        return EN_DASH
    return digits(50 * (estimate.ci95[1] - estimate.ci95[0]) / estimate.value, 2)


def _latencies(loads: Sequence[Load]) -> Grid:
    labels = row_labels([load.series for load in loads])
    each = [(labels[load.series], one) for load in loads for one in load.operations]
    from_due = any(one.figures.from_due_ms for _, one in each)
    due_headers = ("from due: mean ms", "p99 ms of those") if from_due else ()
    return Grid(
        title="Latency under load",
        headers=(
            _SYSTEM,
            _OPERATION,
            "mean ms [95 %]",
            "p50 ms [95 %]",
            "p95 ms [95 %]",
            "p99 ms [95 %]",
            "max ms",
            *due_headers,
        ),
        rows=tuple((label, *_percentiles(one, from_due=from_due)) for label, one in each),
        text=frozenset((_SYSTEM, _OPERATION)),
        notes=(
            *(
                (
                    "From due: from when the rate asked for had a request due to its answer, its "
                    "wait for a free worker included: what a user feels.",
                )
                if from_due
                else ()
            ),
        ),
    )


def _percentiles(operation: Operation, *, from_due: bool) -> list[str]:
    figures = operation.figures
    due = figures.from_due_ms
    return [
        operation.operation,
        *map(_close, (figures.mean_ms, figures.p50_ms, figures.p95_ms, figures.p99_ms)),
        digits(figures.max_ms),
        *([digits(due and due[0]), digits(due and due[2])] if from_due else []),
    ]


def _states(loads: Sequence[Load]) -> Grid:
    labels = row_labels([load.series for load in loads])
    rows = []
    for load in loads:
        steady = load.steady
        rows.append(
            (
                labels[load.series],
                steady.verdict,
                digits(steady.begin_s, 3),
                digits(steady.end_s, 3),
                percent(steady.change),
                percent(steady.bulge),
            )
        )
    return Grid(
        title="Steady state",
        headers=(_SYSTEM, "verdict", "from s", "until s", "change", "curvature"),
        rows=tuple(rows),
        text=frozenset((_SYSTEM, "verdict")),
        notes=(
            "Change: of the part's end to its begin. Curvature: of its middle to its ends. Steady: "
            "both within ±10 %, intervals and all.",
        ),
        troubled=frozenset(n for n, load in enumerate(loads) if not load.steady.is_steady),
    )


def _clients(loads: Sequence[Load]) -> Grid:
    labels = row_labels([load.series for load in loads])
    rows = []
    for load in loads:
        client, little = load.client, load.little
        rows.append(
            (
                labels[load.series],
                EN_DASH if client.workers is None else str(client.workers),
                "closed loop" if client.offered_per_s is None else digits(client.offered_per_s),
                digits(client.achieved_per_s),
                share(client.cpu_share),
                share(client.busiest_thread_share),
                share(client.verify_share),
                share(client.waited_share),
                *(
                    (EN_DASH,) * 3
                    if little is None
                    else (
                        f"{little.in_flight:.2f}",
                        f"{little.between:.2f}",
                        f"{little.missing + 0.0:.2f}".replace("-0.00", "0.00"),
                    )
                ),
            )
        )
    return Grid(
        title="The client, and Little's law",
        headers=(
            _SYSTEM,
            "workers",
            "offered/s",
            "achieved/s",
            "CPU",
            "busiest thread",
            "verifying",
            "waited",
            "in flight",
            "between",
            "missing",
        ),
        rows=tuple(rows),
        text=frozenset((_SYSTEM, "offered/s")),
        notes=(
            "Over the whole load, failures too: workers = in flight (rate × mean latency) + "
            "between two requests + missing. What is missing should be nothing. CPU: of the cores "
            "it may use; waited: of a worker's time, for a core that others had.",
        ),
        troubled=frozenset(
            n
            for n, load in enumerate(loads)
            if load.client.bottleneck or (load.little is not None and not load.little.fits)
        ),
    )


def _failures(loads: Sequence[Load]) -> Grid:
    labels = row_labels([load.series for load in loads])
    each = [(labels[load.series], one) for load in loads for one in load.failures]
    return Grid(
        title="Failures by kind",
        headers=(_SYSTEM, _OPERATION, "outcome", "error", "count", "share", "first s", "last s"),
        rows=tuple(
            (
                label,
                one.operation,
                one.outcome,
                one.kind,
                str(one.count),
                share(one.share),
                digits(one.first_s),
                digits(one.last_s),
            )
            for label, one in each
        ),
        text=frozenset((_SYSTEM, _OPERATION, "outcome", "error")),
        notes=(
            "Over the whole load and its ramp. They are in no rate and no latency. Unknown: nobody "
            "can say whether it was executed.",
        ),
    )


def _quiet(loads: Sequence[Load]) -> Grid:
    labels = row_labels([load.series for load in loads])
    placed = any(is_known(each.placement) for load in loads for each in load.quiet)
    rows: list[tuple[str, ...]] = []
    troubled: set[int] = set()
    sections: set[int] = set()
    for load in loads:
        for each in load.quiet:
            name = (each.endpoint, each.placement) if placed else (each.endpoint,)
            cells_of = _lines(each)
            if each.loaded.fail or each.loaded.unknown:
                troubled.update(range(len(rows), len(rows) + len(cells_of)))
            rows += [(labels[load.series], *name, *cells) for cells in cells_of]
            sections.add(len(rows) - 1)
    return Grid(
        title="The quiet user: one request at a time, alone and beside the load",
        headers=(
            _SYSTEM,
            "endpoint",
            *(("placement",) if placed else ()),
            "figure",
            "idle ms",
            "loaded ms",
            "more ms [95 %]",
            "times [95 %]",
            "ok",
            "failed",
        ),
        rows=tuple(rows),
        text=frozenset((_SYSTEM, "endpoint", "placement", "figure")),
        notes=(
            "More: loaded less idle; times: loaded / idle. Intervals that hold 0, or 1, decide "
            "nothing. ok and failed: idle + loaded.",
            *((_FROM_DUE,) if any(load.line.from_due for load in loads) else ()),
            *((MEANING,) if placed else ()),
        ),
        troubled=frozenset(troubled),
        sections=frozenset(sections - {len(rows) - 1}),
    )


def _lines(quiet: Quiet) -> list[list[str]]:
    """Mean, median and p99 of one endpoint; from when requests were due, the median from start."""
    idle, loaded = quiet.idle, quiet.loaded
    counts = [
        f"{idle.ok} + {loaded.ok}",
        f"{idle.fail + idle.unknown} + {loaded.fail + loaded.unknown}",
    ]
    lines = [
        ["mean", *_pair(idle.mean_ms, loaded.mean_ms), *_differ(quiet, "mean"), *counts],
        ["median", *_pair(idle.median_ms, loaded.median_ms), *_differ(quiet, "median"), *counts],
        ["p99", digits(idle.p99_ms), digits(loaded.p99_ms), EN_DASH, EN_DASH, *counts],
    ]
    if idle.from_start_ms or loaded.from_start_ms:
        medians = [digits(each.from_start_ms and each.from_start_ms[1]) for each in (idle, loaded)]
        lines.append(["median from start", *medians, EN_DASH, EN_DASH, *counts])
    return lines


def _pair(idle: Estimate | None, loaded: Estimate | None) -> list[str]:
    return [digits(each.value) if each else EN_DASH for each in (idle, loaded)]


def _differ(quiet: Quiet, figure: str) -> list[str]:
    more = quiet.mean_more_ms if figure == "mean" else quiet.median_more_ms
    times = quiet.mean_ratio if figure == "mean" else quiet.median_ratio
    return [_close(more), _close(times)]


def _close(estimate: Estimate | None) -> str:
    return with_interval(estimate, 3)
