"""Runs of several points, on one node, without a network to prove: a point takes a second."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.experiments.commands import command

STUDY = """
name: test
topology: one-site
nodes: 1
endpoints: [GetObject, PutObject]
warmup: 2
seed: 7
resources: false
"""


def study(directory: Path, samples: int, points: int | str = 3, text: str = STUDY) -> Path:
    """Write a study of so many replicates, or of what else it says of points."""
    file = directory / "study.yaml"
    more = points if isinstance(points, str) else f"replicates: {points}"
    file.write_text(f"{text}samples: {samples}\n{more}\n")
    return file


def begin(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(command("run", *arguments), stderr=subprocess.PIPE, text=True)


def points(bundle: Path) -> list[dict[str, Any]]:
    try:
        found: list[dict[str, Any]] = json.loads((bundle / "points.json").read_text())["points"]
    except FileNotFoundError:
        return []
    return found


def is_measuring(bundle: Path, place: int) -> bool:
    """Whether the point that is run as number `place` has samples already."""
    known = points(bundle)
    raw = bundle / known[place]["directory"] / "samples.jsonl" if known else bundle
    return raw.is_file() and raw.read_bytes().count(b"\n") > 10


def statuses(bundle: Path) -> list[str]:
    return [point["status"] for point in points(bundle)]
