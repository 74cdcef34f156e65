"""The matrix tells of every drill on every system what it did, and hides no run and no loss."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import drill_bundles as played
import pytest
from drill_chart_checks import assert_nothing_overlaps, text_of
from synthetic_bundles import MakeBundle
from typer.testing import CliRunner

from wanlat.analysis.bundle import Series, read_bundle
from wanlat.analysis.charts import drill_matrix
from wanlat.analysis.drill.matrix import (
    DrillKey,
    Operation,
    Run,
    Share,
    matrix_of,
    read_matrix,
    read_run,
)
from wanlat.analysis.drill.matrix_report import matrix_report
from wanlat.analysis.drill.matrix_wording import claims_markdown, drills_markdown
from wanlat.analysis.summary import summarize
from wanlat.bundle.errors import BundleError
from wanlat.cli import app

pytestmark = pytest.mark.usefixtures("few_resamples")

GARAGE, MINIO, BOB = (
    Series("garage", "2.5.0"),
    Series("minio", "v0.0.0-20260212201848-7aac2a2c5b7c"),
    Series("bob", "2.1.0-alpha.23"),
)
WRITES_GO_ON = {
    "id": "writes",
    "claim": "writes go on",
    "source": "its manual | 3",
    "availability": {"of": "writes", "at_least": "90%"},
    "evidence": "99 of 100",
}


def run_of(name: str = "one-node-killed", series: Series = MINIO, **changed: Any) -> Run:
    """A run in which nothing is wrong, but for what is `changed`."""
    good = Operation(200, 200, (Share("survivor", 1.0), Share("victim", 1.0)), 60.0, 58.0)
    run = Run(
        directory=Path("some/bundle"),
        key=DrillKey(name, "four-sites", 1.0),
        series=series,
        started="2026-03-01T12:00:00+00:00",
        status="complete",
        reached="done",
        reads=good,
        writes=good,
        longest_outage_s=0.0,
        recovered=True,
        recovery_s=0.0,
        durability={"verdict": "pass", "acknowledged": 500, "lost": 0},
        claims=({**WRITES_GO_ON, "verdict": "holds"},),
    )
    return replace(run, **changed)


def many_runs() -> list[Run]:
    """12 drills on 3 systems, whatever may come of them, some never run and some run twice."""
    chance = random.Random(3)
    runs = []
    for number in range(12):
        for series in (GARAGE, MINIO, BOB):
            for turn in range(chance.choice((0, 1, 1, 1, 2))):
                shares = tuple(
                    Share(name, chance.choice((0.0, 0.213, 0.5, 0.925, 0.9999, 1.0, None)))
                    for name in ("survivor", "victim")
                )
                slow = Operation(100, 50, shares, chance.choice((None, 5.0, 60.0, 99_999.0)), 5.0)
                lost = chance.choice((0, 0, 12))
                verdict = "fail" if lost else chance.choice(("pass", "unknown"))
                runs.append(
                    run_of(
                        f"a-drill-with-quite-a-long-name-of-its-own-{number}",
                        series,
                        started=f"2026-03-0{turn + 1}",
                        status=chance.choice(("complete", "complete", "running", "failed")),
                        reached="during",
                        reads=slow,
                        writes=slow,
                        recovered=chance.choice((True, False, None)),
                        recovery_s=chance.choice((3.02, 120.0)),
                        durability={"verdict": verdict, "lost": lost, "stale": lost, "unread": 7},
                    )
                )
    return runs


@pytest.mark.minutes
@pytest.mark.parametrize(
    "runs",
    [
        many_runs(),
        [run_of()],
        [run_of("x" * 90, series=Series("a-system-with-a-long-name", "v3.0.0-beta.12345.dirty"))],
    ],
    ids=["12 × 3", "1 × 1", "long names"],
)
def test_no_word_is_clipped_or_overlaps_another(runs: list[Run]) -> None:
    assert_nothing_overlaps(drill_matrix.draw(matrix_of(runs)))


def test_what_was_never_run_says_so() -> None:
    matrix = matrix_of([run_of("one", GARAGE), run_of("two", MINIO)])
    assert text_of(drill_matrix.draw(matrix)).count("not run") == 2
    assert drills_markdown(matrix).count("| not run |") == 2
    assert claims_markdown(matrix).count("| not run |") == 2


def test_a_killed_run_is_neither_recovered_nor_safe() -> None:
    killed = run_of(
        status="running", reached="during", recovered=False, durability={"verdict": "unknown"}
    )
    text = text_of(drill_matrix.draw(matrix_of([killed])))
    assert "killed in `during`" in text
    assert "not read again" in text
    assert "none lost" not in text


def test_not_recovered_is_said_and_no_number_made_up() -> None:
    matrix = matrix_of([run_of(recovered=False, recovery_s=None)])
    assert "not back" in text_of(drill_matrix.draw(matrix))
    assert "not back" in drills_markdown(matrix)


def test_each_client_has_its_own_share() -> None:
    reads = Operation(200, 100, (Share("survivor", 1.0), Share("victim", 0.0)), 60.0, 58.0)
    matrix = matrix_of([run_of(reads=reads)])
    assert "survivor 100 %, victim 0 %" in drills_markdown(matrix)
    assert "50.0 %" not in text_of(drill_matrix.draw(matrix))


def test_the_newest_complete_run_is_shown_and_all_are_counted() -> None:
    old = run_of(started="2026-03-01", recovery_s=3.0)
    new = run_of(started="2026-03-02", recovery_s=7.0)
    cut = run_of(started="2026-03-03", status="interrupted")
    matrix = matrix_of([old, cut, new])
    (cell,) = matrix.cells.values()
    assert cell.runs == (new, old, cut)
    text = text_of(drill_matrix.draw(matrix))
    assert "back in 7.00 s" in text
    assert "(3 runs)" in text
    assert len(matrix.to_json()["cells"][0]["runs"]) == 3


def test_a_newer_run_hides_no_loss() -> None:
    bad = {"verdict": "fail", "acknowledged": 500, "lost": 12}
    matrix = matrix_of([run_of(started="2026-03-01", durability=bad), run_of(started="2026-03-02")])
    assert "12 lost, 1 of 2 runs" in text_of(drill_matrix.draw(matrix))
    assert "fail: 12 lost, 1 of 2 runs" in drills_markdown(matrix)


def test_a_newer_run_hides_no_claim_that_did_not_hold() -> None:
    def claimed(verdict: str) -> tuple[dict[str, str], ...]:
        return ({"id": "intact", "claim": "it is", "verdict": verdict, "evidence": verdict},)

    old = run_of(started="2026-03-01", claims=claimed("does not hold"))
    new = run_of(started="2026-03-02", claims=claimed("holds"))
    for runs in ([old, new], [new, old]):
        assert "**does not hold** (1 of 2 runs): does not hold" in claims_markdown(matrix_of(runs))
    assert "**holds** (1 of 2 runs)" in claims_markdown(
        matrix_of([new, run_of(started="2026-03-01", claims=claimed("not decided"))])
    )


def test_runs_at_another_scale_or_on_another_version_are_no_runs_of_the_same_cell() -> None:
    short = run_of(key=DrillKey("one-node-killed", "four-sites", 0.1))
    newer = run_of(series=Series("minio", "RELEASE.2026-05-01T00-00-00Z"))
    matrix = matrix_of([run_of(), short, newer])
    assert len(matrix.drills) == 2
    assert len(matrix.series) == 2
    assert "times × 0.1" in text_of(drill_matrix.draw(matrix))


def test_claims_stand_side_by_side_with_how_many_runs_agree() -> None:
    other = ({**WRITES_GO_ON, "verdict": "does not hold"},)
    matrix = matrix_of(
        [
            run_of(series=GARAGE, claims=()),
            run_of(series=MINIO, started="2026-03-02"),
            run_of(series=MINIO, started="2026-03-01", claims=other),
            run_of(series=BOB, claims=other),
        ]
    )
    head, _, row = claims_markdown(matrix).splitlines()
    assert head == (
        "| id | claim | source | drill | bound "
        "| Garage 2.5.0 | MinIO 2026-02-12 | Bob 2.1.0-alpha.23 |"
    )
    assert row == (
        "| writes | writes go on | its manual \\| 3 | one-node-killed | writes ok ≥ 90% | – "
        "| **does not hold** (1 of 2 runs): 99 of 100 | **does not hold**: 99 of 100 |"
    )


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a drill on each of two systems, one of which lost two writes."""
    root = tmp_path_factory.mktemp("drills")
    claim = {"id": "intact", "claim": "nothing is lost", "source": "its manual"}
    claims = [claim | {"durability": "intact"}]
    for series, spoil in ((MINIO, {"lost": 2}), (BOB, {})):
        played.write_drill(
            root / "deep" / series.system,
            system=series,
            phases_s=(5.0, 8.0, 5.0),
            troubles=[played.Trouble("down", 5, 13, clients=["victim"])],
            spoil=spoil,
            claims=claims,
        )
    return root


def test_a_summary_alone_says_what_the_whole_bundle_says(bundles: Path, tmp_path: Path) -> None:
    bundle = bundles / "deep" / "minio"
    whole = read_run(bundle)
    summary = tmp_path / "summary.json"
    summary.write_text(summarize(read_bundle(bundle)).to_text())
    (tmp_path / "manifest.json").write_bytes((bundle / "manifest.json").read_bytes())
    assert read_run(tmp_path) == replace(whole, directory=tmp_path)


def test_the_command_writes_pictures_tables_and_one_document(bundles: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "place"
    done = CliRunner().invoke(app, ["drill", "matrix", str(bundles), "--out", str(out), "--json"])
    assert done.exit_code == 0, done.output
    assert {path.name for path in out.iterdir()} == {
        *("matrix.png", "matrix.svg", "matrix.json", "drills.md", "claims.md")
    }
    document = json.loads(done.stdout)
    assert document == json.loads((out / "matrix.json").read_text())
    assert [one["system"] for one in document["systems"]] == ["minio", "bob"]
    by_system = {cell["system"]: cell["runs"][0] for cell in document["cells"]}
    assert by_system["minio"]["durability"]["lost"] == 2
    assert by_system["bob"]["during"]["reads"]["availability_by_client"] == {
        "survivor": 1.0,
        "victim": 0.0,
    }
    verdicts = {v["system"]: v["verdict"] for v in document["claims"][0]["verdicts"]}
    assert verdicts == {"minio": "does not hold", "bob": "holds"}


def test_the_same_bundles_give_the_same_bytes(bundles: Path, tmp_path: Path) -> None:
    drawn = [matrix_report([bundles], tmp_path / str(turn)) for turn in range(2)]
    for one, other in zip(*drawn, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_a_study_and_an_empty_directory_are_refused(
    make_bundle: MakeBundle, tmp_path: Path
) -> None:
    with pytest.raises(BundleError, match="of a study and not of a drill"):
        read_matrix([make_bundle(n=5)])
    (tmp_path / "empty").mkdir()
    with pytest.raises(BundleError, match="holds none"):
        read_matrix([tmp_path / "empty"])
    with pytest.raises(BundleError, match="holds none"):
        read_matrix([tmp_path / "missing"])
