"""Every kind of report is printed in a terminal and on a page, and its figures are multiplied."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from drill_bundles import write_drill
from load_bundles import write_load
from rates import entries_in, multiply
from resources_bundles import WAN_BYTES, write_reclaim, write_resources
from rich.console import Console
from sweep_bundles import write_sweep
from synthetic_bundles import BOB, MINIO, write_bundle

from wanlat.analysis.bundle import read_bundle
from wanlat.analysis.grid import markdown
from wanlat.analysis.summary import print_summary, summarize
from wanlat.analysis.sweep import is_sweep, read_sweep

pytestmark = pytest.mark.usefixtures("few_resamples")
ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SUMMARIES = sorted((ROOT / "docs").rglob("summary.json"))
WIDE = 1000
MIXED = {"name": "mixed-load", "object_size": "512kB", "load": {"workers": 16, "duration": "20s"}}


def sizes(path: Path) -> None:
    """A sweep over object sizes."""
    write_sweep(path, {"object_size": ["1KiB", "50KiB", "100MiB"]}, systems=(BOB, MINIO))


def latencies(path: Path) -> None:
    """An ordinary study."""
    path.mkdir()
    write_bundle(path, n=20)


def load(path: Path) -> None:
    """One system under load."""
    write_load(path, duration_s=20.0)


def loads(path: Path) -> None:
    """Deployments under load side by side."""

    def point(directory: Path, series: tuple[str, str], at: Mapping[str, Any]) -> None:
        own = {"nodes": at["nodes"], "systems": [series[0]]}
        write_load(directory, series=series, duration_s=20.0, study=own)

    write_sweep(path, {"nodes": [1, 4]}, systems=(MINIO,), study=MIXED, write_point=point)


def growth(path: Path) -> None:
    """A sweep over the number of nodes."""
    write_sweep(path, {"nodes": [1, 2, 4]}, systems=(MINIO,))


def resources(path: Path) -> None:
    """What nodes used in a study."""
    path.mkdir()
    write_bundle(path, systems=(BOB, MINIO), endpoints=tuple(WAN_BYTES), n=20)
    write_resources(path, systems={"bob": 25.0, "minio": 100.0}, requests=120)


def reclaim(path: Path) -> None:
    """What became of the space of removed objects."""
    path.mkdir()
    write_bundle(path, systems=(BOB, MINIO), n=20, manifest={"study": {"reclaim": {"objects": 9}}})
    write_reclaim(path, {"bob": ([110] * 9, [0] * 9), "minio": ([60] * 9, [0] * 9)})


def drill(path: Path) -> None:
    """What a fault did."""
    write_drill(path, phases_s=(4.0, 6.0, 5.0))


EXAMPLES: list[Callable[[Path], None]] = [
    *(sizes, latencies, load, loads),
    *(growth, resources, reclaim, drill),
]
"""One maker of a bundle for each kind of report; whoever adds a kind adds it here."""


@pytest.mark.parametrize("make", EXAMPLES, ids=lambda make: make.__name__)
def test_every_kind_of_report_is_printed_and_its_figures_agree(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    path = tmp_path / make.__name__
    make(path)
    summary = summarize(read_sweep(path) if is_sweep(path) else read_bundle(path))
    document = summary.to_json()
    print_summary(summary, Console(file=io.StringIO(), width=WIDE), verbose=True)
    grids = [grid for _, grid in summary.grids()]
    assert grids
    for grid in grids:
        assert markdown(grid).count("\n") >= len(grid.rows)
    rated = sum(multiply(entry) for entry in entries_in(document))
    assert (rated > 0) == (make in (sizes, load, loads)), rated
    json.dumps(document, allow_nan=False)
    if make is latencies:
        assert set(summary.blocks) <= {"endpoints", "in_rtts", "published"}


def test_the_figures_of_every_published_summary_agree() -> None:
    documents = (json.loads(path.read_text(encoding="utf-8")) for path in SUMMARIES)
    assert sum(multiply(entry) for document in documents for entry in entries_in(document)) > 100


@pytest.mark.parametrize(
    "planted", [{"mean_ms": 2000.0}, {"bytes_per_s": 500_000.0}, {"in_flight": 2.0}]
)
def test_a_planted_mistake_in_a_summary_is_found(planted: dict[str, float]) -> None:
    entry = {"object_bytes": 1024, "mean_ms": 2.0, "requests_per_s": 500.0, "bytes_per_s": 512000.0}
    assert multiply(entry)
    with pytest.raises(AssertionError):
        multiply(entry | planted)
