"""Our half: an independent client as a process on a node, asked request by request."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wanlat.probes.dialogue import Dialogue
from wanlat.probes.errors import ProbeFailed
from wanlat.probes.plan import Request
from wanlat.probes.process import Closing, Spawn

_START_S = 60.0
_PATIENCE_S = 60.0


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


class Client(Closing):
    """A running client. A context manager: the process is gone when it is left.

    ``at`` is its first line. Raises ProbeFailed when it does not become ready.
    """

    def __init__(self, spawn: Spawn, argv: Sequence[str], name: str, at: Mapping[str, Any]) -> None:
        self.name = name
        self._dialogue = Dialogue(spawn, argv)
        try:
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
        self._dialogue.close()

    def _write(self, line: str) -> None:
        try:
            self._dialogue.write(line.rstrip("\n").encode() + b"\n")
        except BrokenPipeError:
            raise self._failure("ended") from None

    def _receive(self, patience_s: float) -> dict[str, Any]:
        until = time.monotonic() + patience_s
        silent = False

        def is_lost() -> bool:
            nonlocal silent
            silent = time.monotonic() > until
            return silent

        line = self._dialogue.next_line(is_lost)
        if line is None:
            raise self._failure(f"was silent for {patience_s:.0f} s" if silent else "ended")
        try:
            said = json.loads(line)
        except ValueError:
            said = None
        if not isinstance(said, dict):
            raise ProbeFailed(
                f"The client {self.name} wrote a line that is no JSON object: "
                f"{line[:200]!r}. Its standard output is for answers alone."
            )
        return said

    def _failure(self, end: str) -> ProbeFailed:
        words = self._dialogue.last_words()
        return ProbeFailed(f"The client {self.name} {end}. It said: {words}")
