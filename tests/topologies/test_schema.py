"""The published schema: current, valid, and of the loader's opinion about types."""

import copy
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
                "table": [1, 2.5],
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


def test_it_accepts_every_field() -> None:
    VALIDATOR.validate(GOOD)
    with_file = copy.deepcopy(GOOD)
    with_file["links"]["pairs"][1]["table"] = "rtts.txt"
    VALIDATOR.validate(with_file)
    assert Topology.model_validate(GOOD)


def test_it_describes_every_field() -> None:
    for name, model in schema()["$defs"].items():
        for key, field in model.get("properties", {}).items():
            assert field.get("description"), f"{name}.{key}"


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (None, "name"),
        (None, "sites"),
        ([], "sites"),
        ("Upper", "name"),
        ("-a", "sites.0.name"),
        ("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "sites.0.name"),
        (5, "description"),
        ("x", "nmae"),
        ([1, 2], "sites.0.nodes"),
        ([], "sites.0.nodes"),
        (["n1", "n1"], "sites.0.nodes"),
        (0, "sites.0.nodes"),
        (60001, "sites.0.nodes"),
        ("two", "sites.0.nodes"),
        ("10mbit", "sites.0.lan.rtt"),
        (100, "links.default.rtt"),
        ("100", "links.default.rtt"),
        ("-5ms", "links.default.rtt"),
        ("5 sec", "links.default.jitter"),
        (None, "links.default.rtt"),
        (["a"], "links.pairs.0.between"),
        (["a", "a"], "links.pairs.0.between"),
        (["a", "b", "c"], "links.pairs.0.between"),
        (1.5, "links.pairs.0.loss"),
        ("10mbps", "links.pairs.0.rate"),
        (-1, "links.pairs.0.queue"),
        ("yes", "links.pairs.0.reorder"),
        ("a", "links.pairs.0.from"),
        ("gauss", "links.pairs.1.distribution"),
        ([], "links.pairs.1.table"),
        ([1], "links.pairs.1.table"),
        ([1, "many"], "links.pairs.1.table"),
        ([1, 1e16], "links.pairs.1.table"),
        (5, "links.pairs.1.table"),
        ("often", "links.pairs.1.reorder"),
        ({"p": "1%"}, "links.pairs.1.loss"),
        ({"p": "1%", "r": "1%", "q": 1}, "links.pairs.1.loss"),
        ({"p": "1%", "r": "101 percent"}, "links.pairs.1.loss"),
        (-0.1, "links.pairs.1.duplicate"),
        ("all", "links.pairs.1.corrupt"),
        ("5ms", "links.pairs.1.rtt"),
        (None, "links.pairs.1.to"),
    ],
)
def test_it_rejects_what_the_loader_rejects(value: Any, path: str, tmp_path: Path) -> None:
    """None removes what is at the path."""
    document = copy.deepcopy(GOOD)
    *way, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    here: Any = document
    for step in way:
        here = here[step]
    if value is None:
        del here[last]
    else:
        here[last] = value
    assert not VALIDATOR.is_valid(document)
    file = tmp_path / "broken.yaml"
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    with pytest.raises(TopologyError):
        load(file)
