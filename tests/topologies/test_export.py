"""Exports fit their tools' published schemas, ask for the same network, and say what they lose."""

from __future__ import annotations

import json
import re
import shlex
import statistics
from pathlib import Path

import jsonschema
import pytest
import yaml

from tests.command_line import here
from wanlat.topologies.export.targets import export
from wanlat.topologies.load import load
from wanlat.topologies.model import Topology
from wanlat.topologies.netem import netem, tc_words
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
    {rtt: 20ms, jitter: 2ms, distribution: pareto, loss: {p: 1%, r: 30%},
     duplicate: 1%, corrupt: 0.1%}
  pairs:
    - {from: a, to: b, delay: 7.5ms, rate: 5mbit, queue: 64KiB}
    - {from: b, to: a, delay: 0.5ms, jitter: 100us, distribution: normal, reorder: 1%, loss: 0.5%}
"""


FORMATS = yaml.safe_load(Path(__file__).with_name("formats.yaml").read_text(encoding="utf-8"))
# Options of `containerlab tools netem set`: cmd/tools_netem.go, of the same commit.
NETEM_SET = {"-n", "-i", "--delay", "--jitter", "--loss", "--rate", "--corruption"}


def milliseconds(text: str) -> float:
    """What a duration of Go's is."""
    match = re.fullmatch(r"([0-9.]+)(ns|us|ms|s)", text)
    assert match is not None, text
    return float(match[1]) * {"ns": 1e-6, "us": 1e-3, "ms": 1, "s": 1e3}[match[2]]


def everything() -> Topology:
    return Topology.model_validate(yaml.safe_load(EVERYTHING))


every = pytest.mark.parametrize(
    "topology", [load("azure-regions"), everything()], ids=lambda topology: topology.name
)


@every
def test_containerlab_fits_the_schema_and_has_every_link_once_and_every_delay(
    topology: Topology,
) -> None:
    plan = resolve(topology)
    files = export(topology, "containerlab").files
    text, script = files.values()
    assert next(iter(files)) == f"{topology.name}.clab.yml"  # what containerlab looks for
    document = yaml.safe_load(text)
    jsonschema.validate(document, FORMATS["containerlab"])
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
        jsonschema.validate(document, FORMATS["chaos-mesh"])
        spec = document["spec"]
        ((near,), (far,)) = (
            selected["selector"]["labelSelectors"].values() for selected in (spec, spec["target"])
        )
        assert (near, far) not in delays
        delays[near, far] = milliseconds(spec.get("delay", {}).get("latency", "0ms"))
    for a in plan.nodes:
        for b in plan.nodes:
            if a != b:
                there = delays.get((a.site, b.site), 0.0)
                back = delays.get((b.site, a.site), 0.0)
                assert there + back == pytest.approx(plan.rtt_ms(a.name, b.name), abs=1e-5)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("mininet", ["single"]),
        ("containerlab", ["distribution", "bursts", "Duplication", "overtakes"]),
        ("chaos-mesh", ["distribution", "bursts", "1000 packets", "each pod"]),
    ],
)
def test_what_is_lost_is_said_with_the_export_and_in_the_file(target: str, said: list[str]) -> None:
    exported = export(everything(), target)
    for word in said:
        assert any(word in note for note in exported.notes), word
    for note in exported.notes:
        for name, text in exported.files.items():
            assert note in (json.loads(text)["notes"] if name.endswith(".json") else text)


@pytest.mark.parametrize(
    ("impairment", "said"),
    [
        (
            Impairment(delay_ns=50_000_000, jitter_ns=10_000_000),
            "delay 50ms 10ms rate 8000000000000000bit limit 50538",
        ),
        (
            Impairment(bursts=GilbertElliott(p=0.01, r=0.3, h=0.1, k=0.999)),
            "loss gemodel 1% 30% 90% 0.1% limit 1001",
        ),
        (
            Impairment(delay_ns=10**6, duplicate=0.01, corrupt=0.001, overtake=0.02),
            "delay 1ms duplicate 1% corrupt 0.1% reorder 2% gap 1 limit 1834",
        ),
        (
            Impairment(rate_bps=8_000_000, queue_bytes=64 * 1024),
            "rate 8000000bit limit 44",
        ),
    ],
)
def test_tc_gets_the_words_that_it_knows(impairment: Impairment, said: str) -> None:
    assert " ".join(tc_words(impairment)) == said


def test_a_distribution_becomes_a_table_of_16_bit_numbers() -> None:
    impairment = Impairment(delay_ns=10**8, jitter_ns=10**6, distribution="pareto")
    made, said = netem(impairment), tc_words(impairment, "shape")
    assert said[3:5] == ("distribution", "shape")
    # netem draws delay + jitter × number / 8192: the mean and the deviation that were asked for.
    draws = [milliseconds(said[2]) * number / 8192 for number in made.entries]
    assert statistics.fmean(draws) == pytest.approx(0, abs=0.002)
    assert statistics.pstdev(draws) == pytest.approx(1, rel=0.002)


@pytest.fixture
def in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.csv").write_text("from,to,rtt_ms\na,b,30\nb,a,32\n")


def test_what_the_commands_write(in_an_empty_directory: None) -> None:
    done = here("topology", "import", "m.csv", "--json", "--jitter", "10%", "-o", "two.yaml")
    document = json.loads(done.stdout)
    (pair,) = document["topology"]["links"]["pairs"]
    assert (pair["rtt"], pair["jitter"]) == ("31ms", "3.1ms")
    assert "both ends measured" in done.stderr and len(document["notes"]) == 1
    assert load("./two.yaml").to_dict() == document["topology"]
    one = here("topology", "export", "five-sites", "--to", "mininet", "--out", "plan.json")
    assert one.returncode == 0
    assert json.loads(Path("plan.json").read_text())["format"] == "wanlat-mininet-1"
    several = ("topology", "export", "five-sites", "--to", "containerlab", "--out", "lab")
    written = [Path(each) for each in json.loads(here(*several, "--json").stdout)["written"]]
    assert [each.name for each in written] == ["five-sites.clab.yml", "five-sites.netem.sh"]
    assert written[1].stat().st_mode & 0o111
    again = here(*several)
    assert again.returncode == 2 and "--force" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("import nowhere.csv", "no such file"),
        ("import m.csv --name Places", "`Places` cannot be a host name"),
        ("import m.csv --out m.csv", "--force"),
        ("export five-sites --to mininett", "did you mean `mininet`"),
        ("export odd.yaml --to chaos-mesh", "Kubernetes takes no name that ends with `-`"),
    ],
)
def test_a_users_mistake_ends_with_code_2_and_a_paragraph(
    arguments: str, says: str, in_an_empty_directory: None
) -> None:
    Path("odd.yaml").write_text("name: odd-\nsites: [{name: a, nodes: 1}]\n")
    done = here("topology", *arguments.split())
    assert done.returncode == 2, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
