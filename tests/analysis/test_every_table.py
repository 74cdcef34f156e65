"""Every table that the project prints is multiplied, whoever made it and wherever it stands."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from load_bundles import write_load
from resources_bundles import WAN_BYTES, write_reclaim, write_resources
from rich.console import Console
from sweep_bundles import write_sweep
from synthetic_bundles import BOB, MINIO, write_bundle

from wanlat.analysis.blocks import blocks_of
from wanlat.analysis.bundle import read_bundle
from wanlat.analysis.criterion import PrintedRow, printed_rows
from wanlat.analysis.grid import Grid, markdown, print_grid
from wanlat.analysis.printed import check_text, load_all_tables, looks_like_rates, tables_of
from wanlat.analysis.summary import summarize
from wanlat.analysis.sweep import is_sweep, read_sweep
from wanlat.analysis.sweep_summary import summarize_sweep
from wanlat.analysis.sweep_table import grids_of, print_sweep
from wanlat.analysis.table import markdown_table, print_table
from wanlat.analysis.units import REGISTERED, UnitsError, check_products

pytestmark = pytest.mark.usefixtures("few_resamples")
ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SUMMARIES = sorted((ROOT / "docs").rglob("summary.json"))
WIDE = 1000
MIXED = {"name": "mixed-load", "object_size": "512kB", "load": {"workers": 16, "duration": "20s"}}


def sizes(path: Path) -> None:
    """A sweep over object sizes."""
    write_sweep(path, {"object_size": ["1KiB", "50KiB", "100MiB"]}, systems=(BOB, MINIO))


def latencies(path: Path) -> None:
    """An ordinary study."""
    path.mkdir()
    write_bundle(path, n=20)


def load(path: Path) -> None:
    """One system under load."""
    write_load(path, duration_s=20.0)


def loads(path: Path) -> None:
    """Deployments under load side by side."""

    def point(directory: Path, series: tuple[str, str], at: Mapping[str, Any]) -> None:
        own = {"nodes": at["nodes"], "systems": [series[0]]}
        write_load(directory, series=series, duration_s=20.0, study=own)

    write_sweep(path, {"nodes": [1, 4]}, systems=(MINIO,), study=MIXED, write_point=point)


def growth(path: Path) -> None:
    """A sweep over the number of nodes."""
    write_sweep(path, {"nodes": [1, 2, 4]}, systems=(MINIO,))


def resources(path: Path) -> None:
    """What nodes used in a study."""
    path.mkdir()
    write_bundle(path, systems=(BOB, MINIO), endpoints=tuple(WAN_BYTES), n=20)
    write_resources(path, systems={"bob": 25.0, "minio": 100.0}, requests=120)


def reclaim(path: Path) -> None:
    """What became of the space of removed objects."""
    path.mkdir()
    write_bundle(path, systems=(BOB, MINIO), n=20, manifest={"study": {"reclaim": {"objects": 9}}})
    write_reclaim(path, {"bob": ([110] * 9, [0] * 9), "minio": ([60] * 9, [0] * 9)})


EXAMPLES: list[Callable[[Path], None]] = [
    *(sizes, latencies, load, loads),
    *(growth, resources, reclaim),
]
"""One maker of a bundle for each kind of report; whoever adds a kind adds it here."""


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What is printed of each example, in a terminal and on a page; its summary.json is checked."""
    texts = {}
    for make in EXAMPLES:
        path = tmp_path_factory.mktemp("tables") / make.__name__
        make(path)
        texts[make.__name__] = "\n".join(all_of(path))
    return texts


def all_of(path: Path) -> Iterator[str]:
    console = Console(file=io.StringIO(), width=WIDE)
    if is_sweep(path):
        of_sweep = summarize_sweep(read_sweep(path))
        check_json(of_sweep.to_json())
        print_sweep(of_sweep, console)
        grids = grids_of(of_sweep)
    else:
        summary = summarize(read_bundle(path))
        check_json(summary.to_json())
        if summary.groups:
            print_table(summary, console)
            yield markdown_table(summary)
        grids = [grid for block in summary.blocks.values() for grid in block.grids()]
        for grid in grids:
            print_grid(grid, console)
    yield from (markdown(grid) for grid in grids)
    assert isinstance(console.file, io.StringIO)
    yield console.file.getvalue()


def test_the_units_of_every_table_that_is_printed_agree(printed: dict[str, str]) -> None:
    seen: Counter[str] = Counter()
    for text in printed.values():
        seen += check_text(text)
    for page in PAGES:
        try:
            seen += check_text(page.read_text(encoding="utf-8"))
        except UnitsError as error:
            raise AssertionError(f"{page}: {error}") from error
    for summary in SUMMARIES:
        seen += check_json(json.loads(summary.read_text(encoding="utf-8")))
    unseen = {name for name in REGISTERED if not seen[name]}
    assert not unseen, f"no example above prints {', '.join(sorted(unseen))}"


def test_what_a_terminal_shows_is_what_a_page_shows(printed: dict[str, str]) -> None:
    rows = check_text(printed["sizes"])["object sizes"]
    assert rows == 2 * (2 * 2 * 3)  # console and page: systems, operations, sizes


@pytest.mark.parametrize(
    ("row", "header", "mistaken"),
    [
        (0, "mean ms [95 %]", lambda cell: cell.replace("0.", "0.0", 1)),
        (3, "requests/s", lambda cell: f"{float(cell) * 1000:g}"),
        (5, "MiB/s", lambda cell: f"{float(cell) * 1.048576:.4g}"),  # MB under MiB
        (7, "MiB/s", lambda cell: f"{float(cell) * 1.024:.4g}"),  # 1000 KiB are no MiB
        (7, "size", lambda cell: cell.replace("KiB", "kB").replace("MiB", "MB")),
    ],
)
def test_a_planted_mistake_is_found(
    printed: dict[str, str], row: int, header: str, mistaken: Callable[[str], str]
) -> None:
    text = printed["sizes"]
    lines = text.splitlines()
    begin = next(n for n, line in enumerate(lines) if line.startswith("| nodes | operation | size"))
    headers = [cell.strip() for cell in lines[begin].strip("|").split("|")]
    cells = [cell.strip() for cell in lines[begin + 2 + row].strip("|").split("|")]
    cells[headers.index(header)] = mistaken(cells[headers.index(header)])
    lines[begin + 2 + row] = f"| {' | '.join(cells)} |"
    check_text(text)
    with pytest.raises(UnitsError, match="they must be the same"):
        check_text("\n".join(lines))


def as_published(rows: list[PrintedRow], time_header: str) -> str:
    """The published table under our headers, but for that of the time."""
    headers = ("operation", "size", "system", time_header, "requests/s", "MiB/s")
    return markdown(
        Grid(
            "Bob vs MinIO",
            headers,
            tuple((r.operation, f"{r.object_bytes}B", r.system, *r.digits) for r in rows),
        )
    )


def test_the_published_table_as_it_is_headed_is_refused() -> None:
    rows = [r for r in printed_rows() if r.system == "minio" and r.object_bytes == 51_200][:1]
    table = as_published(rows, "mean ms [95 %]")  # microseconds under another unit, as theirs
    with pytest.raises(UnitsError, match=r"factor of 1000 to the \+1"):
        check_text(table)


def test_a_table_of_rates_that_nobody_registered_is_refused() -> None:
    rows = [r for r in printed_rows() if r.document == "README"][:2]
    with pytest.raises(UnitsError, match="nobody has registered"):
        check_text(as_published(rows, "time, ns"))
    assert looks_like_rates(("size", "Time (ns)", "RPS", "Throughput"))
    assert looks_like_rates(("operation", "ops/s", "latency ms"))
    assert not looks_like_rates(("system", "mean ms", "p99 ms", "n"))
    assert not looks_like_rates(("connections", "requests/s"))


def test_tables_are_known_by_their_columns() -> None:
    load_all_tables()
    for table in REGISTERED.values():
        assert table in tables_of(("other", *table.headers))


def test_every_number_in_a_summary_is_multiplied_too() -> None:
    entry = {"object_bytes": 1024, "mean_ms": 2.0, "requests_per_s": 500.0, "bytes_per_s": 512000.0}
    assert check_json({"sizes": {"entries": [entry]}}) == Counter({"summary.json": 1})
    with pytest.raises(UnitsError):
        check_json([{**entry, "mean_ms": 2000.0}])
    loaded = {"object_bytes": 512000, "mean_ms": 43.12, "operations_per_s": 258.69}
    loaded |= {"bytes_per_s": 132449280.0, "in_flight": 11.1547128}
    assert check_json([loaded]) == Counter({"summary.json": 1})
    with pytest.raises(UnitsError, match="in flight"):
        check_json([{**loaded, "in_flight": 1.0}])


def test_blocks_of_a_run_without_any_are_none(tmp_path: Path) -> None:
    latencies(tmp_path / "bundle")
    assert blocks_of(read_bundle(tmp_path / "bundle")) == {}


def check_json(value: Any) -> Counter[str]:
    """How many entries of a summary.json have a rate; all of them are multiplied."""
    seen: Counter[str] = Counter()
    if isinstance(value, dict):
        seen["summary.json"] += check_entry(value)
        for inner in value.values():
            seen += check_json(inner)
    elif isinstance(value, list):
        for inner in value:
            seen += check_json(inner)
    return seen


def check_entry(entry: dict[str, Any]) -> bool:
    """Multiply an entry of single requests, or of a load; False of any other."""
    per_s = entry.get("requests_per_s", entry.get("operations_per_s"))
    mean_ms, bytes_per_s = entry.get("mean_ms"), entry.get("bytes_per_s")
    if per_s is None or mean_ms is None or bytes_per_s is None:
        return False
    size = entry.get("object_bytes") or bytes_per_s / per_s  # of several sizes there is none
    rounded = 1e-8
    check_products(
        (mean_ms / 1e3, 5e-10 + mean_ms / 1e3 * rounded),
        (per_s, per_s * rounded),
        (bytes_per_s, bytes_per_s * rounded),
        (float(size), 0.0),
        (entry["in_flight"], rounded) if "in_flight" in entry else (1.0, 0.0),
    )
    return True
