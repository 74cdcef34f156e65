"""Drives ``oneshot``, the program that sends the requests and keeps the time.

``prepare`` and ``run_requests`` carry out a plan; ``Oneshot`` is one process, driven request by
request.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from wanlat.emulator.binaries import binary
from wanlat.emulator.closing import Closing
from wanlat.emulator.syscalls import wait_readable
from wanlat.probes.dialogue import Dialogue
from wanlat.probes.errors import ProbeFailed
from wanlat.probes.header import Header
from wanlat.probes.plan import Request
from wanlat.probes.process import Spawn
from wanlat.probes.records import Sample

__all__ = ["Oneshot", "ProbeFailed", "prepare", "run_requests"]

OnSample = Callable[[Request, Sample], object]

PREPARING_PROCESSES = 8
PREPARING_BYTES = 64 * 1024 * 1024
"""In flight at once while preparing: large objects go one after another, because a link that
carries one of them within the deadline need not carry eight, and a store may hold each in memory.
"""
_ATTEMPTS = 3
_PAUSE_S = 0.5
_GRACE_S = 10.0
"""On top of a request's own deadline, until a silent oneshot counts as hung."""
_POLL_S = 0.2
_BUCKET_IS_THERE = ("BucketAlreadyOwnedByYou", "BucketAlreadyExists")


def run_requests(
    spawn: Spawn,
    header: Header,
    requests: Iterable[Request],
    on_sample: OnSample,
) -> None:
    """Send the requests one after another; ``on_sample`` gets each with its sample as it comes.

    ``requests`` may be endless or be made as it goes. A request is handed over when the sample
    before it has been dealt with, so that nothing here runs, and competes for a core, while a
    request is in flight. Whatever ``on_sample`` raises ends the plan at once and is passed on.
    Raises ProbeFailed, and MachineError when oneshot is not built.
    """
    with Oneshot(spawn, header) as oneshot:
        for request in requests:
            oneshot.send(request)
            on_sample(request, oneshot.receive())
        oneshot.finish()


def prepare(
    spawn: Spawn,
    header: Header,
    requests: Sequence[Request],
    on_sample: OnSample,
    *,
    processes: int = PREPARING_PROCESSES,
) -> None:
    """Send requests that are not measured: buckets first, then the rest in parallel.

    What is not ok is sent again, three times in all: a store that has just come up may need
    it, and writing the same object again changes nothing. A bucket that is there already is
    fine. The larger the objects, the fewer at once. Raises ProbeFailed when something cannot be
    prepared, and as ``run_requests``.
    """
    kept = replace(header, connection="keep-alive")
    buckets = [request for request in requests if request.endpoint == "CreateBucket"]
    others = [request for request in requests if request.endpoint != "CreateBucket"]
    for batch in (buckets, others):
        waiting = deque((request, 1) for request in batch)
        with contextlib.ExitStack() as stack:
            workers = [
                stack.enter_context(Oneshot(spawn, kept))
                for _ in range(min(processes, at_once(batch), len(batch)))
            ]
            _share(workers, waiting, on_sample)
            for worker in workers:
                worker.finish()


def at_once(requests: Sequence[Request]) -> int:
    """Return how many of the requests may be in flight at once, one at least."""
    largest = max((request.object_bytes or 0 for request in requests), default=0)
    return max(1, PREPARING_BYTES // max(largest, 1))


def _share(
    workers: Sequence[Oneshot], waiting: deque[tuple[Request, int]], on_sample: OnSample
) -> None:
    """Give each worker a request whenever it has none, until all are done."""
    busy: dict[Oneshot, tuple[Request, int]] = {}
    while waiting or busy:
        for worker in workers:
            if worker not in busy and waiting:
                busy[worker] = waiting.popleft()
                worker.send(busy[worker][0])
        for worker in _with_news(list(busy)):
            request, attempt = busy.pop(worker)
            sample = worker.receive()
            if _is_prepared(sample):
                on_sample(request, sample)
            elif attempt < _ATTEMPTS:
                time.sleep(_PAUSE_S * attempt)
                waiting.appendleft((request, attempt + 1))
            else:
                raise ProbeFailed(
                    f"The store could not be prepared: {_describe(request)} failed "
                    f"{attempt} times, at last with {sample.error} ({sample.outcome}). "
                    "Its log may say why."
                )


def _with_news(busy: list[Oneshot]) -> list[Oneshot]:
    readable = wait_readable([worker.fileno() for worker in busy], _POLL_S)
    # `receive` of a dead or hung process raises; of a working one it would wait, so ask first.
    return [worker for worker in busy if worker.fileno() in readable or worker.is_lost()]


def _is_prepared(sample: Sample) -> bool:
    if sample.outcome == "ok":
        return True
    error = sample.error or ""
    return sample.endpoint == "CreateBucket" and error.endswith(_BUCKET_IS_THERE)


def _describe(request: Request) -> str:
    return f"{request.endpoint} {'/'.join(filter(None, (request.bucket, request.key)))}"


class Oneshot(Closing):
    """One running ``oneshot``, of S3 or of gRPC as the header is.

    A context manager: the process is gone when it is left.
    """

    def __init__(self, spawn: Spawn, header: Header) -> None:
        """Start it."""
        self._silence_s = header.deadline_ms / 1000 + header.starting_s + _GRACE_S
        self._expected: deque[int] = deque()
        self._last_news = time.monotonic()
        self._dialogue = Dialogue(spawn, [str(binary("oneshot")), header.subcommand])
        try:
            self._write(header.line())
        except BaseException:
            self.close()
            raise

    @property
    def pending(self) -> int:
        """How many requests were sent and have no sample yet."""
        return len(self._expected)

    def fileno(self) -> int:
        """Return the descriptor on which a sample arrives."""
        return self._dialogue.fileno()

    def send(self, request: Request) -> None:
        """Hand over a request; it is sent when those before it are done. Raises ProbeFailed."""
        if not self._expected:
            self._last_news = time.monotonic()
        if request.deadline_ms is not None:
            self._silence_s = max(self._silence_s, request.deadline_ms / 1000 + _GRACE_S)
        self._expected.append(request.seq)
        self._write(request.line())

    def receive(self) -> Sample:
        """Wait for the next sample. Raises ProbeFailed when the process ends or hangs."""
        line = self._dialogue.next_line(self.is_lost)
        if line is None:
            raise self._failure()
        self._last_news = time.monotonic()
        sample = Sample.parse(line)
        expected = self._expected.popleft()
        if sample.seq != expected:
            raise ProbeFailed(f"oneshot answered request {sample.seq} when {expected} was due.")
        return sample

    def is_lost(self) -> bool:
        """Has the process ended, or been silent for longer than a request can take?"""
        if self._dialogue.process.poll() is not None:
            return True
        return time.monotonic() - self._last_news > self._silence_s

    def is_unread(self) -> bool:
        """Has the process ended without having read the request that was handed over last?"""
        return self._dialogue.is_unread()

    def finish(self) -> None:
        """End the plan. Raises ProbeFailed unless the process ends well."""
        self._dialogue.end_input()
        try:
            code = self._dialogue.process.wait(_GRACE_S)
        except TimeoutError:
            raise self._failure() from None
        if code != 0:
            raise self._failure()

    def close(self) -> None:
        """End the process, whatever it is doing, and let go of it. May be called again."""
        self._dialogue.close()

    def _write(self, line: bytes) -> None:
        try:
            self._dialogue.write(line)
        except BrokenPipeError:
            raise self._failure() from None

    def _failure(self) -> ProbeFailed:
        """Describe how the process ended, or that it hangs, with its own last words."""
        silent_s = time.monotonic() - self._last_news
        patience_s = 1.0 if silent_s < self._silence_s else 0.0
        end, words = self._dialogue.how_it_ended(silent_s, patience_s)
        unanswered = f", {self.pending} requests unanswered" if self.pending else ""
        return ProbeFailed(f"The probe oneshot {end}{unanswered}. It said: {words}")
