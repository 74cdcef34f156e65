"""Our half: an independent client as a process on a node, asked request by request."""

from __future__ import annotations

import contextlib
import json
import os
import select
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from probes.errors import ProbeFailed
from probes.plan import Request
from probes.process import Process, Spawn
from topologies.errors import WanlatError

_START_S = 60.0
_PATIENCE_S = 60.0
_POLL_S = 0.2
_GRACE_S = 10.0


@dataclass(frozen=True)
class Timed:
    """One request as a client's user saw it, on CLOCK_MONOTONIC."""

    seq: int
    start_ns: int
    end_ns: int
    error: str | None
    """Why it failed; None when it went well."""

    @property
    def ms(self) -> float:
        """Return how long the user waited."""
        return (self.end_ns - self.start_ns) / 1e6


class Client:
    """A running client. A context manager: the process is gone when it is left.

    ``at`` is its first line. Raises ProbeFailed when it does not become ready.
    """

    def __init__(self, spawn: Spawn, argv: Sequence[str], name: str, at: Mapping[str, Any]) -> None:
        self.name = name
        self._read = bytearray()
        self._process: Process | None = None
        self._open: set[int] = set()
        try:
            theirs_in, self._stdin = self._own(*os.pipe())
            self._stdout, theirs_out = self._own(*os.pipe())
            (self._stderr,) = self._own(os.memfd_create("client-stderr"))
            self._process = spawn(list(argv), theirs_in, theirs_out, self._stderr)
            self._disown(theirs_in)
            self._disown(theirs_out)
            self._write(json.dumps(dict(at)))
            ready = self._receive(_START_S)
            self.version = str(ready["version"])
            self.configured = str(ready["configured"])
        except KeyError as error:
            self.close()
            raise ProbeFailed(
                f"The client {name} did not say its {error} when it started."
            ) from None
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def ask(self, request: Request) -> Timed:
        """Have the client send a request, and wait for its answer. Raises ProbeFailed."""
        self._write(request.line().decode())
        said = self._receive(_PATIENCE_S)
        try:
            timed = Timed(
                int(said["seq"]),
                int(said["start_ns"]),
                int(said["end_ns"]),
                None if said["ok"] else str(said["error"]),
            )
        except (KeyError, ValueError) as error:
            raise ProbeFailed(f"The client {self.name} answered {said}: {error!r}.") from None
        if timed.seq != request.seq:
            raise ProbeFailed(
                f"The client {self.name} answered request {timed.seq} when {request.seq} was due."
            )
        return timed

    def close(self) -> None:
        """End the process and let go of it. May be called again."""
        process, self._process = self._process, None
        try:
            if process is not None and process.poll() is None:
                with contextlib.suppress(WanlatError, TimeoutError):  # the lab may have gone first
                    process.kill()
                    process.wait(_GRACE_S)
        finally:
            for fd in tuple(self._open):
                self._disown(fd)

    def _own(self, *fds: int) -> tuple[int, ...]:
        self._open.update(fds)
        return fds

    def _disown(self, fd: int) -> None:
        if fd in self._open:
            self._open.remove(fd)
            os.close(fd)

    def _write(self, line: str) -> None:
        data = line.rstrip("\n").encode() + b"\n"
        try:
            while data:
                data = data[os.write(self._stdin, data) :]
        except BrokenPipeError:
            raise self._failure("ended") from None

    def _receive(self, patience_s: float) -> dict[str, Any]:
        until = time.monotonic() + patience_s
        while b"\n" not in self._read:
            readable, _, _ = select.select([self._stdout], [], [], _POLL_S)
            if readable:
                piece = os.read(self._stdout, 65536)
                if not piece:
                    raise self._failure("ended")
                self._read += piece
            elif time.monotonic() > until:
                raise self._failure(f"was silent for {patience_s:.0f} s")
        line, _, self._read = self._read.partition(b"\n")
        try:
            said = json.loads(bytes(line))
        except ValueError:
            said = None
        if not isinstance(said, dict):
            raise ProbeFailed(
                f"The client {self.name} wrote a line that is no JSON object: "
                f"{bytes(line)[:200]!r}. Its standard output is for answers alone."
            )
        return said

    def _failure(self, end: str) -> ProbeFailed:
        said = os.pread(self._stderr, 65536, 0).decode(errors="replace").strip().splitlines()
        words = "\n".join(said[-5:]) or "nothing"
        return ProbeFailed(f"The client {self.name} {end}. It said: {words}")
