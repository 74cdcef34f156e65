"""What a manifest says of a load: what was offered, what was achieved, what the client took."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from wanlat.bundle import tables
from wanlat.bundle.load_records import RecordsFile, records_table
from wanlat.bundle.write import write_table
from wanlat.probes.load import End, LoadJob

_OF_END = (
    *("end", "reason", "began_ns", "done", "ok", "failed", "left_out", "unanswered"),
    *("bytes_read", "bytes_written"),
)
"""What of the generator's last words is written down as it is."""


def load_result(job: LoadJob, end: End | None) -> tuple[dict[str, Any], list[str]]:
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
        **{name: getattr(end, name) for name in _OF_END},
        # What was answered after the duration was begun within it.
        "ended_ns": min(end.ended_ns, end.began_ns + (job.duration_ms or 0) * 10**6),
        "errors": dict(end.errors),
        "examples": dict(end.examples),
        "client": client.to_dict(),
        "bottleneck": why,
    }
    return {**offered, **achieved}, warnings


_MOST_WAITED = 0.2
"""Of the workers' time in which they waited for a core."""
_MOST_MISSED = 0.02
"""Of the requests that were due at a rate, and were not sent."""


@dataclass(frozen=True)
class Client:
    """What the generator took, as shares of the time that the load lasted.

    ``cores``: that it may use; in a lab the store's processes are on the same ones. ``cpu_share``
    is of all of them; those of the busiest thread, and of verifying bodies, of one core. Of a
    worker's time, on average: ``waited_share``, it could have run and there was no core (None: not
    known); ``computed_share``, it ran; ``between_share``, it had begun, and no request was in
    flight.
    """

    cores: int
    cpu_s: float
    cpu_share: float
    threads: int
    busiest_thread_share: float
    verify_share: float
    waited_share: float | None
    computed_share: float
    between_share: float

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

    ``has_rate``: requests were due at instants, so that workers may have been idle on purpose; as
    they are after a failure. A worker that computes all along does not wait for the store.
    """
    on_purpose = has_rate or end.failed > 0
    runnable = client.computed_share + (client.waited_share or 0)
    cores = f"{client.cores} {'core' if client.cores == 1 else 'cores'}"
    found: list[tuple[float, float, str]] = [
        (client.cpu_share, 0.8, f"the generator used {{}} of its {cores}"),
        (
            client.busiest_thread_share,
            0.8,
            "a worker of the generator was computing {} of the time",
        ),
        (
            runnable,
            0.5,
            "the generator's workers were computing, or waiting for a core, {} of the time, and "
            "not for the store",
        ),
        (
            0.0 if on_purpose else client.between_share,
            0.2,
            "the generator's workers had no request in flight in {} of the time",
        ),
    ]
    return next((text.format(_percent(share)) for share, most, text in found if share > most), None)


def warnings_of(client: Client, end: End, *, rate: float | None, why: str | None) -> list[str]:
    """Say what a reader of the figures must know of the client."""
    found = []
    if why is not None:
        found.append(
            f"the client was the bottleneck: {why}. The store could have done more than it "
            "did: use more cores, or read the rate as a lower bound."
        )
    elif client.waited_share is not None and client.waited_share > _MOST_WAITED:
        found.append(
            f"the generator's workers waited for a core {_percent(client.waited_share)} of the "
            "time: store and client share this machine's cores, and latencies under load have that "
            "in them."
        )
    due = end.done + end.left_out
    if rate is not None and due and end.left_out / due > _MOST_MISSED:
        found.append(
            f"{end.left_out:,} of {due:,} requests that were due at {rate:g} a second were not "
            "sent before the end: no worker was free. Lower `rate`, or raise `workers`."
        )
    return found


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def raw_path(bundle: Path, system: str) -> Path:
    """Return where the generator of a system's load writes its records."""
    return bundle / f"load-{system}.raw"


def add_rows(bundle: Path, system: str, version: str) -> None:
    """Put a system's records into the table, in one step; then their own file is gone.

    On a full disk all stays as it is.
    """
    raw, table = raw_path(bundle, system), bundle / "load.parquet"

    def parts() -> Iterator[pa.Table]:
        if table.exists():  # of the systems before
            with pq.ParquetFile(table) as before:
                for batch in before.iter_batches():
                    yield pa.Table.from_batches([batch])
        constant = {"system": system, "version": version}
        yield from (records_table(piece, constant) for piece in RecordsFile(raw).pieces())

    if write_table(bundle, "load", tables.LOAD, parts()):
        raw.unlink()
