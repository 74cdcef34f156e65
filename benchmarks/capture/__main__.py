"""``python -m benchmarks.capture``: labs with and without a packet record, in turns.

Each round builds one lab without a record and one with, in changing order, and measures in both:
round trips of ICMP echoes over a WAN link, TCP throughput (iperf3), and small UDP packets a
second. What counts are the ratios within rounds: what else the machine does hits both alike.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from wanlat.emulator.capture import Capture, CaptureStatus
from wanlat.emulator.lab import BackendName, Lab
from wanlat.emulator.links import wan
from wanlat.emulator.prober import Prober
from wanlat.topologies.errors import MachineError, WanlatError
from wanlat.topologies.load import load
from wanlat.topologies.override import override
from wanlat.topologies.resolve import Plan, resolve
from wanlat.topologies.units import Duration

_HERE = Path(__file__).parent
_ECHOES = 400
_LIMIT_BYTES = 4 << 30


@dataclass(frozen=True)
class Figures:
    """What one lab was measured to do."""

    rtt_p50_ms: float
    rtt_p99_ms: float
    tcp_gbit_s: float
    udp_packets_s: float


@dataclass(frozen=True)
class Recorded:
    """What became of the record of a lab: of all packets, how many are in it."""

    packets: int
    missing: int
    bytes: int


def main() -> int:
    """Return 0, or an error's exit code."""
    options = _options()
    try:
        return _measure(options)
    except WanlatError as error:
        print(f"benchmarks.capture: {error}", file=sys.stderr)
        return error.exit_code


def _measure(options: argparse.Namespace) -> int:
    without: list[Figures] = []
    recorded: list[tuple[Figures, Recorded]] = []
    with tempfile.TemporaryDirectory(dir=options.directory) as name:
        for number in range(options.rounds):
            order: list[Callable[[], None]] = [
                lambda: without.append(_lab(options, None)[0]),
                lambda: recorded.append(_with_record(options, Path(name, "packets.pcapng"))),
            ]
            for each in order if number % 2 == 0 else reversed(order):
                each()
            print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
    report = _report(options, without, recorded)
    print(_table(report), file=sys.stderr if options.json else sys.stdout)
    if options.json:
        print(json.dumps(report, indent=2))
    if options.save:
        (_HERE / "results.json").write_text(json.dumps(report, indent=2) + "\n", "utf-8")
    return 0


def _with_record(options: argparse.Namespace, file: Path) -> tuple[Figures, Recorded]:
    figures, status = _lab(options, Capture(file, _LIMIT_BYTES))
    assert status is not None
    file.unlink()
    return figures, Recorded(status.packets, status.missed, status.bytes)


def _lab(
    options: argparse.Namespace, capture: Capture | None
) -> tuple[Figures, CaptureStatus | None]:
    backend: BackendName = options.backend
    with Lab(_plan(), backend=backend, capture=capture) as lab:
        figures = Figures(*_rtt_ms(lab), _tcp_gbit_s(lab, options.seconds), _udp_rate(lab, options))
    return figures, lab.capture


def _plan() -> Plan:
    """Three datacenters, 1 ms from each other: nowhere does a record cost more than there."""
    return resolve(
        override(load("three-datacenters"), Duration.parse("1ms"), Duration.parse("0ms"))
    )


def _ends(lab: Lab) -> tuple[str, str]:
    first = lab.nodes[0]
    return first.name, next(node.name for node in lab.nodes if node.site != first.site)


def _rtt_ms(lab: Lab) -> tuple[float, float]:
    pair = _ends(lab)
    with Prober(lab, list(pair)) as prober:
        echoes = prober.measure([pair], _ECHOES, 0.005, 0.5)[pair]
    taken = sorted(echoes.rtt_ns)
    return taken[len(taken) // 2] / 1e6, taken[len(taken) * 99 // 100] / 1e6


def _tcp_gbit_s(lab: Lab, seconds: int) -> float:
    ended = _iperf(lab, ["-t", str(seconds)])
    return float(ended["sum_received"]["bits_per_second"]) / 1e9


def _udp_rate(lab: Lab, options: argparse.Namespace) -> float:
    """Datagrams of 64 bytes a second that crossed the link, sent as fast as they could be."""
    source, target = (lab.node(name).site for name in _ends(lab))
    before = lab.counters()[wan(source, target)].packets
    _iperf(lab, ["-u", "-b", "0", "-l", "64", "-t", str(options.seconds)])
    return (lab.counters()[wan(source, target)].packets - before) / options.seconds


def _iperf(lab: Lab, arguments: list[str]) -> dict[str, Any]:
    client, server = _ends(lab)
    serving = lab.spawn(server, ["iperf3", "--server", "--one-off"])
    try:
        target = lab.node(server).address
        asked = ["iperf3", "--json", "--client", target, "--connect-timeout", "2000", *arguments]
        for _ in range(50):
            said: dict[str, Any] = json.loads(lab.run(client, asked).stdout)
            if "error" not in said:
                end: dict[str, Any] = said["end"]
                return end
    finally:
        if serving.poll() is None:
            serving.kill()
    raise MachineError(f"iperf3 measured nothing: {said['error']}")


def _report(
    options: argparse.Namespace,
    without: list[Figures],
    recorded: list[tuple[Figures, Recorded]],
) -> dict[str, Any]:
    names = list(asdict(without[0]))
    pairs = list(zip(without, (figures for figures, _ in recorded), strict=True))
    return {
        "backend": options.backend,
        "rounds": options.rounds,
        "seconds": options.seconds,
        "figures": {
            name: {
                "without": statistics.median(getattr(bare, name) for bare, _ in pairs),
                "with": statistics.median(getattr(taken, name) for _, taken in pairs),
                "ratio": statistics.median(
                    getattr(taken, name) / getattr(bare, name) for bare, taken in pairs
                ),
            }
            for name in names
        },
        "record": {
            "packets": sum(each.packets for _, each in recorded),
            "missing": sum(each.missing for _, each in recorded),
            "bytes": sum(each.bytes for _, each in recorded),
        },
    }


def _table(report: dict[str, Any]) -> str:
    labels = {
        "rtt_p50_ms": "round trip, median, ms",
        "rtt_p99_ms": "round trip, 99th percentile, ms",
        "tcp_gbit_s": "TCP, Gbit/s",
        "udp_packets_s": "UDP of 64 bytes, packets a second",
    }
    lines = ["| | without | with | ratio |", "| --- | --- | --- | --- |"]
    for name, figure in report["figures"].items():
        cells = [f"{figure[key]:,.4g}" for key in ("without", "with", "ratio")]
        lines.append(f"| {labels[name]} | {' | '.join(cells)} |")
    record = report["record"]
    share = record["missing"] / max(1, record["packets"] + record["missing"])
    lines.append(
        f"\n{record['packets']:,} packets recorded, {record['missing']:,} missing ({share:.2%})."
    )
    return "\n".join(lines)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.capture", description=__doc__)
    parser.add_argument("--backend", choices=("wire", "netem"), default="wire")
    parser.add_argument("--rounds", type=int, default=6, help="default: %(default)s")
    parser.add_argument("--seconds", type=int, default=3, help="of each iperf3 (%(default)s)")
    parser.add_argument("--directory", help="where the records are written. Default: temporary")
    parser.add_argument("--json", action="store_true", help="the document on standard output")
    parser.add_argument("--save", action="store_true", help="write results.json")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
