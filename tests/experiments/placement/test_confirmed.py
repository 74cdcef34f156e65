"""What is predicted of the reference store is measured, in a lab."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command_line import here

MATRIX = ",eu,us,ap\neu,,40,90\nus,,,60\nap,,,\n"
MOST = 0.1
"""Of a prediction, that a measurement may be off."""


@pytest.mark.alone
def test_the_reference_store_answers_in_the_time_that_is_predicted(tmp_path: Path) -> None:
    matrix, bundle = tmp_path / "near.csv", tmp_path / "bundle"
    matrix.write_text(MATRIX)
    words = f"place {matrix} --system quorum --clients eu=75%,ap=25% --confirm 1 --replicates 1"
    words += f" --option quorum.protocol=leader --samples 8 --seed 7 -o {bundle} --json"
    done = here(*words.split())
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["placements"]
    # Led by eu, which waits 40 ms for us; by itself it answers reads.
    expected = {
        ("eu", "GetObject"): 0,
        ("eu", "PutObject"): 40,
        ("ap", "GetObject"): 90,
        ("ap", "PutObject"): 130,
    }
    rows = {(row["target"], row["endpoint"]): row for row in found["requests"]}
    assert {key: row["predicted_ms"] for key, row in rows.items()} == expected
    assert found["worst_error"] < MOST
    assert rows["eu", "GetObject"]["measured_ms"] < 40 * MOST + 5
    (mean,) = found["placements"]
    assert mean["predicted_ms"] == 0.75 * 20 + 0.25 * 110
    assert abs(mean["error_ms"]) < MOST * mean["predicted_ms"]
    assert json.loads((bundle / "placements.json").read_text())["compared"] == 1
    assert (bundle / "charts" / "placements.png").exists()
