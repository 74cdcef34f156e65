"""CPU throttled: a node's processes get only a part of one processor."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator

from wanlat.emulator import family
from wanlat.emulator.cgroup import CpuGroup, Usage
from wanlat.emulator.family import outside
from wanlat.emulator.faults.fault import Fault, FaultFailed, Hit, Scene
from wanlat.topologies.errors import MachineError
from wanlat.topologies.units import Fraction
from wanlat.topologies.wording import listing, show

if TYPE_CHECKING:
    from wanlat.emulator.lab import Lab
    from wanlat.emulator.process import Process

_LEAST = Fraction(0.01)  # the kernel's: 1 ms of a period
_TRIAL_S = 0.6
_EXCESS = 0.05  # of a processor, beyond the quota: a period begun, slices of 5 ms on each of them
_LOOK_S = 0.2
_ROUNDS = 50  # each finds what was started while the one before looked
_SPIN = """
import sys, time
sys.stdin.read(1)
begun, used = time.monotonic(), time.process_time()
while time.monotonic() - begun < float(sys.argv[1]):
    pass
print((time.process_time() - used) / (time.monotonic() - begun))
"""


def _enough(quota: Fraction) -> Fraction:
    if quota < _LEAST:
        raise ValueError(f"{show(str(quota))} is less than the kernel can give; at least {_LEAST}")
    return quota


class CpuThrottled(Fault):
    """All processes of each node together get ``quota`` of one processor's time.

    By periods of 100 ms, as containers with a limit do: what is used up is waited for. Whatever
    the service starts is limited with it, and it itself again if it is started anew meanwhile.
    """

    kind = "cpu-throttled"

    class Settings(Fault.Settings):
        """The part of a processor."""

        quota: Annotated[Fraction, AfterValidator(_enough)]

    def __init__(self, hit: Hit, settings: Mapping[str, Any] | None = None) -> None:
        super().__init__(hit, settings)
        self._limits: dict[str, _Limit] = {}
        self._before: dict[str, Usage] = {}
        self._limited: dict[str, Process] = {}
        self._over = threading.Event()
        self._follower: threading.Thread | None = None
        self.usage: dict[str, Usage] = {}
        """What the kernel counted of each node, from the beginning to the end."""

    @property
    def detail(self) -> str:
        """How much they have, and once it is over, how often they wanted more."""
        text = f"{self.settings.quota} of one processor"
        if self.usage:
            held_s = sum(usage.throttled_s for usage in self.usage.values())
            text += f"; processors made to wait for {held_s:.1f} s in all"
        return text

    def check(self, lab: Lab) -> None:  # noqa: ARG002 - a trial of the machine, not of the lab
        """Limit a process of our own and see that it is. Raises MachineError when it is not."""
        quota = self.settings.quota
        group = CpuGroup(quota.value)
        try:
            measured = _spin(group)
        finally:
            group.remove()
        if measured > quota.value + _EXCESS:
            raise MachineError(
                f"The fault {show(self.kind)}: a process limited to {quota} of a processor "
                f"got {measured:.0%} on this machine, so its limits cannot be relied on."
            )

    def begin(self, scene: Scene) -> int:
        """Limit the processes; return the instant at which the last one was."""
        quota = self.settings.quota.value
        with scene.holding(self.nodes):
            try:
                for node in self.nodes:
                    with scene.lock:
                        key = self.kind, node
                        limit = scene.shared.get(key) or _Limit(quota)
                        scene.shared[key] = self._limits[node] = limit
                        limit.ask(self, quota)
                    self._before[node] = limit.group.usage
                    self._limit(scene, node)
            except OSError as error:
                raise FaultFailed(
                    f"The processes of {self.subject} could not be limited: {error}"
                ) from error
        instant = time.monotonic_ns()
        self._follower = threading.Thread(
            target=self._follow, args=(scene,), name=f"{self.kind} {self.subject}", daemon=True
        )
        self._follower.start()
        return instant

    def end(self, scene: Scene) -> int:
        """Free them; return the instant at which this limit was gone from all of them."""
        self._over.set()
        if self._follower is not None:
            self._follower.join()
        failures = []
        with scene.holding(self.nodes):
            for node, limit in self._limits.items():
                try:
                    if node in self._before:
                        self.usage[node] = limit.group.usage.since(self._before[node])
                    with scene.lock:
                        if limit.ask(self, None):
                            del scene.shared[self.kind, node]
                            limit.group.remove()
                except (OSError, MachineError) as error:
                    failures.append(f"{node} ({error})")
        self._limits.clear()
        if failures:
            raise FaultFailed(f"The processes of {listing(failures)} could not be freed again.")
        return time.monotonic_ns()

    def _limit(self, scene: Scene, node: str) -> None:
        """Move a node's process, and all that it has started, into its group."""
        process, group = scene.services[node].process, self._limits[node].group
        if process is None or process.poll() is not None:
            return  # another fault has ended it: it is limited as soon as it is there again
        proc = Path(f"/proc/{scene.lab.supervisor_pid}/root/proc")
        for _ in range(_ROUNDS):
            pids = outside(scene.lab.supervisor_pid, family.members(proc, process.pid))
            missing = set(pids.values()) - group.members
            if not missing:
                self._limited[node] = process
                return
            for pid in missing:
                group.add(pid)
        raise FaultFailed(f"{process.name} starts others faster than they can be limited.")

    def _follow(self, scene: Scene) -> None:
        """Limit what takes the place of a process that has ended."""
        try:
            while not self._over.wait(_LOOK_S) and not scene.stopping.is_set():
                for node in self.nodes:
                    process = scene.services[node].process
                    if process is not self._limited.get(node):
                        self._limit(scene, node)
        except BaseException as error:
            scene.on_failure(self, error)


class _Limit:
    """The one control group of a node: the smallest quota that anybody asks for is in force."""

    def __init__(self, quota: float) -> None:
        self.group = CpuGroup(quota)
        self._quotas: dict[Hashable, float] = {}

    def ask(self, holder: Hashable, quota: float | None) -> bool:
        """Ask for a quota, or (None) no longer; return whether nobody asks for any."""
        if quota is None:
            self._quotas.pop(holder, None)
        else:
            self._quotas[holder] = quota
        smallest = min(self._quotas.values(), default=None)
        if smallest is not None and smallest != self.group.quota:
            self.group.limit(smallest)
        return smallest is None


def _spin(group: CpuGroup) -> float:
    """Return which part of a processor a process gets in a group if it takes all it can."""
    with subprocess.Popen(
        [sys.executable, "-S", "-c", _SPIN, str(_TRIAL_S)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as spinner:
        try:
            group.add(spinner.pid)
            out, _ = spinner.communicate(".")
        except BaseException:
            spinner.kill()
            raise
    return float(out)
