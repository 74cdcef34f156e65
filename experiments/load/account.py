"""What a manifest says of a load: what was offered, what was achieved, what the client took."""

from __future__ import annotations

from typing import Any

from wanlat.experiments.load.client import bottleneck, client_of, warnings_of
from wanlat.probes.load import End, LoadJob


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
