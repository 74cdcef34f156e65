"""Every kind of fault, by the name that drills use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from wanlat.topologies.errors import UserError
from wanlat.topologies.wording import did_you_mean, listing, show

if TYPE_CHECKING:
    from wanlat.emulator.faults.fault import Fault, Roles
    from wanlat.topologies.resolve import Plan


class _Kinds(Mapping[str, "type[Fault]"]):
    """The classes by their kinds. To add one: its module, and its name here.

    A module is imported when a drill asks for its kind: most use one or two.
    """

    _names = (
        *("kill", "stop", "restart", "crash-loop"),
        *("slow", "lossy", "throttled", "blackhole", "partition", "one-way-cut", "flapping"),
        *("disk-full", "cpu-throttled"),
    )

    def __getitem__(self, kind: str) -> type[Fault]:
        if kind not in self._names:
            raise KeyError(kind)
        module = import_module(f"wanlat.emulator.faults.{kind.replace('-', '_')}")
        found: type[Fault] = getattr(module, kind.title().replace("-", ""))
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, kind: object) -> bool:
        return kind in self._names


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
