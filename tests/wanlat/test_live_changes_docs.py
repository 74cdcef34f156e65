"""The page on live changes tells the truth: its commands and its Python run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.wanlat.running import in_process, lab_up
from wanlat.emulator.control import client

CHECKOUT = Path(__file__).parents[2]
PAGE = CHECKOUT / "docs" / "live-changes.md"
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = [text for language, text in BLOCKS if language == "" and "wanlat lab" in text]
    begin, commands = blocks
    assert begin.strip() == "wanlat lab up three-datacenters --journal changes.jsonl"
    text = (CHECKOUT / "topologies" / "three-datacenters.yaml").read_text()
    running = client.labs
    with lab_up(tmp_path, text=text) as up:
        # As if it were the only one on this machine, and had its usual name.
        mine = lambda: [lab for lab in running() if lab["pid"] == up.process.pid]  # noqa: E731
        monkeypatch.setattr(client, "labs", mine)
        for line in commands.strip().splitlines():
            command, *words = shlex.split(line)
            assert command == "wanlat"
            if words[1] == "exec":
                continue  # it hands its own streams on: tests/wanlat/test_lab_running.py
            done = in_process(words)
            assert done.returncode == 0, f"{line}: {done.stderr}"
            if words[1] in ("change", "cut", "heal", "restore"):
                assert "in force since" in done.stderr, line
        assert len(up.journal.read_text().splitlines()) > 10


def test_the_python_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = [text for language, text in BLOCKS if language == "python"]
    exec(compile(code, str(PAGE), "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert "dc1->dc2 Impairment(delay_ns=50000000, jitter_ns=10000000" in lines[0]
    assert lines[-1] == "0"
