"""Drives ``oneshot load``, the generator of load: many workers, each with one request in flight.

``Generator`` is one running job (``mix``, ``fill`` or ``remove``); ``probes.prefilled`` has the
objects that it writes and reads; ``bundle.load_records`` reads its records. Its lines are in
probes/oneshot/README.md.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from wanlat.emulator.binaries import binary
from wanlat.emulator.closing import Closing
from wanlat.emulator.syscalls import wait_readable
from wanlat.probes.dialogue import Dialogue
from wanlat.probes.errors import ProbeFailed
from wanlat.probes.header import Header
from wanlat.probes.objects import ObjectApi
from wanlat.probes.process import Spawn
from wanlat.systems.engine.protocols import Operation

Job = Literal["mix", "fill", "remove"]
Ranges = Sequence[tuple[int, int]]
"""Half-open ranges of turns."""

_SILENCE_S = 30.0
"""It reports every second; so long for a machine that is busy with something else."""
_GRACE_S = 10.0


@dataclass(frozen=True)
class LoadJob:
    """What the generator is to do: its job line. ``records`` is made anew."""

    job: Job
    records: Path
    api: ObjectApi
    buckets: Sequence[str]
    objects: int
    """In each bucket, from ``first`` on: filled, removed, or (mix) there to be read."""
    object_bytes: int
    seed: int
    workers: int = 16
    first: int = 0
    done: Ranges = ()
    """fill and remove: turns that are not done again ."""
    duration_ms: int | None = None
    """mix only."""
    ramp_ms: int = 0
    rate: float | None = None
    mix: Mapping[Operation, float] | None = None
    payload: Literal["unsigned", "signed"] = "unsigned"
    """S3: does the signature cover the body?"""
    give_up_ms: int = 60_000
    """How long the store may refuse everything (fill, remove: one object) until the job ends."""

    def line(self) -> bytes:
        """Return the line that ``oneshot load`` reads."""
        job: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        blanks = job.pop("api").blanks
        job |= {
            "operations": {
                does: {"name": blank.called, "request": json.loads(blank.line())}
                for does, blank in blanks.items()
            },
            "records": str(self.records.absolute()),
            "buckets": list(self.buckets),
            "done": [list(turns) for turns in self.done],
            "mix": dict(self.mix or {}),
        }
        return json.dumps(job, separators=(",", ":")).encode() + b"\n"


@dataclass(frozen=True)
class Progress:
    """How far a job is; one a second."""

    t_ns: int
    done: int
    """Requests that ended, however they did."""
    ok: int
    failed: int
    """Of ``done``, those that are not ok."""
    per_s: float
    """Requests that ended in the second before."""
    bytes: int
    """Of objects, moved either way."""


@dataclass(frozen=True)
class End:
    """The generator's last words."""

    end: Literal["complete", "stopped", "gave up"]
    """``stopped``: before its time, on request. ``gave up``: for ``reason``."""
    reason: str | None
    began_ns: int
    ended_ns: int
    """Of the job: the last answer that was waited for is there."""
    done: int
    ok: int
    failed: int
    not_sent: int
    """By this machine; not among ``failed``."""
    not_sent_error: str | None
    """Of the first of them."""
    bytes_read: int
    bytes_written: int
    left_out: int
    """rate: requests that were due and for which no worker was free before the end."""
    unanswered: int
    """Workers with a request still on its way when the generator ended."""
    threads: int
    cores: int
    """That the process may use."""
    user_ns: int
    system_ns: int
    cpu_ns: int
    """Of the whole process, as getrusage has it."""
    thread_cpu_ns: tuple[int, ...]
    """Of each worker that has ended, by its own clock."""
    thread_waited_ns: tuple[int, ...]
    """How long each of them could have run and had to wait for a core; empty: not known."""
    in_flight_ns: int
    """Of all requests together: from their beginnings to their ends."""
    verify_ns: int
    errors: Mapping[str, int]
    """Requests that are not ok, by kind of error."""
    examples: Mapping[str, str]
    """The whole text of the first error of each kind."""


class Generator(Closing):
    """One running job. A context manager: the process is gone when it is left."""

    def __init__(self, spawn: Spawn, header: Header, job: LoadJob) -> None:
        """Start it.

        Raises MachineError when oneshot is not built, ProbeFailed when it ends at once.
        """
        self._last_news_s = time.monotonic()
        self._dialogue = Dialogue(spawn, [str(binary("oneshot")), "load", header.subcommand])
        try:
            self._dialogue.write(header.line() + job.line())
        except BrokenPipeError:
            failure = self._failure()
            self.close()
            raise failure from None
        except BaseException:
            self.close()
            raise

    def fileno(self) -> int:
        """Return the descriptor on which it reports."""
        return self._dialogue.fileno()

    def next(self) -> Progress | End:
        """Wait for its next report. Raises ProbeFailed when it ends without last words, or hangs.

        What was done until then is in the records all the same.
        """
        line = self._dialogue.next_line(self.is_lost)
        if line is None:
            raise self._failure()
        self._last_news_s = time.monotonic()
        return _parsed(line)

    def news(self) -> list[Progress | End]:
        """Return the reports that there are, without waiting. Raises as ``next``."""
        is_lost = self.is_lost()  # first: all reports before its end are there by then
        reports: list[Progress | End] = []
        while self._dialogue.has_line() or wait_readable([self.fileno()], 0):
            reports.append(self.next())
            if isinstance(reports[-1], End):
                break
        if not reports and is_lost:
            raise self._failure()
        return reports

    def is_lost(self) -> bool:
        """Has it ended, or been silent for too long?"""
        if self._dialogue.process.poll() is not None:
            return True
        return time.monotonic() - self._last_news_s > _SILENCE_S

    def stop(self) -> None:
        """Stop it: no request begins any more, ``next`` returns its End soon after."""
        self._dialogue.end_input()

    def close(self) -> None:
        """End the process, whatever it is doing, and let go of it. May be called again."""
        self._dialogue.close()

    def _failure(self) -> ProbeFailed:
        silent_s = time.monotonic() - self._last_news_s
        end, words = self._dialogue.how_it_ended(silent_s, 1.0)
        return ProbeFailed(f"The generator of load, oneshot, {end}. It said: {words}")


def run_job(
    spawn: Spawn,
    header: Header,
    job: LoadJob,
    on_progress: Callable[[Progress], object] = lambda _: None,
) -> End:
    """Carry out a job to its end. Whatever ``on_progress`` raises ends it and is passed on."""
    with Generator(spawn, header, job) as generator:
        while not isinstance(report := generator.next(), End):
            on_progress(report)
        return report


def _parsed(line: bytes) -> Progress | End:
    try:
        report = json.loads(line)
        if "end" not in report:
            return Progress(**{field.name: report[field.name] for field in fields(Progress)})
        lists = {name: tuple(report[name]) for name in ("thread_cpu_ns", "thread_waited_ns")}
        return End(**{field.name: report[field.name] for field in fields(End)} | lists)
    except (ValueError, TypeError, KeyError) as error:
        raise ProbeFailed(
            f"oneshot load wrote a line that it should not ({error!r}): {line[:200]!r}. "
            "It may be of another version than this checkout: build it again with `make build`."
        ) from error
