"""The command to try next, given what was measured."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from wanlat.experiments.config.endpoints import S3
from wanlat.experiments.drill.files import load
from wanlat.systems import registry
from wanlat.systems.cache import Cache
from wanlat.systems.quorum import Quorum
from wanlat.systems.recipe import Recipe

if TYPE_CHECKING:
    from wanlat.analysis.report import Report

_DRILL = "one-node-killed"


def next_step(made: Report, study: str, on: str, *, is_chosen: bool = False) -> str | None:
    """One line with the command to try after `study` on topology `on`; None: nothing follows.

    Both are as the user can name them; `is_chosen` says that the topology is not the study's own.
    After the reference store alone it is the same study on real stores; after latencies that are no
    whole number of round trips the study that counts them; else a drill.
    """
    said = made.summary.blocks.get("in_rtts")
    if said is None:
        return None
    entries = said.to_json()["endpoints"]
    systems = list(dict.fromkeys(entry.series.system for entry in made.summary.endpoints))
    study, on = shlex.quote(study), shlex.quote(on)
    if systems == [Quorum.name]:
        if not {entry["endpoint"] for entry in entries} <= set(S3):
            return None  # those that can be installed speak S3 alone
        recipes = [
            system.recipe
            for name, system in registry.SYSTEMS.items()
            if system.recipe is not None and system.recipe.name == name
        ]
        where = f" --topology {on}" if is_chosen else ""
        names = ",".join(recipe.name for recipe in recipes)
        run = f"{program()} run {study} --systems {names}{where}"
        return f"Next, the same study on real stores: {_install_first(recipes)}{run}"
    is_within_a_site = any(entry["rtt_ms"] is None for entry in entries)
    is_whole = all(entry["round_trips"] is not None for entry in entries if entry["rtts"])
    if not is_within_a_site and not (entries and is_whole):
        return (
            "Next, the number of round trips of each request: "
            f"{program()} run round-trips --systems {','.join(systems)} --topology {on}"
        )
    able = [name for name in systems if name in load(_DRILL).systems]
    if not able:
        return None
    return f"Next, what the loss of a node does: {program()} drill run {_DRILL} --systems {able[0]}"


def program() -> str:
    """How the user can call wanlat again: by name where PATH leads to it, else by its path."""
    called = Path(sys.argv[0])
    found = shutil.which(called.name)
    if called.name != "wanlat" or (found and Path(found).resolve() == called.resolve()):
        return "wanlat"
    try:
        return str(called.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(called)


def _install_first(recipes: list[Recipe]) -> str:
    """The command that builds those of `recipes` that are not on this machine, or nothing."""
    cache = Cache.from_environment()
    missing = [each for each in recipes if not cache.installed(each.name, each.version).is_dir()]
    if not missing:
        return ""
    names = " ".join(recipe.name for recipe in missing)
    minutes = sum(recipe.minutes for recipe in missing)
    return f"{program()} system install {names} (about {minutes} min on two cores), then "
