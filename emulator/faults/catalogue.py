"""Every kind of fault, by the name that drills use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from wanlat.emulator.faults.fault import Fault, Roles
from wanlat.topologies.errors import UserError
from wanlat.topologies.resolve import Plan
from wanlat.topologies.wording import did_you_mean, listing, show

# A module is imported when a drill asks for its kind: most use one or two.
_CLASSES = {
    "kill": "Kill",
    "stop": "Stop",
    "restart": "Restart",
    "crash-loop": "CrashLoop",
    "slow": "Slow",
    "lossy": "Lossy",
    "throttled": "Throttled",
    "blackhole": "Blackhole",
    "partition": "Partition",
    "one-way-cut": "OneWayCut",
    "flapping": "Flapping",
    "disk-full": "DiskFull",
    "cpu-throttled": "CpuThrottled",
}


class _Kinds(Mapping[str, type[Fault]]):
    """The classes, looked up as they are asked for; to add one: its module, and its line above."""

    def __getitem__(self, kind: str) -> type[Fault]:
        module = f"wanlat.emulator.faults.{kind.replace('-', '_')}"
        found: type[Fault] = getattr(import_module(module), _CLASSES[kind])
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(_CLASSES)

    def __len__(self) -> int:
        return len(_CLASSES)

    def __contains__(self, kind: object) -> bool:
        return kind in _CLASSES


KINDS: Mapping[str, type[Fault]] = _Kinds()


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
