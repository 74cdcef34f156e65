"""Every kind of fault, by the name that drills use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from wanlat.emulator.faults import links, processes
from wanlat.emulator.faults.cpu_throttled import CpuThrottled
from wanlat.emulator.faults.disk_full import DiskFull
from wanlat.emulator.faults.fault import Fault, Roles
from wanlat.topologies.errors import UserError
from wanlat.topologies.wording import did_you_mean, listing, show

if TYPE_CHECKING:
    from wanlat.topologies.resolve import Plan

KINDS: Mapping[str, type[Fault]] = {
    each.kind: each
    for each in (
        *(processes.Kill, processes.Stop, processes.Restart, processes.CrashLoop),
        *(links.Slow, links.Lossy, links.Throttled, links.Blackhole),
        *(links.Partition, links.OneWayCut, links.Flapping),
        *(DiskFull, CpuThrottled),
    )
}
"""To add one: its class, and its name here."""


def parse(
    kind: str, target: object, settings: Mapping[str, Any], plan: Plan, roles: Roles
) -> Fault:
    """Return the fault that an entry of a drill means: its kind, target and other keys.

    Raises UserError for an unknown kind and for all that is wrong with the rest.
    """
    if kind not in KINDS:
        raise UserError(
            f"There is no fault {show(kind)}{did_you_mean(kind, list(KINDS))}; there are "
            f"{listing(KINDS)}."
        )
    return KINDS[kind].parse(target, settings, plan, roles)
