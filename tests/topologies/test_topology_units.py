"""Units: what is written is what is meant, exactly, and prints back."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wanlat.topologies.errors import UserError
from wanlat.topologies.units import Duration, Fraction, Quantity, QuantityError, Rate, Size

COUNTS = st.integers(min_value=0, max_value=2**63 - 1)


@pytest.mark.parametrize(
    ("written", "ns"),
    [
        ("100ms", 100_000_000),
        ("0.5ms", 500_000),
        ("250us", 250_000),
        ("1.5s", 1_500_000_000),
        ("10ns", 10),
        ("0ms", 0),
        ("0.1ms", 100_000),
        ("100 ms", 100_000_000),
        ("9223372036854775807ns", 2**63 - 1),
        (0, 0),
        (0.0, 0),
    ],
)
def test_a_duration_is_exact(written: object, ns: int) -> None:
    assert Duration.parse(written) == Duration(ns)


@pytest.mark.parametrize("written", ["100ms", "0.5ms", "250us", "1.5s", "10ns", "20ms", "60s"])
def test_a_duration_prints_as_people_write_it(written: str) -> None:
    assert str(Duration.parse(written)) == written


def test_a_duration_tells_milliseconds_and_seconds() -> None:
    assert (Duration.parse("1.5s").ms, Duration.parse("1.5s").s) == (1500.0, 1.5)


@pytest.mark.parametrize(
    ("written", "bps"),
    [("100mbit", 10**8), ("1gbit", 10**9), ("64kbit", 64_000), ("1.5gbit", 15 * 10**8)],
)
def test_a_rate_is_in_thousands(written: str, bps: int) -> None:
    assert Rate.parse(written) == Rate(bps)
    assert str(Rate(bps)) == written


@pytest.mark.parametrize(
    ("written", "count", "printed"),
    [
        ("64KiB", 65536, "64KiB"),
        ("1MB", 1_000_000, "1MB"),
        ("1MiB", 1_048_576, "1MiB"),
        (1500, 1500, "1500B"),
        ("1kB", 1000, "1kB"),
        (0, 0, "0B"),
    ],
)
def test_a_size_knows_1000_from_1024(written: object, count: int, printed: str) -> None:
    assert Size.parse(written) == Size(count)
    assert str(Size(count)) == printed


@pytest.mark.parametrize(
    ("written", "value", "printed"),
    [
        ("1%", 0.01, "1%"),
        ("0.5%", 0.005, "0.5%"),
        (0.01, 0.01, "1%"),
        ("1e-3", 0.001, "0.1%"),
        (0, 0.0, "0%"),
        (1, 1.0, "100%"),
        ("100%", 1.0, "100%"),
    ],
)
def test_a_fraction_is_percent_or_a_bare_number(
    written: object, value: float, printed: str
) -> None:
    assert Fraction.parse(written) == Fraction(value)
    assert str(Fraction(value)) == printed


@pytest.mark.parametrize(
    ("parse", "written", "complaint"),
    [
        (Duration.parse, 100, "`100` has no unit"),
        (Duration.parse, "100", "`100` has no unit"),
        (Duration.parse, 1.5, "`1.5` has no unit"),
        (Duration.parse, -5, "`-5` is negative"),
        (Duration.parse, "-5ms", "`-5ms` is negative"),
        (Duration.parse, "5sec", "`sec` in `5sec` is not a unit"),
        (Duration.parse, "5MS", "did you mean `ms`?"),
        (Duration.parse, "1:30", "`1:30` is not a number and a unit"),
        (Duration.parse, "ms", "`ms` is not a number and a unit"),
        (Duration.parse, "5ms\n", r"`5ms\n` is not a number and a unit"),
        (Duration.parse, "\u0665ms", "`\u0665ms` is not a number and a unit"),
        (Duration.parse, True, "`true` is not a number and a unit"),
        (Duration.parse, None, "an empty value"),
        (Duration.parse, [], "a list is not"),
        (Duration.parse, "0.5ns", "not a whole nanosecond"),
        (Duration.parse, "9223372036854775808ns", "too large"),
        pytest.param(Duration.parse, 10**5000, "a huge number has no unit", id="huge"),
        (Rate.parse, "0mbit", "a rate of 0 lets nothing through"),
        (Rate.parse, "10mbps", "bits to some and bytes to others"),
        (Rate.parse, 10, "`10` has no unit"),
        (Size.parse, -1, "`-1` is negative"),
        (Size.parse, 1.5, "`1.5` has no unit"),
        (Size.parse, True, "`true` is not a number and a unit"),
        (Size.parse, "0.1KiB", "not a whole byte"),
        (Fraction.parse, 5, "5 in a hundred is `5%`"),
        (Fraction.parse, "101%", "outside 0..1"),
        (Fraction.parse, -0.1, "outside 0..1"),
        (Fraction.parse, "-1%", "outside 0..1"),
        (Fraction.parse, float("nan"), "outside 0..1"),
        (Fraction.parse, True, "not a fraction"),
        (Fraction.parse, "some", "not a fraction"),
    ],
)
def test_what_is_wrong_is_said_and_what_is_allowed(
    parse: Callable[[object], Quantity], written: object, complaint: str
) -> None:
    with pytest.raises(QuantityError) as caught:
        parse(written)
    assert isinstance(caught.value, UserError)
    assert complaint in str(caught.value)


@pytest.mark.parametrize("make", [lambda: Duration(-1), lambda: Rate(0), lambda: Fraction(1.5)])
def test_no_impossible_quantity_can_be_made(make: Callable[[], Any]) -> None:
    with pytest.raises(QuantityError):
        make()


def test_quantities_are_ordered_by_size_not_by_spelling() -> None:
    assert Duration.parse("0.5ms") > Duration.parse("0ms")
    assert Duration.parse("9ms") < Duration.parse("10ms")
    assert Size.parse("1MB") < Size.parse("1MiB")


@given(COUNTS)
def test_every_duration_prints_back(ns: int) -> None:
    assert Duration.parse(str(Duration(ns))) == Duration(ns)


@given(COUNTS.filter(bool))
def test_every_rate_prints_back(bps: int) -> None:
    assert Rate.parse(str(Rate(bps))) == Rate(bps)


@given(COUNTS)
def test_every_size_prints_back(count: int) -> None:
    assert Size.parse(str(Size(count))) == Size(count)


@given(st.floats(min_value=0, max_value=1))
def test_every_fraction_prints_back(value: float) -> None:
    assert Fraction.parse(str(Fraction(value))) == Fraction(value)


@given(st.sampled_from([Duration, Rate, Size, Fraction]), st.text() | st.floats() | st.integers())
def test_any_scalar_is_a_quantity_or_a_clean_error(unit: type[Quantity], written: object) -> None:
    try:
        quantity = unit.parse(written)
    except QuantityError as error:
        assert str(error).isprintable()
    else:
        assert unit.parse(str(quantity)) == quantity
