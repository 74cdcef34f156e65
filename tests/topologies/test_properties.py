"""Whatever a file holds, loading it gives a topology or a clean error, and never anything else."""

import copy
from itertools import combinations
from pathlib import Path
from typing import Any

import jsonschema
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wanlat.topologies.load import TopologyError, load
from wanlat.topologies.model import Topology
from wanlat.topologies.resolve import resolve
from wanlat.topologies.schema import schema
from wanlat.topologies.shapes import extent
from wanlat.topologies.units import Duration

VALIDATOR = jsonschema.Draft202012Validator(schema())

SITE_NAMES = st.from_regex(r"[a-z0-9][a-z0-9-]{0,12}", fullmatch=True)
# No hyphen: such a name is never one that a count makes.
NODE_NAMES = st.from_regex(r"[a-z0-9]{1,10}", fullmatch=True)


# What a link of 10 ms or more may have; two of them together are right as well.
PARTS: list[dict[str, Any]] = [
    {},
    {"jitter": "10ms"},
    {"jitter": "2.7ms", "distribution": "normal"},
    {"jitter": "16.3ms", "distribution": "pareto"},
    {"jitter": "1us", "distribution": "table", "table": [1e-300, -1e15, 3]},
]
QUALITIES: list[dict[str, Any]] = [
    {},
    {"loss": 5e-324, "duplicate": "100%"},
    {"loss": {"p": 1e-300, "r": "30%", "h": 0.1, "k": 1}, "corrupt": "0.00001%"},
    {"rate": "1bit"},
    {"rate": "1.5gbit", "queue": 1514, "reorder": True},
    {"rate": "64kbit", "queue": "1MB", "reorder": "0%"},
    {"reorder": 0.999},
]


@st.composite
def link_fields(draw: st.DrawFn, key: str = "rtt") -> dict[str, Any]:
    length = str(Duration(draw(st.integers(10**7, 10**12))))
    parts = draw(st.tuples(st.sampled_from(PARTS), st.sampled_from(QUALITIES)))
    return copy.deepcopy({key: length, **parts[0], **parts[1]})


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Topology files that are right."""
    names = draw(st.lists(SITE_NAMES, min_size=1, max_size=4, unique=True))
    nodes = draw(st.lists(NODE_NAMES, min_size=len(names), max_size=12, unique=True))
    sites: list[dict[str, Any]] = []
    for index, name in enumerate(names):
        site: dict[str, Any] = {"name": name, "nodes": nodes[index :: len(names)]}
        if draw(st.booleans()):
            site["nodes"] = draw(st.integers(1, 300))
        if draw(st.booleans()):
            site["lan"] = draw(link_fields())
        elif draw(st.booleans()):
            site["access"] = {"up": draw(link_fields("delay")), "down": draw(link_fields("delay"))}
        sites.append(site)
    pairs: list[dict[str, Any]] = []
    complete = True
    for a, b in combinations(names, 2):
        given_as = draw(st.sampled_from(["default", "both", "one way", "each way"]))
        complete &= given_as in ("both", "each way")
        if given_as == "both":
            pairs.append({"between": draw(st.permutations([a, b])), **draw(link_fields())})
        if given_as in ("one way", "each way"):
            pairs.append({"from": a, "to": b, **draw(link_fields("delay"))})
        if given_as == "each way":
            pairs.append({"from": b, "to": a, **draw(link_fields("delay"))})
    links: dict[str, Any] = {"pairs": draw(st.permutations(pairs))}
    if not complete or draw(st.booleans()):
        links["default"] = draw(link_fields())
    return {"name": draw(SITE_NAMES), "description": draw(TEXT), "sites": sites, "links": links}


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


@st.composite
def mutated_documents(draw: st.DrawFn) -> Any:
    """Right files with one to four parts replaced, removed, repeated or added."""
    document = copy.deepcopy(draw(documents()))
    for _ in range(draw(st.integers(1, 4))):
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


SYNTAX = ["\n", "\t", ": ", "- ", "? ", "{", "}", "[", "]", ",", "#", "'", '"', "|\n", "\0", "\x85"]
SYNTAX += ["&a ", "*a", "<<: *a\n", "!!int ", "!x ", "---\n", "%YAML 1.1\n", "\\U"]
TEXTS = st.lists(WORDS | TEXT | st.sampled_from(SYNTAX), max_size=30).map(
    lambda parts: "".join(parts).encode()
)


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
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@relaxed
@given(document=documents())
def test_a_right_file_loads_resolves_and_survives_being_written(
    document: dict[str, Any], tmp_path: Path
) -> None:
    VALIDATOR.validate(document)
    content = yaml.safe_dump(document, allow_unicode=True, sort_keys=False).encode()
    topology = topology_or_error(content, tmp_path)
    assert topology == Topology.model_validate(document)
    VALIDATOR.validate(topology.to_dict())
    assert Topology.model_validate(topology.to_dict()) == topology
    plan = resolve(topology)
    assert resolve(Topology.model_validate(topology.to_dict())) == plan
    assert len({node.address for node in plan.nodes}) == len(plan.nodes)
    assert len(plan.wan_links) == len(plan.sites) * (len(plan.sites) - 1) // 2
    for way in [way for link in plan.wan_links for way in (link.forward, link.backward)]:
        low, high = way.range_ns
        smallest, largest = extent(way.distribution, way.table)
        assert way.delay_ns + way.jitter_ns * smallest > -1
        assert 0 <= low <= way.delay_ns <= high <= way.delay_ns + way.jitter_ns * largest + 1
    first, last = plan.nodes[0].name, plan.nodes[-1].name
    assert plan.rtt_ms(first, last) == plan.rtt_ms(last, first)


@relaxed
@given(document=mutated_documents())
def test_a_spoilt_file_gives_a_topology_or_a_clean_error(document: Any, tmp_path: Path) -> None:
    content = yaml.safe_dump(document, allow_unicode=True, sort_keys=False).encode()
    topology = topology_or_error(content, tmp_path)
    if topology is not None:
        # What the loader accepts, the schema accepts.
        VALIDATOR.validate(document)
        VALIDATOR.validate(topology.to_dict())
        resolve(topology)


@relaxed
@given(content=st.binary(max_size=200) | TEXTS)
def test_any_text_gives_a_topology_or_a_clean_error(content: bytes, tmp_path: Path) -> None:
    topology = topology_or_error(content, tmp_path)
    if topology is not None:
        resolve(topology)
