"""The probe costs next to nothing: it is compared with bare clients and SDKs in the same run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CHECKOUT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def report() -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.probe", "--rounds", "9", "--json"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    document = json.loads(done.stdout)
    assert (document["verdict"], done.returncode) == ("pass", 0), done.stderr
    return document


def test_over_s3_it_takes_at_most_one_and_a_half_times_a_bare_loop(report: Any) -> None:
    ratio = {row["client"]: row["ratio"] for row in report["clients"]}
    assert ratio["oneshot, plan from a file"] <= 1.5
    assert ratio["oneshot, driven by a study"] <= 1.5
    assert ratio["boto3"] > ratio["minio-py"] > 5


def test_over_grpc_it_takes_at_most_twice_a_bare_tonic_call_and_a_third_of_grpcio(
    report: Any,
) -> None:
    medians = {row["client"]: row["median_us"] for row in report["clients"]}
    oneshot = medians["oneshot grpc, plan from a file"]
    assert oneshot <= 2 * medians["bare tonic"]
    assert oneshot <= medians["python grpcio"] / 3
    assert medians["oneshot grpc, driven by a study"] <= 2 * medians["bare tonic, pausing"]
