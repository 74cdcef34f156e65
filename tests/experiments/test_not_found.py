"""Reads that do not find what was acknowledged: counted, and said, and nothing else is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from wanlat.experiments.requests import NotFoundTracker
from wanlat.probes.plan import Request

OK = {"grpc_status": 0}


@pytest.mark.parametrize(
    ("endpoint", "key", "came", "counted"),
    [
        ("GetObject", "k", {"outcome": "fail", "status": 404}, True),
        ("HeadObject", "k", {"outcome": "fail", "status": 404}, True),
        ("Get", "0" * 16, {"outcome": "fail", "grpc_status": 5}, True),
        ("Get", "0" * 16, {"outcome": "fail", "grpc_status": 13, "error": "KeyNotFound"}, True),
        ("Exist", "0" * 16, {"outcome": "fail", "error": "wrong answer: [false]"} | OK, True),
        ("Exist", "0" * 16, {"outcome": "fail", "error": "wrong answer: [true]"} | OK, False),
        ("GetObject", "k", {"outcome": "fail", "status": 403}, False),
        ("GetObject", "k", {"outcome": "unknown", "status": 404}, False),
        ("GetObject", "k", {"outcome": "ok", "status": 200}, False),
        ("PutObject", "k", {"outcome": "fail", "status": 404}, False),
        ("ListBuckets", None, {"outcome": "fail", "status": 404}, False),
        ("Exist", "0" * 16, {"outcome": "ok", "grpc_status": 0}, False),
        # etcd's Range: it went well, and there is nothing in it.
        ("Get", "0" * 16, {"outcome": "fail", "error": "not found: no `kvs.value`"} | OK, True),
        ("Get", "0" * 16, {"outcome": "fail", "error": "checksum mismatch"} | OK, False),
        (
            "Get",
            "0" * 16,
            {"outcome": "fail", "grpc_status": 14, "error": "grpc: not found"},
            False,
        ),
        ("Get", "0" * 16, {"outcome": "fail", "error": "not found: no such key"}, True),
        ("Get", "0" * 16, {"outcome": "fail"}, False),
        ("Get", "0" * 16, {"outcome": "unknown", "error": "not found: no such key"}, False),
    ],
)
def test_a_read_that_does_not_find_its_object_is_a_remark(
    endpoint: str, key: str | None, came: dict[str, Any], counted: bool
) -> None:
    request = Request(1, "measure", endpoint, key=key)
    unknown = {"status": None, "grpc_status": None, "error": None}
    sample: Any = SimpleNamespace(**unknown | came)
    tracker = NotFoundTracker()
    assert tracker.take(request, sample) is counted
    assert [f"1 of {endpoint}" in each for each in tracker.remarks()] == [True] * counted
