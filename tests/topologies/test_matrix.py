"""A matrix of round trips becomes the network that it measured; what is odd in it is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wanlat.topologies.load import load
from wanlat.topologies.matrix import MatrixError
from wanlat.topologies.matrix_import import Imported, import_matrix
from wanlat.topologies.resolve import Plan, resolve
from wanlat.topologies.units import Duration, Fraction

SQUARE = """# Where from: a measurement of ours
from,Paris,Tokyo,Lima
Paris,,230,190
Tokyo,231,,150
Lima,190,150,
"""


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def made(text: str, **options: Any) -> Imported:
    """Import a matrix, and make sure that the text loads to the same topology."""
    Path("matrix.csv").write_text(text, encoding="utf-8")
    imported = import_matrix("matrix.csv", **options)
    Path("made.yaml").write_text(imported.text, encoding="utf-8")
    assert load("made.yaml") == imported.topology
    return imported


def plan(text: str, **options: Any) -> Plan:
    return resolve(made(text, **options).topology)


def rtt(text: str, **options: Any) -> dict[tuple[str, str], float]:
    """Every round trip between the first nodes of two sites, by the sites' names."""
    network = plan(text, **options)
    firsts = {site.name: site.nodes[0].name for site in network.sites}
    return {(a, b): network.rtt_ms(firsts[a], firsts[b]) for a in firsts for b in firsts if a < b}


@pytest.mark.parametrize(
    "text",
    [
        SQUARE,
        SQUARE.replace(",", ";").replace("190", "190,0"),  # as a German spreadsheet saves it
        SQUARE.replace("190", "0.19s").replace("150", "150 ms"),
        SQUARE.replace("Tokyo,231,,150", "Tokyo,231"),
        'from,"Paris",Tokyo,Lima\nParis,-,230,190\nTokyo,231,n/a,\nLima,,150,-\n',
        "source,destination,rtt_ms\nParis,Tokyo,230\nTokyo,Paris,231\nParis,Lima,190\n"
        "Lima,Tokyo,150\n",
        "from,to,rtt_us\nParis,Tokyo,230500\nLima,Paris,190000\nTokyo,Lima,150000\n",
    ],
)
def test_the_forms_that_mean_the_same(text: str) -> None:
    assert rtt(text) == {
        ("paris", "tokyo"): 230.5,  # both ends measured it: the mean
        ("lima", "paris"): 190,
        ("lima", "tokyo"): 150,
    }


def test_one_way_delays_keep_their_direction() -> None:
    network = plan("from,to,delay_ms\na,b,30\nb,a,80.5\n")
    (link,) = network.wan_links
    assert (link.forward.delay_ns, link.backward.delay_ns) == (30_000_000, 80_500_000)
    assert plan("x,a,b\na,,30\nb,80.5,\n", one_way=True).wan_links == network.wan_links


def test_the_diagonal_lies_inside_a_place_and_the_matrix_still_holds() -> None:
    network = plan("x,a,b\na,1.2,30\nb,30,0.4\n", nodes=2)
    assert (network.rtt_ms("a-1", "a-2"), network.rtt_ms("b-1", "b-2")) == (1.2, 0.4)
    assert network.rtt_ms("a-1", "b-2") == 30
    assert plan("x,a,b\na,1.2,30\nb,30,0.4\n", nodes=2, inside=False).rtt_ms("a-1", "a-2") == 0


def test_jitter_loss_and_rate_are_taken() -> None:
    (link,) = plan("from,to,rtt_ms,jitter_ms,loss,rate\na,b,30,2,0.5%,100mbit\n").wan_links
    assert link.forward == link.backward
    assert (link.forward.jitter_ns, link.forward.loss, link.forward.rate_bps) == (
        *(10**6, 0.005, 10**8),
    )
    for jitter, ns in ((Duration(10**6), 500_000), (Fraction.parse("5%"), 5_762_500)):
        assert plan(SQUARE, jitter=jitter).wan_links[0].forward.jitter_ns == ns


def test_missing_figures_are_told_or_filled() -> None:
    missing = SQUARE.replace("190", "").replace("150", "")
    with pytest.raises(MatrixError, match="2 figures are missing: Paris to Lima and Tokyo to Lima"):
        made(missing)
    filled = rtt(missing, default=Duration(99 * 10**6))
    assert filled["lima", "paris"] == filled["lima", "tokyo"] == 99


NAMES = ["São Paulo (GRU)", "sao paulo gru", "東京", "no", "x" * 40, "x" * 41]


def test_names_become_host_names_and_what_is_odd_is_told() -> None:
    lines = [f"{a},{b},230000,9" for a in NAMES for b in NAMES if a < b]
    imported = made("from,to,rtt_ms,p95_ms\n" + "\n".join(lines), nodes=12)
    names = {site.name for site in imported.topology.sites}
    assert {"sao-paulo-gru", "sao-paulo-gru-2", "no"} < names and len(names) == 6
    for word in ("東京 → site-", "column `p95_ms` is not used", "is the unit right"):
        assert word in " ".join(imported.notes)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no line with figures"),
        ("x,a,b\na,,-2\nb,slow,\nc,1,1\n", "matrix.csv has 3 mistakes:\n"),
        ("x,a\na,\n", "matrix.csv:1: a matrix has at least two places"),
        ("x,a,b,a\na,,1,1\n", "matrix.csv:1: every column has a name of its own"),
        ("x,a,b\na,,1\na,,2\n", "matrix.csv:3: from a to b is given already (first in line 2)"),
        ("x,paris,b\nparos,,1\n", "matrix.csv:2: row `paros` has no column of that name (did you"),
        ("x,a,b\na,,1,2\n", "matrix.csv:2: row `a` has 3 figures for 2 columns"),
        ("x,a,b\na,,inf\n", "1 figure is missing"),
        ("x,a,b\na,,2e6\n", "matrix.csv:2: from a to b: `2e6` is longer than 1800s"),
        ("x,a,b\na,4,1\nb,1,2\n", "matrix.csv:2: from a to b: 1 ms is less than the 3 ms"),
        ("from,to,speed\na,b,1\n", "matrix.csv:1: none of the columns (`speed`)"),
        ("from,to,rtt\na\n", "matrix.csv:2: 3 cells are wanted here"),
        ("from,to,rtt,loss\na,b,1,5\n", "matrix.csv:2: from a to b: `5` is outside 0..1"),
        ("from,to,rtt,jitter\na,b,1,5\n", "matrix.csv:2: from a to b: a jitter of 5 ms is more"),
        ('x,a,b\na,,"1\n', "matrix.csv:2: this is not CSV"),
        ("x,a,b\na,,1\nb,1,\n" + "# \n" * 3 + "c,1,2", "matrix.csv:7: row `c` has no column"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text: str, says: str) -> None:
    with pytest.raises(MatrixError) as caught:
        made(text)
    assert says in str(caught.value)


@settings(max_examples=100)
@given(st.text(alphabet="ab,;\t\n\"'#-.0123456789msµé", max_size=200))
def test_noise_is_a_matrix_or_a_clean_error(text: str) -> None:
    try:
        made(text)
    except MatrixError as error:
        assert "matrix.csv" in str(error)
