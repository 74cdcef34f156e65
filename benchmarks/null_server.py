"""The servers that the benchmarks ask: they answer at once, always alike, and keep nothing."""

from __future__ import annotations

import json
import subprocess
from typing import Literal

from wanlat.emulator.binaries import binary
from wanlat.probes.process import Closing


class NullServer(Closing):
    """A null server on loopback, with one object; gone when the context is left."""

    def __init__(
        self,
        program: Literal["null-server", "null-grpc"],
        object_bytes: int = 1024,
        object_seed: int = 0,
    ) -> None:
        """Start it: S3's is null-server, Bob's is null-grpc."""
        of_object = ["--object-bytes", str(object_bytes), "--object-seed", str(object_seed)]
        self._process = subprocess.Popen(
            [binary(program), *of_object], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._process.stdout is not None
        self.address = str(json.loads(self._process.stdout.readline())["listening"])
        host, _, port = self.address.partition(":")
        self.host, self.port = host, int(port)

    def stop(self) -> dict[str, int]:
        """Have it end; return its last words, where it has any: ``requests``, ``cpu_ns``."""
        said, _ = self._process.communicate()
        words: dict[str, int] = json.loads(said or "{}")
        return words

    def close(self) -> None:
        """End it, where it has not ended."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()
