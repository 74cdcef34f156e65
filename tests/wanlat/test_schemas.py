"""The published JSON Schemas are the code's; what wanlat ships and prints keeps to them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.command_line import CHECKOUT, here
from wanlat.schemas import schemas, text_of

PUBLISHED = CHECKOUT / "docs" / "schemas"
BUNDLES = CHECKOUT / "tests" / "data" / "bundles"
SHIPPED = {
    "study-1.json": ["experiments/studies/*.yaml", "examples/*.yaml"],
    "drill-1.json": ["experiments/drills/*.yaml"],
    "topology-1.json": ["topologies/*.yaml"],
    "system-1.json": ["systems/*/system.yaml"],
    "manifest-2.json": ["tests/data/**/manifest.json"],
    "report-1.json": ["docs/results/**/summary.json", "tests/data/**/summary.json"],
}


def validator(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json.loads((PUBLISHED / name).read_text("utf-8")))


def mistakes(name: str, document: Any) -> list[str]:
    return [
        f"{error.json_path}: {error.message}" for error in validator(name).iter_errors(document)
    ]


def test_what_is_published_is_what_the_code_has() -> None:
    for name, schema in schemas():
        jsonschema.Draft202012Validator.check_schema(schema)
        stands = (PUBLISHED / name).read_text("utf-8")
        assert stands == text_of(schema), "run `python -m wanlat.schemas docs/schemas`"
        title, version = name.removesuffix(".json").rsplit("-", 1)
        assert schema["$id"] == f"urn:wanlat:{title}:{version}"


@pytest.mark.parametrize("name", SHIPPED)
def test_what_is_shipped_keeps_to_its_schema(name: str) -> None:
    files = [path for pattern in SHIPPED[name] for path in CHECKOUT.glob(pattern)]
    assert files
    for path in files:
        text = path.read_text("utf-8")
        is_json = path.suffix == ".json"
        document = json.loads(text) if is_json else yaml.load(text, yaml.CSafeLoader)
        assert mistakes(name, document) == [], path


def documents() -> Iterator[tuple[str, list[str]]]:
    stored = BUNDLES / "2"
    yield "report-1.json", ["report", str(stored / "study")]
    yield "report-1.json", ["report", str(stored / "round-trips")]
    yield "report-1.json", ["report", str(stored / "drill")]
    same = [str(stored / "round-trips")] * 2
    yield "comparison-1.json", ["compare", *same, "--allow-missing", "--force"]


@pytest.mark.parametrize(("name", "command"), [*documents()])
def test_what_is_printed_keeps_to_its_schema(name: str, command: list[str], tmp_path: Path) -> None:
    if command[0] == "report":  # which writes into the bundle
        command[1] = str(shutil.copytree(command[1], tmp_path / "bundle"))
    done = here(*command, "--json")
    assert done.returncode in (0, 1), done.stderr
    document = json.loads(done.stdout)
    assert mistakes(name, document) == []
    del document["endpoints"]
    assert mistakes(name, document) == ["$: 'endpoints' is a required property"]
