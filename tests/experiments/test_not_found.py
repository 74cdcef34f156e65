"""A read that does not find what was acknowledged is told of, whichever API says so."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from wanlat.experiments.not_found import NotFoundTracker, is_missing
from wanlat.probes.plan import Request
from wanlat.probes.records import Sample

_OF_SAMPLE: dict[str, Any] = dict.fromkeys(field.name for field in fields(Sample))
FOUND = Sample(**_OF_SAMPLE | {"endpoint": "Get", "outcome": "ok", "status": 200, "grpc_status": 0})
LOST = replace(FOUND, outcome="fail", grpc_status=5)


@pytest.mark.parametrize(
    ("sample", "missing"),
    [
        (FOUND, False),
        (LOST, True),
        (replace(LOST, endpoint="Exist", grpc_status=0), True),
        (replace(LOST, grpc_status=0), False),  # it came back, but was another object
        (replace(LOST, endpoint="Put"), False),
        (replace(LOST, outcome="unknown", grpc_status=14), False),
        (replace(LOST, outcome="fail", status=None, grpc_status=None), False),
        (replace(LOST, endpoint="GetObject", status=404, grpc_status=None), True),
        (replace(LOST, endpoint="HeadObject", status=404, grpc_status=None), True),
        (replace(LOST, endpoint="GetObject", status=503, grpc_status=None), False),
    ],
)
def test_what_counts_as_not_found(sample: Sample, missing: bool) -> None:
    assert is_missing(sample) is missing


def test_the_remark_says_how_many_and_which() -> None:
    missing = NotFoundTracker()
    assert missing.remarks() == []
    for number, endpoint in enumerate(["Get", "Get", "Exist", "Exist", "Get"]):
        request = Request(number, "measure", endpoint, key=f"{number:016x}")
        sample = replace(LOST, endpoint=endpoint, grpc_status=0 if endpoint == "Exist" else 5)
        assert missing.take(request, sample)
    assert not missing.take(Request(9, "measure", "Get", key="00" * 8), FOUND)
    (remark,) = missing.remarks()
    assert remark.startswith("2 of Exist and 3 of Get did not find objects")
    assert "0000000000000000, 0000000000000001, 0000000000000002 and 2 more" in remark
