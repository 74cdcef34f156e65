"""Pages of docs/results that are templates say what their bundles say, and nothing by hand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools import results
from tools.results import RESULTS

TEMPLATES = sorted(RESULTS.rglob("README.md.j2"))
_TYPED = re.compile(r"\{#-? typed:(.*?)#\}", re.DOTALL)
_MADE = re.compile(r"\{[{%#].*?[}%#]\}|```.*?```|`[^`]*`|\]\([^)]*\)|<!--.*?-->", re.DOTALL)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def test_the_pages_are_what_is_made_of_their_bundles() -> None:
    made = dict(results.pages())
    assert [page.with_suffix(".md.j2") for page in made] == TEMPLATES
    for page, text in made.items():
        assert page.read_text("utf-8") == text, f"{page}: run `make pages`"


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.parent.name)
def test_a_number_that_is_typed_is_a_condition_or_read_in_a_source(template: Path) -> None:
    text = template.read_text("utf-8")
    said = " ".join(_TYPED.findall(text))
    typed = set(_NUMBER.findall(_MADE.sub(" ", text)))
    assert typed == set(_NUMBER.findall(said)), f"{template}: say why, in {{# typed: … #}}"


def test_what_is_listed_is_published_and_on_its_page() -> None:
    listed = results.listed()
    assert len(listed) > 3
    for name, command in listed.items():
        assert results.is_published(name, command), f"{name}: run `make results`"
        page = (RESULTS / name).parent / "README.md"
        assert f"wanlat {command}" in page.read_text("utf-8"), page


def test_another_command_or_none_is_to_be_measured() -> None:
    name, command = next(iter(results.listed().items()))
    assert not results.is_published(name, f"{command} --backend netem")
    assert not results.is_published(f"{name}-not-there", command)


def test_a_picture_that_no_page_shows_is_not_kept() -> None:
    """It can be drawn again from the bundle, and a clone shall stay below 150 MB."""
    shown = {
        (page.parent / link).resolve()
        for page in RESULTS.parents[0].rglob("*.md")
        for link in re.findall(r"\]\(([^)\s#]+\.png)\)", page.read_text("utf-8"))
    }
    assert {picture.resolve() for picture in RESULTS.rglob("*.png")} <= shown


def test_only_what_can_be_read_again_is_published(tmp_path: Path) -> None:
    bundle, place = tmp_path / "bundle", tmp_path / "place"
    kept = {"manifest.json": '{\n  "a": 1\n}', "points/a/samples.parquet": "p"}
    left = {
        **{"points/a.attempt-1/samples.parquet": "", "packets.parquet": "", "logs/n1.log": ""},
        "charts/on-no-page.png": "",
    }
    for name, text in {**kept, **left}.items():
        (bundle / name).parent.mkdir(parents=True, exist_ok=True)
        (bundle / name).write_text(text)
    place.mkdir()
    (place / "old.json").write_text("{}")
    results.publish(bundle, place)
    found = {str(file.relative_to(place)) for file in place.rglob("*") if file.is_file()}
    assert found == set(kept)
    assert (place / "manifest.json").read_text() == '{"a":1}\n'
