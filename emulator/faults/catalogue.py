"""Every kind of fault, by the name that drills use."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from wanlat.emulator.faults import cpu_throttled, disk_full, links, processes
from wanlat.emulator.faults.fault import Fault, Roles
from wanlat.topologies.errors import UserError
from wanlat.topologies.wording import did_you_mean, listing, show

if TYPE_CHECKING:
    from wanlat.topologies.resolve import Plan

MODULES = (processes, links, disk_full, cpu_throttled)
"""To add a kind: its class in one of them, or in a module of its own that is listed here."""


def kinds_of(module: ModuleType) -> dict[str, type[Fault]]:
    """Return the kinds of fault that a module defines, in its order."""
    return {
        made.kind: made
        for made in vars(module).values()
        if isinstance(made, type) and issubclass(made, Fault)
        if made.__module__ == module.__name__ and "kind" in vars(made)
    }


KINDS: dict[str, type[Fault]] = {}
for _module in MODULES:
    KINDS |= kinds_of(_module)


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
