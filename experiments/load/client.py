"""What a load cost its client, and whether the client was what limited it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from wanlat.probes.load import End

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
