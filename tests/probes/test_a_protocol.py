"""A protocol is one module on each side: CONTRIBUTING's example is listed, and then planned for."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.command_line import CHECKOUT

SYSTEM = """schema: 1
name: mine
protocol: lines
command: [mine]
ports: {lines: 7000}
lines: {}
endpoints: {Get: {line: "GET {key}"}}
"""
SCRIPT = """
import json
from pathlib import Path
from wanlat.experiments.config.endpoints import endpoints_of
from wanlat.experiments.config.study import Study
from wanlat.experiments.prepare import plan_requests
from wanlat.probes.protocols import header_to
from wanlat.systems import registry
from wanlat.systems.engine.protocols import PROTOCOLS, Place

system = registry.get(registry.adopt("mine/"))
lines = PROTOCOLS[system.api(system.parse_options())]
section = system.definition.section(lines)
place = Place("10.0.0.1", {"ports": system.definition.ports}, Path())
study = Study(name="s", topology="t", systems=["mine"], endpoints=["GetObject"], samples=1)
of = {"target": "n1", "replicas": lambda _: None, "seed": 1, "objects": None}
plan = plan_requests(study, "mine", lines.name, own=endpoints_of(system), **of)
header = header_to(lines.target(section, place), deadline_ms=9)
print(json.dumps([header.line().decode(), plan.plan().measure[0].line().decode(), plan.turns()]))
"""


def test_two_modules_that_are_listed_are_all_that_a_protocol_needs_of_python(
    tmp_path: Path,
) -> None:
    tree = tmp_path / "tree"
    for room in ("systems", "probes", "wanlat"):
        shutil.copytree(CHECKOUT / room, tree / room, symlinks=True)
    for room in ("topologies", "bundle", "emulator", "experiments", "analysis", "proto"):
        (tree / room).symlink_to(CHECKOUT / room)
    page = (CHECKOUT / "CONTRIBUTING.md").read_text("utf-8").partition("## A protocol\n")[2]
    examples = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[:2]
    rooms = {"systems/engine/protocols": "LinesProtocol", "probes/protocols": "LinesPlanner"}
    for (room, name), example in zip(rooms.items(), examples, strict=True):
        (tree / room / "lines.py").write_text(example, "utf-8")
        registry = tree / room / "__init__.py"
        added = f"from wanlat.{room.replace('/', '.')}.lines import {name}\n"
        text = registry.read_text("utf-8").replace("from wanlat", f"{added}from wanlat", 1)
        registry.write_text(re.sub(r"(Exec\w+\(\))", rf"\1, {name}()", text), "utf-8")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "system.yaml").write_text(SYSTEM)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    header, request, turns = json.loads(done.stdout)
    assert json.loads(header).items() >= {"host": "10.0.0.1", "port": 7000}.items()
    assert json.loads(request)["request"] == {"line": "GET {key}"}
    assert len(json.loads(request)["key"]) == 16
    assert turns == [["Get", "unknown"]]
