"""Whatever a file holds, loading it gives a topology or a clean error, and never anything else."""

import copy
from pathlib import Path
from typing import Any

import jsonschema
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.topologies.test_export import EVERYTHING
from wanlat.schemas import schemas
from wanlat.topologies.load import TopologyError, load
from wanlat.topologies.model import Topology
from wanlat.topologies.resolve import resolve
from wanlat.topologies.shapes import extent

VALIDATOR = jsonschema.Draft202012Validator(dict(schemas())["topology-1.json"])
TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=20)
WORDS = st.sampled_from(
    [
        *("name", "sites", "nodes", "lan", "links", "default", "pairs", "between", "from", "to"),
        *("rtt", "delay", "jitter", "loss", "rate", "queue", "reorder", "distribution", "table"),
        *("n1", "dc1", "100ms", "-1ms", "1d", "1:30", "010", "1%", "200%", "1gbit", "64KiB"),
        *("yes", "null", "~", "<<", "2026-01-31", "0x1f", "1_0", ".inf"),
    ]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | WORDS | TEXT
JUNK = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS | TEXT, inner, max_size=3),
    max_leaves=6,
)
SYNTAX = ["\n", "\t", ": ", "- ", "? ", "{", "}", "[", "]", ",", "#", "'", '"', "|\n", "\0", "\x85"]
SYNTAX += ["&a ", "*a", "<<: *a\n", "!!int ", "!x ", "---\n", "%YAML 1.1\n", "\\U"]
TEXTS = st.lists(WORDS | TEXT | st.sampled_from(SYNTAX), max_size=30).map(
    lambda parts: "".join(parts).encode()
)


@st.composite
def mutated_documents(draw: st.DrawFn) -> Any:
    """A right file with up to four parts replaced, removed, repeated or added."""
    document = yaml.safe_load(EVERYTHING)
    for _ in range(draw(st.integers(0, 4))):
        here: Any = document
        while draw(st.integers(0, 3)) and (inner := _containers(here)):
            here = draw(st.sampled_from(inner))
        if isinstance(here, dict):
            key = draw(st.sampled_from([*here, "rtt"]) if draw(st.booleans()) else WORDS | TEXT)
            if draw(st.booleans()):
                here[key] = draw(JUNK)
            else:
                here.pop(key, None)
        elif here:
            position = draw(st.integers(0, len(here) - 1))
            put = [[draw(JUNK)], [], [here[position], copy.deepcopy(here[position])]]
            here[position : position + 1] = draw(st.sampled_from(put))
    return document


def _containers(value: Any) -> list[Any]:
    inner = value.values() if isinstance(value, dict) else value
    return [item for item in inner if isinstance(item, dict | list)]


def topology_or_error(content: bytes, tmp_path: Path) -> Topology | None:
    """What loading gives; a clean error is one that the command line can print as it is."""
    file = tmp_path / "t.yaml"
    file.write_bytes(content)
    try:
        return load(file)
    except TopologyError as error:
        assert error.mistakes
        for mistake in error.mistakes:
            assert str(mistake).startswith(f"{file}:")
            assert mistake.line is None or mistake.line >= 1
        assert all(char.isprintable() or char == "\n" for char in str(error))
        return None


relaxed = settings(
    max_examples=100,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@relaxed
@given(document=mutated_documents())
@example(document=yaml.safe_load(EVERYTHING))
def test_a_file_gives_a_topology_that_survives_being_written_or_a_clean_error(
    document: Any, tmp_path: Path
) -> None:
    content = yaml.safe_dump(document, allow_unicode=True, sort_keys=False).encode()
    topology = topology_or_error(content, tmp_path)
    assert topology is not None or document != yaml.safe_load(EVERYTHING)
    if topology is None:
        return
    # What the loader accepts, the schema accepts.
    VALIDATOR.validate(document)
    VALIDATOR.validate(topology.to_dict())
    assert Topology.model_validate(topology.to_dict()) == topology
    plan = resolve(topology)
    assert resolve(Topology.model_validate(topology.to_dict())) == plan
    assert len({node.address for node in plan.nodes}) == len(plan.nodes)
    assert len(plan.wan_links) == len(plan.sites) * (len(plan.sites) - 1) // 2
    for way in plan.impairments():
        low, high = way.range_ns
        smallest, largest = extent(way.distribution, way.table)
        assert way.delay_ns + way.jitter_ns * smallest > -1
        assert 0 <= low <= way.delay_ns <= high <= way.delay_ns + way.jitter_ns * largest + 1


@relaxed
@given(content=st.binary(max_size=200) | TEXTS)
def test_any_text_gives_a_topology_or_a_clean_error(content: bytes, tmp_path: Path) -> None:
    topology = topology_or_error(content, tmp_path)
    if topology is not None:
        resolve(topology)
