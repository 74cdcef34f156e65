"""Everything that docs/results shows, made again: `make results`, `make pages`.

    python -m tools.results measure [BUNDLE...]    what docs/results/results.yaml lists and nobody
                                                   has measured yet; what was begun goes on
    python -m tools.results pages                  each page of a README.md.j2, from its bundles

A bundle is measured below results/, and put below docs/results when it is complete: without logs,
captures and resource usage, which are large and can be had again. A page is a template: what stands
in braces is taken from the bundles beside it, so that no figure on it is typed by hand.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from jinja2 import Environment, StrictUndefined

from wanlat import OpenBundle, open_bundle
from wanlat.topologies.wording import listing

CHECKOUT = Path(__file__).resolve().parents[1]
RESULTS = CHECKOUT / "docs" / "results"
LISTED = RESULTS / "results.yaml"
_PUBLISHED = ("*.json", "*.parquet", "*.md", "*.png")
_LEFT_OUT = ("packets.parquet", "resources.parquet", "lateness.parquet")
_PICTURE = re.compile(r"\]\(([^)\s#]+\.png)\)")


def listed() -> dict[str, str]:
    """Return the command of each bundle, by its place below docs/results."""
    found: dict[str, str] = yaml.safe_load(LISTED.read_text("utf-8"))
    return found


def is_published(name: str, command: str) -> bool:
    """Return whether a bundle lies in docs/results that this command made, and is complete."""
    try:
        manifest = json.loads((RESULTS / name / "manifest.json").read_text("utf-8"))
    except FileNotFoundError:
        return False
    given = manifest["command"][1:]
    for option in ("--out", "--jobs"):  # neither is what is measured
        if option in given:
            place = given.index(option)
            del given[place : place + 2]
    return manifest["status"] == "complete" and given == shlex.split(command)


def measure(names: list[str]) -> int:
    """Measure what is not published, one after the other. Return an exit code."""
    known = listed()
    if unknown := [name for name in names if name not in known]:
        print(f"{LISTED} lists no {listing(unknown)}, but {listing(known)}.", file=sys.stderr)
        return 2
    left = [name for name in names or known if not is_published(name, known[name])]
    print(
        f"{len(left)} of {len(names or known)} bundles are to be measured: {listing(left) or '-'}"
    )
    for name in left:
        bundle = CHECKOUT / "results" / name
        begin = [*shlex.split(known[name]), "--jobs", "auto", "--out", str(bundle)]
        kind = begin[:2] if begin[0] == "drill" else begin[:1]
        begun = [*kind, "--jobs", "auto", "--resume", str(bundle)]
        command = begun if bundle.exists() else begin
        print(f"{name}: wanlat {shlex.join(command)}")
        if code := _wanlat(*command):
            return code
        # Of packets, which are not published, each point keeps what was found in them.
        recorded = [file.parent for file in sorted(bundle.glob("points/*/packets.parquet"))]
        for one in (*recorded, bundle):
            if code := _wanlat("report", str(one)):
                return code
        publish(bundle, RESULTS / name)
    return 0


def _wanlat(*words: str) -> int:
    return subprocess.run([sys.executable, "-m", "wanlat", *words], check=False).returncode


def publish(bundle: Path, place: Path) -> None:
    """Put a bundle in the place of the one before; of its charts, those that a page shows."""
    shown = {
        (page.parent / link).resolve()
        for page in (CHECKOUT / "docs").rglob("*.md*")
        for link in _PICTURE.findall(page.read_text("utf-8"))
    }
    shutil.rmtree(place, ignore_errors=True)
    for pattern in _PUBLISHED:
        for file in bundle.rglob(pattern):
            inside = file.relative_to(bundle)
            parts = [bundle, *(bundle / each for each in inside.parents)]
            is_points = inside.parts[0] == "points" and file.name == "tables.md"
            if (
                is_points
                or file.name in _LEFT_OUT
                or any(".attempt-" in each.name for each in parts)
            ):
                continue
            if file.suffix == ".png" and (place / inside).resolve() not in shown:
                continue
            (place / inside).parent.mkdir(parents=True, exist_ok=True)
            if file.suffix == ".json":
                whole = json.loads(file.read_text("utf-8"))
                text = json.dumps(whole, ensure_ascii=False, separators=(",", ":"))
                # Where it was measured is nobody's matter.
                text = text.replace(f"{CHECKOUT}/", "").replace('"__main__.py"', '"wanlat"')
                (place / inside).write_text(f"{text}\n", "utf-8")
            else:
                shutil.copyfile(file, place / inside)


def pages() -> Iterator[tuple[Path, str]]:
    """Yield each page that is a template, and what is to stand in it. Raises UndefinedError."""
    for template in sorted(RESULTS.rglob("README.md.j2")):
        home = template.parent
        made = Environment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)
        made.filters |= {"ms": _ms, "interval": _interval, "trips": _trips}
        functions = (row, times, table, command)
        made.globals |= {each.__name__: partial(each, home) for each in functions}
        yield home / "README.md", made.from_string(template.read_text("utf-8")).render()


@cache
def _opened(place: Path) -> OpenBundle:
    return open_bundle(place)


def row(home: Path, bundle: str, figure: str, **where: str) -> dict[str, Any]:
    """Return the one row of a figure (`OpenBundle.figures`) that has these values."""
    found = _opened(home / bundle).figures[figure]
    for key, value in where.items():
        found = found[found[key] == value]
    if len(found) != 1:
        raise LookupError(f"{home / bundle}: {len(found)} rows of {figure} have {where}.")
    one: dict[str, Any] = found.iloc[0].to_dict()
    return one


def times(home: Path, bundle: str, **where: str) -> pd.Series[float]:
    """Return how long requests took that were answered and measured on time, ms."""
    samples = _opened(home / bundle).samples
    chosen = (samples["phase"] == "measure") & (samples["outcome"] == "ok") & ~samples["late"]
    for key, value in where.items():
        chosen &= samples[key] == value
    if not chosen.any():
        raise LookupError(f"{home / bundle}: no request has {where}.")
    return samples.loc[chosen, "total_ns"].astype(float) / 1e6


def table(home: Path, bundle: str, title: str) -> str:
    """Return the table of a bundle's `tables.md` whose heading begins so, and its notes."""
    text = (home / bundle / "tables.md").read_text("utf-8")
    begin = text.index(f"\n{title}")
    table = text.index("\n| ", begin) + 1
    return text[table : text.index("\n\n", table)]


def command(home: Path, bundle: str) -> str:
    """Return the command that measured a bundle."""
    return f"wanlat {listed()[str((home / bundle).relative_to(RESULTS))]}"


def _ms(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def _interval(values: tuple[float, float]) -> str:
    low, high = values
    return f"[{_ms(low)}, {_ms(high)}]"


def _trips(value: float | tuple[float, float]) -> str:
    return f"{value:.2f}" if isinstance(value, float) else "[{:.2f}, {:.2f}]".format(*value)


def main() -> int:
    """Do what the command line says."""
    match sys.argv[1:]:
        case ["measure", *names]:
            return measure(names)
        case ["pages"]:
            for page, text in pages():
                page.write_text(text, "utf-8")
                print(page.relative_to(CHECKOUT))
            return 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
