"""``python -m benchmarks.load``: the error at 100 ms, idle and with busy processes beside it.

Rounds alternate, so that whatever else the machine does hits both alike. Ends with 1 when the 99th
percentile under load is above what is promised.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.comparison import Claim, finish, in_rounds, parser, positive, run, table
from wanlat.emulator.lab import Lab
from wanlat.emulator.prober import Prober
from wanlat.topologies.load import load
from wanlat.topologies.resolve import resolve
from wanlat.topologies.units import Duration
from wanlat.topologies.variants import override

_PROMISED_P99_MS = 3.0
_RTT_MS = 100.0
_INTERVAL_S, _SETTLE_S = 0.01, 0.6
_LOOP = "while True: sum(range(1000))"
COLUMNS = {
    "busy processes": "{busy}",
    "n": "{n}",
    "median error": "{p50_ms:.3f} ms",
    "99th percentile": "{p99_ms:.3f} ms",
    "rounds' 99th percentile": "{least_p99_ms:.2f}–{most_p99_ms:.2f} ms",
    "largest": "{max_ms:.2f} ms",
    "lost": "{lost}",
}


def _compare(options: argparse.Namespace) -> int:
    # Five sites, as a study has, with one store's worth of traffic: each node asks the next.
    plan = resolve(override(load("five-sites"), Duration.parse("100ms"), Duration.parse("0ms")))
    names = [node.name for node in plan.nodes]
    pairs = list(zip(names, [*names[1:], names[0]], strict=True))

    def errors_ms(count: int) -> tuple[Any, int]:
        with _busy(count):
            echoes = prober.measure(pairs, options.samples, _INTERVAL_S, _SETTLE_S)
        rtt_ns = np.concatenate([each.rtt_ns for each in echoes.values()])
        return np.abs(rtt_ns / 1e6 - _RTT_MS), sum(each.lost for each in echoes.values())

    with Lab(plan, backend=options.backend) as lab, Prober(lab, names) as prober:
        turns = {count: partial(errors_ms, count) for count in (0, options.busy)}
        found, backend = in_rounds(options, turns), lab.backend
    rows = []
    for count, rounds in found.items():
        every = np.concatenate([errors for errors, _ in rounds])
        p99s = [float(np.percentile(errors, 99)) for errors, _ in rounds]
        row = {"busy": count, "n": int(every.size), "lost": sum(lost for _, lost in rounds)}
        p50, p99, most = (float(each) for each in np.percentile(every, [50, 99, 100]))
        row |= {"p50_ms": p50, "p99_ms": p99, "max_ms": most}
        rows.append(row | {"least_p99_ms": min(p99s), "most_p99_ms": max(p99s)})
    lost, p99_ms = sum(row["lost"] for row in rows), rows[-1]["p99_ms"]
    claims = [
        Claim(
            f"beside {options.busy} busy processes a 99th percentile of at most "
            f"{_PROMISED_P99_MS:g} ms on {backend}",
            f"{p99_ms:.2f} ms",
            p99_ms <= _PROMISED_P99_MS,
        ),
        Claim("no probe is lost", str(lost), lost == 0),
    ]
    more = {"rows": rows, "tables": table(rows, COLUMNS), "backend": backend}
    return finish(options, Path(__file__).parent, claims=claims, **more)


@contextmanager
def _busy(count: int) -> Iterator[None]:
    """Have so many processes compute meanwhile.

    Each is a session of its own, as programs of different terminals or services are: where the
    kernel groups processes by session (sched_autogroup), that decides what share they get.
    """
    loop = [sys.executable, "-c", _LOOP]
    processes = [subprocess.Popen(loop, start_new_session=True) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


if __name__ == "__main__":
    made = parser("load", __doc__, rounds=5)
    made.add_argument("--backend", choices=("wire", "netem"), default=None)
    made.add_argument("--busy", type=int, default=5, help="busy processes (5)")
    made.add_argument("--samples", type=positive, default=500, help="probes a pair and round (500)")
    run(_compare, made.parse_args())
