"""Commands that are suggested after one: what to try next, and how to resume.

Each repeats what the one before it was given, as far as it takes that: read from the words that
were given, so that an option that is new is repeated, too.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wanlat.topologies.errors import UserError

if TYPE_CHECKING:
    import typer

    from wanlat.analysis.report import Report

_DRILL = "one-node-killed"
Given = Mapping[str, Sequence[str]]
"""The values of each option that was given, as they were written, by its long name."""
_OF_ONE_RUN = {
    *("--systems", "--topology", "--out", "--resume", "--trust", "--shard", "--dry-run", "--json"),
    *("--quiet", "--verbose", "--advise"),
}
"""What a suggested command has of its own, or has no use for."""
_OF_ITS_STUDY = {"--samples", "--replicates", "--matrix", "--seed", "--rtt", "--jitter"}
"""How much, and which RTTs: another study, or a drill, has its own."""
_OF_RESUMING = {"--jobs", "--engine", "--scheduler"}


def given(context: typer.Context) -> Given:
    """Return the options of the command that runs, as they were written."""
    words = sys.argv[len(context.command_path.split()) :]
    values, _, order = context.command.make_parser(context).parse_args(words)
    options = dict[str, list[str]]()
    for parameter in dict.fromkeys(order):
        value: Any = values[str(parameter.name)]
        if isinstance(value, bool):
            names = parameter.opts if value else parameter.secondary_opts
            options[names[0]] = []
        elif parameter.param_type_name == "option":
            options[parameter.opts[0]] = [value] if isinstance(value, str) else value
    return options


def resuming(command: str, bundle: Path, options: Given) -> str:
    """Return the command that resumes a bundle of points which ``command`` measured."""
    from wanlat.experiments.resume import read_unfinished
    from wanlat.systems import registry

    words = [f"{program()} {command} --resume {shlex.quote(str(bundle))}"]
    with suppress(UserError):  # its manifest could not be written
        unfinished = read_unfinished(bundle, is_trusted=True)
        if own := [*registry.adopted(unfinished.manifest.adopted)]:
            words.append(f"--systems {','.join(as_given(own))}")
        if unfinished.outside:
            words.append("--trust")
    return " ".join([*words, *_written({k: v for k, v in options.items() if k in _OF_RESUMING})])


def next_step(made: Report, study: str, on: str, options: Given) -> str | None:
    """One line with the command to try after `study` on topology `on`; None: nothing follows.

    Both are as the user can name them; `options` of the run. After the reference store alone it is
    the same study on real stores; after latencies that are no whole number of round trips the study
    that counts them; else a drill.
    """
    from wanlat.experiments.drill.model import scenario

    in_rtts = made.summary.blocks.get("in_rtts")
    if in_rtts is None:
        return None
    entries = in_rtts.to_json()["endpoints"]
    systems = list(dict.fromkeys(entry.series.system for entry in made.summary.endpoints))
    place = f"--topology {shlex.quote(on)}"
    if systems == ["quorum"]:
        stores = _real_stores({entry["endpoint"] for entry in entries})
        if not stores:
            return None
        again = _repeated(options, stores)
        where = [place] if "--topology" in options else []
        run = " ".join([_run(shlex.quote(study), stores), *where, *again])
        return f"Next, the same study on real stores: {_install_of(stores)}{run}"
    is_within_a_site = any(entry["rtt_ms"] is None for entry in entries)
    is_whole = all(entry["round_trips"] is not None for entry in entries if entry["rtts"])
    if not is_within_a_site and not (entries and is_whole):
        again = _repeated(options, systems, _OF_ITS_STUDY, _is_of_round_trips)
        run = " ".join([_run("round-trips", as_given(systems)), place, *again])
        return f"Next, the number of round trips of each request: {run}"
    able = [name for name in systems if name in scenario(_DRILL).systems]
    if not able:
        return None
    fitting = {"--client", *_OF_ITS_STUDY}  # a drill has clients of its own
    again = _repeated(options, able[:1], fitting, _is_of_the_drill)
    where = [place] if "--topology" in options and _is_drilled_on(on) else []
    command = f"{program()} drill run {_DRILL} --systems {able[0]}"
    return f"Next, what the loss of a node does: {' '.join([command, *where, *again])}"


def _repeated(
    options: Given,
    systems: Sequence[str],
    but: Collection[str] = (),
    is_taken: Callable[[str], bool] = lambda _: True,
) -> list[str]:
    """Return the options that a command on these systems repeats, in words.

    Not those of ``but``; of ``--set`` what ``is_taken``, and of ``--option`` and ``--bobd`` what is
    of the systems.
    """
    kept = {name: values for name, values in options.items() if name not in (*_OF_ONE_RUN, *but)}
    if "--set" in kept:
        kept["--set"] = [*filter(is_taken, kept["--set"])]
    if "--option" in kept:
        kept["--option"] = [text for text in kept["--option"] if text.split(".")[0] in systems]
    if "bob" not in systems:
        kept.pop("--bobd", None)
    return _written(kept)


def _written(options: Given) -> list[str]:
    """Return options in words of a shell: one without a value is a flag."""
    return [
        text
        for name, values in options.items()
        for text in ([f"{name} {shlex.quote(value)}" for value in values] or [name])
    ]


def _is_of_round_trips(setting: str) -> bool:
    from wanlat.commands.settings import settings
    from wanlat.experiments.config.study import changed, load

    try:
        changed(load("round-trips"), settings([setting]), {})
    except UserError:
        return False
    return True


def _is_of_the_drill(setting: str) -> bool:
    from wanlat.commands.settings import settings
    from wanlat.experiments.drill.prepare import load

    try:
        load(_DRILL, settings=settings([setting]))
    except UserError:
        return False
    return True


def _is_drilled_on(topology: str) -> bool:
    from wanlat.experiments.drill.prepare import load

    try:
        load(_DRILL, topology=topology)
    except UserError:
        return False
    return True


def _run(study: str, systems: Iterable[str]) -> str:
    return f"{program()} run {study} --systems {','.join(systems)}"


def as_given(systems: list[str]) -> list[str]:
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


def _real_stores(endpoints: Collection[str]) -> list[str]:
    """Return the names of the stores that wanlat builds, that replicate, and have the endpoints."""
    from wanlat.probes.protocols import PLANNERS
    from wanlat.systems import registry

    stores = [registry.get(recipe.name) for recipe in _recipes()]
    return [
        store.name
        for store in stores
        if {*endpoints} <= {*PLANNERS[store.api(store.parse_options())].endpoints}
    ]


def _recipes() -> Iterator[Any]:
    from wanlat.experiments.drill.model import scenario
    from wanlat.systems import registry

    # Those that replicate: what a node's loss does to them is a shipped drill.
    for store in map(registry.get, scenario(_DRILL).systems):
        if store.recipe and store.recipe.name == store.name:
            yield store.recipe


def _install_of(stores: Collection[str]) -> str:
    """Return the command that builds those of the stores that are not, with what follows it."""
    from wanlat.systems.engine.cache import Cache

    cache = Cache.from_environment()
    missing = [
        recipe
        for recipe in _recipes()
        if recipe.name in stores and not cache.installed(recipe.name, recipe.install).is_dir()
    ]
    if not missing:
        return ""
    names = " ".join(recipe.name for recipe in missing)
    minutes = sum(recipe.minutes for recipe in missing)
    return f"{program()} system install {names} (about {minutes} min on two cores), then "
