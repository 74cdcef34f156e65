"""The command line, and small topologies and studies to run it on."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

TOPOLOGY = """
name: small
sites: [SITES]
links: {default: {rtt: RTT}}
"""

_BUSY = "A busy machine does that"
TOLERANT = ("--tolerate", "50ms")
"""What these tests ask is not how late a machine may be that runs other tests beside them."""


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "wanlat.cli", *arguments]


def run(*arguments: str, out: Path, timeout_s: float = 180) -> subprocess.CompletedProcess[str]:
    """Run a study into a bundle; again when the machine was too busy to emulate its network."""
    for _ in range(3):
        done = subprocess.run(
            command("run", *arguments, *TOLERANT, "--out", str(out)),
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        if _BUSY not in done.stderr:
            break
        shutil.rmtree(out)
    return done


def topology(directory: Path, rtt: str = "20ms", sites: int = 3) -> str:
    """Write a topology of sites of one node each."""
    file = directory / "small.yaml"
    names = ", ".join(f"{{name: dc{n}, nodes: [n{n}]}}" for n in range(1, sites + 1))
    file.write_text(TOPOLOGY.replace("RTT", rtt).replace("SITES", names))
    return str(file)


def study(directory: Path, text: str, **of_topology: Any) -> str:
    """Write a study on a topology of its own."""
    topology(directory, **of_topology)
    file = directory / "study.yaml"
    file.write_text("name: test\ntopology: small.yaml\nseed: 7\n" + text)
    return str(file)


def samples_of(bundle: Path) -> pd.DataFrame:
    return pd.read_parquet(bundle / "samples.parquet")


def manifest_of(bundle: Path) -> Any:
    return json.loads((bundle / "manifest.json").read_text())


def medians(bundle: Path) -> dict[str, float]:
    """Median of each endpoint's successful samples, in ms."""
    samples = samples_of(bundle)
    measured = samples[(samples.phase == "measure") & (samples.outcome == "ok")]
    values = measured.groupby("endpoint").total_ns.median() / 1e6
    return {str(name): float(value) for name, value in values.items()}


def measuring(file: str, out: Path, count: int = 20) -> subprocess.Popen[str]:
    """Start a study and return while it runs, with that many samples on disk; again as ``run``."""
    raw = out / "samples.jsonl"
    for _ in range(3):
        started = subprocess.Popen(
            command("run", file, *TOLERANT, "--out", str(out)), stderr=subprocess.PIPE, text=True
        )
        deadline = time.monotonic() + 60
        while started.poll() is None:
            if raw.exists() and raw.read_bytes().count(b"\n") >= count:
                return started
            assert time.monotonic() < deadline, "no samples were taken"
            time.sleep(0.05)
        _, said = started.communicate()
        assert _BUSY in said, said
        shutil.rmtree(out)
    raise AssertionError(said)


def node_of(run: int, name: str) -> int:
    """Return the process of a reference store's node, among those that process ``run`` started."""
    parents, found = {}, []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            stat = (directory / "stat").read_text().rpartition(")")[2].split()
            argv = (directory / "cmdline").read_bytes().split(b"\0")
        except OSError:  # it has ended
            continue
        parents[int(directory.name)] = int(stat[1])
        if argv[1:4] == [b"serve", b"--name", name.encode()]:
            found.append(int(directory.name))
    (ours,) = [pid for pid in found if run in _ancestors(pid, parents)]
    return ours


def _ancestors(pid: int, parents: dict[int, int]) -> Iterator[int]:
    while pid in parents:
        pid = parents[pid]
        yield pid
