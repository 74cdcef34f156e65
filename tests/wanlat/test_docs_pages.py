"""The documentation says what the code says: reference, glossary's size, errors, examples."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from tests.command_line import CHECKOUT, here, tracked
from tests.wanlat.test_docs_links import anchors
from tools import reference
from wanlat import cli, fix_it
from wanlat.bundle import documents
from wanlat.emulator.faults import catalogue, links
from wanlat.emulator.links import Direction
from wanlat.experiments import kinds
from wanlat.experiments.config.study import Study
from wanlat.experiments.drill.claims import claims_on
from wanlat.experiments.drill.model import Drill, scenario
from wanlat.experiments.kinds.base import StudyKind
from wanlat.systems import registry
from wanlat.systems.engine.definition import Definition, read
from wanlat.topologies.findings import YamlError
from wanlat.topologies.load import load
from wanlat.topologies.model import Topology
from wanlat.topologies.resolve import resolve
from wanlat.topologies.units import Fraction
from wanlat.topologies.yaml_lines import load_yaml_model

DOCS = CHECKOUT / "docs"
MOST_WORDS = 32_000
_ROW = re.compile(r"^\| `([\w-]+)` \|[^|]*\| ([^|]*) \|", re.MULTILINE)


@cache
def part(name: str) -> str:
    return reference.PARTS[name]()


def commands(command: Any, called: str) -> Iterator[tuple[str, Any]]:
    yield called, command
    for name, each in getattr(command, "commands", {}).items():
        yield from commands(each, f"{called} {name}")


def test_every_command_and_option_is_on_its_page() -> None:
    sections = re.split(r"^#+ ", part("command-line"), flags=re.MULTILINE)
    by_name = {section.partition("\n")[0]: section for section in sections}
    every = [each for name in cli.COMMANDS for each in commands(cli.load(name), f"wanlat {name}")]
    assert len(every) > 40
    for called, command in every:
        section = html.unescape(by_name[called])
        assert command.help.splitlines()[0] in section
        for each in command.params:
            names = each.opts if each.param_type_name == "option" else [each.metavar]
            shown = [re.search(rf"[`>]{re.escape(name)}[`<]", section) for name in names]
            assert all(shown) or each.hidden or each.name == "help", (called, names)


@pytest.mark.parametrize(
    ("name", "model"),
    [("study", Study), ("drill", Drill), ("system", Definition), ("topology", Topology)],
)
def test_every_key_of_a_file_is_on_its_page_with_its_meaning(
    name: str, model: type[BaseModel]
) -> None:
    schema = model.model_json_schema()
    every = [schema, *schema["$defs"].values()]
    known = {key for each in every for key in each.get("properties", ())}
    rows = _ROW.findall(part(name))
    said = {key: meaning.strip() for key, meaning in rows}
    assert known - said.keys() - {"count", "value"} == set()  # of durations and fractions
    assert [key for key, meaning in rows if not meaning.strip()] == []


def test_every_column_and_every_key_of_a_bundle_is_on_its_page() -> None:
    sections = re.split(r"^### ", part("bundle"), flags=re.MULTILINE)
    by_name = {section.partition("\n")[0]: section for section in sections}
    for name, schema in reference.TABLES.items():
        said = dict(re.findall(r"^\| `(\w+)` \| \w+ \| (.*) \|$", by_name[name], re.MULTILINE))
        assert list(said) == schema.names and all(said.values()), name
    manifest = dict(reversed(_ROW.findall(by_name["manifest.json"])))  # its own keys come first
    assert documents.Manifest.model_fields.keys() <= manifest.keys()
    assert [key for key in documents.Manifest.model_fields if not manifest[key].strip()] == []


def test_every_store_and_every_fault_is_on_its_page() -> None:
    for name in registry.names():
        assert f"Options of {name}\n" in part("stores")
    assert set(re.findall(r"^\| `([\w-]+)`", part("faults"), re.MULTILINE)) == {*catalogue.KINDS}
    page = (DOCS / "reference" / "faults.md").read_text("utf-8")
    assert {*catalogue.KINDS} <= set(re.findall(r"^## (.*)$", page, re.MULTILINE))


def test_every_generated_part_has_its_place() -> None:
    text = "".join(page.read_text("utf-8") for page in (DOCS / "reference").glob("*.md"))
    assert {*re.findall(r"^<!-- generated: (\S+) -->$", text, re.MULTILINE)} == {*reference.PARTS}


def test_every_error_to_be_fixed_is_one_that_the_code_raises() -> None:
    files = tracked("*.py", "systems/*/system.yaml", ":!tests")
    code = "".join(file.read_text("utf-8") for file in files)
    joined = re.sub(r'"\s*\n\s*f?"', "", code)
    page = (DOCS / "how-to" / "fix-it.md").read_text("utf-8")
    quoted = re.findall(r"^> (.*)$", page, re.MULTILINE)
    assert len(quoted) > 30
    assert [words for words in quoted if words not in joined] == []


def test_an_error_names_the_section_that_says_more_of_it(tmp_path: Path) -> None:
    # Nothing is installed in an empty cache.
    done = here("run", "endpoint-latency", "--systems", "garage", WANLAT_CACHE=str(tmp_path))
    assert done.returncode == 3
    named = done.stderr.splitlines()[-1]
    assert named == f"More: {fix_it.PAGE}#a-store-is-not-installed"
    assert "### A store is not installed\n" in fix_it.PAGE.read_text("utf-8")


LOG = """ The last lines of its log:
  the bundle is damaged, did you mean mistakes: is not on this machine
  ended with exit code 7, failed with exit code 8, disk is full: not ready after 9 s
The whole log: /x/logs/quorum-n1.log"""
ABOUT = [
    ("quorum: node n1: not ready after 60 s, waiting for: port: closed.", "not-ready"),
    (
        "quorum: node n1: not ready after 6 s, waiting for: y ended with exit code 3.",
        "not-ready",
    ),
    ("quorum: node n1: its process ended with exit code 2.", "process-ended"),
    ("Building Garage failed with exit code 101.", "build-failed"),
    ("/x/samples.jsonl cannot be written: No space left. Make room on that disk, or", "disk"),
    ("Node n1 ended. /data is full: 1 of 8 MiB free.", "disk"),
    ("Garage 2.1 is not on this machine. Build it: wanlat system install garage.", "not-installed"),
]
HEADINGS = {
    "not-ready": "the-store-does-not-become-ready",
    "process-ended": "a-stores-process-ended",
    "build-failed": "a-build-failed",
    "disk": "a-disk-is-full",
    "not-installed": "a-store-is-not-installed",
}


@pytest.mark.parametrize(("message", "about"), ABOUT)
def test_an_error_leads_to_the_section_about_it_whatever_its_log_has(
    message: str, about: str
) -> None:
    assert fix_it.place_of(message + LOG) == f"{fix_it.PAGE}#{HEADINGS[about]}"


def test_every_section_that_an_error_can_name_is_there_and_is_its_own() -> None:
    text = fix_it.PAGE.read_text("utf-8")
    quoted = re.findall(r"^### (.*)\n\n((?:> .*\n)+)", text, re.MULTILINE)
    assert len(quoted) > 30
    for heading, lines in quoted:
        for words in re.findall(r"> (.*)", lines):
            place = fix_it.place_of(f"n1: {words} something.{LOG}")
            assert place is not None
            _, _, anchor = place.partition("#")
            assert anchor in anchors(fix_it.PAGE)
            assert anchor == re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_the_pages_are_no_longer_than_somebody_reads() -> None:
    pages = [page for page in DOCS.rglob("*.md") if DOCS / "results" not in page.parents]
    words = sum(len(page.read_text("utf-8").split()) for page in pages)
    assert words <= MOST_WORDS


def blocks(page: Path, language: str, after: str = "") -> list[str]:
    fenced = re.compile(rf"^```{language}\n(.*?)^```", re.DOTALL | re.MULTILINE)
    text = page.read_text("utf-8")
    return fenced.findall(text[text.index(after) :])


def named(what: str) -> list[str]:
    """The examples of the how-to pages that are whole files, and have that key."""
    found = [text for page in (DOCS / "how-to").glob("*.md") for text in blocks(page, "yaml")]
    return [text for text in found if text.startswith("name:") and f"\n{what}:" in text]


def test_the_studies_and_drills_of_pages_are_right(tmp_path: Path) -> None:
    studies, drills = named("endpoints"), named("faults")
    assert (len(studies), len(drills)) == (3, 1)
    file = tmp_path / "example.yaml"
    for text, model in [*((text, Study) for text in studies), *((text, Drill) for text in drills)]:
        file.write_text(text)
        load_yaml_model(file, model, error=YamlError)


def test_the_definition_of_the_page_is_right(tmp_path: Path) -> None:
    found = blocks(DOCS / "how-to" / "systems.md", "yaml")
    (text,) = [each for each in found if each.startswith("schema: 1")]
    (tmp_path / "system.yaml").write_text(text)
    (tmp_path / "my.toml.j2").write_text("id = {{ node.name }}\n")
    definition, _ = read(tmp_path)
    assert definition.name == "mystore"


def test_the_fault_of_contributing_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    source, *_ = blocks(CHECKOUT / "CONTRIBUTING.md", "python", after="## A fault\n")
    names: dict[str, Any] = {**vars(links), "__name__": __name__}
    exec(compile(source, "CONTRIBUTING.md", "exec"), names)
    made = names["Duplicating"]
    monkeypatch.setattr(catalogue, "KINDS", {**catalogue.KINDS, made.kind: made})
    plan = resolve(load("five-sites"))
    fault = catalogue.parse("duplicating", "dc1/dc2", {"part": "1%"}, plan, {})
    assert set(fault.directions) == {Direction("wan", "dc1", "dc2"), Direction("wan", "dc2", "dc1")}
    assert fault.change(fault.directions[0]) == {"duplicate": Fraction(0.01)}


def test_the_kind_of_study_of_contributing_is_one() -> None:
    source, *_ = blocks(CHECKOUT / "CONTRIBUTING.md", "python", after="## A kind of study\n")
    names: dict[str, Any] = {**vars(kinds.reclaim), "__name__": __name__}
    exec(compile(source, "CONTRIBUTING.md", "exec"), names)
    made = names["BurstsSpec"]
    assert issubclass(made, StudyKind) and made.key == "bursts"
    assert made.model_validate({"size": 3}).size == 3


def test_the_claim_of_contributing_is_a_claim(tmp_path: Path) -> None:
    text = next(text for text in blocks(CHECKOUT / "CONTRIBUTING.md", "yaml") if "claims:" in text)
    (tmp_path / "etcd.yaml").write_text(text)
    (claim,) = claims_on(scenario("leader-killed"), "etcd", [tmp_path / "etcd.yaml"])
    assert claim.id == yaml.safe_load(text)["claims"][0]["id"]
