"""Every kind of report is printed in a terminal and on a page, and its figures are multiplied."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from answers import opened
from drill_bundles import write_drill
from rich.console import Console

from tests.bundles import (
    BOB,
    MINIO,
    WAN_BYTES,
    write_advice,
    write_bundle,
    write_envelope,
    write_load,
    write_placements,
    write_reclaim,
    write_resources,
    write_sweep,
)
from wanlat.analysis.section import markdown
from wanlat.analysis.summary import print_summary, summarize
from wanlat.bundle.read import read_json

pytestmark = pytest.mark.usefixtures("few_resamples")
SUMMARIES = sorted((Path(__file__).parents[2] / "docs").rglob("summary.json"))
MIXED = {"name": "mixed-load", "object_size": "512kB", "load": {"workers": 16, "duration": "20s"}}
RECLAIM = {"study": {"reclaim": {"objects": 9}}}
ROUNDED = 2e-8
"""Figures of a summary are rounded to nine digits."""
PUBLISHED = 2e-5
"""Those of docs/results to six."""


def loads(path: Path) -> None:
    """Deployments under load side by side."""

    def point(directory: Path, series: tuple[str, str], at: Mapping[str, Any]) -> None:
        own = {"nodes": at["nodes"], "systems": [series[0]]}
        write_load(directory, series=series, duration_s=20.0, study=own)

    write_sweep(path, {"nodes": [1, 4]}, systems=(MINIO,), study=MIXED, write_point=point)


def resources(path: Path) -> None:
    """What nodes used in a study."""
    write_bundle(path, systems=(BOB, MINIO), endpoints=tuple(WAN_BYTES), n=20)
    write_resources(path, systems={"bob": 25.0, "minio": 100.0}, requests=120)


def reclaim(path: Path) -> None:
    """What became of the space of removed objects."""
    write_bundle(path, systems=(BOB, MINIO), n=20, manifest=RECLAIM)
    write_reclaim(path, {"bob": ([110] * 9, [0] * 9), "minio": ([60] * 9, [0] * 9)})


EXAMPLES: dict[str, Callable[[Path], None]] = {
    "latencies": lambda path: write_bundle(path, n=20),
    "sizes": lambda path: write_sweep(path, {"object_size": ["1KiB", "100MiB"]}),
    "growth": lambda path: write_sweep(path, {"nodes": [1, 2, 4]}, systems=(MINIO,)),
    "load": lambda path: write_load(path / "made", duration_s=20.0),
    "loads": loads,
    "resources": resources,
    "reclaim": reclaim,
    "envelope": write_envelope,
    "placements": write_placements,
    "advice": write_advice,
    "drill": lambda path: write_drill(path / "made", phases_s=(4.0, 6.0, 5.0)),
}
"""One maker of a bundle for each kind of report; whoever adds a kind adds it here."""


def entries_in(value: Any) -> Iterator[dict[str, Any]]:
    """Every mapping in a document."""
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value:
        if isinstance(inner, dict | list):
            yield from entries_in(inner)


def multiply(entry: dict[str, Any], rounded: float = ROUNDED) -> bool:
    """Multiply an entry of single requests, or of a load, and compare; False of any other."""
    per_s = entry.get("requests_per_s", entry.get("operations_per_s"))
    mean_ms, bytes_per_s = entry.get("mean_ms"), entry.get("bytes_per_s")
    if per_s is None or mean_ms is None or bytes_per_s is None:
        return False
    in_flight = entry.get("in_flight", 1.0)
    # A mean is rounded to the nanosecond.
    assert mean_ms / 1e3 * per_s == pytest.approx(in_flight, rel=rounded + 5e-7 / mean_ms)
    if size := entry.get("object_bytes"):  # of several sizes there is none
        assert size * per_s == pytest.approx(bytes_per_s, rel=rounded)
    return True


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_kind_of_report_is_printed_and_its_figures_agree(tmp_path: Path, name: str) -> None:
    EXAMPLES[name](tmp_path)
    path = next(iter(sorted(tmp_path.glob("made"))), tmp_path)
    summary = summarize(opened(path))
    document = summary.to_json()
    print_summary(summary, Console(file=io.StringIO(), width=1000), verbose=True)
    grids = [grid for _, grid in summary.grids()]
    assert grids
    for grid in grids:
        assert markdown(grid).count("\n") >= len(grid.rows)
    rated = sum(multiply(entry) for entry in entries_in(document))
    assert (rated > 0) == (name in ("sizes", "load", "loads")), rated
    json.dumps(document, allow_nan=False)
    if name == "latencies":
        assert set(summary.blocks) <= {"endpoints", "in_rtts"}


def test_the_figures_of_every_published_summary_agree() -> None:
    entries = (entry for path in SUMMARIES for entry in entries_in(read_json(path)))
    assert sum(multiply(entry, PUBLISHED) for entry in entries) > 100
