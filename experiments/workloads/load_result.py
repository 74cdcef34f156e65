"""What a manifest says of a load: what was offered, what was achieved, what the client took."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from wanlat.bundle import tables
from wanlat.bundle.documents import LoadClient
from wanlat.bundle.load_records import read_records, records_table
from wanlat.bundle.write import BundleWriter, write_table
from wanlat.probes.load import End, LoadJob

_OF_END = (
    *("end", "reason", "began_ns", "done", "ok", "failed", "left_out", "unanswered"),
    *("bytes_read", "bytes_written"),
)
"""What of the generator's last words is written down as it is."""
_MOST_WAITED = 0.2
"""Of the workers' time in which they waited for a core."""
_MOST_MISSED = 0.02
"""Of the requests that were due at a rate, and were not sent."""


def load_result(job: LoadJob, end: End | None) -> tuple[dict[str, Any], list[str]]:
    """Return what is written down of a load, and what a reader must be warned of.

    ``end`` is the generator's last words; None where it had none, being killed: its records have
    what it did all the same.
    """
    result: dict[str, Any] = {
        "workers": job.workers,
        "mix": dict(job.mix or {}),
        "offered": {"workers": job.workers, "rate": job.rate},
        "ramp_ms": job.ramp_ms,
        "duration_ms": job.duration_ms,
        **dict.fromkeys(("achieved_per_s", "client", "bottleneck")),
    }
    if end is None:
        return result, []
    client = _client(end, job)
    why = _bottleneck(client, end, is_paced=job.rate is not None)
    lasted_s = max(end.ended_ns - end.began_ns, 1) / 1e9
    result |= {
        "achieved_per_s": round(end.ok / lasted_s, 3),
        **{name: getattr(end, name) for name in _OF_END},
        # What was answered after the duration was begun within it.
        "ended_ns": min(end.ended_ns, end.began_ns + (job.duration_ms or 0) * 10**6),
        "errors": dict(end.errors),
        "examples": dict(end.examples),
        "client": client.model_dump(),
        "bottleneck": why,
    }
    return result, [*_warnings(client, end, job.rate, why)]


def _client(end: End, job: LoadJob) -> LoadClient:
    """What a job's last words say of the generator's own time."""
    elapsed_ns = max(end.ended_ns - end.began_ns, 1)
    # Worker k of n begins k / n of the ramp after the first.
    late_ns = job.ramp_ms * 1e6 * (job.workers - 1) / job.workers / 2
    working_ns = max(elapsed_ns - late_ns, 1) * job.workers

    def mean_share(each_ns: tuple[int, ...]) -> float | None:
        return round(sum(each_ns) / len(each_ns) / elapsed_ns, 4) if each_ns else None

    return LoadClient(
        cores=end.cores,
        cpu_s=round(end.cpu_ns / 1e9, 4),
        cpu_share=round(end.cpu_ns / elapsed_ns / end.cores, 4),
        threads=end.threads,
        busiest_thread_share=round(max(end.thread_cpu_ns, default=0) / elapsed_ns, 4),
        verify_share=round(end.verify_ns / elapsed_ns, 4),
        waited_share=mean_share(end.thread_waited_ns),
        computed_share=mean_share(end.thread_cpu_ns) or 0.0,
        between_share=round(max(0.0, 1 - end.in_flight_ns / working_ns), 4),
    )


def _bottleneck(client: LoadClient, end: End, *, is_paced: bool) -> str | None:
    """Say why the generator could not have sent more; None when the store was the limit.

    Workers that have a rate, or failures, may be idle on purpose. One that computes all along does
    not wait for the store.
    """
    on_purpose = is_paced or end.failed > 0
    cores = f"{client.cores} {'core' if client.cores == 1 else 'cores'}"
    runnable = client.computed_share + (client.waited_share or 0)
    between = 0.0 if on_purpose else client.between_share
    found = (
        (client.cpu_share, 0.8, f"the generator used {{:.0f}} % of its {cores}"),
        (
            client.busiest_thread_share,
            0.8,
            "a worker of the generator computed {:.0f} % of the time",
        ),
        (
            *(runnable, 0.5),
            "the generator's workers were computing, or waiting for a core, {:.0f} % of the time, "
            "and not for the store",
        ),
        (between, 0.2, "the generator's workers had no request in flight in {:.0f} % of the time"),
    )
    return next((text.format(100 * share) for share, most, text in found if share > most), None)


def _warnings(client: LoadClient, end: End, rate: float | None, why: str | None) -> Iterator[str]:
    """Say what a reader of the figures must know of the client."""
    if why is not None:
        yield (
            f"the client was the bottleneck: {why}. The store could have done more than it "
            "did: use more cores, or read the rate as a lower bound."
        )
    elif client.waited_share is not None and client.waited_share > _MOST_WAITED:
        yield (
            "the generator's workers waited for a core "
            f"{100 * client.waited_share:.0f} % of the time: store and client share this machine's "
            "cores, and latencies under load have that in them."
        )
    due = end.done + end.left_out
    if rate is not None and due and end.left_out / due > _MOST_MISSED:
        yield (
            f"{end.left_out:,} of {due:,} requests that were due at {rate:g} a second were not "
            "sent before the end: no worker was free. Lower `rate`, or raise `workers`."
        )


def raw_path(bundle: Path, system: str) -> Path:
    """Return where the generator of a system's load writes its records."""
    return bundle / f"load-{system}.raw"


def add_rows(writer: BundleWriter, system: str, version: str) -> None:
    """Put a system's records into the table, in one step; then their own file is gone.

    On a full disk all stays as it is.
    """
    bundle = writer.directory
    raw, table = raw_path(bundle, system), bundle / "load.parquet"

    def parts() -> Iterator[pa.Table]:
        if table.exists():  # of the systems before
            with pq.ParquetFile(table) as before:
                for batch in before.iter_batches():
                    yield pa.Table.from_batches([batch])
        rows = records_table(read_records(raw), {"system": system, "version": version})
        yield writer.with_network_error(rows)

    if write_table(bundle, "load", tables.LOAD, parts()):
        raw.unlink()
