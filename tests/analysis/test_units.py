"""Time, requests per second and throughput say the same, or nobody gets to see them."""

from __future__ import annotations

import pytest

from wanlat.analysis.criterion import printed_rows
from wanlat.analysis.grid import Grid
from wanlat.analysis.units import (
    Rate,
    RateTable,
    UnitsError,
    check_row,
    printed,
    rate_of,
    rate_under_load,
    unit_of,
)

SINGLE = RateTable("single", time="mean ms", throughput="MiB/s")
LOADED = RateTable("loaded", size="object", per_s="ops/s", throughput="MB/s", in_flight="in flight")


def row(time: str, per_s: str, throughput: str, size: str = "50KiB") -> dict[str, str]:
    return {"size": size, "mean ms": time, "requests/s": per_s, "MiB/s": throughput}


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


def test_a_printed_row_may_be_off_by_its_rounding_and_by_no_more() -> None:
    assert check_row(SINGLE, row("2.004", "499.0", "24.37"))
    assert check_row(SINGLE, row("2.0", "499", "24.4"))
    with pytest.raises(UnitsError):
        check_row(SINGLE, row("2.004", "498.0", "24.32"))
    with pytest.raises(UnitsError, match="throughput"):
        check_row(SINGLE, row("2.004", "499.0", "25.55"))  # MB under a header of MiB


def test_intervals_behind_a_figure_and_units_behind_a_number_are_no_trouble() -> None:
    assert check_row(SINGLE, row("1,427 [1408–1445]", "0.7008", "70.08", "100MiB"))
    assert check_row(SINGLE, row("2.004 ms", "499.0", "24.95 MB/s", "50 kB"))


def test_dashes_are_no_figures() -> None:
    assert not check_row(SINGLE, row("–", "–", "–"))
    assert check_row(SINGLE, row("2.004", "499.0", "–"))  # but what there is is multiplied
    with pytest.raises(UnitsError):
        check_row(SINGLE, row("2.004", "99.0", "–"))


def test_what_is_in_flight_is_a_column_under_load() -> None:
    cells = {"object": "512kB", "mean ms": "43.12", "ops/s": "258.69", "MB/s": "132.45"}
    assert check_row(LOADED, {**cells, "in flight": "11.15"})
    with pytest.raises(UnitsError, match="in flight"):
        check_row(LOADED, {**cells, "in flight": "1.00"})


def test_units_are_read_from_headers() -> None:
    assert unit_of("mean ms [95 %]") == "ms"
    assert unit_of("throughput, MiB/s") == "MiB"
    assert unit_of("time, µs") == "µs"
    assert unit_of("requests/s") is None is unit_of("operations/s [95 %]")
    with pytest.raises(UnitsError, match="no unit"):
        printed("4", unit_of("mean"), {"ms": 1e-3})


def test_a_grid_with_a_mistake_cannot_be_made() -> None:
    headers = ("size", "mean ms", "requests/s", "MiB/s")
    Grid("t", headers, (("1KiB", "2.000", "500.0", "0.4883"),), rates=SINGLE)
    with pytest.raises(UnitsError, match=r"1KiB \| 2\.000 \| 500\.0 \| 0\.5000"):
        Grid("t", headers, (("1KiB", "2.000", "500.0", "0.5000"),), rates=SINGLE)


def test_the_published_table_fails_as_it_is_headed_and_passes_in_microseconds() -> None:
    readme = [r for r in printed_rows() if r.document == "README"]
    headed, mended = (RateTable(unit, time=f"time, {unit}") for unit in ("ns", "µs"))
    right = wrong = 0
    for each in readme:
        time, per_s, throughput = each.digits
        figures = {"size": f"{each.object_bytes}B", "requests/s": per_s, "MiB/s": throughput}
        with pytest.raises(UnitsError):
            check_row(headed, {**figures, headed.time: time} | _lenient(each.digits))
        try:
            check_row(mended, {**figures, mended.time: time} | _lenient(each.digits))
            right += 1
        except UnitsError:
            wrong += 1
    # One time is that of another row; in five rows 1000 KiB are a MiB; two are rounded twice.
    assert (right, wrong) == (40, 8)


def _lenient(digits: tuple[str, str, str]) -> dict[str, str]:
    """Their figures with a digit less: some were rounded twice."""
    return {"requests/s": f"{float(digits[1]):.3g}", "MiB/s": f"{float(digits[2]):.3g}"}
