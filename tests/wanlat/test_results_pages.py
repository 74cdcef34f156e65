"""Pages of docs/results that are templates say what their bundles say, and nothing by hand."""

from __future__ import annotations

import re
from math import comb
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from jinja2 import Environment

from tools.results import CHECKOUT, RESULTS, figures, listed, measure, pages

TEMPLATES = sorted(RESULTS.rglob("*.md.j2"))
_TYPED = re.compile(r"\{#-? typed:(.*?)#\}", re.DOTALL)
_MADE = re.compile(r"\{[{%#].*?[}%#]\}|```.*?```|`[^`]*`|\]\([^)]*\)|<!--.*?-->", re.DOTALL)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
# Neither of a name ("p50_ms", "minio-2021") nor of a format ("%.1f", "{:.0f}").
_IN_STRING = re.compile(r"(?<![\w.%{:])(?<!\w-)\d+(?:[.,]\d+)*(?!\w)")
_SET = re.compile(r"\{%-?\s*set\s+\w+\s*=\s*([\d.]+)\s*-?%\}")


each_template = pytest.mark.parametrize(
    "template", TEMPLATES, ids=lambda path: f"{path.parent.name}/{path.stem}"
)


@each_template
def test_a_page_is_what_is_made_of_its_bundles(template: Path) -> None:
    page = template.with_suffix("")
    assert page.read_text("utf-8") == pages.rendered(template), f"{page}: run `make pages`"


def typed(text: str) -> set[str]:
    """Find the numbers that a template says itself: outside of holes, in strings, in `set`."""
    strings = [value for _, kind, value in Environment().lex(text) if kind == "string"]
    outside = _NUMBER.findall(_MADE.sub(" ", text))
    return {*outside, *_IN_STRING.findall(" ".join(strings)), *_SET.findall(text)}


@each_template
def test_a_number_that_is_typed_is_a_condition_or_read_in_a_source(template: Path) -> None:
    text = template.read_text("utf-8")
    said = " ".join(_TYPED.findall(text))
    assert typed(text) == set(_NUMBER.findall(said)), f"{template}: say why, in {{# typed: … #}}"


def test_a_number_is_seen_in_strings_and_where_it_is_set() -> None:
    assert typed('1 {{ "2 of 3" }}{% set x = 4.5 %}{% if x %}{{ ["−6", "[7 %]"] }}') == {
        *("1", "2", "3", "4.5", "6", "7")
    }
    assert not typed('{{ mean("p50_ms", "minio-2021", n=2) | digits(3) }}{{ "%.1f {:,.0f}" }}')


_GIVEN = re.compile(r"\{\{ given\w*\(")
_BOLD = re.compile(r"\*\*(?!\s)(.+?)\*\*")
_LIMITS = ("What it does not", "What these runs cannot", "What not to", "Limits")
_LIMITS += ("What the figures rest on", "What wanlat owes")
_OF_DESIGN = {"thousand-nodes", "many-links"}  # what they show are tables of benchmarks


def unfounded(text: str) -> list[str]:
    """Find findings, sentences in bold, whose line says not which figures they rest on.

    A finding that holds a figure itself is none: it says what the bundles say.
    """
    found, heading = list[str](), ""
    for line in text.splitlines():
        heading = line.lstrip("# ") if line.startswith("#") else heading
        if heading.startswith(_LIMITS) or line.startswith("{%- ") or _GIVEN.search(line):
            continue
        said = _BOLD.findall(line) if "not stored" not in line else []
        found += [each for each in said if len(each.split()) > 3 and "{{" not in each]
    return found


@pytest.mark.parametrize(
    "template", [each for each in TEMPLATES if each.parent.name not in _OF_DESIGN], ids=str
)
def test_a_finding_says_which_figures_it_rests_on(template: Path) -> None:
    """`given(…)` before it: `make pages` fails where its bundles do not say so any more."""
    assert not unfounded(template.read_text("utf-8"))


def test_a_finding_that_rests_on_nothing_is_seen() -> None:
    finding = "- **Bob writes faster than others.** Why is not known."
    assert unfounded(finding) == ["Bob writes faster than others."]
    assert not unfounded("- {{ given(bob.high < minio.low) }}" + finding[2:])
    assert not unfounded(f"## What it does not show\n{finding}")
    assert not unfounded("- **It takes {{ bob.value | digits(2) }} ms on average.**")


def test_a_sentence_that_does_not_follow_stops_the_page() -> None:
    assert not pages.given(RESULTS, True, 1)
    with pytest.raises(pages.UnfoundedError, match="fact 2 of 3"):
        pages.given(RESULTS, True, figures.over_clusters(RESULTS, [1.0]).low > 0, True)


def test_no_page_is_written_by_hand() -> None:
    """Each is a template's, a bundle's, or `wanlat report`'s (tests/analysis/test_index.py)."""
    bundles = {each.parent for each in RESULTS.rglob("manifest.json")}
    others = {
        page.parent.name
        for page in RESULTS.rglob("*.md")
        if page.with_suffix(".md.j2") not in TEMPLATES and bundles.isdisjoint(page.parents)
    }
    assert others == {"index", "publications"}


def test_what_is_computed_is_the_mean_of_what_would_be_drawn() -> None:
    """The slowest of four in closed form, as two even draws make a triangle; the rest is drawn."""
    beyond = sum(comb(4, k) * (-0.5) ** k / (2 * k + 1) for k in range(5))
    slowest = 100 + 20 * (1 - 1 / (2**4 * 9) - beyond)
    assert figures.expected(RESULTS, 4, 4) == pytest.approx(slowest, abs=0.001)
    first, second, acknowledged, answer = np.random.default_rng(1).uniform(40, 60, (4, 100_000, 3))
    times = np.maximum(first, second + 1.2) + np.maximum(acknowledged, answer)
    for nth, of in ((2, 3), (1, 2), (2, 2)):
        mean = np.sort(times[:, :of])[:, nth - 1].mean()
        assert figures.expected(RESULTS, nth, of, [0, 1.2], [0, 0]) == pytest.approx(mean, abs=0.1)


FIVE = ("clusters-five-sites", "endpoints", "median_ms")


def test_a_mean_is_over_clusters_and_of_one_cluster_its_own() -> None:
    where = {"system": "minio", "endpoint": "GetObject"}
    home = RESULTS / "endpoint-latency"
    found = figures.mean(home, *FIVE, **where)
    reported = figures.row(home, FIVE[0], "clusters.entries", **where)
    assert found.clusters == reported["clusters"] == figures.clusters(home, FIVE[0]) > 1
    assert found.value == pytest.approx(reported["median_ms"], rel=1e-4)
    assert found.ci95 == pytest.approx(tuple(reported["median_ms_ci95"]), rel=1e-4)
    one = figures.row(home, "three-datacenters", "endpoints", **where)
    own = figures.mean(home, "three-datacenters", *FIVE[1:], **where)
    assert own == (one["median_ms"], one["median_ci95_ms"], 1)


def test_what_is_not_in_a_bundle_is_an_error() -> None:
    home = RESULTS / "endpoint-latency"
    with pytest.raises(LookupError, match="5 rows"):
        figures.row(home, FIVE[0], "endpoints", system="minio", endpoint="GetObject")
    with pytest.raises(LookupError, match="no row"):
        figures.mean(home, *FIVE, system="none")
    with pytest.raises(LookupError, match=r"no load\.systems, but"):
        figures.rows(home, FIVE[0], "load.systems")


def test_a_page_knows_what_was_measured_and_how_the_rest_will_be() -> None:
    home = RESULTS / "static-files"
    assert pages.has(RESULTS / "endpoint-latency", FIVE[0])
    assert not pages.has(home, "nowhere")
    assert pages.command(home, "clusters").startswith("wanlat run static-files --replicates 5 ")


def test_a_table_has_the_columns_that_are_asked_for() -> None:
    made = pages.table(RESULTS / "endpoint-latency", FIVE[0], "Latency over", "n", "system")
    head, rule, first, *_ = made.splitlines()
    assert (head, rule) == ("| n | system |", "| ---: | --- |")
    assert re.fullmatch(r"\| \d+ \| \w+ \|", first)


def test_what_is_listed_is_published_and_on_its_page() -> None:
    commands = listed()
    assert len(commands) > 3
    for name, command in commands.items():
        assert measure.is_published(name, command), f"{name}: run `make results`"
        beside = [page.read_text("utf-8") for page in (RESULTS / name).parent.glob("*.md")]
        assert any(f"wanlat {command}" in page for page in beside), f"no page shows {name}"


def test_another_command_or_none_is_to_be_measured() -> None:
    name, command = next(iter(listed().items()))
    assert not measure.is_published(name, f"{command} --backend netem")
    assert not measure.is_published(f"{name}-not-there", command)


def test_a_picture_that_no_page_shows_is_not_kept() -> None:
    """It can be drawn again from the bundle, and a clone of the tip shall stay below 69 MB."""
    shown = {
        (page.parent / link).resolve()
        for page in RESULTS.parents[0].rglob("*.md")
        for link in re.findall(r"\]\(([^)\s#]+\.png)\)", page.read_text("utf-8"))
    }
    assert {picture.resolve() for picture in RESULTS.rglob("*.png")} <= shown
    assert measure.unshown_pictures(RESULTS) == []


def test_what_is_published_is_small() -> None:
    for file in RESULTS.rglob("*"):
        assert file.is_dir() or file.read_bytes() == measure.small(file), (
            f"{file}: run `python -m tools.results report {file.parent.relative_to(RESULTS)}`"
        )


def test_only_what_can_be_read_again_is_published(tmp_path: Path) -> None:
    bundle, place = tmp_path / "bundle", tmp_path / "place"
    kept = {"manifest.json": '{\n  "a": 1\n}'}
    left = {
        **{"points/a.attempt-1/samples.parquet": "", "packets.parquet": "", "logs/n1.log": ""},
        "charts/on-no-page.png": "",
    }
    for name, text in {**kept, **left}.items():
        (bundle / name).parent.mkdir(parents=True, exist_ok=True)
        (bundle / name).write_text(text)
    (bundle / "points" / "a").mkdir()
    pq.write_table(pa.table({"n": [1]}), bundle / "points" / "a" / "samples.parquet")
    place.mkdir()
    (place / "old.json").write_text("{}")
    measure.publish(bundle, place)
    found = {str(file.relative_to(place)) for file in place.rglob("*") if file.is_file()}
    assert found == {*kept, "samples.parquet"}
    assert (place / "manifest.json").read_text() == '{"a":1}\n'


def test_the_example_of_an_envelope_is_what_was_measured() -> None:
    example = (CHECKOUT / "docs" / "how-to" / "envelope.md").read_text("utf-8")
    shown = re.findall(r"[\d.]+(?: ms| %)? \[[\d.]+, [\d.]+\]", example)
    assert len(shown) == 10
    page = (RESULTS / "envelope" / "README.md").read_text("utf-8")
    assert [each for each in shown if f"| {each} |" not in page] == []
