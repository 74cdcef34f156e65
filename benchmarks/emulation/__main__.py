"""``python -m benchmarks.emulation``: wire beside netem, rattan and toxiproxy, in one run.

    python -m benchmarks.emulation --inside BACKEND TASK OUT      in User-Mode Linux

`wire` runs on this kernel; `netem` needs one that has it, so it runs this file in User-Mode Linux.
``bare`` is a lab without any impairment: what the method itself costs.
"""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from benchmarks.comparison import Claim, finish, in_rounds, parser, positive, run, spread, table
from benchmarks.emulation import peers
from benchmarks.emulation.pingpong import PORT, SERVE, ask_command
from benchmarks.networks import mesh
from wanlat.emulator.binaries import SEARCH_PATH
from wanlat.emulator.lab import BackendName, Lab
from wanlat.topologies.errors import MachineError, RunFailed, WanlatError

_HERE = Path(__file__).parent
_DOCS = _HERE.parents[1] / "docs" / "results" / "instrument"
_ENVIRONMENT = {"PYTHONPATH": str(SEARCH_PATH)}
_RTTS_MS, _THROUGHPUT_RTT_MS, _THROUGHPUT_S = (100.0, 1.0), 1.0, 3
_LEAST_GBIT_PER_S = 12.0
OURS, BARE = "wire", ("bare", "bare in UML")
_NAMES = (OURS, "netem", "rattan", "toxiproxy", *BARE)
_SPEED = "{gbit_per_s[median]:.2f} Gbit/s ({gbit_per_s[min]:.2f}–{gbit_per_s[max]:.2f})"
COLUMNS = {"emulator": "{name}", "version": "{version}"}
for _place, _rtt_ms in enumerate(_RTTS_MS):
    COLUMNS[f"{_rtt_ms:g} ms: median error"] = f"{{errors_ms[{_place}][p50]:.3f}} ms"
    COLUMNS[f"{_rtt_ms:g} ms: p99"] = f"{{errors_ms[{_place}][p99]:.3f}} ms"
    COLUMNS[f"{_rtt_ms:g} ms: largest"] = f"{{errors_ms[{_place}][largest]:.3f}} ms"
COLUMNS["throughput at 1 ms"] = _SPEED


class Found(NamedTuple):
    """What one turn found: at each RTT the measured ones, ns; and Gbit/s over a link of 1 ms."""

    rtt_ns: Sequence[Sequence[int]]
    gbit_per_s: float


class Emulator(Protocol):
    """What takes part; ``version`` is for the table."""

    version: str

    def ping(self, rtt_ms: float, count: int) -> list[int]:
        """Return round-trip times, ns."""

    def gbit_per_s(self, rtt_ms: float, seconds: int) -> float:
        """Return what one TCP stream gets through."""


class OfLab:
    """A backend in a lab of two sites on this kernel; ``backend`` None is the bare path."""

    def __init__(self, backend: BackendName | None) -> None:
        self.version = "this checkout" if backend else f"Linux {platform.release()}"
        self._backend = backend

    def ping(self, rtt_ms: float, count: int) -> list[int]:
        """Measure in a fresh lab."""
        with self._lab(rtt_ms) as lab:
            lab.spawn("n2", SERVE, env=_ENVIRONMENT)
            argv = ask_command(lab.node("n2").address, PORT, count)
            times: list[int] = json.loads(_output(lab, argv))
        return times

    def gbit_per_s(self, rtt_ms: float, seconds: int) -> float:
        """Measure in a fresh lab."""
        port = peers.IPERF_PORT
        with self._lab(rtt_ms) as lab:
            lab.spawn("n2", ["iperf3", "--server", "--port", str(port)])
            listing = ["ss", "--listening", "--tcp", "--numeric", "--no-header"]
            if not any(f":{port} " in lab.run("n2", listing).stdout for _ in range(40)):
                raise RunFailed(f"Nothing came to listen on port {port}.")
            argv = peers.iperf_client(lab.node("n2").address, port, seconds)
            return peers.received(_output(lab, argv))

    def _lab(self, rtt_ms: float) -> Lab:
        plan = mesh("emulation", 2, 2, rtt_ms if self._backend else 0)
        return Lab(plan, backend=self._backend)


def _output(lab: Lab, argv: list[str]) -> str:
    done = lab.run("n1", argv, env=_ENVIRONMENT, timeout_s=300)
    if done.returncode != 0:
        raise RunFailed(f"{argv[0]} failed: {done.stderr[-500:] or done.stdout[-500:]}")
    return str(done.stdout)


def measure(emulator: Emulator, samples: int) -> Found:
    """Take a turn: four times as many round trips at the shorter RTT."""
    counts = (samples, 4 * samples)
    pings = [emulator.ping(*each) for each in zip(_RTTS_MS, counts, strict=True)]
    return Found(pings, emulator.gbit_per_s(_THROUGHPUT_RTT_MS, _THROUGHPUT_S))


def _in_uml(backend: str, samples: int) -> Found:
    """Boot User-Mode Linux on the host's files, take the turn in it, and read what it wrote."""
    from tests.kernel import boot

    # Not in /tmp, of which that kernel may have one of its own.
    with tempfile.TemporaryDirectory(prefix=".emulation-", dir=SEARCH_PATH) as directory:
        out, printed = Path(directory, "found.json"), BytesIO()
        argv = [sys.executable, "-m", "benchmarks.emulation", "--inside", backend]
        code = boot.run([*argv, str(samples), str(out)], output=printed)
        if code != 0 or not out.exists():
            raise RunFailed(
                f"The measurement in User-Mode Linux ended with code {code} and said:\n"
                f"{printed.getvalue()[-2000:].decode(errors='replace')}"
            )
        return Found(*json.loads(out.read_text("utf-8")))


def _inside(backend: str, samples: str, out: str) -> None:
    found = measure(OfLab("netem" if backend == "netem" else None), int(samples))
    Path(out).write_text(json.dumps(found), "utf-8")


def _compare(options: argparse.Namespace) -> int:
    if options.install:
        peers.build()
        return 0
    if shutil.which("iperf3") is None:
        raise MachineError("iperf3 is not installed (Debian, Ubuntu: apt-get install iperf3).")
    samples, absent = options.samples, []
    versions = dict.fromkeys(("netem", BARE[1]), "User-Mode Linux")
    turns: dict[str, Callable[[], Found]] = {}
    makers: dict[str, Callable[[], Emulator]] = {
        OURS: lambda: OfLab("wire"),
        "rattan": lambda: peers.Peer(peers.RATTAN),
        "toxiproxy": lambda: peers.Peer(peers.TOXIPROXY),
        BARE[0]: lambda: OfLab(None),
    }
    for name, make in makers.items():
        try:
            made = make()
        except WanlatError as error:
            why = f"{error} (python -m benchmarks.emulation --install builds it)"
            absent.append(Claim(f"{name} takes part", why, False))
            continue
        versions[name], turns[name] = made.version, partial(measure, made, samples)
    turns |= {
        "netem": partial(_in_uml, "netem", samples),
        BARE[1]: partial(_in_uml, "bare", samples),
    }
    found = in_rounds(options, turns)
    rows = [_row(name, versions[name], found[name]) for name in _NAMES if name in found]
    if options.save:
        draw(rows, _DOCS / "emulators-compared")
    of = {"rows": rows, "tables": table(rows, COLUMNS), "claims": [*_claims(rows), *absent]}
    return finish(options, _HERE, **of)


def _row(name: str, version: str, rounds: Sequence[Found]) -> dict[str, Any]:
    """Return how far all round trips lie from what was asked, ms; a bare path is asked for 0."""
    errors_ms = []
    for place, rtt_ms in enumerate(_RTTS_MS):
        times_ns = np.concatenate([each.rtt_ns[place] for each in rounds])
        errors = np.abs(times_ns / 1e6 - (0 if name in BARE else rtt_ms))
        figures = zip(("p50", "p99", "largest"), np.percentile(errors, [50, 99, 100]), strict=True)
        errors_ms.append({key: round(float(value), 4) for key, value in figures})
    speeds = spread([each.gbit_per_s for each in rounds], 2)
    return {"name": name, "version": version, "errors_ms": errors_ms, "gbit_per_s": speeds}


def _claims(rows: Sequence[Mapping[str, Any]]) -> Iterator[Claim]:
    by_name = {row["name"]: row for row in rows}
    ours = by_name.pop(OURS)
    for place, rtt_ms in enumerate(_RTTS_MS):
        for key in ("p50", "p99"):
            mine = ours["errors_ms"][place][key]
            best, who = min(
                (row["errors_ms"][place][key], name)
                for name, row in by_name.items()
                if name not in BARE
            )
            beside = f"{mine:g} ms, best of the others {best:g} ms ({who})"
            yield Claim(f"smallest {key} of the errors at {rtt_ms:g} ms", beside, mine <= best)
    speed = ours["gbit_per_s"]["median"]
    text = f"at least {_LEAST_GBIT_PER_S:g} Gbit/s over a link of 1 ms"
    yield Claim(text, f"{speed:g}", speed >= _LEAST_GBIT_PER_S)


def draw(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write the comparison as a picture: the errors at each RTT, and the throughput."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter

    names = [row["name"] for row in rows]
    colours = [
        "#0b6e4f" if each == OURS else "#d5dbe3" if each in BARE else "#7a8ba3" for each in names
    ]
    figure, axes = plt.subplots(1, 3, figsize=(12.6, 3.6), layout="constrained", sharey=True)
    for place, (axis, rtt_ms) in enumerate(zip(axes, _RTTS_MS, strict=False)):
        medians, p99s = ([row["errors_ms"][place][key] for row in rows] for key in ("p50", "p99"))
        axis.hlines(names, medians, p99s, color=colours, linewidth=4)
        axis.scatter(medians, names, color=colours, s=80)
        axis.set(xscale="log", xlabel="error, ms (median to p99)", title=f"RTT {rtt_ms:g} ms")
        axis.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
        axis.xaxis.set_major_formatter("{x:g}")
        axis.xaxis.set_minor_formatter(NullFormatter())
    bars = axes[-1].barh(names, [row["gbit_per_s"]["median"] for row in rows], color=colours)
    axes[-1].bar_label(bars, fmt="%.2f", padding=3)
    axes[-1].invert_yaxis()
    axes[-1].margins(x=0.15)
    axes[-1].set(xlabel="Gbit/s, one TCP stream", title="throughput of a link of 1 ms")
    figure.suptitle("How far from the delay that was asked for, and how fast")
    for suffix in (".png", ".svg"):
        figure.savefig(path.with_suffix(suffix), dpi=150)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        _inside(*sys.argv[2:])
    else:
        made = parser("emulation", __doc__, rounds=5)
        made.add_argument("--install", action="store_true", help="build rattan and toxiproxy first")
        text = "at 100 ms, each round; four times that at 1 ms"
        made.add_argument("--samples", type=positive, default=100, help=text)
        run(_compare, made.parse_args())
