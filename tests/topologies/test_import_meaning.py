"""What people's tables mean: a figure is read as it was meant, or refused, or noted."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.command_line import here
from tests.topologies.test_matrix import made, plan, rtt
from wanlat.topologies.matrix import MatrixError
from wanlat.topologies.matrix_import import import_matrix
from wanlat.topologies.units import Duration

Rtts = dict[tuple[str, str], float]

TRIPLE = {("oslo", "rome"): 41.3, ("lima", "oslo"): 228, ("lima", "rome"): 201.5}
RACKS = {("rack1", "rack2"): 0.18, ("rack1", "rack3"): 0.24, ("rack2", "rack3"): 0.41}
FOUR = {
    **{("site-1", "site-2"): 12, ("site-1", "site-3"): 85, ("site-1", "site-4"): 140},
    **{("site-2", "site-3"): 78, ("site-2", "site-4"): 133, ("site-3", "site-4"): 210},
}


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def long(header: str, figures: str = "41.3 228 201.5") -> str:
    """Lines for three places, headed as given; each figure is followed by what it is joined to."""
    ends = ("oslo,rome", "oslo,lima", "rome,lima")
    rows = [f"{pair},{figure}" for pair, figure in zip(ends, figures.split(), strict=True)]
    return "\n".join([header, *rows]) + "\n"


def notes(text: str, **options: Any) -> str:
    return " ".join(made(text, **options).notes)


def refusal(text: str, **options: Any) -> str:
    with pytest.raises(MatrixError) as caught:
        made(text, **options)
    return str(caught.value)


PURE = "0,12,85,140\n12,0,78,133\n85,78,0,210\n140,133,210,0\n"


@pytest.mark.parametrize(
    "text",
    [
        PURE,
        PURE.replace(",", "\t"),
        PURE.replace(",", "  "),
        PURE.replace(",", ";").replace("12", "12,0"),
        "# numpy.savetxt\n"
        + "\n".join(
            " ".join(f"{float(cell):.18e}" for cell in line.split(","))
            for line in PURE.splitlines()
        ),
        "nan,12,85,140\n12,nan,78,133\n85,78,nan,210\n140,133,210,nan\n",
        ",12.0,85,140\n12.0,,78,133\n85,78,,210\n140,133,210,\n",
        "".join(f"{','.join(f'{c}ms' for c in line.split(','))}\n" for line in PURE.splitlines()),
    ],
)
def test_a_matrix_of_figures_alone_keeps_every_place(text: str) -> None:
    imported = made(text)
    assert len(imported.topology.sites) == 4
    assert rtt(text) == FOUR
    assert "site-1, site-2, site-3 and site-4" in " ".join(imported.notes)


@pytest.mark.parametrize(
    "text",
    [
        "oslo,0,41.3,228\nrome,41.3,0,201.5\nlima,228,201.5,0\n",  # no first line
        "oslo,rome,lima\n0,41.3,228\n41.3,0,201.5\n228,201.5,0\n",  # no first column
        "oslo rome lima\noslo 0 41.3 228\nrome 41.3 0 201.5\nlima 228 201.5 0\n",  # of R
        ",oslo,rome,lima,\noslo,0,41.3,228,\nrome,41.3,0,201.5,\nlima,228,201.5,0,\n",
        "sep=;\n;oslo;rome;lima\noslo;;41,3;228\nrome;;;201,5\nlima;;;\n",
    ],
)
def test_names_that_stand_once_are_enough(text: str) -> None:
    assert rtt(text) == TRIPLE


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("from,3356,1299,174\n3356,0,10,20\n1299,10,0,30\n174,20,30,0\n", {"174", "1299", "3356"}),
        (",0,1,2\n0,,10,20\n1,10,,30\n2,20,30,\n", {"0", "1", "2"}),
        (",3356,1299,7018\n3356,,1,2\n1299,1,,3\n7018,2,3,\n", {"3356", "1299", "7018"}),
        ("from,to,rtt_ms\n1,2,10\n1,3,20\n2,3,30\n", {"1", "2", "3"}),
        ("x,10,7\n10,,230.3\n7,\n", {"10", "7"}),
        ("x,10.0.0.1,10.0.0.2\n10.0.0.1,0,5\n10.0.0.2,5,0\n", {"10-0-0-1", "10-0-0-2"}),
    ],
)
def test_places_may_be_named_by_numbers(text: str, names: set[str]) -> None:
    imported = made(text)
    assert {site.name for site in imported.topology.sites} == names


@pytest.mark.parametrize(
    "text",
    [
        ",12,85,140\n12,,78,133\n85,78,,210\n140,133,210,\n",  # names, or a missing diagonal
        "0,1,2\n1,0,3\n2,3,0\n",
        "0,12,85\n12,0,78\n",
        "5,1,2\n1,5,2\n2,2,5\n",  # no distance is less than what lies inside
        "0,12,85\n0,78\n0\n",
        "host,avg,max\noslo,41,44\nrome,38,50\n",
        "A end,B end,C\noslo,rome,41.3\noslo,lima,228\n",
        "1 2 30\n1 3 40\n2 3 12\n",  # lines of ids, without their names
        "oslo,rome,41.3\noslo,lima,228\nrome,lima,201.5\n",
        "2\n0 12\n12 0\n",
        "oslo\nrome,12\nlima,85,78\n",
        "x,oslo,rome,mean\noslo,0,41,20\nrome,41,0,20\n",
        "from,to,half_rtt_ms\na,b,10\n",
        "from,to,rtt_100us\na,b,10\n",
        "from,to,rtt (10^-6 s)\na,b,10\n",
        "from,to,RTT/OWD\na,b,10\n",
        "from,to,RTT (0.1 ms)\na,b,10\n",
        "from,to,RTT [10 us]\na,b,10\n",
        "from,to,rtt (1e-6 s)\na,b,10\n",
        "from,to,rtt_deci_seconds\na,b,10\n",
        "from,to,avg_ms,p99_ms\na,b,10,20\n",
        "from,to,rtt_ms,unit\na,b,10,us\n",  # which of the two?
        "from,to,rtt US-EU\na,b,100\n",
        "x,a,b,c\na,5,6\nb,7\n",  # triangles that are not below their columns
        "x,a,b,c\na,0,5,6\nb,0,7\nc,0\n",
        "from,to,rtt_ms\na,b,10\nNaN,b,12\n",
        "from,to,time_s\na,b,10\n",
        "x,y,rtt\n0,1,3\n1,0,3\n0,2,0\n",
        "Loss (%),a,b\na,0,1\nb,1,0\n",  # other matrices than of times
        "Mbits/sec,a,b\na,0,94\nb,94,0\n",
        "jitter (ms),a,b\na,0,1\nb,1,0\n",
        "km,a,b\na,0,900\nb,900,0\n",
        "City (US),a,b\na,0,180\nb,180,0\n",
        ",V1,V2\n1,0,12\n2,12,0\n",  # of R: one set of places under two names
        "x,Oslo,Rome\nOSL,-,41\nFCO,41,-\n",
    ],
)
def test_what_can_be_read_in_two_ways_is_refused(text: str) -> None:
    assert "matrix.csv" in refusal(text)
    assert "matrix.csv" in refusal(text, default=Duration(10**8))


def test_a_matrix_of_large_figures_is_as_good_as_one_of_small_ones() -> None:
    micro = (
        "0 12000 85000 140000\n12000 0 78000 133000\n85000 78000 0 210000\n140000 133000 210000 0\n"
    )
    assert rtt(micro, unit="us") == FOUR


def test_a_part_of_a_large_matrix_is_taken() -> None:
    rows = [" ".join(str(5 * abs(a - b)) for b in range(230)) for a in range(230)]
    text = "\n".join(rows)
    assert "--places 200" in refusal(text)
    imported = made(text, places=3)
    assert [site.name for site in imported.topology.sites] == ["site-1", "site-2", "site-3"]
    assert rtt(text, places=["site-9", "site-2"]) == {("site-2", "site-9"): 35}
    assert "no place `site-231`" in refusal(text, places=["site-1", "site-231"])
    broken = "x,a,b,c\na,,5,much\nb,5,,7\nc,much,7,\n"  # of the others nothing has to be right
    assert rtt(broken, places=2) == rtt(broken, places=["b", "a"]) == {("a", "b"): 5}


@pytest.mark.parametrize(
    "name",
    [
        *("rtt_usec", "rtt_us_avg", "rtt_µs", "RTT (μs)", "rttUs", "RTTus", "latency[usecs]"),
        *(
            "rtt_uSec",
            "RTT (uS)",
            "rtt (micro-seconds)",
            "minRTT_us",
            "2-way delay (us)",
            "SRTT us",
        ),
        *("ping microseconds", "rttus", "avg_rtt_us", "Latency (us)", "roundTripTimeMicros"),
    ],
)
def test_a_unit_in_a_columns_name_is_taken(name: str) -> None:
    assert rtt(long(f"from,to,{name}", "41300 228000 201500")) == TRIPLE
    matrix = f"{name},oslo,rome,lima\noslo,,41300,228000\nrome,,,201500\nlima,,,\n"
    assert rtt(matrix) == TRIPLE
    assert "--unit ms" in refusal(matrix, unit="ms")
    assert rtt(matrix, unit="us") == TRIPLE


@pytest.mark.parametrize(
    ("header", "figures"),
    [
        ("from,to,latency_seconds", "0.0413 0.2280 0.2015"),
        ("from,to,ping_sec", "0.0413 0.2280 0.2015"),
        ("from,to,RTT [s]", "0.0413 0.2280 0.2015"),
        ("from,to,rtt_nanoseconds", "41300000 228000000 2.015e8"),
        ("from,to,rtt", "41.3 228 201.5"),
        ("from,to,rtt_p50", "41300us 228msec 0.2015seconds"),
        ("from,to,rtt_ms", "41300µs 228ms 201500μs"),
        ("Source Region,Destination Region,RTT (ms)", "41.3 228 201.5"),
        ("Src,Dst,rttMs", "41.3 228 201.5"),
        ("Src,Dst,rtt_mSec", "41.3 228 201.5"),
        ("from,to,p50_ms", "41.3 228 201.5"),
        ("sending_region,receiving_region,milliseconds", "41.3 228 201.5"),
        ("u,v,Mean (us)", "41300 228000 201500"),
        ("Source Data Center,Destination Data Center,RTT", "41.3 228 201.5"),
        ("from,to,p50_ms,rtt_ms", "1,41.3 1,228 1,201.5"),
        ("Origin,Peer,Round-trip time (msec)", "41.3 228 201.5"),
        ("source_ip,target_ip,Ping", "41.3 228 201.5"),
        ("site_a,site_b,rtt", "41.3 228 201.5"),
        ("client,server,avg latency ms", "41.3 228 201.5"),
        ("source,target,p50 rtt ms", "41.3 228 201.5"),
        ("from,to,rtt,unit", "41300,us 0.228,s 201.5,ms"),
        ("from,to,rtt,success_rate", "41.3,0.99 228,0.98 201.5,1"),
        ("from,to,rtt,bandwidth", "41.3,100 228,100 201.5,100"),
        ("from,to,rtt,upload_mbps,download_mbps", "41.3,1,2 228,1,2 201.5,1,2"),
    ],
)
def test_the_names_and_units_of_columns(header: str, figures: str) -> None:
    assert rtt(long(header, figures)) == TRIPLE


@pytest.mark.parametrize("name", ["rtt_ticks", "rtt_min_hops", "Latency (km)", "rtt_us_or_ms"])
def test_an_unknown_unit_is_never_milliseconds(name: str) -> None:
    assert "--unit" in refusal(long(f"from,to,{name}"))
    assert "--unit" in refusal(f"{name},a,b\na,0,4\nb,4,0\n")
    assert rtt(long(f"from,to,{name}"), unit="ms") == TRIPLE


@pytest.mark.parametrize("name", ["rtt_p99_us", "max_rtt_ms", "RTT 95th percentile (ms)"])
def test_the_worst_of_several_figures_is_noted(name: str) -> None:
    assert "the median is usual" in notes(long(f"from,to,{name}"))


@pytest.mark.parametrize("name", ["rtt_ms", "p50_ms", "min_rtt_ms", "rtt_avg_ms"])
def test_usual_figures_are_not(name: str) -> None:
    assert "the median is usual" not in notes(long(f"from,to,{name}"))


def test_a_unit_that_stands_in_no_column_is_noted() -> None:
    assert "--unit us" in notes("# RTT in µs\nfrom,to,rtt\na,b,180\n")
    assert "--unit" in notes("from,to,rtt\na,b,0.0413\n")
    for corner in ("values in µs", "Measured in usec", "from / to (us)", "[us]", "us"):
        assert rtt(f"{corner},a,b\na,0,180\nb,180,0\n") == {("a", "b"): 0.18}
    assert "--unit" in notes("city us,a,b\na,0,4\nb,4,0\n")
    assert "--unit" in notes("x (ticks),a,b\na,0,4\nb,4,0\n")
    for comment in ("values are microseconds", "us", "RTT, us", "median rtt us", "rtt_us", "usecs"):
        assert "--unit us" in notes(f"# {comment}\nx,a,b\na,0,180\nb,180,0\n")
    for comment in (
        "in us-east-1",
        "from the US",
        "a ping every 200 msec",
        "10 seconds each",
        "t in s, RTT in ms",
        "ms",
    ):
        assert not made(f"# {comment}\nx,a,b\na,0,180\nb,180,0\n").notes
    caption = "RTT in microseconds:\n\n| | a | b |\n|-|-|-|\n| a | | 180 |\n| b | 180 | |\n"
    assert "--unit us" in notes(caption)
    assert "--one-way" in notes("# one-way delays\nx,a,b\na,0,18\nb,18,0\n")
    assert not made("from,to,rtt_ms\na,b,0.0413\n").notes


def test_each_direction_has_its_own_loss_rate_and_jitter() -> None:
    text = "from,to,rtt_ms,loss,rate,jitter_ms\nhome,dc,24,0.2%,8mbit,1\ndc,home,26,3%,100mbit,2\n"
    (link,) = plan(text).wan_links
    way = [(d.delay_ns, d.loss, d.rate_bps, d.jitter_ns) for d in (link.forward, link.backward)]
    assert way == [(12_500_000, 0.002, 8e6, 500_000), (12_500_000, 0.03, 1e8, 1_000_000)]


def test_directions_that_are_alike_stay_one_link_and_the_unknown_is_noted() -> None:
    both = "from,to,rtt_ms,rate\na,b,24,8mbit\nb,a,26,8mbit\n"
    assert "{between: [a, b], rtt: 25ms, rate: 8mbit}" in made(both).text
    one = "from,to,rtt_ms,rate,jitter_ms\na,b,24,8mbit,2\nb,a,26,,\n"
    (link,) = plan(one).wan_links
    assert (link.forward.rate_bps, link.backward.rate_bps) == (8_000_000, None)
    assert link.forward.jitter_ns == link.backward.jitter_ns == 1_000_000
    assert "one direction alone" in notes(one)
    jitter = plan(both.replace("26,8", "26,9"), jitter=Duration(2_000_000)).wan_links[0]
    assert jitter.forward.jitter_ns == 1_000_000
    for lost in ("-", "0", "timeout"):
        (link,) = plan(both.replace("26,8", f"{lost},9")).wan_links
        assert (link.forward.rate_bps, link.backward.rate_bps) == (8_000_000, 9_000_000)
    inside = plan("from,to,rtt,loss\na,a,2,\na,b,20,1%\nb,a,20,2%\n", nodes=2)
    assert inside.rtt_ms("a-1", "b-1") == 20


@pytest.mark.parametrize(
    "text",
    [
        "ms\ta\tb\tc\na\t0\t1,234\t31.5\nb\t1,234\t0\t1,260\nc\t31.5\t1,260\t0\n",
        "ms\ta\tb\tc\na\t0\t1.234\t31,5\nb\t1.234\t0\t1.260\nc\t31,5\t1.260\t0\n",
        'ms,a,b,c\na,0,"1,234",31.5\nb,"1,234",0,"1,260"\nc,31.5,"1,260",0\n',
        "ms;a;b;c\na;0;1 234;31,5\nb;1 234;0;1 260,0\nc;31,5;1 260;0\n",
        "ms\ta\tb\tc\na\t0\t1\u00a0234,0\t31,5\nb\t\t0\t1\u00a0260\nc\t\t\t0\n",
        "ms\ta\tb\tc\na\t0\t1 234\t31,5\nb\t1 234\t0\t1 260\nc\t31,5\t1 260\t0\n",
        "ms;a;b;c\na;0;1'234;31.5\nb;1'234;0;1'260\nc;31.5;1'260;0\n",
        "from\tto\trtt\na\tb\t1,234 ms\na\tc\t31.5 ms\nb\tc\t1.26 s\n",
        "from\tto\trtt\na\tb\t1,234.0\na\tc\t31.5\nb\tc\t1,260\n",
    ],
)
def test_thousands_are_told_from_decimals_by_the_whole_file(text: str) -> None:
    assert rtt(text) == {("a", "b"): 1234, ("a", "c"): 31.5, ("b", "c"): 1260}


def test_decimals_that_nothing_decides_are_refused_with_both_readings() -> None:
    text = "ms\ta\tb\na\t0\t1,234\nb\t1,234\t0\n"
    assert "1.234, or 1234" in refusal(text)
    assert rtt(text, decimal=",") == {("a", "b"): 1.234}
    assert rtt(text, decimal=".") == {("a", "b"): 1234}
    mixed = "ms\ta\tb\tc\na\t0\t1.234\t31\nb\t\t0\t1.260\n"
    assert "1.234, or 1234" in refusal(mixed)
    assert "decimal comma" in refusal("x;a;b\na;0;1,5\nb;1.5;0\n")
    ping = "from\tto\trtt\na\tb\t41.234\nb\ta\t41.300\n"
    assert rtt(ping) == {("a", "b"): 41.267}
    assert "--decimal" in notes(ping)


@pytest.mark.parametrize(
    "text",
    [
        "\tSeoul, Korea\tLima, Peru, SA\nSeoul, Korea\t0\t321\nLima, Peru, SA\t321\t0\n",
        '\tSeoul, Korea\t"Lima", Peru; SA\nSeoul, Korea\t0\t321\n"Lima", Peru; SA\t321\t0\n',
        ";Seoul, Korea;Lima, Peru, SA\nSeoul, Korea;0;321,0\nLima, Peru, SA;321,0;0\n",
        "| |Seoul, Korea|Lima, Peru, SA|\n|-|-|-|\n|Seoul, Korea| |321|\n|Lima, Peru, SA| | |\n",
        'x,"Seoul, Korea","Lima, Peru, SA"\n"Seoul, Korea",,321\n"Lima, Peru, SA",321,\n',
        "               Seoul, KR   Lima, PE\nSeoul, KR       0         321\nLima, PE  321   0\n",
        "from       to            rtt\nNew York   Los Angeles   321\n",
    ],
)
def test_what_separates_cells_may_stand_in_names(text: str) -> None:
    assert list(rtt(text).values()) == [321]


@pytest.mark.parametrize(
    ("loss", "name"),
    [("1", "loss"), ("0.5", "loss"), ("0.5", "packet_loss"), ("1", "lossRate")],
)
def test_a_bare_loss_of_half_or_more_is_refused(loss: str, name: str) -> None:
    text = f"from,to,rtt_ms,{name}\na,b,41.3,{loss}\n"
    assert f"{loss}%" in refusal(text)
    assert plan(text.replace(name, "loss_pct")).wan_links[0].forward.loss == float(loss) / 100
    assert plan(text.replace(name, "Loss [%]")).wan_links[0].forward.loss == float(loss) / 100
    assert plan(text.replace(name, "loss_fraction")).wan_links[0].forward.loss == float(loss)


def test_a_small_bare_loss_is_a_fraction_with_a_note() -> None:
    text = "from,to,rtt_ms,loss\na,b,41.3,0.2\n"
    assert plan(text).wan_links[0].forward.loss == 0.2
    assert "20% of the packets" in notes(text)
    assert not made(text.replace("0.2", "0.2%")).notes
    assert not made(text.replace("0.2", "0.0")).notes


def test_words_that_mean_two_things_are_noted() -> None:
    assert "--one-way" in notes(long("source,target,latency", "20650us 114000us 100750us"))
    one_way = "from,to,latency\na,b,30\nb,a,31\n"
    assert rtt(one_way, one_way=True) == {("a", "b"): 61} and rtt(one_way) == {("a", "b"): 30.5}
    for name in ("delay", "delay_ms"):
        text = f"from,to,{name}\na,b,30\nb,a,30\n"
        assert rtt(text) == {("a", "b"): 60} and "rtt" in notes(text)
    for name in ("owd_ms", "one_way_ms", "One-way delay (ms)", "one-way latency ms"):
        text = f"from,to,{name}\na,b,30\nb,a,30\n"
        assert rtt(text) == {("a", "b"): 60} and not made(text).notes
    assert rtt("one-way delay (us),a,b\na,,30\nb,30,\n") == {("a", "b"): 0.06}
    assert not made(long("from,to,rtt")).notes


def test_delays_that_are_given_once_a_pair_are_those_of_both_directions() -> None:
    text = long("source,target,latency,loss", "20650us,1% 114000us,0% 100750us,0%")
    assert rtt(text, one_way=True) == TRIPLE
    assert "both directions" in notes(text, one_way=True)
    (link, *_) = plan(text, one_way=True).wan_links
    assert link.forward.loss == link.backward.loss == 0.01
    assert rtt(long("from,to,owd_ms", "20.65 114 100.75")) == TRIPLE
    assert rtt("owd,a,b,c\na,0,1,2\nb,,0,3\nc,,,0\n") == {
        **{("a", "b"): 2, ("a", "c"): 4, ("b", "c"): 6}
    }
    assert "1 figure is missing: b to a" in refusal("owd,a,b,c\na,,1,2\nb,,,3\nc,2,3,\n")


def test_places_that_are_nothing_apart_are_noted() -> None:
    text = ",oslo,rome,lima\noslo,0,41.3,0\nrome,41.3,0,201.5\nlima,0,201.5,0\n"
    assert "1 pair of different places is 0 ms apart" in notes(text)
    assert "--default" in notes("from,to,rtt_ms\na,b,0\n")


def test_a_triangle_that_is_filled_with_zeros_is_a_triangle() -> None:
    text = ",oslo,rome,lima\noslo,0,41.3,228\nrome,0,0,201.5\nlima,0,0,0\n"
    assert rtt(text) == TRIPLE and "count as missing" in notes(text)
    assert rtt("0,12,85,140\n0,0,78,133\n0,0,0,210\n0,0,0,0\n") == FOUR


@pytest.mark.parametrize(
    "cell", ["-1", "−1", "-1.0", "-1.000000e+00", "inf", "timeout", "*", "lost", "-1 ms", "∞"]
)
def test_a_lost_probe_is_a_missing_figure(cell: str) -> None:
    text = f"x,a,b,c\na,0,12,{cell}\nb,12,0,7\nc,{cell},7,0\n"
    assert "1 figure is missing" in refusal(text)
    assert rtt(text, default=Duration(10**8))["a", "c"] == 100
    assert "2 lost probes" in notes(text, default=Duration(10**8))
    assert rtt(text.replace(cell, "9", 1))["a", "c"] == 9


def test_figures_that_are_not_exact_are_read_and_bounds_are_not() -> None:
    web = "Region\tUS East (N. Virginia)\tEU\nUS East (N. Virginia)\t<1\t~75\nEU\t≈77 ms\tself\n"
    assert list(rtt(web).values()) == [76]
    assert "`~75`" in notes(web) and "`<1`" in notes(web)
    assert "is a bound" in refusal("x,a,b\na,0,<1\nb,<1,0\n")
    assert "`9..9` is not a number" in refusal("x,a,b\na,0,9..9\nb,9.5,0\n")


def test_names_that_differ_in_spaces_or_capitals_are_those_of_one_place() -> None:
    assert rtt("x,New York,Oslo\nNew\u00a0York,0,70\noslo,70,0\n") == {("new-york", "oslo"): 70}
    lines = "from,to,rtt\nOslo,Rome,40\nOslo,oslo,1\nRome,oslo,41\n"
    assert "`Oslo` and `oslo` are different places" in notes(lines)


PING = """from,to,rtt_min_ms,rtt_avg_ms,rtt_max_ms,rtt_mdev_ms
oslo,rome,40.9,41.3,44.0,0.5
oslo,lima,226.1,228.0,251.7,3.2
rome,lima,200.2,201.5,215.0,2.4
"""


def test_a_column_of_several_is_chosen() -> None:
    assert "--column" in refusal(PING)
    assert rtt(PING, column="rtt_avg_ms") == TRIPLE
    assert rtt(PING, column="RTT_min_ms")["oslo", "rome"] == 40.9
    assert "no column `rtt_p50` (--column)" in refusal(PING, column="rtt_p50")
    assert rtt(long("from,to,value (us),n", "41300,1 228000,1 201500,1"), column="value (us)") == (
        TRIPLE
    )
    assert "--column is for" in refusal(PURE, column="rtt")


@pytest.mark.parametrize("name", ["rtt_mdev_ms", "stddev_ms", "rtt std dev (ms)", "sd_ms"])
def test_a_standard_deviation_becomes_the_jitter_that_has_it(name: str) -> None:
    text = PING.replace("rtt_mdev_ms", name)
    network = plan(text, column="rtt_avg_ms")
    assert network.deviation_ms("oslo-1", "rome-1") == pytest.approx(0.5, rel=1e-5)
    assert "standard deviations" in notes(text, column="rtt_avg_ms")
    one_way = plan("from,to,owd_ms,mdev_ms\na,b,30,1\nb,a,30,1\n")
    assert one_way.wan_links[0].forward.jitter_ns == pytest.approx(3**0.5 * 10**6, abs=1)


def test_a_deviation_too_wide_for_the_figure_is_limited() -> None:
    text = "from,to,rtt_ms,mdev_ms\na,b,1,0.6\n"
    assert plan(text).wan_links[0].forward.jitter_ns == 500_000
    assert "too wide" in notes(text)
    both = "from,to,rtt_ms,mdev_ms\na,b,9,3\nb,a,1,0.1\n"
    assert plan(both).wan_links[0].forward.jitter_ns == 2_500_000


@pytest.mark.parametrize(
    ("name", "cell", "mbit"),
    [
        ("Bandwidth(Mbps)", "94", 94),
        ("bw_gbit", "1.5", 1500),
        ("Bandwidth [MB/s]", "10", 80),
        ("throughput_kbps", "2000", 2),
        ("rate", "94 Mbit/s", 94),
        ("bandwidth", "1 Gbps", 1000),
    ],
)
def test_rates_in_the_units_of_the_trade(name: str, cell: str, mbit: int) -> None:
    (link,) = plan(f"from,to,rtt_ms,{name}\na,b,12,{cell}\n").wan_links
    assert link.forward.rate_bps == mbit * 10**6


def test_units_behind_the_places_are_units() -> None:
    assert rtt("x,oslo (us),rome (us)\noslo,0,180\nrome,180,0\n") == {("oslo", "rome"): 0.18}
    assert rtt("x,oslo [s],rome [s]\noslo [s],0,1\nrome [s],1,0\n") == {("oslo", "rome"): 1000}


def test_a_comment_can_name_the_places() -> None:
    assert rtt("# oslo, rome, lima\n0 41.3 228\n41.3 0 201.5\n228 201.5 0\n") == TRIPLE
    assert rtt("# oslo rome lima\n0 41.3 228\n41.3 0 201.5\n228 201.5 0\n") == TRIPLE
    assert rtt("#,rome,oslo\noslo,41.3,0\nrome,0,41.3\n") == {("oslo", "rome"): 41.3}


def test_repeated_lines_are_their_median() -> None:
    text = (
        "from,to,rtt_ms,jitter_ms\noslo,rome,41.3,0.4\noslo,lima,228.0,2.1\nrome,lima,201.5,1.9\n"
        "oslo,rome,41.9,0.5\noslo,rome,40.8,0.4\n"
    )
    assert rtt(text) == TRIPLE
    assert "oslo to rome (3 lines)" in notes(text)
    assert rtt("from,to,rtt\na,b,10\na,b,30\nb,a,40\n") == {("a", "b"): 30}
    for lost in ("-1", "0", "timeout"):
        assert rtt(f"from,to,rtt\na,b,10\na,b,{lost}\na,b,30\n") == {("a", "b"): 20}


@pytest.mark.parametrize(
    "text",
    [
        "| RTT (ms) | Oslo | Rome | Lima |\n| --- | :---: | ---: | :--- |\n"
        "| **Oslo** |   | 41 | 228 |\n| **Rome** | 42 |   | 201 |\n| **Lima** | 229 | 203 |   |\n",
        "# Measured\n\nWith ping.\n\nRTT (us) | `Oslo` | _Rome_ | [Lima](x.md)\n-|-|-|-\n"
        "Oslo | | 41000 | 228500\nRome | 42000 | | 202000\nLima | | | **–**\n\nThe end.\n",
        " rtt | oslo | rome | lima \n-----+-----+-----+-----\n oslo | | 41.5 | 228.5\n"
        " rome | | | 202\n lima | | | \n",
        "from | to | rtt_ms\n-----+-----+----\noslo | rome | 41.5\noslo | lima | 228.5\n"
        "rome | lima | 202\n(3 rows)\n",
        "+----+------+------+------+\n| ms | Oslo | Rome | Lima |\n+====+======+======+======+\n"
        "|Oslo| 0 | 41.5 | 228.5 |\n+----+------+------+------+\n|Rome| 41.5 | 0 | 202 |\n"
        "+----+------+------+------+\n|Lima| 228.5 | 202 | 0 |\n+----+------+------+------+\n",
        "┌────┬──────┬──────┬──────┐\n│ ms │ Oslo │ Rome │ Lima │\n├────┼──────┼──────┼──────┤\n"
        "│Oslo│ 0 │ 41.5 │ 228.5 │\n│Rome│ 41.5 │ 0 │ 202 │\n│Lima│ │ │ │\n"
        "└────┴──────┴──────┴──────┘\n",
        "| RTT&nbsp;<br>(us) | Oslo | Rome | Lima |\n|-|-|-|-|\n"
        "| Oslo | | 41500<sup>1</sup> | 228500 |\n"
        "| Rome | | | 202&nbsp;ms |\n| Lima | | | |\n",
        "| from | to | rtt_ms |\n|---|---|---|\n| Oslo | Rome | `41.5` |\n| Oslo | Lima | 228.5 |\n"
        "| Rome | Lima | 202 |\n",
    ],
)
def test_tables_in_markdown(text: str) -> None:
    assert rtt(text) == {("oslo", "rome"): 41.5, ("lima", "oslo"): 228.5, ("lima", "rome"): 202}


def test_markdown_of_pipes_and_of_two_tables() -> None:
    text = "| | a\\|b | c |\n|---|---|---|\n| a\\|b | 0 | 7 |\n| c | 7 | 0 |\n"
    assert rtt(text) == {("a-b", "c"): 7}
    assert "2 tables" in refusal(text + "\n" + text)


def test_a_table_of_two_groups_of_places() -> None:
    text = "client,oslo,lima\nkyiv,38.2,242\ndoha,97.5,251\n"
    assert "kyiv to doha and oslo to lima" in refusal(text)
    filled = rtt(text, default=Duration(10**8))
    assert len(filled) == 6 and filled["kyiv", "oslo"] == 38.2 and filled["doha", "kyiv"] == 100
    assert rtt("x,hub\nkyiv,38.2\n") == {("hub", "kyiv"): 38.2}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 900_000), min_size=3, max_size=3),
    st.sampled_from([("\t", "."), ("\t", ","), (";", ","), (";", "."), (",", "."), ("|", ".")]),
    st.sampled_from([("us", 1), ("ms", 1000), ("s", 10**6)]),
    st.sampled_from(["", " ", "'", "thousands"]),
    st.booleans(),
)
def test_what_is_written_is_read_back_or_refused(
    us: list[int], form: tuple[str, str], unit: tuple[str, int], group: str, is_long: bool
) -> None:
    separator, point = form
    mark = {".": ",", ",": "."}[point] if group == "thousands" else group
    mark = "" if mark == separator else mark

    def written(value: int) -> str:
        whole, part = divmod(value, unit[1])
        decimals = f"{part / unit[1]:.6f}"[2:].rstrip("0")
        text = f"{whole:,}".replace(",", mark)
        return f"{text}{point}{decimals}" if decimals else text

    cells = [written(value) for value in us]
    a, b, c = "oslo", "rome", "lima"
    rows = [["from", "to", f"rtt_{unit[0]}"], [a, b, cells[0]], [a, c, cells[1]], [b, c, cells[2]]]
    if not is_long:
        rows = [[f"rtt ({unit[0]})", a, b, c], [a, "", *cells[:2]], [b, "", "", cells[2]]]
        rows += [[c, "", "", ""]]
    text = "\n".join(separator.join(row) for row in rows) + "\n"
    try:
        imported = made(text)
    except MatrixError:
        return
    if "--decimal" in " ".join(imported.notes):
        return
    assert rtt(text) == pytest.approx(
        dict(zip(TRIPLE, (value / 1000 for value in us), strict=True))
    )


def test_what_is_shipped_needs_no_assumption() -> None:
    """The only notes are on names, and on figures of which both ends measured one."""
    source = Path(__file__).parents[2] / "topologies" / "sources" / "azure-2026-07.csv"
    imported = import_matrix(source)
    assert [note.split()[0] for note in imported.notes] == ["names", "24"]
    body = imported.text.partition("\nname:")[2].encode()
    assert hashlib.sha256(body).hexdigest() == (
        "b9cfc0fbe0f43ee95e78f52d77bcc38fa8be4a0360c35ca836455e6177b2df85"
    )


def test_the_commands_options_reach_the_reader() -> None:
    Path("ping.csv").write_text(PING, encoding="utf-8")
    chosen = here(
        "topology", "import", "ping.csv", "--column", "rtt_avg_ms", "--places", "lima,oslo"
    )
    assert chosen.returncode == 0 and "{between: [lima, oslo], rtt: 228ms" in chosen.stdout
    assert "standard deviations" in chosen.stderr
    Path("x.tsv").write_text("ms\ta\tb\na\t0\t1,234\nb\t1,234\t0\n", encoding="utf-8")
    assert here("topology", "import", "x.tsv").returncode == 2
    assert "rtt: 1234ms" in here("topology", "import", "x.tsv", "--decimal", ".").stdout
    assert "rtt: 1.234ms" in here("topology", "import", "x.tsv", "--decimal", ",").stdout
    first = here("topology", "import", "ping.csv", "--column", "rtt_min_ms", "--places", "2")
    assert "{between: [oslo, rome], rtt: 40.9ms" in first.stdout and "lima" not in first.stdout
