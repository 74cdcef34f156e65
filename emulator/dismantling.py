"""The end of a lab, awaited: the kernel takes network namespaces down after their last user."""

from __future__ import annotations

import os
import socket
import struct
import time

from emulator import rtnetlink, syscalls

_LINK_EVENTS = 1  # RTMGRP_LINK
_LINK_GONE = 17  # RTM_DELLINK
_NAME, _INDEX = "wanlat-last", 1 << 30


def wait_until_dismantled(timeout_s: float) -> bool:
    """Wait for every network namespace that was let go before; return whether that was seen.

    The kernel dismantles them in the background, in batches: all that have been let go since the
    batch before (cleanup_net() in net/core/net_namespace.c, a work queue of one worker). So one
    more is made and let go here, with a veth pair into it from this process's own network
    namespace, and when this end of the pair has vanished, its batch is at work on interfaces,
    or past it. It may be the batch of those waited for; the next one is a later batch, which
    the kernel begins once it is through with that. Raises OSError, rtnetlink.Refusal.
    """
    deadline = time.monotonic() + timeout_s
    return _watch_one_go(deadline) and _watch_one_go(deadline)


def _watch_one_go(deadline: float) -> bool:
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    events = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    try:
        events.bind((0, _LINK_EVENTS))
        syscalls.unshare(syscalls.CLONE_NEWNET)
        try:
            with rtnetlink.Socket() as netlink:
                near = rtnetlink.VethEnd(_NAME, _INDEX)
                far = rtnetlink.VethEnd(_NAME, _INDEX, namespace_fd=home)
                netlink.send([rtnetlink.veth(near, far)])
        finally:
            syscalls.setns(home, syscalls.CLONE_NEWNET)
        while (left_s := deadline - time.monotonic()) > 0:
            if syscalls.wait_readable([events.fileno()], left_s):
                # struct nlmsghdr: length, type; struct ifinfomsg behind it: …, index
                kind, index = struct.unpack_from("=4xH10x4xi", events.recv(1 << 16))
                if (kind, index) == (_LINK_GONE, _INDEX):
                    return True
        return False
    finally:
        events.close()
        os.close(home)
