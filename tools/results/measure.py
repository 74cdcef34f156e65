"""Measuring what is listed, and putting it below docs/results."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from fnmatch import fnmatchcase
from io import BytesIO
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
_COLORS, _LARGE = 256, 60_000
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
    """Put a bundle in the place of the one before."""
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
            (place / inside).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, place / inside)
    tidy(place)
    for file in place.rglob("load.parquet"):
        shrink_load(file)
    if (place / "points").is_dir():
        pack(place)


def report(names: list[str]) -> int:
    """Report again of published bundles, and of all of them together. Return an exit code."""
    of_all = {
        "index": ("--index", str(RESULTS), "-o", str(RESULTS / "index")),
        "publications": ("--claims", str(RESULTS), "-o", str(RESULTS / "publications")),
    }
    for name, words in {**{name: (str(RESULTS / name),) for name in names}, **of_all}.items():
        code = _wanlat("report", *words)
        if code:
            return code
        tidy(RESULTS / name, "*.md")
    return 0


def tidy(place: Path, pages: str = "*.md*") -> None:
    """Leave of a bundle what is published of it, and that small.

    Charts that `pages` show: of templates too, where the page is yet to be made.
    """
    shown = _shown(pages)
    for file in [each for each in place.rglob("*") if each.is_file()]:
        is_picture = file.suffix == ".png"
        is_shown = any(fnmatchcase(str(file.resolve()), each) for each in shown)
        if file.name == "report.html" or (is_picture and not is_shown):
            file.unlink()
        else:
            file.write_bytes(small(file))
    for directory in sorted(place.rglob("*"), reverse=True):
        if directory.is_dir() and not any(directory.iterdir()):
            directory.rmdir()


def small(file: Path) -> bytes:
    """Return what a published file is to hold: JSON without spaces, a picture of few colors."""
    content = file.read_bytes()
    if file.suffix == ".json":
        whole = json.loads(content)
        text = json.dumps(whole, ensure_ascii=False, separators=(",", ":"))
        # Where it was measured is nobody's matter.
        text = text.replace(f"{CHECKOUT}/", "").replace('"__main__.py"', '"wanlat"')
        return f"{text}\n".encode()
    if file.suffix == ".png" and len(content) > _LARGE:
        image = Image.open(BytesIO(content))
        if image.mode != "P":
            few = BytesIO()
            image.convert("RGB").quantize(_COLORS).save(few, "PNG", optimize=True)
            return few.getvalue()
    return content


def _shown(pages: str) -> list[str]:
    """Patterns of the pictures that a page shows."""
    return [
        str((page.parent / link).resolve())
        for page in (CHECKOUT / "docs").rglob(pages)
        for link in _PICTURE.findall(_HOLE.sub("*", page.read_text("utf-8")))
    ]
