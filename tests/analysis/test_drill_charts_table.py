"""A drill on a terminal: every figure whole within 100 columns, and every verdict in words."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import drill_bundles as played
import pytest
from rich.console import Console

from wanlat.analysis.drill.read import read_drill
from wanlat.analysis.drill.table import print_drill
from wanlat.analysis.drill.wording import latency, percent
from wanlat.results import show_report

pytestmark = pytest.mark.usefixtures("few_resamples")

CLAIMS = [
    {
        "claim": "reads go on with one of four nodes lost, for as long as anybody cares to ask",
        "source": "a document with a long title, section 12.3.4, https://example.org/a/long/path",
        "id": "minio-reads",
        "availability": {"of": "reads", "client": "survivor", "at_least": "80%"},
    },
    {"id": "intact", "claim": "nothing is lost", "source": "its manual", "durability": "intact"},
]


def printed(directory: Path, width: int = 100, **settings: Any) -> str:
    settings = {"phases_s": (5.0, 8.0, 5.0), **settings}
    drill = read_drill(played.write_drill(directory, **settings))
    text = io.StringIO()
    print_drill(drill, Console(file=text, width=width, force_terminal=False))
    return text.getvalue()


def test_a_table_fits_100_columns_with_long_names_and_large_numbers(tmp_path: Path) -> None:
    text = printed(
        tmp_path,
        interval_ms=20.0,
        clients={
            **played.CLIENTS,
            "a-client-with-a-rather-long-name": {"node": "n1", "site": "dc1", "target": "n4"},
        },
        latency_ms=(1.0, 12_345.0),
        claims=CLAIMS,
    )
    assert max(len(line) for line in text.splitlines()) <= 100
    assert "…" not in text


def test_each_phase_and_client_has_its_counts(tmp_path: Path) -> None:
    text = printed(tmp_path, troubles=[played.Trouble("down", 5, 13, clients=["victim"])])
    rows = [line.split() for line in text.splitlines()]
    assert ["during", "survivor", "reads", "32", "32", "0", "0", "100", "%"] in [
        r[:9] for r in rows
    ]
    assert ["victim", "reads", "32", "0", "32", "0", "0", "%", "–", "–", "–"] in rows


def test_durability_outage_and_claims_are_told(tmp_path: Path) -> None:
    text = printed(tmp_path, claims=CLAIMS, spoil={"lost": 2, "stale": 1})
    assert "Durability fail" in text
    assert "2 lost, 1 stale" in text
    assert "No outage" in text
    lines = text.splitlines()
    assert any(line.startswith("holds") and "reads go on" in line for line in lines)
    words = " ".join(text.split())
    for said in ("minio-reads", "reads ok ≥ 80%:", "32 of 32", "89.3–100.0 %"):
        assert said in words, said
    assert any(line.startswith("does not hold") and "nothing is lost" in line for line in lines)


def test_requests_that_were_never_sent_are_told_apart_from_refused_ones(tmp_path: Path) -> None:
    text = printed(tmp_path, deadline_ms=1000.0, troubles=[played.Trouble("silent", 5, 13)])
    (line,) = [line for line in text.splitlines() if "never sent" in line]
    assert int(line.split()[2]) > 10


def test_a_drill_that_was_killed_says_how_far_it_got(tmp_path: Path) -> None:
    text = printed(tmp_path, killed_at_s=7.0)
    assert "during (cut)" in text
    assert "not reached" in text
    assert "The drill was killed in the stage `during`" in text
    assert "Durability unknown" in text


def test_a_drill_that_never_began_to_measure_has_no_outage_to_tell_of(tmp_path: Path) -> None:
    text = printed(tmp_path, killed_at_s=-4.0)
    assert "Nothing was measured" in text
    assert "No outage" not in text


def test_a_round_that_is_missing_is_not_called_read_again(tmp_path: Path) -> None:
    text = " ".join(printed(tmp_path, rounds=["healed"]).split())
    assert "read again after the heal, but not all of them after a full restart" in text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        *((None, "–"), (0.0, "0 %"), (1.0, "100 %"), (0.5, "50.0 %")),
        *((0.9999, "99.99 %"), (0.0004, "0.04 %"), (0.9999999, "> 99.999 %")),
    ],
)
def test_a_share_is_never_rounded_to_all_or_nothing(share: float | None, text: str) -> None:
    assert percent(share) == text


def test_long_latencies_are_written_in_seconds() -> None:
    assert [latency(value) for value in (None, 5.982, 999.0, 1870.0, 16_800.0)] == [
        *("–", "5.98 ms", "999.0 ms", "1.87 s", "16.8 s")
    ]


def test_a_drill_without_claims_prints_no_table_of_them(tmp_path: Path) -> None:
    drill = read_drill(played.write_drill(tmp_path, phases_s=(5.0, 8.0, 5.0)))
    text = io.StringIO()
    print_drill(replace(drill, claims=()), Console(file=text, width=100))
    assert "verdict" not in text.getvalue()


def test_a_report_of_a_drill_shows_the_drill_and_draws_its_timeline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = played.write_drill(tmp_path, phases_s=(5.0, 8.0, 5.0), killed_at_s=6.0)
    text = io.StringIO()
    monkeypatch.setattr("wanlat.results.people", Console(file=text, width=100))
    made = show_report(bundle, as_json=False)
    assert made.drill is not None
    assert "during (cut)" in text.getvalue()
    assert {"drill-timeline.png", "drill-timeline.svg"} <= {path.name for path in made.charts}
