"""Probes as they reach a node, stamped by the kernel, in a ring that is read when all is over.

Nothing runs for each packet but the kernel (PACKET_RX_RING, Documentation/networking/
packet_mmap.rst), so a hundred thousand of them cost this process nothing while they arrive, and
no wake-up of ours enters an instant.
"""

from __future__ import annotations

import ctypes
import mmap
import socket
import struct
from typing import Any

import numpy as np

from wanlat.emulator.closing import Closing
from wanlat.emulator.lab import Lab
from wanlat.topologies.errors import MachineError

_SOL_PACKET = 263  # linux/socket.h
_PACKET_RX_RING, _PACKET_STATISTICS, _PACKET_VERSION = 5, 6, 10  # linux/if_packet.h
_TPACKET_V2 = 1
_ETH_P_IP = 0x0800
_BLOCK_BYTES = 1 << 18
_FRAME_BYTES = 256
_SO_ATTACH_FILTER = 26  # asm-generic/socket.h
# Nothing but ICMP (classic BPF: the IP header's protocol, a comparison, all of it or nothing).
_ONLY_ICMP = ((0x30, 0, 0, 23), (0x15, 0, 1, socket.IPPROTO_ICMP), (6, 0, 0, 65535), (6, 0, 0, 0))
_IP_OFFSET = 80  # of a frame in its slot: the headers of version 2 and of Ethernet, aligned
KEPT_BYTES = _FRAME_BYTES - _IP_OFFSET
"""How many bytes of a packet are kept, from its IP header on."""

Frames = np.ndarray[Any, np.dtype[np.void]]

_LAYOUT = np.dtype(
    {
        "names": ["status", "length", "net", "seconds", "nanoseconds", "packet"],
        "formats": ["<u4", "<u4", "<u2", "<u4", "<u4", (np.uint8, (KEPT_BYTES,))],
        "offsets": [0, 4, 14, 16, 20, _IP_OFFSET],
        "itemsize": _FRAME_BYTES,
    }
)


class Arrivals(Closing):
    """All ICMP that reaches a node from now on, up to ``capacity`` packets.

    Traffic between stores while a live link is measured takes no room.
    """

    def __init__(self, lab: Lab, node: str, capacity: int) -> None:
        self._missed = 0
        # Of every interface, loopback too: a node may probe itself.
        protocol = socket.htons(_ETH_P_IP)
        self._socket = lab.socket(node, socket.AF_PACKET, socket.SOCK_RAW, protocol)
        try:
            only_icmp(self._socket)
            self._ring = self._map(capacity)
            # What came before there was a ring has found no room for another reason.
            self._socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8)
        except BaseException:
            self._socket.close()
            raise

    def _map(self, capacity: int) -> mmap.mmap:
        per_block = _BLOCK_BYTES // _FRAME_BYTES
        blocks = -(-capacity // per_block)
        request = struct.pack("IIII", _BLOCK_BYTES, blocks, _FRAME_BYTES, blocks * per_block)
        try:
            self._socket.setsockopt(_SOL_PACKET, _PACKET_VERSION, _TPACKET_V2)
            self._socket.setsockopt(_SOL_PACKET, _PACKET_RX_RING, request)
            return mmap.mmap(self._socket.fileno(), _BLOCK_BYTES * blocks)
        except OSError as error:
            raise MachineError(
                f"The kernel gives no ring of {_BLOCK_BYTES * blocks >> 20} MiB for packets "
                f"({error.strerror}). Ask for fewer samples, or free memory."
            ) from error

    def close(self) -> None:
        """Give the ring back."""
        self._ring.close()
        self._socket.close()

    @property
    def count(self) -> int:
        """Return how many packets have arrived so far."""
        statuses = np.frombuffer(self._ring, dtype=_LAYOUT)["status"]
        return int(np.count_nonzero(statuses))

    def frames(self) -> Frames:
        """Return a copy of what has arrived so far, in the order of arrival.

        Records of ``length`` (bytes of the Ethernet frame), ``seconds`` and ``nanoseconds`` (of
        CLOCK_REALTIME) and ``packet`` (the first ``KEPT_BYTES`` from the IP header on). Raises
        MachineError when more came than there was room for.
        """
        slots = np.frombuffer(self._ring, dtype=_LAYOUT)
        free = np.flatnonzero(slots["status"] == 0)
        filled = slots[: free[0] if free.size else slots.size].copy()
        del slots  # a view would keep the ring from being closed
        statistics = self._socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8)
        self._missed += struct.unpack("II", statistics)[1]  # the kernel counts from zero again
        if self._missed:
            raise MachineError(f"{self._missed} packets found no room in the ring for them.")
        assert not filled.size or bool((filled["net"] == _IP_OFFSET).all())
        return filled


def only_icmp(tap: socket.socket) -> None:
    """Have a packet socket be given ICMP alone."""
    code = ctypes.create_string_buffer(
        b"".join(struct.pack("HBBI", *instruction) for instruction in _ONLY_ICMP)
    )
    program = struct.pack("HP", len(_ONLY_ICMP), ctypes.addressof(code))
    tap.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)


def instants_ns(frames: Frames) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return when the frames arrived, CLOCK_REALTIME, shape (n,)."""
    instants: np.ndarray[Any, np.dtype[np.int64]]
    instants = frames["seconds"].astype(np.int64) * 1_000_000_000 + frames["nanoseconds"]
    return instants
