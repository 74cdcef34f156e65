"""A ``wanlat lab up`` in a process of its own, and commands on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.command_line import here
from wanlat.emulator.control import client

TOPOLOGY = """
name: small
sites:
  - {name: dc1, nodes: [n1, n2]}
  - {name: dc2, nodes: [n3]}
links: {default: {rtt: 20ms, jitter: 2ms}}
"""
CONNECT = """
import socket, sys, time
for _ in range(5):
    begun = time.monotonic()
    socket.socket().connect_ex((sys.argv[1], 9))
    print(time.monotonic() - begun)
"""


@dataclass
class Up:
    """A running ``wanlat lab up``."""

    process: subprocess.Popen[str]
    name: str
    said: Path
    journal: Path

    def __call__(self, command: str, *rest: str) -> subprocess.CompletedProcess[str]:
        """Run a ``wanlat lab`` command on it, within this process."""
        return here("lab", command, "--lab", self.name, *rest)

    def json(self, *arguments: str) -> Any:
        done = self(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def in_force(self) -> dict[str, dict[str, Any]]:
        rows = self.json("show")["directions"]
        return {f"{row['from']}->{row['to']}": row["in_force"] for row in rows}

    def rtt_ms(self, node: str, target: str) -> float:
        """Return how long it takes to be told that a port is closed, at the best of five."""
        out = self.run(node, CONNECT, target)
        return min(float(line) * 1000 for line in out.split())

    def run(self, node: str, code: str, *arguments: str) -> str:
        """Return what some Python prints on a node."""
        with tempfile.TemporaryFile("w+") as out, client.find(self.name) as lab:
            lab.spawn(node, [sys.executable, "-c", code, *arguments], (0, out.fileno(), 2))
            lab.wait(120)
            out.seek(0)
            return out.read()


@contextmanager
def lab_up(directory: Path, *options: str, text: str = TOPOLOGY) -> Iterator[Up]:
    (directory / "small.yaml").write_text(text)
    said, journal = directory / "said", directory / "journal.jsonl"
    name = f"test-{os.getpid()}-{time.monotonic_ns()}"
    with said.open("w") as stderr:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "wanlat", "lab", "up", str(directory / "small.yaml")),
                *("--name", name, "--journal", str(journal), "--json", *options),
            ],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
    assert process.stdout is not None
    try:
        first = process.stdout.readline()
        assert first == "{\n", said.read_text()
        yield Up(process, name, said, journal)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
