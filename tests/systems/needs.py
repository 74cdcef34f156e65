"""What a test needs of the machine: a store, a lab. Where it is absent the test is skipped.

WANLAT_REQUIRE_STORES names stores and tools that must be there; then nothing is skipped for want
of them, or of a lab.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Literal

import pytest

from emulator.lab import Lab
from systems import grpcurl, nginx, registry
from systems.errors import SystemMissing
from topologies.errors import MachineError
from topologies.load import load
from topologies.resolve import resolve
from topologies.scale import with_nodes

_REQUIRED = os.environ.get("WANLAT_REQUIRE_STORES", "").split()


def needs(*names: str) -> None:
    """Skip where a store, or grpcurl, or nginx, is absent."""
    tools: dict[str, Callable[[], object]] = {grpcurl.NAME: grpcurl.find, nginx.NAME: nginx.find}
    for name in names:
        find = tools[name] if name in tools else registry.get(name).find
        try:
            find()
        except SystemMissing as absent:
            if name in _REQUIRED:
                raise
            pytest.skip(str(absent))


@contextmanager
def lab_of(
    topology: str,
    storage: Literal["memory", "disk"] = "memory",
    nodes: int | None = None,
    **given: Any,
) -> Iterator[Lab]:
    """A lab, of so many nodes if not the topology's; skips where this machine cannot hold one."""
    asked = load(topology)
    plan = resolve(asked if nodes is None else with_nodes(asked, nodes))
    with ExitStack() as stack:
        try:
            lab = stack.enter_context(Lab(plan, storage=storage, **given))
        except MachineError as impossible:
            if _REQUIRED:
                raise
            pytest.skip(str(impossible))
        yield lab
