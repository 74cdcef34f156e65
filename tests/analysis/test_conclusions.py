"""The documents' four conclusions as checks: of data whose truth is known, and of their own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from published_mistakes import mistakes_grid, mistakes_of_rows
from sweep_bundles import MINIO_NGINX, write_sweep
from synthetic_bundles import BOB, GARAGE, MINIO

from wanlat.analysis.conclusions import conclusions_of, published_conclusions
from wanlat.analysis.conclusions.model import (
    BEHIND_NGINX,
    DIRECT,
    PUBLISHED,
    Conclusion,
    Conclusions,
)
from wanlat.analysis.criterion import stored_estimates
from wanlat.analysis.grid import markdown
from wanlat.analysis.ratios import Verdict
from wanlat.analysis.sweep import read_sweep

pytestmark = pytest.mark.usefixtures("few_resamples")
HOLDS, FAILS, UNDECIDED = Verdict.HOLDS, Verdict.FAILS, Verdict.UNDECIDED
SIZES = ("1KiB", "4095KiB", "4MiB", "100MiB")
FEW = ("1KiB", "1MiB")


def as_concluded(system: str, at: Mapping[str, Any], endpoint: str, size: int) -> np.ndarray:
    """Latencies of stores of which all four conclusions are true; MinIO itself reads like Bob."""
    rng = np.random.default_rng([size % 9973, len(system), len(endpoint)])
    mib = size / 2**20
    if system == "bob":
        byte_ms = 10.0 if mib < 4 else 14.0
        return np.asarray((0.5 + byte_ms * mib) * rng.lognormal(0, 0.02, 40))
    writes = endpoint.startswith("Put")
    typical = 2.0 + (30.0 if writes else 4.0) * mib
    values = typical * rng.lognormal(0, 0.02, 40)
    values[::5] *= 2.5  # the mean is 30 % above the median
    if system == DIRECT and not writes:
        values = (0.5 + 10 * mib) * rng.lognormal(0, 0.02, 40)
    return np.asarray(values)


def concluded(path: Path, **settings: Any) -> Conclusions | None:
    settings = {"systems": (BOB, MINIO, MINIO_NGINX), "values": as_concluded, **settings}
    sizes = settings.pop("sizes", SIZES)
    write_sweep(path, {"nodes": [2], "object_size": sizes}, **settings)
    return conclusions_of(read_sweep(path))


@pytest.fixture(scope="module")
def conclusions(tmp_path_factory: pytest.TempPathFactory) -> Conclusions:
    """Of stores that are as concluded."""
    found = concluded(tmp_path_factory.mktemp("conclusions") / "sweep")
    assert found is not None
    return found


def verdicts(conclusions: tuple[Conclusion, ...]) -> dict[str, Verdict]:
    return {conclusion.key: conclusion.verdict() for conclusion in conclusions}


def test_what_is_true_of_the_stores_holds(conclusions: Conclusions) -> None:
    assert verdicts(conclusions.sources[BEHIND_NGINX]) == {
        "writes": HOLDS,
        "reads": HOLDS,
        "skew": HOLDS,
        "limit": HOLDS,
    }


def test_what_is_not_true_does_not_hold(conclusions: Conclusions) -> None:
    of_direct = verdicts(conclusions.sources[DIRECT])
    assert of_direct["writes"] is HOLDS
    assert of_direct["reads"] is not HOLDS  # as fast as Bob, whatever the size
    assert of_direct["skew"] is FAILS  # its reads have no tail


def test_an_object_of_four_mebibytes_is_past_the_limit(conclusions: Conclusions) -> None:
    clause = conclusions.sources[DIRECT][3].clauses[0]
    sizes = {part.at.object_bytes for part in clause.parts}
    assert sizes == {4 * 2**20, 100 * 2**20}
    for part in clause.parts:
        assert part.ratio.estimate == pytest.approx(1.4, abs=0.03)


def test_both_sides_are_judged_from_one_kind_of_keys_and_placement(tmp_path: Path) -> None:
    placed = {"bob": ("local", "remote")}
    found = concluded(tmp_path / "s", sizes=FEW, systems=(BOB, MINIO), placed=placed)
    assert found is not None
    parts = found.sources[DIRECT][0].clauses[0].parts
    # MinIO does not tell where its keys lie, and stands against both of Bob's.
    assert {part.at.placement for part in parts} == {"local", "remote"}
    assert len(parts) == 2 * len(FEW)


def test_noise_decides_nothing(tmp_path: Path) -> None:
    def alike(system: str, at: Mapping[str, Any], endpoint: str, size: int) -> np.ndarray:
        rng = np.random.default_rng([len(endpoint), len(system)])
        return np.asarray(rng.lognormal(0, 0.5, 40))

    found = concluded(tmp_path / "s", sizes=FEW, systems=(BOB, MINIO), values=alike)
    assert found is not None
    assert verdicts(found.sources[DIRECT])["writes"] is UNDECIDED


def test_without_bob_or_any_minio_nothing_is_concluded(tmp_path: Path) -> None:
    assert concluded(tmp_path / "a", sizes=FEW, systems=(BOB, GARAGE)) is None
    assert concluded(tmp_path / "b", sizes=FEW, systems=(MINIO,)) is None


def test_the_published_data_bear_out_one_of_their_four_conclusions() -> None:
    of_theirs = {each.key: each for each in published_conclusions()}
    assert verdicts(published_conclusions()) == {
        "writes": HOLDS,
        "reads": FAILS,
        "skew": FAILS,
        "limit": FAILS,
    }
    # MinIO reads 1 MiB on one node faster than Bob, against the sentence and in their own data.
    (small, large) = of_theirs["reads"].clauses
    failing = [part.at for part in small.parts if part.verdict is FAILS]
    assert [(at.nodes, at.object_bytes) for at in failing] == [(1, 2**20)]
    assert large.verdict() is HOLDS
    # Bob's mean and median differ by 29 % at 1 MiB on two nodes, and by 19 % at 100 MiB on one.
    deciding = of_theirs["skew"].clauses[1].deciding
    assert deciding is not None
    assert (deciding.at.nodes, deciding.at.object_bytes) == (2, 2**20)
    assert deciding.ratio.estimate == pytest.approx(1.289, abs=0.001)


def test_a_verdict_rests_on_the_part_that_fails_most_or_holds_least(
    conclusions: Conclusions,
) -> None:
    clause = conclusions.sources[BEHIND_NGINX][0].clauses[0]
    assert clause.verdict() is HOLDS
    assert clause.deciding == min(clause.parts, key=lambda part: part.ratio.estimate)


def test_sources_stand_side_by_side(conclusions: Conclusions) -> None:
    verdict, deciding, compared, every = conclusions.grids()
    assert verdict.headers[2:] == (PUBLISHED, "ours, MinIO+nginx", "ours, MinIO direct")
    assert [row[0][:2] for row in verdict.rows if row[1] == "all"] == ["1.", "2.", "3.", "4."]
    assert not verdict.long and not deciding.long and every.long
    assert {row[1] for row in deciding.rows} == set(verdict.headers[2:])
    # What both have measured: 1 KiB and 100 MiB on two nodes, reads and writes.
    assert len(compared.rows) == 4
    first = dict(zip(compared.headers, compared.rows[0], strict=True))
    assert first[PUBLISHED].startswith("8.41 [8.24, 8.60]")


def test_all_of_it_is_in_the_summary(conclusions: Conclusions) -> None:
    entry = conclusions.to_json()
    assert set(entry["sources"]) == {PUBLISHED, BEHIND_NGINX, DIRECT}
    for source in entry["sources"].values():
        for conclusion in source:
            assert conclusion["verdict"] in ("holds", "does not hold", "not decided")
            for clause in conclusion["clauses"]:
                assert all({"means", "verdict"} <= part.keys() for part in clause["parts"])


def test_the_published_estimates_are_whole() -> None:
    stored = stored_estimates()
    assert len(stored) == 2 * 2 * 2 * 4
    for each in stored:
        assert each.mean_ci95_ms[0] <= each.mean_ms <= each.mean_ci95_ms[1]
        assert each.median_ci95_ms[0] <= each.median_ms <= each.median_ci95_ms[1]


def test_the_mistakes_of_the_published_tables_are_found() -> None:
    found = {(m.document, m.where): m for m in mistakes_of_rows()}
    again = found["README", "MinIO, write, 1KiB on 2 nodes"]
    assert (again.printed, again.right) == ("4278.7 µs", "3135.8")
    assert "MinIO, write, 50KiB on 1 node" in again.why
    rows = [" ".join(row) for row in mistakes_grid().rows]
    for words in ('headed "ns"', "1000 KiB were taken", "about 1 %", "table of medians, 8 rows"):
        assert any(words in row for row in rows), words


def test_the_page_has_the_mistakes_that_are_found() -> None:
    page = Path(__file__).parents[2] / "docs" / "sizes.md"
    _, table = markdown(mistakes_grid()).split("\n\n", 1)
    assert table in page.read_text(encoding="utf-8")
