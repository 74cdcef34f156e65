"""Measuring what is listed, and putting it below docs/results."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from PIL import Image

from tools.results import CHECKOUT, LISTED, RESULTS, known
from wanlat.bundle.pack import pack, shrink_load
from wanlat.bundle.read import ASIDE
from wanlat.topologies.wording import listing

_PUBLISHED = ("*.json", "*.parquet", "*.md", "*.png")
_LEFT_OUT = ("packets.parquet", "resources.parquet", "lateness.parquet")
_LEFT_OUT_OF_RESOURCES = ("packets.parquet", "lateness.parquet")  # of studies of what nodes use
_LEFT_OUT_OF_DRILLS = ("calibration.json",)
_COLORS, _LARGE = 64, 150_000
"""A picture of so many bytes gets so many colors."""
_PICTURE = re.compile(r"\]\(([^)\s#]+\.png)\)")
_HOLE = re.compile(r"\{\{.*?\}\}")


def is_published(name: str, command: str) -> bool:
    """Return whether a bundle lies in docs/results that this command made, and is complete."""
    try:
        manifest = json.loads((RESULTS / name / "manifest.json").read_text("utf-8"))
    except FileNotFoundError:
        return False
    given = _measured(manifest["command"][1:])
    return manifest["status"] == "complete" and given == _measured(shlex.split(command))


def _measured(words: list[str]) -> list[str]:
    """Return a command without where its bundle lies, and how many points it measures at once."""
    for option in ("--out", "--jobs"):
        if option in words:
            place = words.index(option)
            words = words[:place] + words[place + 2 :]
    return words


def measure(names: list[str]) -> int:
    """Measure what is not published, one after the other. Return an exit code."""
    commands = known()
    if unknown := [name for name in names if name not in commands]:
        print(f"{LISTED} lists no {listing(unknown)}, but {listing(commands)}.", file=sys.stderr)
        return 2
    wanted = names or [*commands]
    left = [name for name in wanted if not is_published(name, commands[name])]
    print(f"{len(left)} of {len(wanted)} bundles are to be measured: {listing(left) or '-'}")
    for name in left:
        bundle = CHECKOUT / "results" / name
        words = shlex.split(commands[name])
        jobs = ["--jobs", words[words.index("--jobs") + 1] if "--jobs" in words else "auto"]
        begin = [*_measured(words), *jobs, "--out", str(bundle)]
        kind = ["drill", "run"] if begin[0] == "drill" else ["run"]
        begun = [*kind, *jobs, "--resume", str(bundle)]
        command = begun if bundle.exists() else begin
        print(f"{name}: wanlat {shlex.join(command)}")
        code = _wanlat(*command)
        if not _is_complete(bundle):  # a drill that does not pass ends with 1, and is a result
            return code or 1
        # Of packets, which are not published, each point keeps what was found in them.
        recorded = [file.parent for file in sorted(bundle.glob("points/*/packets.parquet"))]
        for one in (*recorded, *([bundle] if begin[0] == "run" else [])):
            _wanlat("report", str(one))
        publish(bundle, RESULTS / name)
    return 0


def _is_complete(bundle: Path) -> bool:
    found: dict[str, Any] = json.loads((bundle / "manifest.json").read_text("utf-8"))
    return found["status"] == "complete"


def _wanlat(*words: str) -> int:
    return subprocess.run([sys.executable, "-m", "wanlat", *words], check=False).returncode


def publish(bundle: Path, place: Path) -> None:
    """Put a bundle in the place of the one before; of its charts, those that a page shows."""
    shown = [
        str((page.parent / link).resolve())
        for page in (CHECKOUT / "docs").rglob("*.md*")
        for link in _PICTURE.findall(_HOLE.sub("*", page.read_text("utf-8")))
    ]
    manifest = json.loads((bundle / "manifest.json").read_text("utf-8"))
    study = manifest.get("study") or {}
    are_drills = manifest.get("kind") == "drills"
    has_ledger = are_drills or study.get("envelope") is not None
    sampled = (study.get("resources") or {}).get("idle", "0ms")
    left_out = _LEFT_OUT if sampled == "0ms" else _LEFT_OUT_OF_RESOURCES
    shutil.rmtree(place, ignore_errors=True)
    for pattern in (*_PUBLISHED, *(("*.jsonl",) if has_ledger else ())):
        for file in bundle.rglob(pattern):
            inside = file.relative_to(bundle)
            parts = [bundle, *(bundle / each for each in inside.parents)]
            is_points = inside.parts[0] == "points"
            if (
                (is_points and file.name == "tables.md")
                or (is_points and are_drills and file.name in _LEFT_OUT_OF_DRILLS)
                or file.name in left_out
                or any(ASIDE in each.name for each in parts)
            ):
                continue
            where = str((place / inside).resolve())
            if file.suffix == ".png" and not any(fnmatchcase(where, each) for each in shown):
                continue
            (place / inside).parent.mkdir(parents=True, exist_ok=True)
            if file.suffix == ".json":
                whole = json.loads(file.read_text("utf-8"))
                text = json.dumps(whole, ensure_ascii=False, separators=(",", ":"))
                # Where it was measured is nobody's matter.
                text = text.replace(f"{CHECKOUT}/", "").replace('"__main__.py"', '"wanlat"')
                (place / inside).write_text(f"{text}\n", "utf-8")
            elif file.suffix == ".png" and file.stat().st_size > _LARGE:
                Image.open(file).convert("RGB").quantize(_COLORS).save(
                    place / inside, optimize=True
                )
            else:
                shutil.copyfile(file, place / inside)
    for file in place.rglob("load.parquet"):
        shrink_load(file)
    if (place / "points").is_dir():
        pack(place)
