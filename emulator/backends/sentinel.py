"""How late netem releases packets, by packets with a known due time.

The kernel does not report when it released a packet. So a datagram is sent every few milliseconds
through a netem of its own, on the loopback of the core namespace, which nothing else uses; its
delay is longer than that interval, so that some are always on their way. The kernel stamps what
arrives: a late wake-up of this process sends fewer of them, and makes none look late. A machine
that stands still makes all late that are on their way.
"""

from __future__ import annotations

import itertools
import socket
import struct
import threading
import time
from collections import deque

from wanlat.bundle import BIN_NS  # the lab's first process needs nothing else of it
from wanlat.emulator import rtnetlink
from wanlat.emulator.backends import LateBin, LatenessReport, netem_options
from wanlat.topologies.netem import Netem

_INTERVAL_NS = BIN_NS
_DELAY_NS = 5 * _INTERVAL_NS
_LEAST_NS = 250_000  # as wire has it: bins in which nothing was as late as this are not kept
_MOST_BINS = 1 << 16
_BEHIND_NS = 10 * _INTERVAL_NS
_READ_WITHIN_NS = 50_000
_SO_TIMESTAMPNS = 35  # asm-generic/socket.h
_NUMBER, _TIME = struct.Struct("=Q"), struct.Struct("=qq")
_FIRST = 25  # until then the kernel may not have started to stamp (net_enable_timestamp())
LOOPBACK = (1, "lo")


class Sentinel:
    """Sends and records until the lab ends; made in the core namespace."""

    def __init__(self, control: rtnetlink.Socket) -> None:
        """Put its netem on the loopback by ``control``, and start its thread."""
        options = netem_options.encode(Netem(delay_ns=_DELAY_NS))
        control.send([rtnetlink.put_qdisc(*LOOPBACK, "netem", options)])
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.connect(self._socket.getsockname())
        self._sent_ns: dict[int, int] = {}
        self._offset_ns = time.time_ns() - time.monotonic_ns()
        self._open: LateBin | None = None
        self._kept: deque[LateBin] = deque(maxlen=_MOST_BINS)
        self._count = 0
        self._lock = threading.Lock()
        threading.Thread(target=self._send_all, name="sentinel", daemon=True).start()

    def since(self, number: int) -> LatenessReport:
        """Return the bins from a number on, and the number of the next."""
        with self._lock:
            self._take()
            self._close()
            known = max(0, number - (self._count - len(self._kept)))
            return LatenessReport(list(itertools.islice(self._kept, known, None)), self._count)

    def _send_all(self) -> None:
        next_ns = time.monotonic_ns()
        for number in itertools.count():
            time.sleep(max(0, next_ns - time.monotonic_ns()) / 1e9)
            next_ns += _INTERVAL_NS
            if time.monotonic_ns() - next_ns > _BEHIND_NS:  # they would all leave at once
                next_ns = time.monotonic_ns()
            with self._lock:
                self._socket.send(_NUMBER.pack(number))
                # It was let in by now. What passes between both makes it look less late.
                self._sent_ns[number] = time.monotonic_ns()
                if number % (_DELAY_NS // _INTERVAL_NS) == 0:
                    self._take()

    def _take(self) -> None:
        """Take in what has arrived."""
        before_ns, real_ns, after_ns = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        if after_ns - before_ns < _READ_WITHIN_NS:
            self._offset_ns = real_ns - after_ns
        while True:
            try:
                data, control, _, _ = self._socket.recvmsg(
                    _NUMBER.size, socket.CMSG_SPACE(_TIME.size), socket.MSG_DONTWAIT
                )
            except BlockingIOError:
                return
            (number,) = _NUMBER.unpack(data)
            seconds, nanoseconds = _TIME.unpack(control[0][2])
            arrived_ns = seconds * 10**9 + nanoseconds - self._offset_ns
            late_ns = arrived_ns - self._sent_ns.pop(number) - _DELAY_NS
            if number >= _FIRST:
                self._record(max(0, late_ns), arrived_ns)

    def _record(self, late_ns: int, now_ns: int) -> None:
        start_ns = now_ns - now_ns % BIN_NS
        if self._open is None or self._open.start_ns != start_ns:
            self._close()
            self._open = LateBin(start_ns, None, 0, 0, 0)
        _, _, n, most_ns, sum_ns = self._open
        self._open = LateBin(start_ns, None, n + 1, max(most_ns, late_ns), sum_ns + late_ns)

    def _close(self) -> None:
        if self._open is not None and self._open.max_ns >= _LEAST_NS:
            self._kept.append(self._open)
            self._count += 1
        self._open = None
