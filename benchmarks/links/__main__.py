"""``python -m benchmarks.links``: 210 delayed links at once, more and more of them under traffic.

A lab of 21 sites, every two of which are joined. On each loaded link TCP streams carry 100 Mbit/s
each way, as segments of up to 64 KiB (what a kernel hands over when it may) or as packets of 1,500
bytes. Says what delays are then, and where it ends.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from benchmarks.comparison import Claim, Row, finish, parser, positive, run, table
from benchmarks.networks import mesh
from wanlat.emulator.backends.realtime import wire_of
from wanlat.emulator.binaries import SEARCH_PATH
from wanlat.emulator.lab import Lab
from wanlat.emulator.prober import Prober
from wanlat.emulator.process import Process
from wanlat.topologies.errors import RunFailed

_HERE = Path(__file__).parent
_SITES, _RTT_MS = 21, 20
_LINKS = _SITES * (_SITES - 1) // 2
_MBIT_PER_S = 100
_PROBED, _PROBE_EVERY_S = 3, 0.01
_START_S, _PATIENCE_S = 6.0, 20.0
_CARRIED, _LATE_MS = 0.95, 2.0
"""Of a rate that counts as carried; and of the round trips' error at p99, as studies tolerate."""
_SHAPES = {"segments of up to 64 KiB": 65535, "packets of 1,500 bytes": 1}
COLUMNS = {
    "traffic": "{shape}",
    "loaded links": "{links}",
    "a stream": "{mbit_per_s:.0f} Mbit/s",
    "in all": "{gbit_per_s:.1f} Gbit/s",
    "wire": "{packets_per_s:,.0f} packets/s",
    "of a CPU": "{wire_cpu:.0%}",
    "a packet": "{packet_us:.2f} µs",
    "machine busy": "{busy:.0%}",
    "error of RTT, median": "{error_ms[0]:.2f} ms",
    "p99": "{error_ms[1]:.2f} ms",
    "marked late": "{late:.0%}",
    "p99 of the others": "{rest_ms:.2f} ms",
    "sent again": "{again:.2%}",
    "dropped": "{dropped:,}",
}


def _compare(options: argparse.Namespace) -> int:
    rows: list[dict[str, Any]] = []
    for shape, segments in _SHAPES.items():
        for links in options.links:
            print(f"{shape}: {links} links under traffic", file=sys.stderr)
            rows.append({"shape": shape, **_measure(links, segments, options)})
    tables = table(rows, COLUMNS)
    return finish(options, _HERE, rows=rows, tables=tables, claims=[*_claims(rows)])


def _claims(rows: Sequence[Row]) -> Iterator[Claim]:
    for shape in _SHAPES:
        mine = [row for row in rows if row["shape"] == shape]
        good = [row for row in mine if _is_carried(row)]
        most = max((row["links"] for row in good), default=0)
        text = f"{shape}: {_MBIT_PER_S} Mbit/s each way, p99 of the error within {_LATE_MS:g} ms"
        yield Claim(text, f"up to {most} loaded links of {_LINKS}", most > 0)
        worst_ms = max((row["rest_ms"] or 0.0 for row in mine), default=0.0)
        text = f"{shape}: at every load, p99 of what is not marked late within {2 * _LATE_MS:g} ms"
        yield Claim(text, f"{worst_ms:.2f} ms", worst_ms <= 2 * _LATE_MS)


def _is_carried(row: Row) -> bool:
    carried = row["mbit_per_s"] >= _CARRIED * _MBIT_PER_S
    return bool(carried and row["error_ms"][1] <= _LATE_MS and not row["dropped"])


@dataclass
class _Usage:
    """What was used up to an instant: processor time of wire and of the machine, s; packets."""

    wire_s: float
    busy_s: float
    at_s: float
    packets: int
    dropped: int

    @classmethod
    def of(cls, lab: Lab) -> _Usage:
        """Look at it now."""
        per_s = os.sysconf("SC_CLK_TCK")
        pid = wire_of(lab.supervisor_pid)
        ran_ns = sum(
            int(Path(thread, "schedstat").read_text().split()[0])
            for thread in Path(f"/proc/{pid}/task").iterdir()
        )
        ticks = [int(each) for each in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
        counters = lab.counters().values()
        return cls(
            ran_ns / 1e9,
            (sum(ticks) - ticks[3] - ticks[4]) / per_s,
            time.monotonic(),
            sum(each.packets for each in counters),
            sum(each.overflows + each.queue_drops for each in counters),
        )


def _measure(links: int, segments: int, options: argparse.Namespace) -> dict[str, Any]:
    plan = mesh("links", _SITES, _SITES, _RTT_MS)
    pairs = [(f"n{a}", f"n{b}") for a in range(1, _SITES + 1) for b in range(1, a)]
    loaded = random.Random(options.seed).sample(pairs, links)
    peers: dict[str, set[str]] = {}
    for a, b in loaded:
        peers.setdefault(a, set()).add(b)
        peers.setdefault(b, set()).add(a)
    with ExitStack() as opened:
        lab = opened.enter_context(Lab(plan, backend="wire"))
        for node in peers:
            limit = ["ip", "link", "set", "dev", "eth0", "gso_max_segs", str(segments)]
            if (done := lab.run(node, limit)).returncode != 0:
                raise RunFailed(f"`{' '.join(limit)}` failed on {node}: {done.stderr.strip()}")
        begin_ns = time.monotonic_ns() + round(_START_S * 1e9)
        job = {"rate": _MBIT_PER_S * 125_000, "begin_ns": begin_ns}
        job["end_ns"] = begin_ns + round(options.seconds * 1e9)
        running: dict[str, tuple[Process, IO[str]]] = {}
        for node, others in peers.items():
            addresses = [lab.node(each).address for each in sorted(others)]
            document = {**job, "address": lab.node(node).address, "peers": addresses}
            out = opened.enter_context(tempfile.TemporaryFile("w+"))
            argv = [sys.executable, "-m", "benchmarks.links.traffic", json.dumps(document)]
            environment = {"PYTHONPATH": f"{SEARCH_PATH}:{_HERE.parents[1]}"}
            process = lab.spawn(node, argv, env=environment, stdout=out, stderr=out)
            running[node] = (process, out)
        probed = loaded[:_PROBED]
        prober = opened.enter_context(
            Prober(lab, sorted({one for pair in probed for one in pair}), _LATE_MS)
        )
        time.sleep(max(0, begin_ns - time.monotonic_ns()) / 1e9)
        before = _Usage.of(lab)
        count = round((options.seconds - 0.5) / _PROBE_EVERY_S)
        echoes = prober.measure(probed, count, _PROBE_EVERY_S, 0.3)
        after = _Usage.of(lab)
        found = [_end(node, *each) for node, each in running.items()]
    lasted_s, packets = after.at_s - before.at_s, after.packets - before.packets
    received = sum(each["received"] for each in found)
    mbit_per_s = received * 8 / 1e6 / options.seconds
    back_ns = np.concatenate([each.arrived_ns for each in echoes.values()])
    sent_ns = np.concatenate([each.sent_ns for each in echoes.values()])
    late = np.concatenate([each.is_late for each in echoes.values()])
    error_ms = (back_ns - sent_ns) / 1e6 - _RTT_MS
    came = back_ns > 0
    rest_ms = error_ms[came & ~late]
    wire_s = after.wire_s - before.wire_s
    dropped = after.dropped - before.dropped
    return {
        "links": links,
        "mbit_per_s": round(mbit_per_s / (2 * links), 1),
        "gbit_per_s": round(mbit_per_s / 1000, 2),
        "packets_per_s": round(packets / lasted_s),
        "wire_cpu": round(wire_s / lasted_s, 3),
        "packet_us": round(wire_s / packets * 1e6, 3),
        "busy": round((after.busy_s - before.busy_s) / lasted_s / (os.cpu_count() or 1), 3),
        "error_ms": [round(float(each), 3) for each in np.percentile(error_ms[came], [50, 99])],
        "late": round(float(late.mean()), 4),
        "rest_ms": round(float(np.percentile(rest_ms, 99)), 3) if rest_ms.size else None,
        "lost_echoes": sum(each.lost for each in echoes.values()),
        "again": sum(each["retransmitted"] for each in found) / max(1, packets),
        "dropped": dropped,
    }


def _end(node: str, process: Process, out: IO[str]) -> dict[str, int]:
    code = process.wait(_PATIENCE_S)
    out.seek(0)
    said = out.read().strip()
    if code != 0:
        raise RunFailed(f"The traffic of {node} failed ({code}): {said[-800:]}")
    found: dict[str, int] = json.loads(said.splitlines()[-1])
    return found


if __name__ == "__main__":
    made = parser("links", __doc__, rounds=1)
    made.add_argument("--seconds", type=float, default=4.0, help="of each load (default: 4)")
    made.add_argument(
        "--links",
        type=lambda text: [positive(each) for each in text.split(",")],
        default="1,2,5,10,20,40,80,210",
        help="how many are loaded (default: %(default)s)",
    )
    run(_compare, made.parse_args())
