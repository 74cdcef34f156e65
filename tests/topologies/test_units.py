"""Units: what is written is what is meant, exactly, and prints back."""

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wanlat.topologies.errors import UserError
from wanlat.topologies.units import Duration, Fraction, Quantity, QuantityError, Rate, Size

COUNTS = st.integers(min_value=1, max_value=2**63 - 1)


@pytest.mark.parametrize(
    ("written", "quantity", "printed"),
    [
        ("0.5 ms", Duration(500_000), "0.5ms"),
        ("250us", Duration(250_000), "250us"),
        ("850\N{MICRO SIGN}s", Duration(850_000), "850us"),
        ("0.5 \N{GREEK SMALL LETTER MU}s", Duration(500), "500ns"),
        ("2min", Duration(120_000_000_000), "120s"),
        ("9223372036854775807ns", Duration(2**63 - 1), "9223372036854775807ns"),
        (0.0, Duration(0), "0ms"),
        ("1.5gbit", Rate(15 * 10**8), "1.5gbit"),
        ("64KiB", Size(65536), "64KiB"),
        ("1MB", Size(10**6), "1MB"),
        (1500, Size(1500), "1500B"),
        ("1%", Fraction(0.01), "1%"),
        (0.01, Fraction(0.01), "1%"),
        ("1e-3", Fraction(0.001), "0.1%"),
        (1, Fraction(1.0), "100%"),
    ],
)
def test_what_is_written_is_exact_and_prints_as_people_write_it(
    written: object, quantity: Quantity, printed: str
) -> None:
    assert type(quantity).parse(written) == quantity
    assert str(quantity) == printed


@pytest.mark.parametrize(
    ("parse", "written", "complaint"),
    [
        (Duration.parse, 100, "has no unit"),
        (Duration.parse, -5, "is negative"),
        (Duration.parse, "5MS", "did you mean `ms`?"),
        (Duration.parse, "5ms\n", r"`5ms\n` is not a number and a unit"),
        (Duration.parse, "\u0665ms", "is not a number and a unit"),
        (Duration.parse, True, "is not a number and a unit"),
        (Duration.parse, None, "an empty value"),
        (Duration.parse, "0.5ns", "not a whole nanosecond"),
        (Duration.parse, "9223372036854775808ns", "too large"),
        pytest.param(Duration.parse, 10**5000, "a huge number", id="huge"),
        (Duration, -1, "not within"),
        (Rate, 0, "lets nothing through"),
        (Size.parse, True, "is not a number and a unit"),
        (Fraction.parse, 5, "5 in a hundred is `5%`"),
        (Fraction.parse, "-1%", "outside 0..1"),
        (Fraction.parse, float("nan"), "outside 0..1"),
        (Fraction, 1.5, "outside 0..1"),
        (Fraction.parse, True, "not a fraction"),
    ],
)
def test_what_is_wrong_is_said_and_what_is_allowed(
    parse: Callable[[object], Quantity], written: object, complaint: str
) -> None:
    with pytest.raises(QuantityError) as caught:
        parse(written)
    assert isinstance(caught.value, UserError)
    assert complaint in str(caught.value)


@given(st.sampled_from([Duration, Rate, Size]), COUNTS)
def test_every_count_prints_back(unit: type[Duration | Rate | Size], count: int) -> None:
    assert unit.parse(str(unit(count))) == unit(count)


@given(st.sampled_from([Duration, Rate, Size, Fraction]), st.text() | st.floats() | st.integers())
@example(Fraction, -0.0)
def test_any_scalar_is_a_quantity_or_a_clean_error(unit: type[Quantity], written: object) -> None:
    try:
        quantity = unit.parse(written)
    except QuantityError as error:
        assert str(error).isprintable()
    else:
        assert unit.parse(str(quantity)) == quantity
