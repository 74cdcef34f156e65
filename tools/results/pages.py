"""Pages: templates, whose holes are filled with figures of bundles."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import partial
from importlib import import_module
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from benchmarks import comparison
from tools.results import CHECKOUT, RESULTS, drills, figures, known
from wanlat.analysis import names
from wanlat.bundle.run import Series


def pages() -> Iterator[tuple[Path, str]]:
    """Yield each page that is a template, and what is to stand in it. Raises UndefinedError."""
    for template in sorted(RESULTS.rglob("*.md.j2")):
        yield template.with_suffix(""), rendered(template)


def rendered(template: Path) -> str:
    """Return the page that a template makes. Raises UndefinedError, UnfoundedError."""
    made = Environment(
        loader=FileSystemLoader(template.parent),  # so that an error names the page and its line
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
    )
    made.filters |= {"ms": _ms, "interval": _interval, "trips": _trips, "estimate": _estimate}
    made.filters |= {"clustered": _clustered}
    worded = (names.change, names.count, names.digits, names.share, names.short_version)
    worded += (names.with_interval,)
    made.filters |= {each.__name__: each for each in worded}
    functions = (table, command, given, has, whose, notes, measured, took, benchmark)
    functions += (figures.row, figures.rows, figures.values, figures.mean, figures.over_clusters)
    functions += (figures.added, figures.ratio, figures.clusters, figures.times, figures.takes)
    functions += (figures.document, figures.published, figures.calibrations)
    functions += (figures.expected, figures.foretold, figures.trips_at_limit)
    functions += (figures.is_one_number, figures.share_of, figures.of_grid)
    functions += (drills.drills, drills.drill_claims, drills.puts_by_copy)
    functions += (drills.fared, drills.not_there, drills.requests, drills.sent_late)
    made.globals |= {each.__name__: partial(each, template.parent) for each in functions}
    return made.get_template(template.name).render()


def measured(home: Path, bundle: str) -> str:
    """Return what was measured and when: "22 November 2026: Garage 2.5.0, etcd 3.4.23"."""
    manifest = figures.bundle_at(home / bundle).manifest
    day = datetime.fromisoformat(str(manifest.started))
    series = [Series(each.name, each.version) for each in manifest.systems]
    return f"{day:%-d %B %Y}: {', '.join(names.series_labels(series).values())}"


def benchmark(_: Path, name: str, is_timed: bool = True) -> str:
    """Return what benchmarks/NAME/results.json keeps: a table; of times also machine and claims."""
    report = figures.document(CHECKOUT / "benchmarks" / name, "results.json")
    columns = import_module(f"benchmarks.{name}.__main__").COLUMNS
    made = comparison.table(report["rows"], columns)
    return comparison.section(report, made) if is_timed else made


def table(home: Path, bundle: str, title: str, *columns: str) -> str:
    """Return the table of a bundle's `tables.md` whose heading begins so: all of it, or columns."""
    text = (home / bundle / "tables.md").read_text("utf-8")
    begin = text.index(f"\n{title}")
    table = text.index("\n| ", begin) + 1
    lines = text[table : text.index("\n\n", table)]
    if not columns:
        return lines
    cells = [line[2:-2].split(" | ") for line in lines.splitlines()]
    chosen = [cells[0].index(each) for each in columns]
    return "\n".join(f"| {' | '.join(row[one] for one in chosen)} |" for row in cells)


class UnfoundedError(Exception):
    """A sentence of a page does not follow from its bundles any more."""


def given(_: Path, *facts: object) -> str:
    """Return nothing where all that the sentence behind it says is so. Raises UnfoundedError."""
    for nth, fact in enumerate(facts, 1):
        if not fact:
            raise UnfoundedError(
                f"The sentence behind this `given` does not hold: fact {nth} of {len(facts)} is not"
                " so. Say what the bundles say."
            )
    return ""


def has(home: Path, bundle: str) -> bool:
    """Return whether a bundle is published there."""
    return (home / bundle / "manifest.json").is_file()


def whose(home: Path, bundle: str) -> str:
    """Return the name of the system that a bundle is of."""
    return names.display_system(figures.bundle_at(home / bundle).manifest.systems[0].name)


def notes(home: Path, bundle: str, *begins: str) -> list[str]:
    """Return the notes of a bundle's `tables.md` that begin so."""
    lines = (home / bundle / "tables.md").read_text("utf-8").splitlines()
    return [line[2:] for line in lines if line.startswith(tuple(f"- {each}" for each in begins))]


_SHORT_S = 120


def took(home: Path, bundle: str) -> str:
    """Return how long a matrix took, and a point of it: "36 min (a cluster 27 to 33 min)"."""
    opened = figures.bundle_at(home / bundle)
    of_points = sorted((each.manifest.wall_s or 0) for each in opened.points.values())
    unit, s = ("s", 1) if of_points[-1] < _SHORT_S else ("min", 60)
    ends = dict.fromkeys(f"{of / s:.0f}" for of in (of_points[0], of_points[-1]))
    whole = opened.manifest.wall_s
    said = f"{whole / 60:.0f} min" if whole else "more than one sitting"
    return f"{said} (a cluster {' to '.join(ends)} {unit})"


def command(home: Path, bundle: str) -> str:
    """Return the command that measured a bundle."""
    return f"wanlat {known()[str((home / bundle).resolve().relative_to(RESULTS))]}"


def _ms(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def _estimate(of: figures.Mean, significant: int = 3) -> str:
    return names.with_interval(*of[:2], significant)


def _clustered(of: figures.Mean, significant: int = 3) -> str:
    """The value, and its interval where that is over clusters."""
    return _estimate(of, significant) if of.clusters > 1 else names.digits(of.value, significant)


def _interval(values: tuple[float, float]) -> str:
    low, high = values
    return f"[{_ms(low)}, {_ms(high)}]"


def _trips(value: float | tuple[float, float]) -> str:
    if isinstance(value, float):
        return names.format_trips(value)
    return names.format_trips_interval(value)
