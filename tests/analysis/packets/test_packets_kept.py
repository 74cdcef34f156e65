"""What was found in the packets stays when they are thrown away."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from round_trips_bundles import write_round_trips_bundle

from wanlat.analysis.bundle import Series, read_bundle
from wanlat.analysis.packets import kept
from wanlat.analysis.packets.cost import Cost
from wanlat.analysis.packets.evidence import evidence_of
from wanlat.analysis.packets.model import GroupEvidence, PacketEvidence, Share
from wanlat.analysis.summary import Group
from wanlat.bundle.errors import BundleError

GROUP = Group(Series("quorum", "0.1.0"), "GetObject", "unknown")


def found() -> PacketEvidence:
    cost = Cost(7, 1226.5, (1200.0, 1250.0), 8.5, (8.0, 9.0))
    shares = (Share(1.0, 2 / 3), Share(1.5, 1 / 3))
    of_group = GroupEvidence(1.0, shares, 3, 0.1, 0.2, 0.3, cost, None, 0.4)
    return PacketEvidence(
        None, pd.Series([1.0, float("nan"), 1.5], index=[0, 1, 2]), {GROUP: of_group}
    )


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A bundle whose manifest says that packets were recorded, and which has none."""
    capture = {"capture": {"rows": 1, "files": []}}
    return write_round_trips_bundle(tmp_path, manifest=capture)


def test_what_was_kept_is_read_as_it_was_found(bundle: Path) -> None:
    text = kept.to_text({"quorum": found()})
    assert text is not None
    (bundle / kept.NAME).write_text(text)
    read = evidence_of(read_bundle(bundle), "quorum")
    assert read.trips is not None
    pd.testing.assert_series_equal(read.trips, found().trips)
    assert read.groups == found().groups


def test_without_it_the_report_says_that_the_packets_are_gone(bundle: Path) -> None:
    assert "is not in the bundle" in str(evidence_of(read_bundle(bundle), "quorum").why)


def test_nothing_is_kept_of_what_was_not_found() -> None:
    assert kept.to_text({"quorum": PacketEvidence("no record", None, {})}) is None


def test_a_damaged_file_is_an_error_and_not_an_answer(bundle: Path) -> None:
    (bundle / kept.NAME).write_text('{"systems": {"quorum": {"rows": [1]}}}')
    with pytest.raises(BundleError, match="damaged"):
        evidence_of(read_bundle(bundle), "quorum")


def test_what_was_kept_of_other_samples_is_not_taken_for_these(bundle: Path) -> None:
    text = kept.to_text({"quorum": found()})
    assert text is not None
    (bundle / kept.NAME).write_text(text.replace('"rows":[0,1,2]', '"rows":[0,1,999999]'))
    assert evidence_of(read_bundle(bundle), "quorum").trips is None
