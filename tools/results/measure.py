"""Measuring what is listed, and putting it below docs/results."""

from __future__ import annotations

import gzip
import json
import re
import shlex
import shutil
import sys
from fnmatch import fnmatchcase
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

from tools.results import CHECKOUT, LISTED, RESULTS, known
from wanlat.bundle.pack import pack, shrink_load
from wanlat.bundle.read import ASIDE, ZIPPED
from wanlat.emulator.reaper import run
from wanlat.topologies.wording import listing

_PUBLISHED = ("*.json", "*.parquet", "*.md", "*.png")
_LEFT_OUT = ("packets.parquet", "resources.parquet", "lateness.parquet")
_LEFT_OUT_OF_RESOURCES = ("packets.parquet", "lateness.parquet")
"""Of studies of what nodes use, idle or full."""
_LEFT_OUT_OF_DRILLS = ("calibration.json",)
_COLORS, _LARGE = 256, 60_000
"""A picture of so many bytes gets so many colors."""
_LARGE_DOCUMENT = 20_000
_ZIPPED_IF_LARGE = (
    *("summary.json", "matrix.json"),
    *("calibration.json", "rtt_steps.json", "chains.json"),
)
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
        for one in recorded:
            _wanlat("report", str(one))
        publish(bundle, RESULTS / name)
        if begin[0] != "drill":  # figures are of what is published: none is left of what is not
            if code := _wanlat("report", str(RESULTS / name)):
                return code
            tidy(RESULTS / name)
    return 0


def _is_complete(bundle: Path) -> bool:
    found: dict[str, Any] = json.loads((bundle / "manifest.json").read_text("utf-8"))
    return found["status"] == "complete"


def _wanlat(*words: str) -> int:
    return run([sys.executable, "-m", "wanlat", *words]).returncode


def publish(bundle: Path, place: Path) -> None:
    """Put a bundle in the place of the one before."""
    manifest = json.loads((bundle / "manifest.json").read_text("utf-8"))
    study = manifest.get("study") or {}
    are_drills = manifest.get("kind") == "drills"
    has_ledger = are_drills or study.get("envelope") is not None
    is_idle = (study.get("resources") or {}).get("idle", "0ms") != "0ms"
    left_out = _LEFT_OUT_OF_RESOURCES if is_idle or study.get("prefill") else _LEFT_OUT
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
        "index": ("--index", str(RESULTS), "-o", str(RESULTS / "index"), "--force"),
        "publications": ("--claims", str(RESULTS), "-o", str(RESULTS / "publications"), "--force"),
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
    unshown = {*unshown_pictures(place, pages)}
    for file in [each for each in place.rglob("*") if each.is_file()]:
        if file.name == "report.html" or file in unshown:
            file.unlink()
        else:
            file.write_bytes(small(file))
            if file.parent == place and file.name in _ZIPPED_IF_LARGE:
                _zip_if_large(file)
    for directory in sorted(place.rglob("*"), reverse=True):
        if directory.is_dir() and not any(directory.iterdir()):
            directory.rmdir()


def _zip_if_large(file: Path) -> None:
    """Leave a large document zipped; readers of bundles open both."""
    zipped = file.with_name(f"{file.name}{ZIPPED}")
    zipped.unlink(missing_ok=True)
    if file.stat().st_size > _LARGE_DOCUMENT:
        zipped.write_bytes(gzip.compress(file.read_bytes(), mtime=0))
        file.unlink()


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


def unshown_pictures(place: Path, pages: str = "*.md") -> list[Path]:
    """Return the pictures below a directory that no page shows."""
    shown = [
        str((page.parent / link).resolve())
        for page in (CHECKOUT / "docs").rglob(pages)
        for link in _PICTURE.findall(_HOLE.sub("*", page.read_text("utf-8")))
    ]
    return [
        picture
        for picture in place.rglob("*.png")
        if not any(fnmatchcase(str(picture.resolve()), each) for each in shown)
    ]
