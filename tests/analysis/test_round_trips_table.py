"""The table of round trips: both answers side by side, and no figure where there is none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from round_trips_bundles import PLAIN, Does, write_round_trips_bundle

from wanlat.analysis.bundle import read_bundle
from wanlat.analysis.packets.model import Share
from wanlat.analysis.round_trips_table import BYTES, CHAIN, MODES, PACKETS, ROUND_TRIPS, N, cells_of
from wanlat.analysis.summary import Summary, summarize
from wanlat.analysis.table import markdown_table, print_table

PUT = ("quorum", "PutObject", "unknown")


def summary_of(directory: Path, **settings: Any) -> Summary:
    return summarize(read_bundle(write_round_trips_bundle(directory, **settings)))


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Summary:
    """Two round trips of PutObject; none, and one or three, of GetObject."""
    return summary_of(tmp_path_factory.mktemp("plain"))


def cells(summary: Summary, place: int = 0) -> dict[str, str]:
    assert summary.round_trips is not None
    return cells_of(summary.round_trips[place])


def printed(summary: Summary, width: int) -> str:
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    print_table(summary, console)
    return console.export_text()


def test_a_number_has_its_interval(plain: Summary) -> None:
    written = cells(plain)[ROUND_TRIPS]
    assert written.startswith("2.00 [") or written.startswith(("1.99 [", "2.01 ["))


def test_no_number_is_minus_zero(plain: Summary) -> None:
    assert "-0.00" not in markdown_table(plain)


def test_modes_are_told_with_their_shares(plain: Summary) -> None:
    three, one = cells(plain, 2)[MODES].split()
    assert three.endswith("%:3.00")
    assert one.endswith("%:1.00")
    assert cells(plain)[MODES] == "one"


def test_where_the_two_answers_disagree_the_chain_is_marked(plain: Summary) -> None:
    assert plain.round_trips is not None
    entry = replace(plain.round_trips[0], chain_round_trips=2.5, chains=(Share(2.5, 1.0),))
    assert cells_of(replace(entry, agrees=False))[CHAIN] == "2.5 ≠"
    assert cells_of(replace(entry, agrees=True))[CHAIN] == "2.5"
    assert cells_of(replace(entry, chain_round_trips=None))[CHAIN] == "–"


def test_no_figure_stands_where_there_is_no_number(tmp_path: Path) -> None:
    summary = summary_of(tmp_path, does={PUT: [Does(1, 2)]}, jitter_ms=10.0)
    written = cells(summary)
    assert written.pop(N) == "225"
    assert written.pop(ROUND_TRIPS) == "none"
    assert set(written.values()) == {"–"}
    assert "jitter of 10 ms" in printed(summary, 200)


@pytest.mark.parametrize("width", [70, 80, 100, 120, 160])
def test_nothing_is_cut_short_on_any_terminal(plain: Summary, width: int) -> None:
    text = printed(plain, width)
    assert "…" not in text
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width
    together = "".join(text.split())
    for group in plain.groups:
        assert group.endpoint in together or width < 100
    assert "225" in together


def test_every_endpoint_and_placement_has_a_row_of_markdown(plain: Summary) -> None:
    rows = [line for line in markdown_table(plain).splitlines() if line.startswith("| quorum")]
    assert len(rows) == len(PLAIN)
    header = next(
        line for line in markdown_table(plain).splitlines() if line.startswith("| system")
    )
    assert "WAN bytes" in header
    assert header.count("|") == rows[0].count("|")


def test_a_cost_that_may_be_nothing_is_told_as_what_it_is_at_most(plain: Summary) -> None:
    assert plain.round_trips is not None
    entry = replace(plain.round_trips[0], wan_bytes=-13.2, wan_packets=10.25)
    entry = replace(entry, wan_bytes_ci95=(-60.0, 41.3), wan_packets_ci95=(9.9, 10.6))
    assert cells_of(entry)[BYTES] == "≤ 41"
    assert cells_of(entry)[PACKETS] == "10.2"
