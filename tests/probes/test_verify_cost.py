"""Verifying every body costs next to nothing, against the fastest transfer in the same run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.verify import results

CHECKOUT = Path(__file__).resolve().parents[2]
_QUICKLY = ("--json", "--rounds=1", "--sizes=100MiB", "--compared-only")
VERIFY = CHECKOUT / "benchmarks" / "verify"


def test_comparing_a_hundred_mebibytes_takes_less_than_a_tenth_of_their_transfer() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.verify", *_QUICKLY],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    document = json.loads(done.stdout)
    assert (document["verdict"], done.returncode) == ("pass", 0), done.stderr
    shares = {row["api"]: row["share"] for row in document["rows"] if row["share"] is not None}
    assert set(shares) == {"S3", "gRPC"}
    assert all(0 < share < 0.1 for share in shares.values()), shares


def test_what_is_published_is_what_was_measured() -> None:
    report = json.loads((VERIFY / "results.json").read_text("utf-8"))
    assert results.text(report) in (VERIFY / "README.md").read_text("utf-8")
    assert report["verdict"] == "pass"
    assert {row["object_bytes"] for row in report["rows"]} >= {1024, 51200, 2**20, 100 * 2**20}
