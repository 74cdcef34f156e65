"""What benchmarks/verify publishes of the cost of verifying is what it measured."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.verify import results

VERIFY = Path(__file__).resolve().parents[2] / "benchmarks" / "verify"


def test_what_is_published_is_what_was_measured() -> None:
    report = json.loads((VERIFY / "results.json").read_text("utf-8"))
    assert results.text(report) in (VERIFY / "README.md").read_text("utf-8")
    assert report["verdict"] == "pass"
    assert {row["object_bytes"] for row in report["rows"]} >= {1024, 51200, 2**20, 100 * 2**20}
