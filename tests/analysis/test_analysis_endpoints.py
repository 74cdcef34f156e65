"""Endpoints that correspond share a row, named after those that were measured."""

from __future__ import annotations

from typing import Any

import pytest
from synthetic_bundles import BOB_ENDPOINTS, ENDPOINTS

from wanlat.analysis.endpoints import endpoint_order, row_names, row_of


@pytest.mark.parametrize(
    ("s3", "bob"), [("GetObject", "Get"), ("PutObject", "Put"), ("RemoveObject", "Delete")]
)
def test_what_corresponds_shares_a_row(s3: str, bob: str) -> None:
    assert row_of(s3) == row_of(bob) == (s3, bob)
    assert row_names([bob, s3]) == {s3: f"{s3} ·\n{bob}", bob: f"{s3} ·\n{bob}"}


@pytest.mark.parametrize("alone", ["ListBuckets", "HeadObject", "Exist", "Ping", "kv.Store/Get"])
def test_others_stand_alone(alone: str) -> None:
    assert row_of(alone) == (alone,)


def test_a_row_is_named_after_what_is_there() -> None:
    names = row_names(["Put", "GetObject", "Exist"])
    assert names == {"Put": "Put", "GetObject": "GetObject", "Exist": "Exist"}


def test_a_long_service_has_its_method_below() -> None:
    names = row_names(["kv.Store/Get", "some.package.v1.KeyValueStore/Read"])
    assert names["kv.Store/Get"] == "kv.Store/Get"
    assert names["some.package.v1.KeyValueStore/Read"] == "some.package.v1.KeyValueStore/\nRead"


@pytest.mark.parametrize(
    ("present", "study", "order"),
    [
        (
            [*BOB_ENDPOINTS, *ENDPOINTS],
            None,
            "ListBuckets ListObjects GetObject Get PutObject Put RemoveObject Delete Exist Ping",
        ),
        (
            [*BOB_ENDPOINTS, *ENDPOINTS],
            {"endpoints": [*ENDPOINTS, *BOB_ENDPOINTS]},
            "ListBuckets ListObjects GetObject Get PutObject Put RemoveObject Delete Exist Ping",
        ),
        (BOB_ENDPOINTS, None, "Get Put Delete Exist Ping"),
        (BOB_ENDPOINTS, {"endpoints": list(BOB_ENDPOINTS)}, "Put Get Exist Delete Ping"),
        (["GetObject", "Get", "Ping"], {"endpoints": ["Ping", "Get"]}, "Ping GetObject Get"),
        (
            ["kv.Store/Read", "Ping", "kv.Store/Erase", "kv.Store/Write"],
            {"endpoints": [{"method": "kv.Store/Write", "request": {"key": "{key}"}}]},
            "kv.Store/Write Ping kv.Store/Erase kv.Store/Read",
        ),
    ],
    ids=["page", "both of the study", "bob", "study of bob", "study first", "methods"],
)
def test_rows_are_in_order_and_whole(present: list[str], study: Any, order: str) -> None:
    assert endpoint_order(reversed(present), study) == order.split()
