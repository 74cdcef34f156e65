"""Time, requests per second and throughput say the same, or nobody gets to see them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rates import entries_in, multiply

from wanlat.analysis.criterion import printed_rows
from wanlat.analysis.load.published import OBJECT_BYTES, published_loads
from wanlat.analysis.units import Rate, UnitsError, check_product, rate_of, rate_under_load

SUMMARIES = sorted((Path(__file__).parents[2] / "docs").rglob("summary.json"))


def test_a_single_request_has_one_rate_and_one_throughput() -> None:
    rate = rate_of(0.002, 51_200)
    assert rate.requests_per_s == pytest.approx(500)
    assert rate.bytes_per_s == pytest.approx(25_600_000)
    assert rate.in_flight == 1


def test_under_load_more_than_one_is_in_flight() -> None:
    rate = rate_under_load(0.04312, 512_000, 258.69)
    assert rate.in_flight == pytest.approx(11.155, abs=0.001)


@pytest.mark.parametrize(
    ("figures", "hint"),
    [
        ((2.0, 1024, 500.0, 512_000.0), "factor of 1000"),  # milliseconds taken for seconds
        ((0.002, 1024, 500.0, 500_000.0), "binary and decimal"),
        ((0.002, 1024, 499.0, 510_976.0), "must be the same"),
    ],
)
def test_figures_that_contradict_each_other_make_no_rate(
    figures: tuple[float, int, float, float], hint: str
) -> None:
    with pytest.raises(UnitsError, match=hint):
        Rate(*figures)


def test_the_figures_of_every_published_summary_agree() -> None:
    rated = sum(
        multiply(entry)
        for path in SUMMARIES
        for entry in entries_in(json.loads(path.read_text(encoding="utf-8")))
    )
    assert rated > 100


@pytest.mark.parametrize(
    "planted", [{"mean_ms": 2000.0}, {"bytes_per_s": 500_000.0}, {"in_flight": 2.0}]
)
def test_a_planted_mistake_in_a_summary_is_found(planted: dict[str, float]) -> None:
    entry = {"object_bytes": 1024, "mean_ms": 2.0, "requests_per_s": 500.0, "bytes_per_s": 512000.0}
    assert multiply(entry)
    with pytest.raises(UnitsError):
        multiply(entry | planted)


def test_the_published_load_agrees_to_its_printed_digits() -> None:
    for load in published_loads():
        check_product("size", OBJECT_BYTES, load.per_s, "throughput", load.mb_per_s * 1e6, 1e-4)


def test_the_published_comparison_is_in_microseconds_whatever_its_heading() -> None:
    right = wrong = 0
    for row in printed_rows():
        if row.document != "README":
            continue
        rate, time = row.requests_per_s, float(row.digits[0])
        with pytest.raises(UnitsError):
            check_product("time", time * 1e-9, rate, "in flight", 1.0, 0.01)  # as it is headed
        try:
            check_product("time", time * 1e-6, rate, "in flight", 1.0, 0.01)
            throughput = row.mib_per_s * 2**20
            check_product("size", row.object_bytes, rate, "throughput", throughput, 0.01)
            right += 1
        except UnitsError:
            wrong += 1
    # Times of other rows, and rows where 1000 KiB are a MiB: published_mistakes.py.
    assert right > 4 * wrong > 0, (right, wrong)
