"""Everything of the loads in a bundle, put together, with what a reader must be told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wanlat.analysis.load.course import course_of
from wanlat.analysis.load.little import littles_law
from wanlat.analysis.load.model import LittlesLaw, Load, Operation, Quiet, Steady
from wanlat.analysis.load.operations import failures_of, operations_of
from wanlat.analysis.load.pair import write_over_read
from wanlat.analysis.load.quiet import quiet_course, quiet_of
from wanlat.analysis.load.records import Records, read_records
from wanlat.analysis.load.steady import steady_of
from wanlat.analysis.load.wording import on_line
from wanlat.analysis.names import count, display_system

if TYPE_CHECKING:
    from wanlat.analysis.bundle import Bundle

_KEPT = "load"
_MUCH_BETWEEN = 0.05
"""Of the workers, in a closed loop: then it is worth a word that they did not ask all the time."""


def loads_of(bundle: Bundle) -> tuple[Load, ...]:
    """The load of each system in `bundle`; none where it was not run under load.

    Raises BundleError where its records are damaged.
    """
    if _KEPT not in bundle.derived:
        bundle.derived[_KEPT] = tuple(_load(bundle, one) for one in read_records(bundle))
    found: tuple[Load, ...] = bundle.derived[_KEPT]
    return found


def _load(bundle: Bundle, records: Records) -> Load:
    steady = steady_of(records, bundle.seed)
    series, zero_ns = records.series, records.zero_ns
    operations = operations_of(records, steady, bundle.seed)
    little = littles_law(records)
    line = records.settings.line
    quiet = quiet_of(bundle, series, steady, zero_ns, from_due=line.from_due)
    quiet_ms = quiet_course(bundle, series, zero_ns, from_due=line.from_due)
    return Load(
        series=series,
        topology=bundle.topology,
        status=bundle.status,
        cut=records.cut,
        duration_s=records.until_s,
        steady=steady,
        operations=operations,
        failures=failures_of(records),
        little=little,
        client=records.settings.client,
        quiet=quiet,
        line=line,
        write_over_read=write_over_read(records, steady, bundle.seed),
        course=course_of(records, steady, quiet_ms),
        notes=tuple(_notes(records, steady, operations, quiet, little)),
    )


def _notes(
    records: Records,
    steady: Steady,
    operations: tuple[Operation, ...],
    quiet: tuple[Quiet, ...],
    little: LittlesLaw | None,
) -> list[str]:
    """Sentences that must stand with the figures, the most important first."""
    settings, found = records.settings, []
    name = display_system(records.series.system)
    if settings.client.bottleneck:
        found.append(
            f"{name}: the client was the bottleneck, so the store can do more than this: "
            f"{settings.client.bottleneck.rstrip('.')}."
        )
    found.append(f"{name}: {steady.why}")
    if not steady.is_steady:
        found.append(f"{name}: figures are therefore of the whole load, {records.until_s:.0f} s.")
    if records.cut:
        found.append(f"{name}: the generator was killed; its last record is torn and left out.")
    if settings.done is not None and settings.done != records.operation.size:
        found.append(
            f"{name}: the generator says that it sent {settings.done} requests, and "
            f"{records.operation.size} are recorded."
        )
    if settings.left_out:
        found.append(
            f"{name}: {count(settings.left_out, 'request')} that were due were not sent before "
            "the end, for no worker was free: the store did not keep up with the rate asked for."
        )
    found += [f"{name}: {sentence}" for sentence in on_line(settings.line, quiet)]
    found += _on_little(name, little, is_closed=settings.rate is None)
    if any(not each.figures.ok for each in operations):
        none = ", ".join(each.operation for each in operations if not each.figures.ok)
        found.append(f"{name}: not one request succeeded of {none}.")
    return found


def _on_little(name: str, little: LittlesLaw | None, *, is_closed: bool) -> list[str]:
    if little is None:
        return []
    found = []
    if little.overlaps:
        found.append(
            f"{name}: {count(little.overlaps, 'request')} began before its worker's one before "
            "had ended. One worker has one request in flight: these records cannot be true."
        )
    if abs(little.missing) > little.tolerance:
        found.append(
            f"{name}: of {little.workers} workers {little.missing:.2f} are not accounted for by "
            "rate × mean latency and the pauses between requests (Little's law): records are "
            "missing, or workers did not ask."
        )
    if is_closed and little.between > _MUCH_BETWEEN * little.workers:
        found.append(
            f"{name}: {little.between:.1f} of {little.workers} workers were, on average, between "
            f"two requests, {little.gap_ms:.2f} ms each time."
        )
    return found
