"""The null server that oneshot is tested against."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from wanlat.emulator.binaries import binary
from wanlat.emulator.closing import Closing
from wanlat.probes.protocols.s3 import S3Header


class NullServer(Closing):
    """A running null server; ``header`` is a plan's header for it."""

    def __init__(self, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [binary("null-server"), "--journal", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        self._output = self._process.stdout
        host, _, port = json.loads(self._output.readline())["listening"].partition(":")
        # Read all along: a server that cannot write its journal does not answer either.
        self._lines: list[bytes] = []
        self._reader = threading.Thread(target=lambda: self._lines.extend(self._output))
        self._reader.start()
        self.header = S3Header(host, int(port), "garage", "ACCESS", "SECRET", deadline_ms=10_000)

    def journal(self) -> list[dict[str, Any]]:
        """Stop it; return the requests that had arrived, in order."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._reader.join()
        return [json.loads(line) for line in self._lines]

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        self._output.close()
        if self._process.stdin is not None:
            self._process.stdin.close()


@pytest.fixture
def null_server() -> Iterator[Callable[..., NullServer]]:
    """Start null servers with these arguments; they are gone after the test."""
    with ExitStack() as stack:
        yield lambda *arguments: stack.enter_context(NullServer(*arguments))
