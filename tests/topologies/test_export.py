"""Exports fit their tools' published schemas, ask for the same network, and say what they lose."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.topologies.published_schemas import NETEM_SET, Clab, NetworkChaos, milliseconds
from wanlat.topologies.errors import UserError
from wanlat.topologies.export.exported import export
from wanlat.topologies.export.tc import netem, queue_limit
from wanlat.topologies.load import load, shipped
from wanlat.topologies.model import Topology
from wanlat.topologies.resolve import GilbertElliott, Impairment, resolve

# Everything that a link can have, so that every target has something to leave out.
EVERYTHING = """
name: everything
sites:
  - {name: a, nodes: 2, lan: {rtt: 1ms, jitter: 0.4ms}}
  - {name: b, nodes: [r1]}
  - {name: c, nodes: [n1], access: {up: {delay: 10ms, rate: 1mbit}, down: {delay: 3ms}}}
links:
  default:
    {rtt: 20ms, jitter: 2ms, distribution: pareto, correlation: 20%, loss: {p: 1%, r: 30%},
     duplicate: 1%, corrupt: 0.1%}
  pairs:
    - {from: a, to: b, delay: 7.5ms, rate: 5mbit, queue: 64KiB}
    - {from: b, to: a, delay: 0.5ms, jitter: 100us, distribution: normal, reorder: 1%, loss: 0.5%}
"""


def everything() -> Topology:
    return Topology.model_validate(yaml.safe_load(EVERYTHING))


def every_topology() -> list[Topology]:
    return [*map(load, shipped()), everything()]


def by_name(topology: Topology) -> str:
    return topology.name


every = pytest.mark.parametrize("topology", every_topology(), ids=by_name)


@every
def test_containerlab_files_fit_the_schema(topology: Topology) -> None:
    (yml, _script) = export(topology, "containerlab").files
    assert yml == f"{topology.name}.clab.yml"  # what containerlab looks for
    Clab.model_validate(yaml.safe_load(export(topology, "containerlab").files[yml]))


@every
def test_containerlab_has_every_link_once_and_every_delay(topology: Topology) -> None:
    plan = resolve(topology)
    text, script = export(topology, "containerlab").files.values()
    document = yaml.safe_load(text)
    links = document["topology"]["links"]
    assert len(links) == len(plan.lan_links) + len(plan.wan_links)
    ends = [(end["node"], end["interface"]) for link in links for end in link["endpoints"]]
    assert len(ends) == len(set(ends))
    assert all(interface != "eth0" for _, interface in ends)  # the management network
    total_ms = 0.0
    for words in commands(script):
        assert words[:4] == ["containerlab", "tools", "netem", "set"]
        options = dict(zip(words[4::2], words[5::2], strict=True))
        assert set(options) <= NETEM_SET
        node = options["-n"].removeprefix(f"clab-{topology.name}-")
        assert (node, options["-i"]) in ends
        assert "--jitter" not in options or "--delay" in options  # or it refuses
        total_ms += milliseconds(options.get("--delay", "0ms"))
    asked_ns = sum(link.up.delay_ns + link.down.delay_ns for link in plan.lan_links)
    asked_ns += sum(link.forward.delay_ns + link.backward.delay_ns for link in plan.wan_links)
    assert total_ms == pytest.approx(asked_ns / 1e6)


def commands(script: str) -> list[list[str]]:
    lines = script.splitlines()
    return [shlex.split(line) for line in lines if line.startswith("containerlab ")]


@every
def test_networkchaos_fits_the_schema_and_asks_for_every_round_trip(topology: Topology) -> None:
    plan = resolve(topology)
    (text,) = export(topology, "chaos-mesh").files.values()
    delays: dict[tuple[str, str], float] = {}
    for document in filter(None, yaml.safe_load_all(text)):
        spec = NetworkChaos.model_validate(document).spec
        way = (site(spec.selector.labelSelectors), site(spec.target.selector.labelSelectors))
        assert way not in delays
        delays[way] = milliseconds(spec.delay.latency) if spec.delay is not None else 0.0
    for a in plan.nodes:
        for b in plan.nodes:
            if a != b:
                there = delays.get((a.site, b.site), 0.0)
                back = delays.get((b.site, a.site), 0.0)
                assert there + back == pytest.approx(plan.rtt_ms(a.name, b.name), abs=1e-5)


def site(labels: dict[str, str]) -> str:
    (name,) = labels.values()
    return name


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("mininet", ["correlation", "single"]),
        ("containerlab", ["correlation", "distribution", "bursts", "Duplication", "overtakes"]),
        ("chaos-mesh", ["correlation", "distribution", "bursts", "1000 packets", "each pod"]),
    ],
)
def test_what_is_lost_is_said_with_the_export_and_in_the_file(target: str, said: list[str]) -> None:
    exported = export(everything(), target)
    for word in said:
        assert any(word in note for note in exported.notes), word
    for note in exported.notes:
        for name, text in exported.files.items():
            assert note in (json.loads(text)["notes"] if name.endswith(".json") else text)


def test_nothing_is_said_of_what_a_topology_does_not_ask_for() -> None:
    assert export(load("five-sites"), "mininet").notes == ()
    notes = " ".join(export(load("azure-regions"), "containerlab").notes)
    for word in ("correlation", "distribution", "bursts", "Duplication", "small queues"):
        assert word not in notes


def test_chaos_mesh_says_when_a_pod_would_have_too_many_targets() -> None:
    sites = [{"name": f"s{number}", "nodes": 1} for number in range(15)]
    links = {"default": {"rtt": "1ms"}}
    many = Topology.model_validate({"name": "many", "sites": sites, "links": links})
    assert any("at most 13" in note for note in export(many, "chaos-mesh").notes)


def test_a_name_that_kubernetes_does_not_take_is_refused() -> None:
    odd = Topology.model_validate({"name": "odd-", "sites": [{"name": "a", "nodes": 1}]})
    with pytest.raises(UserError, match="odd-"):
        export(odd, "chaos-mesh")


def test_an_unknown_target_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UserError, match="did you mean `mininet`"):
        export(load("one-site"), "mininett")


@pytest.mark.parametrize(
    ("impairment", "words"),
    [
        (Impairment(), ""),
        (Impairment(delay_ns=125_000), "delay 125us limit 1104"),
        (
            Impairment(delay_ns=50_000_000, jitter_ns=10_000_000),
            "delay 50ms 10ms rate 32000000000bit limit 50538",
        ),
        (
            Impairment(delay_ns=50_000_000, jitter_ns=10_000_000, reorder=True),
            "delay 50ms 10ms limit 50538",
        ),
        (Impairment(loss=0.005), "loss 0.5% limit 1001"),
        (
            Impairment(bursts=GilbertElliott(p=0.01, r=0.3, h=0.1, k=0.999)),
            "loss gemodel 1% 30% 90% 0.1% limit 1001",
        ),
        (
            Impairment(delay_ns=10**6, duplicate=0.01, corrupt=0.001, overtake=0.02),
            "delay 1ms duplicate 1% corrupt 0.1% reorder 2% gap 1 limit 1826",
        ),
        (
            Impairment(rate_bps=8_000_000, queue_bytes=64 * 1024),
            "rate 8000000bit limit 44",
        ),
    ],
)
def test_tc_gets_the_words_that_it_knows(impairment: Impairment, words: str) -> None:
    assert " ".join(netem(impairment).words) == words


@pytest.mark.parametrize("distribution", ["normal", "pareto"])
def test_a_distribution_becomes_a_table_of_16_bit_numbers(distribution: Any) -> None:
    impairment = Impairment(delay_ns=10**8, jitter_ns=10**6, distribution=distribution)
    made = netem(impairment, "shape")
    words = list(made.words)
    assert words[3:5] == ["distribution", "shape"]
    jitter_ns = milliseconds(words[2]) * 1e6
    assert all(-32768 <= number <= 32767 for number in made.table)
    # netem draws delay + jitter × number / 8192: the mean and the deviation that were asked for.
    draws = [jitter_ns * number / 8192 for number in made.table]
    mean = sum(draws) / len(draws)
    deviation = (sum(draw**2 for draw in draws) / len(draws) - mean**2) ** 0.5
    assert mean == pytest.approx(0, abs=0.002 * 10**6)
    assert deviation == pytest.approx(10**6, rel=0.002)


def test_netems_queue_holds_what_is_on_its_way() -> None:
    gigabit = Impairment(delay_ns=10**8, rate_bps=10**9, queue_bytes=15_140)
    assert queue_limit(gigabit) == 10**8 // (8 * 1514) + 1 + 10


def test_mininets_file_needs_none_of_our_packages() -> None:
    text = (Path(__file__).parents[2] / "topologies/export/mininet.py").read_text()
    imports = [line.split()[1] for line in text.splitlines() if line.startswith(("import", "from"))]
    assert not [name for name in imports if name.split(".")[0] in ("topologies", "pydantic")]
    assert [name for name in imports if name.startswith("mininet.")]


def test_the_module_that_mininet_calls_prints_what_the_command_prints(tmp_path: Path) -> None:
    import subprocess
    import sys

    module = [sys.executable, "-P", "-m", "wanlat.topologies.export"]
    done = subprocess.run(
        [*module, "five-sites"], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert json.loads(done.stdout)["format"] == "wanlat-mininet-1"
    wrong = subprocess.run(
        [*module, "fife-sites"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert wrong.returncode == 2 and "did you mean" in wrong.stderr
