"""The table shows every figure, in any terminal, and what must be known beside it."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from synthetic_bundles import BOB, BOTH, FOUR_SYSTEMS, GARAGE, MINIO, QUORUM, MakeBundle

from wanlat.analysis.bundle import read_bundle
from wanlat.analysis.summary import Summary, summarize
from wanlat.analysis.table import markdown_table, print_table

pytestmark = pytest.mark.usefixtures("few_resamples")


def printed(summary: Summary, width: int) -> str:
    out = io.StringIO()
    print_table(summary, Console(file=out, width=width))
    return out.getvalue()


def test_there_is_a_row_for_each_endpoint_of_each_system(make_bundle: MakeBundle) -> None:
    summary = summarize(read_bundle(make_bundle(systems=[GARAGE, MINIO, QUORUM])))
    rows = [line for line in printed(summary, 160).splitlines() if "100/0/0" in line]
    assert len(rows) == 15
    assert rows[1].startswith("MinIO 2026-02-12")


def test_units_are_in_the_header(make_bundle: MakeBundle) -> None:
    text = printed(summarize(read_bundle(make_bundle())), 160)
    header = text.split("─")[0]
    assert header.count("ms") == 6


@pytest.mark.parametrize("width", [40, 60, 79, 80, 100, 160])
def test_no_digit_is_lost_in_a_narrow_terminal(make_bundle: MakeBundle, width: int) -> None:
    summary = summarize(read_bundle(make_bundle(failures={("minio", "GetObject"): (1, 2)})))
    wide, narrow = printed(summary, 300), printed(summary, width)
    assert "…" not in narrow.replace(wide, "")
    assert sorted(c for c in narrow if c.isdigit()) == sorted(c for c in wide if c.isdigit())
    assert max(len(line.rstrip()) for line in narrow.splitlines()) <= width


def test_figures_are_whole_at_80_columns(make_bundle: MakeBundle) -> None:
    summary = summarize(read_bundle(make_bundle()))
    words = printed(summary, 80).split()
    for entry in summary.to_json()["endpoints"]:
        places = 2 if entry["max_ms"] < 10 else 1 if entry["max_ms"] < 1000 else 0
        assert f"{entry['max_ms']:.{places}f}" in words


def test_notes_follow_the_table(make_bundle: MakeBundle) -> None:
    path = make_bundle(
        n=50,
        failures={("minio", "PutObject"): (3, 0)},
        manifest={"status": "interrupted", "reason": "by the user"},
    )
    text = " ".join(printed(summarize(read_bundle(path)), 100).split())
    assert "The run was interrupted (by the user)" in text
    assert "MinIO 2026-02-12 PutObject 3 fail, 0 unknown of 50" in text
    assert "p99 rests on fewer than 100" in text


def test_names_cannot_smuggle_markup(make_bundle: MakeBundle) -> None:
    path = make_bundle(systems=[("[red]garage", "1.0")], manifest={"study": {"name": "[bold]x"}})
    text = printed(summarize(read_bundle(path)), 160)
    assert "[red]garage 1.0" in text
    assert "[bold]x on five-sites" in text


def test_markdown_is_the_same_table(make_bundle: MakeBundle) -> None:
    summary = summarize(read_bundle(make_bundle(failures={("garage", "GetObject"): (0, 1)})))
    lines = markdown_table(summary).splitlines()
    table = [line for line in lines if line.startswith("|")]
    assert len(table) == 2 + 10
    assert len({line.count("|") for line in table}) == 1
    assert any("| Garage 2.5.0 | GetObject | 100 | 99/0/1 |" in line for line in table)
    assert any(line.startswith("- Failures are in no mean") for line in lines)


def test_markdown_survives_a_pipe_in_a_name(make_bundle: MakeBundle) -> None:
    text = markdown_table(summarize(read_bundle(make_bundle(systems=[("a|b", "1")]))))
    assert r"a\|b 1" in text


def test_placement_has_a_column_only_where_some_is_known(make_bundle: MakeBundle) -> None:
    old = summarize(read_bundle(make_bundle(name="old")))
    for text in (markdown_table(old), printed(old, 160), printed(old, 80)):
        assert "placement" not in text
    placed = summarize(read_bundle(make_bundle(name="placed", **FOUR_SYSTEMS)))
    for text in (markdown_table(placed), printed(placed, 160), printed(placed, 80)):
        assert "placement" in text


def test_every_row_says_its_own_endpoint_and_placement(make_bundle: MakeBundle) -> None:
    summary = summarize(read_bundle(make_bundle(**FOUR_SYSTEMS)))
    lines = [line for line in markdown_table(summary).splitlines() if line.startswith("|")]
    assert len(lines) == 2 + 2 * 5 + 2 * 9
    assert lines[0].startswith("| system | endpoint | placement | n |")
    assert lines[1].startswith("| --- | --- | --- | ---: |")
    get = [line.split(" | ")[:3] for line in lines if "Get" in line]
    assert get == [
        ["| Garage 2.5.0", "GetObject", "unknown"],
        ["| MinIO 2026-02-12", "GetObject", "unknown"],
        ["| Bob 2.1.0-alpha.12", "Get", "local"],
        ["| Bob 2.1.0-alpha.12", "Get", "remote"],
        ["| quorum 0.1.0", "Get", "local"],
        ["| quorum 0.1.0", "Get", "remote"],
    ]


def test_rows_that_correspond_are_not_set_apart(make_bundle: MakeBundle) -> None:
    text = printed(summarize(read_bundle(make_bundle(**FOUR_SYSTEMS))), 160)
    body = text.split("─\n")[1].split("•")[0]
    lines = [line.rstrip() for line in body.splitlines()]
    blocks = "\n".join(lines).strip().split("\n\n")
    assert [len(block.splitlines()) for block in blocks] == [2, 2, 6, 6, 6, 4, 2]


@pytest.mark.parametrize("width", [40, 60, 79, 80, 92, 100, 120, 160])
def test_no_digit_is_lost_with_placements(make_bundle: MakeBundle, width: int) -> None:
    path = make_bundle(systems=[MINIO, BOB], endpoints=["Get", "Delete"], placed={"bob": BOTH})
    summary = summarize(read_bundle(path))
    wide, narrow = printed(summary, 300), printed(summary, width)
    assert sorted(c for c in narrow if c.isdigit()) == sorted(c for c in wide if c.isdigit())
    assert max(len(line.rstrip()) for line in narrow.splitlines()) <= width


def test_words_are_whole_at_80_columns_with_placements(make_bundle: MakeBundle) -> None:
    words = printed(summarize(read_bundle(make_bundle(**FOUR_SYSTEMS))), 80).split()
    assert {"RemoveObject", "ListBuckets", "local", "remote", "unknown", "placement"} <= set(words)
    assert words.count("Exist") == 4
