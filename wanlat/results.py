"""What follows a run: its tables, where its charts are, and the command to try next."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wanlat.output import emit, inform, people

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

    from wanlat.analysis.report import Report
    from wanlat.systems.base import Messages

_DRILL = "one-node-killed"


def messages_of(system: str) -> Messages | None:
    """What labels the messages of a system's nodes in its traces; None: only standard protocols."""
    from wanlat.systems.registry import messages_of

    messages = messages_of(system)
    return messages() if messages else None


def show_report(bundle: Path, *, as_json: bool, verbose: bool = False, svg: bool = False) -> Report:
    """Write a bundle's summary, tables and charts, show them, and return where they are.

    ``verbose``: with its tables of resources; ``svg``: with an SVG beside each PNG. Raises
    BundleError.
    """
    from wanlat.analysis.report import report

    made = report(bundle, svg=svg, messages_of=messages_of)
    from wanlat.analysis.summary import print_summary  # by now all that it needs is imported

    print_summary(made.summary, people(), verbose=verbose)
    blocks = made.summary.blocks
    if made.tables_path is not None:
        has_more = not verbose and "resources" in made.summary.hidden
        more = " (with resource usage, which `wanlat report -v` prints)" if has_more else ""
        inform(f"tables: {made.tables_path}{more}")
    inform(f"report: {made.page_path}")
    charts = [chart for chart in made.charts if chart.suffix == ".png"]
    if "in_rtts" in blocks and charts[1:]:  # one answers the question
        others = ", ".join(chart.stem for chart in charts[1:])
        inform(f"chart: {charts[0]} (beside it: {others})")
    else:
        for chart in charts:
            inform(f"chart: {chart}")
    if as_json:
        emit(json.loads(made.summary_path.read_text(encoding="utf-8")))
    return made


def show_drills(bundle: Path, *, as_json: bool, verbose: bool = False, svg: bool = False) -> bool:
    """Write the report of each complete drill of a bundle of several, and of all side by side.

    A line for what came of each; ``verbose``: its tables. Return whether all of them passed.
    Raises BundleError.
    """
    from contextlib import ExitStack
    from functools import partial

    from wanlat.analysis.report.drill import matrix_report
    from wanlat.bundle.errors import one_line
    from wanlat.bundle.read import complete_points
    from wanlat.emulator.interpreter import safe_path
    from wanlat.emulator.machine import cores

    documents = list[dict[str, Any]]()
    complete = complete_points(bundle)
    where = [bundle / point.directory for point in complete]
    with ExitStack() as stack:
        if verbose:
            made: Iterator[dict[str, Any]] = (
                show_report(place, as_json=False, verbose=True, svg=svg).summary.to_json()
                for place in where
            )
        else:
            # A report is seconds of one processor.
            stack.enter_context(safe_path())
            pool = stack.enter_context(pool_of(cores()))
            made = pool.map(partial(_reported, svg=svg), where)
        for point, document in zip(complete, made, strict=True):
            documents.append(document)
            failures = document["drill"]["failures"]
            style = "bold red" if failures else "bold green"
            inform(f"{'failed' if failures else 'passed'}: {point.name}", style=style)
            for failure in failures:
                inform(f"    {one_line(failure)}")
    if documents:
        for path in matrix_report([bundle], bundle):
            inform(f"written: {path}")
    if as_json:
        emit({"drills": documents})
    return all(document["drill"]["passed"] for document in documents)


def pool_of(most: int) -> ProcessPoolExecutor:
    """Return processes that end with this one, however it ends. To be used by its main thread."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from functools import partial

    spawned = multiprocessing.get_context("spawn")  # threads of this process are not to be forked
    return ProcessPoolExecutor(most, spawned, partial(_end_with, os.getpid()))


def _end_with(parent: int) -> None:
    """Have a process of a pool end with the one that made it, however that ends."""
    from wanlat.emulator.syscalls import die_with_parent

    die_with_parent(signal.SIGKILL)
    if os.getppid() != parent:  # it had ended before
        os._exit(1)


def _reported(bundle: Path, *, svg: bool) -> dict[str, Any]:
    """Write a bundle's report, and return its summary."""
    from wanlat.analysis.report import report

    return report(bundle, svg=svg, messages_of=messages_of).summary.to_json()


def show_any(bundle: Path, *, as_json: bool, verbose: bool = False, svg: bool = False) -> None:
    """Do as `show_report` does, or as `show_drills`: as the bundle is."""
    from wanlat.bundle.errors import refusing
    from wanlat.bundle.read import read_manifest

    show = show_drills if read_manifest(bundle).kind == "drills" else show_report
    with refusing(bundle):
        show(bundle, as_json=as_json, verbose=verbose, svg=svg)


def summaries(bundle: Path) -> Iterator[dict[str, Any]]:
    """The summary.json of a bundle; of several drills those of the complete ones."""
    from wanlat.bundle.read import complete_points, read_json, read_manifest

    places = [bundle]
    if read_manifest(bundle).kind == "drills":
        places = [bundle / point.directory for point in complete_points(bundle)]
    yield from (read_json(place / "summary.json") for place in places)


def next_step(made: Report, study: str, on: str, *, is_chosen: bool = False) -> str | None:
    """One line with the command to try after `study` on topology `on`; None: nothing follows.

    Both are as the user can name them; `is_chosen`: the topology is not the study's own.
    After the reference store alone it is the same study on real stores; after latencies that are no
    whole number of round trips the study that counts them; else a drill.
    """
    from wanlat.experiments.drill.model import scenario

    in_rtts = made.summary.blocks.get("in_rtts")
    if in_rtts is None:
        return None
    entries = in_rtts.to_json()["endpoints"]
    systems = list(dict.fromkeys(entry.series.system for entry in made.summary.endpoints))
    study, on = shlex.quote(study), shlex.quote(on)
    if systems == ["quorum"]:
        command = _on_real_stores(study, {entry["endpoint"] for entry in entries})
        where = f" --topology {on}" if is_chosen else ""
        return command and f"Next, the same study on real stores: {command}{where}"
    is_within_a_site = any(entry["rtt_ms"] is None for entry in entries)
    is_whole = all(entry["round_trips"] is not None for entry in entries if entry["rtts"])
    if not is_within_a_site and not (entries and is_whole):
        return (
            "Next, the number of round trips of each request: "
            f"{program()} run round-trips --systems {','.join(_as_given(systems))} --topology {on}"
        )
    able = [name for name in systems if name in scenario(_DRILL).systems]
    command = f"{program()} drill run {_DRILL} --systems"
    return f"Next, what the loss of a node does: {command} {able[0]}" if able else None


def _as_given(systems: list[str]) -> list[str]:
    """Systems as a command takes them: by name, a user's own by its directory."""
    from wanlat.systems import registry

    directories = registry.adopted(systems)
    here = {name: f"{os.path.relpath(place)}/" for name, place in directories.items()}
    ways = {name: path if path.startswith("../") else f"./{path}" for name, path in here.items()}
    return [shlex.quote(ways.get(name, name)) for name in systems]


def program() -> str:
    """How the user can call wanlat again: by name where PATH leads to it, else by its path."""
    called = Path(sys.argv[0])
    on_path = shutil.which(called.name)
    if called.name != "wanlat" or (on_path and Path(on_path).resolve() == called.resolve()):
        return "wanlat"
    here, place = called.absolute(), Path.cwd()
    return str(here.relative_to(place) if here.is_relative_to(place) else called)


def _on_real_stores(study: str, endpoints: set[str]) -> str | None:
    """The command that measures those that wanlat builds; before it, if need be, that builds.

    None where no such store has these endpoints.
    """
    from wanlat.experiments.drill.model import scenario
    from wanlat.probes.protocols import PLANNERS
    from wanlat.systems import registry
    from wanlat.systems.engine.cache import Cache

    # Those that replicate: what a node's loss does to them is a shipped drill.
    every = [registry.get(name) for name in scenario(_DRILL).systems]
    own = [store for store in every if store.recipe and store.recipe.name == store.name]
    speaking = [
        store
        for store in own
        if endpoints <= {*PLANNERS[store.api(store.parse_options())].endpoints}
    ]
    recipes = [store.recipe for store in speaking if store.recipe]
    if not recipes:
        return None
    run = f"{program()} run {study} --systems {','.join(recipe.name for recipe in recipes)}"
    cache = Cache.from_environment()
    missing = [
        recipe for recipe in recipes if not cache.installed(recipe.name, recipe.install).is_dir()
    ]
    if not missing:
        return run
    names, minutes = (
        " ".join(recipe.name for recipe in missing),
        sum(recipe.minutes for recipe in missing),
    )
    return f"{program()} system install {names} (about {minutes} min on two cores), then {run}"
