"""What a manifest says of a load: what was offered, what was achieved, what the client took."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wanlat.bundle import tables
from wanlat.bundle.write import is_full
from wanlat.probes.load import End, LoadJob
from wanlat.probes.load_records import RecordsFile, records_table


def account_of(job: LoadJob, end: End | None) -> tuple[dict[str, Any], list[str]]:
    """Return what is written down of a load, and what a reader must be warned of.

    ``end`` is the generator's last words; None where it had none, being killed: its records have
    what it did all the same.
    """
    offered: dict[str, Any] = {
        "workers": job.workers,
        "mix": dict(job.mix or {}),
        "offered": {"workers": job.workers, "rate": job.rate},
        "ramp_ms": job.ramp_ms,
        "duration_ms": job.duration_ms,
    }
    if end is None:
        return {**offered, "achieved_per_s": None, "client": None, "bottleneck": None}, []
    client = client_of(end, job.workers, job.ramp_ms * 10**6)
    why = bottleneck(client, end, has_rate=job.rate is not None)
    warnings = warnings_of(client, end, rate=job.rate, why=why)
    lasted_s = max(end.ended_ns - end.began_ns, 1) / 1e9
    achieved: dict[str, Any] = {
        "achieved_per_s": round(end.ok / lasted_s, 3),
        "end": end.end,
        "reason": end.reason,
        "began_ns": end.began_ns,
        # What was answered after the duration was begun within it.
        "ended_ns": min(end.ended_ns, end.began_ns + (job.duration_ms or 0) * 10**6),
        "done": end.done,
        "ok": end.ok,
        "failed": end.failed,
        "left_out": end.left_out,
        "unanswered": end.unanswered,
        "bytes_read": end.bytes_read,
        "bytes_written": end.bytes_written,
        "errors": dict(end.errors),
        "examples": dict(end.examples),
        "client": client.to_dict(),
        "bottleneck": why,
    }
    return {**offered, **achieved}, warnings


_BUSY_CORES = 0.8
"""Of the cores that the generator may use: beyond it, it would not have sent much more."""
_BUSY_THREAD = 0.8
"""Of one worker's time. A worker that computes all along does not wait for the store."""
_BETWEEN = 0.2
"""Of the workers' time in which they had no request in flight, though nothing had failed."""
_WAITED = 0.2
"""Of the workers' time in which they waited for a core."""
_RUNNABLE = 0.5
"""Of the workers' time in which they computed, or waited for a core to."""
_MISSED = 0.02
"""Of the requests that were due at a rate, and were not sent."""


@dataclass(frozen=True)
class Client:
    """What the generator took, as shares of the time that the load lasted."""

    cores: int
    """That it may use. The store's processes are on the same ones, in a lab."""
    cpu_s: float
    cpu_share: float
    """Of all these cores."""
    threads: int
    busiest_thread_share: float
    """Of one core."""
    verify_share: float
    """Comparing bodies: of one core."""
    waited_share: float | None
    """Of a worker's time, on average: it could have run, and there was no core. None: not known."""
    computed_share: float
    """Of a worker's time, on average: it ran on a core."""
    between_share: float
    """Of a worker's time since it began, on average: no request was in flight."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, of four digits."""
        return {
            name: round(value, 4) if isinstance(value, float) else value
            for name, value in asdict(self).items()
        }


def client_of(end: End, workers: int, ramp_ns: int) -> Client:
    """Return what a job's last words say of the generator's own time.

    ``ramp_ns``: in which the workers began, evenly spread.
    """
    elapsed_ns = max(end.ended_ns - end.began_ns, 1)
    # Worker k of n begins k / n of the ramp after the first.
    working_ns = max(elapsed_ns - ramp_ns * (workers - 1) / workers / 2, 1) * workers
    waited, computed = end.thread_waited_ns, end.thread_cpu_ns
    return Client(
        cores=end.cores,
        cpu_s=end.cpu_ns / 1e9,
        cpu_share=end.cpu_ns / elapsed_ns / end.cores,
        threads=end.threads,
        busiest_thread_share=max(end.thread_cpu_ns, default=0) / elapsed_ns,
        verify_share=end.verify_ns / elapsed_ns,
        waited_share=sum(waited) / len(waited) / elapsed_ns if waited else None,
        computed_share=sum(computed) / len(computed) / elapsed_ns if computed else 0.0,
        between_share=max(0.0, 1 - end.in_flight_ns / working_ns),
    )


def bottleneck(client: Client, end: End, *, has_rate: bool) -> str | None:
    """Say why the generator could not have sent more; None when the store was the limit.

    ``has_rate``: requests were due at instants, so that workers may have been idle on purpose.
    """
    if client.cpu_share > _BUSY_CORES:
        return (
            f"the generator used {_percent(client.cpu_share)} of its {client.cores} "
            f"{'core' if client.cores == 1 else 'cores'}"
        )
    if client.busiest_thread_share > _BUSY_THREAD:
        return (
            f"a worker of the generator was computing {_percent(client.busiest_thread_share)} of "
            "the time"
        )
    runnable = client.computed_share + (client.waited_share or 0)
    if runnable > _RUNNABLE:
        return (
            f"the generator's workers were computing, or waiting for a core, {_percent(runnable)} "
            "of the time, and not for the store"
        )
    if not has_rate and end.failed == 0 and client.between_share > _BETWEEN:
        return (
            f"the generator's workers had no request in flight in {_percent(client.between_share)} "
            "of the time"
        )
    return None


def warnings_of(client: Client, end: End, *, rate: float | None, why: str | None) -> list[str]:
    """Say what a reader of the figures must know of the client."""
    found = []
    if why is not None:
        found.append(
            f"the client was the bottleneck: {why}. The store could have been asked more than it "
            "was: use more cores, or read the rate as a lower bound."
        )
    elif client.waited_share is not None and client.waited_share > _WAITED:
        found.append(
            f"the generator's workers waited for a core {_percent(client.waited_share)} of the "
            "time: store and client share this machine's cores, and latencies under load have that "
            "in them."
        )
    due = end.done + end.left_out
    if rate is not None and due and end.left_out / due > _MISSED:
        found.append(
            f"{end.left_out:,} of {due:,} requests that were due at {rate:g} a second were not "
            "sent before the end: no worker was free. Lower `rate`, or raise `workers`."
        )
    return found


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


TABLE = "load.parquet"


def raw_path(bundle: Path, system: str) -> Path:
    """Return where the generator of a system's load writes its records."""
    return bundle / f"load-{system}.raw"


def add_rows(bundle: Path, system: str, version: str) -> None:
    """Put a system's records into the table, in one step; then their own file is gone.

    Rows that an earlier attempt left of the same system go. On a full disk all stays as it is.
    """
    raw = raw_path(bundle, system)
    constant = {"system": system, "version": version}

    def rows() -> Iterator[pa.Table]:
        yield from _rows_of(bundle, lambda name: name != system)
        records = RecordsFile(raw)
        yield from (records_table(piece, constant) for piece in records.pieces())

    if _write(bundle, rows()):
        raw.unlink()


def _rows_of(bundle: Path, wanted: Callable[[str], bool]) -> Iterator[pa.Table]:
    if not (bundle / TABLE).exists():
        return
    with pq.ParquetFile(bundle / TABLE) as table:
        for batch in table.iter_batches():
            rows = pa.Table.from_batches([batch])
            known = [name for name in pc.unique(rows["system"]).to_pylist() if wanted(name)]
            yield rows.filter(pc.is_in(rows["system"], pa.array(known, pa.string())))


def _write(bundle: Path, rows: Iterator[pa.Table]) -> bool:
    """Write the table anew; False where there is no room for it."""
    partial = bundle / f".{TABLE}.partial"
    try:
        with pq.ParquetWriter(partial, tables.LOAD) as writer:
            for each in rows:
                if each.num_rows:
                    writer.write_table(each)
    except BaseException as error:
        partial.unlink(missing_ok=True)
        if not (isinstance(error, OSError) and is_full(error)):
            raise
        return False
    os.replace(partial, bundle / TABLE)
    return True
