"""Records packets that the kernel moves (netem): one process of ours looks on at every router.

A packet is seen twice in the namespace of the router that sends it into a link: when it comes in
from a node, which is where it enters, and when the queueing discipline hands it to the cable,
which is where it departs. Used inside the sandbox only.
"""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterable, Mapping
from typing import Any

from wanlat.emulator import addressing
from wanlat.emulator.capture import CaptureStatus, Request, status_of, wan_directions
from wanlat.emulator.links import Direction
from wanlat.emulator.network import Network
from wanlat.topologies.errors import MachineError
from wanlat.topologies.resolve import Impairment

_QUEUE_BYTES = 1514 * 1000  # what netem's queue holds beyond rate x delay where nobody said
_SLACK_NS = 2_000_000_000


def longest_ns(impairments: Iterable[Impairment]) -> int:
    """Return for how long a packet may be on any of the links: what stays longer is lost."""

    def longest(each: Impairment) -> int:
        queued_ns = 0
        if each.rate_bps is not None:
            queued_ns = (each.queue_bytes or _QUEUE_BYTES) * 8_000_000_000 // each.rate_bps
        return each.range_ns[1] + queued_ns

    return _SLACK_NS + max((longest(each) for each in impairments), default=0)


class Watcher:
    """A running record of a netem lab. Raises MachineError where it cannot be started."""

    def __init__(
        self, network: Network, asked: dict[Direction, Impairment], request: Request
    ) -> None:
        self._directions = wan_directions(network.links)
        self._asked = {direction: asked[direction] for direction in self._directions}
        self._last = CaptureStatus()
        sockets = []
        try:
            routers = []
            for site in network.plan.sites:
                namespace = addressing.router_namespace(site.name)
                with network.namespaces.entered(namespace):
                    # Unbound, it sees nothing until the program has set its filter.
                    sockets.append(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
                routers.append(
                    {
                        "fd": sockets[-1].fileno(),
                        "subnet": site.subnet,
                        "links": self._uplinks(network, site.name),
                    }
                )
            # No session of its own, as for wire: see wanlat.emulator.backends.wire.
            self._process = subprocess.Popen(
                [str(request.program), "watch"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=[each.fileno() for each in sockets],
            )
            self._ask(
                {
                    "op": "watch",
                    "capture": request.settings(self._directions),
                    "routers": routers,
                    "longest_ns": longest_ns(self._asked.values()),
                }
            )
        finally:
            for each in sockets:
                each.close()

    def change(self, changes: Mapping[Direction, Impairment]) -> None:
        """Note that packets may now be on their way for longer. Never fails: it only records."""
        mine = {each: changes[each] for each in changes if each in self._asked}
        before = longest_ns(self._asked.values())
        self._asked |= mine
        # What is on its way keeps the delay it has, so the patience never shrinks.
        after = max(before, longest_ns(self._asked.values()))
        if after != before:
            self._try({"op": "longest", "longest_ns": after})

    def status(self) -> CaptureStatus:
        """Return how the record stands."""
        return self._try({"op": "capture_status"})

    def stop(self) -> CaptureStatus:
        """Complete the file and end."""
        return self._try({"op": "capture_stop"})

    def _uplinks(self, network: Network, site: str) -> list[dict[str, Any]]:
        place = {direction: number for number, direction in enumerate(self._directions)}
        subnets = {each.name: each.subnet for each in network.plan.sites}
        links = []
        for link in network.links:
            if link.kind != "wan":
                continue
            for direction, end in zip(link.directions, network.ends(link), strict=True):
                if direction.source == site:
                    links.append(
                        {
                            "interface_index": end.index,
                            "interface": place[direction],
                            "subnet": subnets[direction.target],
                        }
                    )
        return links

    def _try(self, request: dict[str, Any]) -> CaptureStatus:
        try:
            self._ask(request)
        except MachineError as error:
            self._last = CaptureStatus(
                self._last.packets, self._last.bytes, self._last.missing, ended=str(error)
            )
        return self._last

    def _ask(self, request: dict[str, Any]) -> None:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        try:
            stdin.write(json.dumps(request).encode() + b"\n")
            stdin.flush()
            line = stdout.readline()
        except OSError as error:
            raise MachineError(f"the recorder is gone: {error}") from error
        if not line:
            raise MachineError("the recorder ended without an answer; its last words are above")
        answer = json.loads(line)
        if not answer.get("ok"):
            raise MachineError(f"Packets cannot be recorded: {answer.get('error')}")
        self._last = status_of(answer, self._directions)
