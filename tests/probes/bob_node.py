"""A reference store of one node on loopback that speaks Bob's API."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from tests.loopback import own_address
from wanlat.emulator.binaries import binary
from wanlat.emulator.closing import Closing
from wanlat.probes.protocols.grpc import GrpcHeader


class BobNode(Closing):
    """A running node; ``header`` is a plan's header for it. Gone when the context is left."""

    def __init__(self, directory: Path) -> None:
        address, s3, peer, bob = own_address(0), 9000, 9001, 9003
        self._argv = [str(binary("quorum")), "serve", "--name", "n1", "--data", str(directory)]
        self._argv += ["--s3", f"{address}:{s3}", "--peer-listen", f"{address}:{peer}"]
        self._argv += ["--peer", f"n1={address}:{peer}", "--protocol", "leaderless"]
        self._argv += ["--access-key", "a", "--secret-key", "s"]
        self._argv += ["--bob", f"{address}:{bob}", "--vdisk", "n1"]
        self.header = GrpcHeader(address, bob, deadline_ms=10_000)
        self.start()

    def start(self) -> None:
        """Start it, again if it was killed; what it acknowledged before is on its disk."""
        self._process = subprocess.Popen(self._argv, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"

    def freeze(self) -> None:
        """Let it take requests, but do nothing."""
        os.kill(self._process.pid, signal.SIGSTOP)
        os.waitpid(self._process.pid, os.WUNTRACED)

    def wait_for_request(self) -> None:
        """Return when bytes that it has not read lie in its kernel: the request has arrived."""
        here = int.from_bytes(socket.inet_aton(self.header.host), sys.byteorder)
        local = f"{here:08X}:{self.header.port:04X}"
        for _ in range(12_000):
            lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
            if any(line[1] == local and int(line[4][9:], 16) for line in lines):
                return
            time.sleep(0.005)
        raise AssertionError("no request arrived")

    def kill(self) -> None:
        """End it at once; its connections are reset."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def close(self) -> None:
        self.kill()
