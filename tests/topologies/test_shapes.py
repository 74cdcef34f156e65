"""The shapes of jitter: what packets draw has the mean, the spread and the form it should have."""

import random

import numpy as np
import pytest

from wanlat.topologies import shapes


def test_the_quantiles_are_those_of_scipy() -> None:
    import scipy.stats

    middles = (np.arange(shapes.QUANTILES) + 0.5) / shapes.QUANTILES
    for name, reference in [("normal", scipy.stats.norm), ("pareto", scipy.stats.pareto(3))]:
        expected = reference.ppf(middles)
        expected = (expected - expected.mean()) / expected.std()
        assert np.allclose(shapes.quantiles(name), expected, atol=1e-9)


@pytest.mark.parametrize("name", ["uniform", "normal", "pareto"])
def test_draws_between_the_quantiles_have_the_same_mean_and_nearly_the_same_spread(
    name: str,
) -> None:
    draws = np.array([shapes.draw(name, (i + 0.5) / 200_000) for i in range(200_000)])
    assert draws.mean() == pytest.approx(0, abs=1e-6)
    assert draws.std() == pytest.approx(shapes.deviation(name), rel=2e-3)
    assert (draws.min(), draws.max()) == pytest.approx(shapes.extent(name), abs=1e-4)


def test_many_samples_keep_their_distribution() -> None:
    import scipy.stats

    rng = random.Random(5)
    samples = [rng.lognormvariate(0, 0.5) for _ in range(50_000)]
    table = shapes.empirical(tuple(samples))
    drawn = [shapes.draw("table", rng.random(), table) for _ in range(5000)]
    expected = (np.array(samples) - np.mean(samples)) / np.std(samples)
    assert scipy.stats.ks_2samp(drawn, expected).pvalue > 0.001
    assert scipy.stats.ks_2samp([each * 1.2 for each in drawn], expected).pvalue < 0.001


def test_few_samples_are_interpolated_and_keep_their_extremes() -> None:
    values = shapes.empirical((1.0, 2.0))
    assert len(values) == shapes.QUANTILES
    assert (np.diff(values) >= 0).all()
    assert np.std(values) == pytest.approx(1)
    assert values[0] == pytest.approx(-values[-1])
    # A quarter at either end, and evenly between them.
    assert shapes.draw("table", 0.25, values) == pytest.approx(values[0], abs=1e-3)
    assert shapes.draw("table", 0.5, values) == pytest.approx(0, abs=1e-3)
    assert shapes.draw("table", 0.375, values) == pytest.approx(values[0] / 2, abs=1e-3)


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1.0, 1e12])
def test_the_unit_of_samples_does_not_matter(scale: float) -> None:
    samples = (3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0)
    expected = shapes.empirical(samples)
    assert shapes.empirical(tuple(scale * each for each in samples)) == pytest.approx(expected)
    moved = shapes.empirical(tuple(each + 1000 for each in samples))
    assert moved == pytest.approx(expected)


@pytest.mark.parametrize("samples", [(), (1.0,), (2.0, 2.0), (0.0,) * 10_000])
def test_what_never_varies_has_no_shape(samples: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="at least two different values"):
        shapes.empirical(samples)
    with pytest.raises(ValueError, match="at least two different values"):
        shapes.standardised(list(samples))
