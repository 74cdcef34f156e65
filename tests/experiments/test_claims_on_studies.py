"""Claims of publications: shipped files are whole, and manifests have those on their study."""

from __future__ import annotations

from pathlib import Path

import pytest

from wanlat.experiments.config import claims
from wanlat.experiments.config.files import shipped
from wanlat.experiments.drill.files import ClaimsError
from wanlat.topologies.yaml_lines import load_yaml_model

GOOD = """
study: s
source: a paper
claims:
  - {id: fast, claim: it is fast, rows: sizes.entries, figure: mean_ms, at_most: 10,
     where: {system: [a, b], object_bytes: {at_least: 4MiB}}, over: {system: c}, same: [nodes]}
"""


def test_every_shipped_publication_is_on_a_shipped_study() -> None:
    names = claims.PUBLICATIONS.names()
    assert names
    read = [claims.load_publication(name) for name in names]
    assert {each.study for each in read} <= set(shipped())
    ids = [claim.id for each in read for claim in each.claims]
    assert len(ids) == len(set(ids))
    for each in read:
        said = claims.claims_on(each.study)["claims"]
        assert {claim.id for claim in each.claims} <= {claim["id"] for claim in said}
        assert all(claim["source"] for claim in said)
    assert claims.claims_on("no-such-study") == {}


def test_sizes_are_bytes_in_a_manifest(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(GOOD)
    (claim,) = load_yaml_model(tmp_path / "p.yaml", claims.Publication).claims
    assert claim.to_dict()["where"] == {
        "system": ["a", "b"],
        "object_bytes": {"at_least": 4 * 2**20},
    }


@pytest.mark.parametrize(
    ("wrong", "right", "said"),
    [
        ("at_most: 10,", "", "one bound"),
        ("at_most: 10,", "at_most: 10, at_least: 1,", "one bound"),
        ("at_least: 4MiB", "at_least: 4Mib", "4Mib"),
        ("figure: mean_ms", "figures: mean_ms", "figures"),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path: Path, wrong: str, right: str, said: str) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(GOOD.replace(wrong, right))
    with pytest.raises(ClaimsError, match=said) as refused:
        load_yaml_model(path, claims.Publication, error=ClaimsError)
    assert "p.yaml:5" in str(refused.value) or "p.yaml:6" in str(refused.value)
