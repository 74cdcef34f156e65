"""containerlab's file and script, carried out by hand, give the round trips that were asked for.

Containers are network namespaces here, and `containerlab tools netem set` is what it does: one
netem of 10,000 packets on the interface.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from wanlat.topologies.export.exported import export
from wanlat.topologies.load import load
from wanlat.topologies.resolve import Plan, resolve

LATE_MS = 5.0  # the quickest of twenty packets, on User-Mode Linux; the least delay here is 5

TOPOLOGY = """
name: clab
sites:
  - {name: a, nodes: [n1, n2], lan: {rtt: 20ms}}
  - {name: b, nodes: [n3], access: {up: {delay: 10ms, rate: 8mbit}, down: {delay: 5ms}}}
  - {name: c, nodes: [n4]}
links:
  pairs:
    - {between: [a, b], rtt: 40ms}
    - {from: a, to: c, delay: 60ms}
    - {from: c, to: a, delay: 10ms}
    - {between: [b, c], rtt: 80ms, jitter: 4ms}
"""

pytestmark = pytest.mark.skipif(
    shutil.which("ping") is None,
    reason="ping is not installed (Debian, Ubuntu: apt-get install iputils-ping)",
)


def run(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"{shlex.join(words)}: {done.stdout}{done.stderr}"
    return done.stdout


def inside(container: str, line: str) -> str:
    return run("ip", "netns", "exec", container, "sh", "-c", line)


def deploy(text: str) -> list[str]:
    """What `containerlab deploy` does with a file of ours."""
    topology = yaml.safe_load(text)["topology"]
    containers = list(topology["nodes"])
    lines = [f"netns add {name}" for name in containers]
    for link in topology["links"]:
        near, far = link["endpoints"]
        lines.append(
            f"-n {near['node']} link add {near['interface']} address {near['mac']}"
            f" type veth peer name {far['interface']} address {far['mac']} netns {far['node']}"
        )
    run("sh", "-ec", "\n".join(f"ip {line}" for line in lines))
    ends = [end for link in topology["links"] for end in link["endpoints"]]
    for name, node in topology["nodes"].items():
        ports = ["lo", *(end["interface"] for end in ends if end["node"] == name)]
        lines = [f"ip link set {port} up" for port in ports]
        for key, value in node.get("sysctls", {}).items():
            lines.append(f"echo {value} > /proc/sys/{key.replace('.', '/')}")
        inside(name, "\n".join(["set -e", *lines, *node["exec"]]))
    return containers


def set_netem(script: str, lab: str) -> None:
    """What the script's `containerlab tools netem set` do."""
    for line in script.splitlines():
        if line.startswith("containerlab "):
            words = shlex.split(line)[4:]
            options = dict(zip(words[::2], words[1::2], strict=True))
            netem = ["delay", options.get("--delay", "0ms"), options.get("--jitter", "0ms")]
            netem += ["rate", f"{options['--rate']}kbit"] if "--rate" in options else []
            node = options["-n"].removeprefix(f"clab-{lab}-")
            run(
                *("ip", "netns", "exec", node, "tc", "qdisc", "replace", "dev", options["-i"]),
                *("root", "netem", "limit", "10000", *netem),
            )


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plan]:
    file: Path = tmp_path_factory.mktemp("clab") / "clab.yaml"
    file.write_text(TOPOLOGY)
    topology = load(file)
    text, script = export(topology, "containerlab").files.values()
    containers = deploy(text)
    set_netem(script, topology.name)
    yield resolve(topology)
    for name in containers:
        run("ip", "netns", "delete", name)


def least_ms(a: str, address: str) -> float:
    # ping waits for the last ones no longer than two round trips: a stall makes it lose some.
    said = inside(a, f"ping -n -c 20 -i 0.01 -W 5 {address} || true")
    least = re.search(r"= ([\d.]+)/", said)
    assert least, said
    return float(least[1])


def test_every_pair_has_its_round_trip(plan: Plan) -> None:
    for a in plan.nodes:
        for b in plan.nodes:
            if a == b:
                continue
            low, high = plan.range_ms(a.name, b.name)
            measured_ms = least_ms(a.name, b.address)
            assert low - 0.1 < measured_ms < high + LATE_MS, (a.name, b.name)


def test_no_container_has_to_ask_for_a_neighbour(plan: Plan) -> None:
    # The first packet would wait for an ARP exchange over a delayed link.
    for name in [
        *(node.name for node in plan.nodes),
        *(f"site.{each.name}" for each in plan.sites),
    ]:
        neighbours = run("ip", "-4", "-n", name, "neigh").splitlines()
        assert neighbours
        assert all("PERMANENT" in line for line in neighbours), neighbours
