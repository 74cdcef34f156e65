"""The one control group of a node, shared by the faults that limit its processes.

The smallest quota that anybody asks for is in force, and the group is there for as long as anybody
asks for one.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable
from weakref import WeakKeyDictionary

from wanlat.emulator.cgroup import CpuGroup
from wanlat.emulator.lab import Lab


class _Limit:
    def __init__(self, quota: float) -> None:
        self.group = CpuGroup(quota)
        self.quotas: dict[Hashable, float] = {}

    def apply(self) -> None:
        smallest = min(self.quotas.values())
        if smallest != self.group.quota:
            self.group.limit(smallest)


_lock = threading.Lock()
_limits: WeakKeyDictionary[Lab, dict[str, _Limit]] = WeakKeyDictionary()


def hold(lab: Lab, node: str, holder: Hashable, quota: float) -> CpuGroup:
    """Ask for a quota; return the node's group. Raises MachineError."""
    with _lock:
        nodes = _limits.setdefault(lab, {})
        if node not in nodes:
            nodes[node] = _Limit(quota)
        nodes[node].quotas[holder] = quota
        nodes[node].apply()
        return nodes[node].group


def release(lab: Lab, node: str, holder: Hashable) -> None:
    """Ask for it no longer. Raises MachineError, OSError."""
    with _lock:
        limit = _limits[lab][node]
        del limit.quotas[holder]
        if limit.quotas:
            limit.apply()
            return
        del _limits[lab][node]
        limit.group.remove()
