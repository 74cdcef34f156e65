"""The probe costs next to nothing: it is compared with a bare socket loop in the same run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent.parent


def test_oneshot_takes_at_most_one_and_a_half_times_a_bare_loop() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.probe", "--rounds", "9", "--json"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    report = json.loads(done.stdout)
    assert (report["verdict"], done.returncode) == ("pass", 0), done.stderr
    ratio = {row["client"]: row["ratio"] for row in report["clients"]}
    assert ratio["oneshot, plan from a file"] <= 1.5
    assert ratio["oneshot, driven by a study"] <= 1.5
    assert ratio["boto3"] > ratio["minio-py"] > 5
