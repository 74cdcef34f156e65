"""The index of many bundles, and that the stored one is what the command makes of them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from wanlat.analysis.report.index import write_index
from wanlat.bundle.errors import BundleError

RESULTS = Path(__file__).parents[2] / "docs" / "results"
FIVE_SITES = RESULTS / "round-trips" / "five-sites"


def test_the_stored_index_is_what_the_command_makes(tmp_path: Path) -> None:
    results = tmp_path / "results"
    results.symlink_to(RESULTS)
    stored = RESULTS / "index" / "README.md"
    shutil.copytree(RESULTS / "index", tmp_path / "index")
    page, chart = write_index([RESULTS], RESULTS / "index")
    made = page.read_text("utf-8")
    assert chart.read_bytes()[:4] == b"\x89PNG"
    for name in ("README.md", "round-trips.png"):
        shutil.copy(tmp_path / "index" / name, RESULTS / "index" / name)
    assert made == stored.read_text("utf-8")
