"""The command line, and small topologies and studies to run it on."""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from tests import late_network
from tests.command_line import here
from tests.processes import descendants, said
from wanlat.bundle.documents import Document
from wanlat.bundle.read import read_document
from wanlat.experiments.config.study import changed, load
from wanlat.experiments.prepare import prepare
from wanlat.experiments.run import run as run_study
from wanlat.experiments.session import Outcome, silent

command = late_network.command
D = TypeVar("D", bound=Document)

_EARLY_MS = 0.1
"""By so much the clocks of a client and of the network may differ."""

TOPOLOGY = """
name: small
sites: [SITES]
links: {default: {rtt: RTT}}
"""


def run(*arguments: str, out: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a study into a bundle, in this process, on however late a network."""
    with late_network.accepting_late_packets("run"):
        return here("run", *arguments, "--out", str(out), **environment)


def measure(name_or_path: str, out: Path, **changes: Any) -> Outcome:
    """Run a study with changes into a bundle, without a report, on however late a network."""
    prepared = prepare(changed(load(name_or_path), changes), directory=out)
    with late_network.accepting_late_packets("run"):
        return run_study(prepared, silent)


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


def document_of(bundle: Path, model: type[D]) -> D:
    """Return a document that a bundle has."""
    found = read_document(bundle, model)
    assert found is not None
    return found


def manifest_of(bundle: Path) -> Any:
    return json.loads((bundle / "manifest.json").read_text())


def round_trips(
    bundle: Path, rtt_ms: float, by: Sequence[str] = ("endpoint",), **only: str
) -> dict[Any, int]:
    """Return how many whole round trips the quickest successful sample of each group took.

    The quickest of many is what a stall cannot change: no packet is early, and not all samples
    are held up by a round trip. ``by``: columns that make a group; ``only``: values of columns.
    """
    samples = samples_of(bundle)
    measured = samples[(samples.phase == "measure") & (samples.outcome == "ok")]
    for column, value in only.items():
        measured = measured[measured[column] == value]
    quickest_ms = measured.groupby(list(by)).total_ns.min() / 1e6
    named = ((key if len(by) > 1 else key[0], ms) for key, ms in _keyed(quickest_ms))
    return {key: math.floor((ms + _EARLY_MS) / rtt_ms) for key, ms in named}


def _keyed(values: pd.Series[float]) -> Iterator[tuple[tuple[str, ...], float]]:
    for key, value in values.items():
        yield key if isinstance(key, tuple) else (str(key),), float(value)


def node_of(run: int, name: str) -> int:
    """Return the process of a reference store's node, among those that process ``run`` started."""
    serves = [b"serve", b"--name", name.encode()]
    (ours,) = [pid for pid in descendants(run) if said(pid, "cmdline").split(b"\0")[1:4] == serves]
    return ours
