"""Loopback addresses that only this process uses."""

from __future__ import annotations

import os
from ipaddress import IPv4Address


def own_address(node: int) -> str:
    """The address of one of six nodes, numbered from 0, that a test runs on loopback.

    Whether a port is free on an address that others use cannot be asked: until the node has it, the
    kernel may have given it to somebody's client, and a process that is being started holds for a
    moment what its parent tried. Here every port is free, but those of this process.
    """
    assert 0 <= node < 6, "a process has addresses for six nodes"
    own = (os.getpid() << 3) & 0x00FF_FFFF
    return str(IPv4Address((127 << 24) | own | (1 + node)))
