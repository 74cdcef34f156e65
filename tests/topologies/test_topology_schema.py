"""The published schema: current, valid, and of the loader's opinion about types."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from wanlat.topologies import load as load_module
from wanlat.topologies.load import TopologyError, load, shipped
from wanlat.topologies.model import Topology
from wanlat.topologies.schema import SCHEMA_FILE, schema, schema_text

VALIDATOR = jsonschema.Draft202012Validator(schema())

GOOD: dict[str, Any] = {
    "name": "t",
    "sites": [
        {"name": "a", "nodes": ["n1"], "lan": {"rtt": "0.5ms"}},
        {"name": "b", "nodes": 2},
        {"name": "c", "nodes": ["n9"]},
    ],
    "links": {
        "default": {"rtt": "100ms", "jitter": "20ms"},
        "pairs": [
            {
                "between": ["a", "b"],
                "rtt": "8 ms",
                "jitter": 0,
                "loss": 0.01,
                "rate": "1gbit",
                "queue": 9000,
                "reorder": True,
            },
            {
                "from": "a",
                "to": "c",
                "delay": "60ms",
                "jitter": "5ms",
                "distribution": "table",
                "table": [1, 2.5, "4e1"],
                "correlation": "25%",
                "reorder": "1%",
                "loss": {"p": "1%", "r": 0.3, "h": "0%", "k": 1},
                "duplicate": "0.1%",
                "corrupt": 0.001,
            },
        ],
    },
}


def test_the_published_file_is_current() -> None:
    assert SCHEMA_FILE.read_text(encoding="utf-8") == schema_text(), (
        "run `python -m wanlat.topologies.schema`"
    )


def test_the_schema_is_itself_valid() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())


@pytest.mark.parametrize("name", shipped())
def test_it_accepts_what_is_shipped(name: str) -> None:
    path = Path(load_module.__file__).parent / f"{name}.yaml"
    VALIDATOR.validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    VALIDATOR.validate(load(name).to_dict())


def _put(value: Any, *path: Any) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        here: Any = document
        for step in path[:-1]:
            here = here[step]
        if value is None:
            del here[path[-1]]
        else:
            here[path[-1]] = value

    return change


def test_it_accepts_every_field() -> None:
    VALIDATOR.validate(GOOD)
    assert Topology.model_validate(GOOD)


@pytest.mark.parametrize("table", ["rtts.txt", {"file": "rtts.csv", "column": "rtt_ms"}])
def test_it_accepts_the_name_of_a_file(table: Any) -> None:
    document = copy.deepcopy(GOOD)
    document["links"]["pairs"][1]["table"] = table
    VALIDATOR.validate(document)


def test_it_describes_every_field() -> None:
    for name, model in schema()["$defs"].items():
        for key, field in model.get("properties", {}).items():
            assert field.get("description"), f"{name}.{key}"


@pytest.mark.parametrize(
    "breaking",
    [
        _put(None, "name"),
        _put(None, "sites"),
        _put([], "sites"),
        _put("Upper", "name"),
        _put("-a", "sites", 0, "name"),
        _put("a" * 33, "sites", 0, "name"),
        _put(5, "description"),
        _put("x", "nmae"),
        _put([1, 2], "sites", 0, "nodes"),
        _put([], "sites", 0, "nodes"),
        _put(["n1", "n1"], "sites", 0, "nodes"),
        _put(0, "sites", 0, "nodes"),
        _put(60001, "sites", 0, "nodes"),
        _put("two", "sites", 0, "nodes"),
        _put("10mbit", "sites", 0, "lan", "rtt"),
        _put(100, "links", "default", "rtt"),
        _put("100", "links", "default", "rtt"),
        _put("-5ms", "links", "default", "rtt"),
        _put("5 sec", "links", "default", "jitter"),
        _put(None, "links", "default", "rtt"),
        _put(["a"], "links", "pairs", 0, "between"),
        _put(["a", "a"], "links", "pairs", 0, "between"),
        _put(["a", "b", "c"], "links", "pairs", 0, "between"),
        _put(1.5, "links", "pairs", 0, "loss"),
        _put("10mbps", "links", "pairs", 0, "rate"),
        _put(-1, "links", "pairs", 0, "queue"),
        _put("yes", "links", "pairs", 0, "reorder"),
        _put("a", "links", "pairs", 0, "from"),
        _put("gauss", "links", "pairs", 1, "distribution"),
        _put([], "links", "pairs", 1, "table"),
        _put([1], "links", "pairs", 1, "table"),
        _put([1, "many"], "links", "pairs", 1, "table"),
        _put([1, 1e16], "links", "pairs", 1, "table"),
        _put(5, "links", "pairs", 1, "table"),
        _put({"file": "r.csv"}, "links", "pairs", 1, "table"),
        _put({"file": "r.csv", "column": "x", "row": 1}, "links", "pairs", 1, "table"),
        _put(2, "links", "pairs", 1, "correlation"),
        _put("often", "links", "pairs", 1, "reorder"),
        _put({"p": "1%"}, "links", "pairs", 1, "loss"),
        _put({"p": "1%", "r": "1%", "q": 1}, "links", "pairs", 1, "loss"),
        _put({"p": "1%", "r": "101 percent"}, "links", "pairs", 1, "loss"),
        _put(-0.1, "links", "pairs", 1, "duplicate"),
        _put("all", "links", "pairs", 1, "corrupt"),
        _put("5ms", "links", "pairs", 1, "rtt"),
        _put(None, "links", "pairs", 1, "to"),
    ],
)
def test_it_rejects_what_the_loader_rejects(
    breaking: Callable[[dict[str, Any]], None], tmp_path: Path
) -> None:
    document = copy.deepcopy(GOOD)
    breaking(document)
    assert not VALIDATOR.is_valid(document)
    file = tmp_path / "broken.yaml"
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    with pytest.raises(TopologyError):
        load(file)
