"""The servers that the clients ask: they answer at once, always alike, and keep nothing."""

from __future__ import annotations

import json
import subprocess
from types import TracebackType
from typing import Literal, Self

from wanlat.emulator.binaries import binary

OBJECT_BYTES = 1024


class NullServer:
    """A null server on loopback; gone when the context is left."""

    def __init__(self, program: Literal["null-server", "null-grpc"]) -> None:
        """Start it: S3's is null-server, Bob's is null-grpc."""
        self._process = subprocess.Popen(
            [binary(program), "--object-bytes", str(OBJECT_BYTES)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        self.address = str(json.loads(self._process.stdout.readline())["listening"])
        host, _, port = self.address.partition(":")
        self.host, self.port = host, int(port)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()
