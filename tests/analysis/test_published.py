"""What others published stands beside ours, where both measured the same."""

from __future__ import annotations

import pytest
from chart_checks import assert_apart, texts_of
from synthetic_bundles import GARAGE, MINIO, MINIO_RELEASE, QUORUM, MakeBundle

from wanlat.analysis.bundle import read_bundle
from wanlat.analysis.figures.published import PUBLISHED, published

pytestmark = pytest.mark.usefixtures("few_resamples")


def test_only_what_both_measured_on_the_same_topology_is_compared(make_bundle: MakeBundle) -> None:
    values = {("garage", "GetObject"): [150.0, 170.0]}
    found = published(read_bundle(make_bundle(name="a", values_ms=values)))
    assert found is not None
    assert {row["system"] for row in found.rows} == {"garage", "minio"}  # quorum's was not
    (reads,) = (r for r in found.rows if (r["system"], r["endpoint"]) == ("garage", "GetObject"))
    assert (reads["mean_ms"], reads["published_mean_ms"]) == (160.0, 129.0)
    assert reads["mean_over_published"] == pytest.approx(160 / 129)
    for number, other in enumerate(
        ({"topology": "one-site"}, {"systems": [QUORUM]}, {"endpoints": ["HeadObject"]})
    ):
        assert published(read_bundle(make_bundle(name=f"b{number}", **other))) is None


def test_table_and_chart_say_whose_and_when(make_bundle: MakeBundle) -> None:
    failures = {("minio", "PutObject"): (100, 0), ("garage", "GetObject"): (1, 1)}
    versions = [GARAGE, MINIO, MINIO_RELEASE]
    answer = PUBLISHED.of_bundle(
        read_bundle(make_bundle(systems=versions, topology="three-datacenters", failures=failures))
    )
    assert answer is not None
    (grid,) = answer.grids()
    assert any("2021" in note for note in grid.notes)
    assert any("?" in cell for row in grid.rows for cell in row)  # it could not be read off
    (figure,) = answer.charts().values()
    assert_apart(figure)
    whole = " ".join(texts_of(figure))
    for said in ("2021", "another machine", "±3 ms", "2021-11-24"):
        assert said in whole
