"""CPU throttled: a node's processes get only a part of one processor."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from wanlat.emulator import family
from wanlat.emulator.cgroup import CpuGroup
from wanlat.emulator.faults.fault import Fault, FaultFailed, Hit, Scene
from wanlat.emulator.faults.shared_service import SharedService
from wanlat.topologies.units import Fraction
from wanlat.topologies.wording import in_words, listing
from wanlat.topologies.yaml_model import within

if TYPE_CHECKING:
    from wanlat.emulator.lab import Lab

_LEAST = Fraction(0.01)  # the kernel's: 1 ms of a period
_ROUNDS = 50  # each finds what was started while the one before looked


class CpuThrottled(Fault):
    """All processes of each node together get ``quota`` of one processor's time.

    By periods of 100 ms, as containers with a limit do: what is used up is waited for. Whatever
    the service starts is limited with it, and it itself again when another fault starts it anew.
    """

    kind, affects = "cpu-throttled", "processes"
    is_exclusive: ClassVar[bool] = True

    class Settings(Fault.Settings):
        """The part of a processor."""

        quota: Annotated[Fraction, within(_LEAST, None, ": the kernel gives no less")]
        """of one processor, for all processes of a node together"""

    def __init__(self, hit: Hit, settings: Mapping[str, Any] | None = None) -> None:
        super().__init__(hit, settings)
        self._limits: dict[str, tuple[CpuGroup, Callable[[], None]]] = {}
        """By nodes: what limits it, and what limits it anew."""
        self.waited_s: float | None = None
        """For how long processors were made to wait, from the beginning to the end."""

    @property
    def detail(self) -> str:
        """How much they have, and once it is over, how often they wanted more."""
        text = f"{self.settings.quota} of one processor"
        if self.waited_s is not None:
            text += f"; processors made to wait for {self.waited_s:.1f} s in all"
        return text

    def check(self, lab: Lab) -> None:  # noqa: ARG002 - a trial of the machine, not of the lab
        """Raise MachineError when the kernel does not take the limit."""
        CpuGroup(self.settings.quota.value).remove()

    def begin(self, scene: Scene) -> int:
        """Limit the processes; return the instant at which the last one was."""
        quota = self.settings.quota.value
        with scene.holding(self.nodes) as services:
            try:
                for service in services:
                    group = CpuGroup(quota)
                    again = partial(_put_in, scene.lab, service, group)
                    service.when_started.append(again)
                    self._limits[service.node] = group, again
                    again()
            except OSError as error:
                raise FaultFailed(
                    f"The processes of {self.subject} could not be limited: {in_words(error)}"
                ) from error
        return time.monotonic_ns()

    def end(self, scene: Scene) -> int:
        """Free them; return the instant at which this limit was gone from all of them."""
        failures = []
        with scene.holding(self.nodes) as services:
            for service in services:
                if service.node not in self._limits:  # its beginning failed
                    continue
                group, again = self._limits.pop(service.node)
                service.when_started.remove(again)
                try:
                    self.waited_s = (self.waited_s or 0.0) + group.throttled_s
                    group.remove()
                except OSError as error:
                    failures.append(f"{service.node} ({in_words(error)})")
        if failures:
            raise FaultFailed(f"The processes of {listing(failures)} could not be freed again.")
        return time.monotonic_ns()


def _put_in(lab: Lab, service: SharedService, group: CpuGroup) -> None:
    """Move a node's process, and all that it has started, into a group."""
    if service.process is None or service.process.poll() is not None:
        return  # another fault has ended it: it is limited as soon as it is there again
    for _ in range(_ROUNDS):
        members = family.members(Path(f"/proc/{lab.supervisor_pid}/root/proc"), service.process.pid)
        missing = set(family.outside(lab.supervisor_pid, members).values()) - group.members
        if not missing:
            return
        for pid in missing:
            group.add(pid)
    raise FaultFailed(f"{service.process.name} starts others faster than they can be limited.")
