"""The tables of a sweep of loads: deployments side by side, and beside the published ones."""

from __future__ import annotations

from itertools import pairwise

from wanlat.analysis.grid import Grid
from wanlat.analysis.load.model import Estimate
from wanlat.analysis.load.of_sweep import Against, Deployment
from wanlat.analysis.load.published import DEPLOYMENTS, OBJECT_BYTES, WORKERS, published_loads
from wanlat.analysis.load.sweep_block import LoadSweepBlock
from wanlat.analysis.load.table import operations
from wanlat.analysis.load.wording import digits, on_line, percent, size, with_interval
from wanlat.analysis.names import EN_DASH, display_system, row_labels
from wanlat.analysis.placement import is_known


def grids_of(block: LoadSweepBlock) -> list[Grid]:
    """Every table that `block` has rows for."""
    loads = [each.load for each in block.deployments]
    headers = tuple(block.deployments[0].where)
    places = [tuple(each.where.values()) for each in block.deployments]
    title = f"{block.study} on {block.topology}: operations"
    return [
        operations(title, loads, loads, places, headers)
        if headers
        else operations(title, loads, loads),
        _states(block, headers),
        *([_quiet(block, headers)] if any(load.quiet for load in loads) else []),
        *([_ratios(block), _published()] if block.against else []),
    ]


def _states(block: LoadSweepBlock, headers: tuple[str, ...]) -> Grid:
    labels = _labels(block)
    rows, troubled = [], set()
    for number, each in enumerate(block.deployments):
        load = each.load
        steady, little, client = load.steady, load.little, load.client
        failed = sum(one.count for one in load.failures)
        if not steady.is_steady or client.bottleneck or (little is not None and not little.fits):
            troubled.add(number)
        rows.append(
            (
                *each.where.values(),
                labels[each.point, load.series.system],
                steady.verdict,
                digits(steady.begin_s, 3),
                digits(steady.end_s, 3),
                percent(steady.change),
                EN_DASH if little is None else f"{little.in_flight:.1f} of {little.workers}",
                EN_DASH if client.cpu_share is None else f"{100 * client.cpu_share:.0f} %",
                "the client" if client.bottleneck else "the store",
                str(failed),
            )
        )
    return Grid(
        title="Steady state, and who was the limit",
        headers=(
            *headers,
            "system",
            "verdict",
            "from s",
            "until s",
            "change",
            "in flight",
            "client CPU",
            "limit",
            "failed",
        ),
        rows=tuple(rows),
        text=frozenset((*headers, "system", "verdict", "limit")),
        notes=tuple(_notes(block)),
        troubled=frozenset(troubled),
    )


def _name(deployment: Deployment) -> str:
    return f"{display_system(deployment.load.series.system)} {deployment.name}".strip()


def _notes(block: LoadSweepBlock) -> list[str]:
    found = []
    for each in block.deployments:
        name = _name(each)
        if each.load.client.bottleneck:
            found.append(
                f"{name}: the client was the bottleneck, so the store can do more: "
                f"{each.load.client.bottleneck.rstrip('.')}."
            )
        if not each.load.steady.is_steady:
            found.append(f"{name}: {each.load.steady.why}")
    if any(not each.load.steady.is_steady for each in block.deployments):
        found.append("Without a steady state figures are of the whole load.")
    return found


def _quiet(block: LoadSweepBlock, headers: tuple[str, ...]) -> Grid:
    labels = _labels(block)
    quiet = [(each, one) for each in block.deployments for one in each.load.quiet]
    placed = any(is_known(one.placement) for _, one in quiet)
    return Grid(
        title="The quiet user, alone and beside the load",
        headers=(
            *headers,
            "system",
            "endpoint",
            *(("placement",) if placed else ()),
            "idle median ms",
            "loaded median ms",
            "more ms [95 %]",
            "times [95 %]",
            "loaded p99 ms",
        ),
        rows=tuple(
            (
                *each.where.values(),
                labels[each.point, each.load.series.system],
                one.endpoint,
                *((one.placement,) if placed else ()),
                _value(one.idle.median_ms),
                _value(one.loaded.median_ms),
                with_interval(one.median_more_ms, 3),
                with_interval(one.median_ratio, 3),
                digits(one.loaded.p99_ms),
            )
            for each, one in quiet
        ),
        text=frozenset((*headers, "system", "endpoint", "placement")),
        sections=frozenset(
            n for n, (one, other) in enumerate(pairwise(quiet)) if one[0] is not other[0]
        ),
        notes=tuple(
            f"{_name(each)}: {sentence}"
            for each in block.deployments
            for sentence in on_line(each.load.line, each.load.quiet)
        ),
    )


def _ratios(block: LoadSweepBlock) -> Grid:
    against = block.against
    return Grid(
        title="Beside the published mixed load, each / one node of one drive of the same source",
        headers=("system", "deployment", "figure", "ours [95 %]", "published"),
        rows=tuple(
            (
                display_system(each.system),
                each.deployment.replace("-", " "),
                _figure(each),
                EN_DASH
                if each.ours is None
                else with_interval(Estimate(each.ours.estimate, each.ours.ci95), 3),
                digits(each.theirs, 3),
            )
            for each in against
        ),
        text=frozenset(("system", "deployment", "figure")),
        notes=(
            "Ratios only: their machine, disks and version are not ours. Drives and nodes of ours "
            "share the disk and the processors of one machine.",
        ),
        sections=frozenset(
            n
            for n, (one, other) in enumerate(pairwise(against))
            if (one.system, one.deployment) != (other.system, other.deployment)
        ),
    )


def _figure(each: Against) -> str:
    return each.of if each.what == "write / read" else f"{each.of}, {each.what}s"


def _published() -> Grid:
    return Grid(
        title="The published mixed load, as it was measured there",
        headers=(
            "system",
            "deployment",
            "operation",
            "object",
            "ok",
            "mean ms",
            "ops/s",
            "MB/s",
            "in flight",
        ),
        rows=tuple(
            (
                display_system(DEPLOYMENTS[each.deployment][0]),
                each.deployment.replace("-", " "),
                each.operation,
                size(OBJECT_BYTES),
                str(each.operations),
                *each.digits,
                f"{each.in_flight:.2f}",
            )
            for each in published_loads()
        ),
        text=frozenset(("system", "deployment", "operation")),
        notes=(
            "In flight: time × operations a second. Reads and writes of a deployment together keep "
            f"14 to 16 of its {WORKERS} workers busy, so its units are right. Another machine's.",
        ),
    )


def _labels(block: LoadSweepBlock) -> dict[tuple[str, str], str]:
    labels = row_labels(list(dict.fromkeys(each.load.series for each in block.deployments)))
    return {
        (each.point, each.load.series.system): labels[each.load.series]
        for each in block.deployments
    }


def _value(estimate: Estimate | None) -> str:
    return digits(estimate.value) if estimate else EN_DASH
