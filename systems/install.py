"""Building stores from source into the cache: resumable, one at a time, placed in one rename."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from wanlat.systems import receipt as receipts
from wanlat.systems.build import run_build
from wanlat.systems.cache import Cache
from wanlat.systems.errors import InstallFailed
from wanlat.systems.locking import exclusive
from wanlat.systems.progress import Reporter, elapsed
from wanlat.systems.receipt import Receipt, sha256_of
from wanlat.systems.recipe import Place, Recipe
from wanlat.topologies.errors import MachineError


@dataclass(frozen=True)
class Installed:
    """A binary in the cache whose hash is that of its receipt."""

    path: Path
    receipt: Receipt


class Damaged(MachineError):
    """A binary in the cache is not the one that was built."""


def find_installed(recipe: Recipe, cache: Cache) -> Installed | None:
    """Return the finished build of a recipe, None when there is none.

    Raises Damaged when the binary's SHA-256 is not the one in its receipt.
    """
    directory = cache.installed(recipe.name, recipe.version)
    receipt = receipts.read(directory)
    if receipt is None:
        return None
    path = directory / receipt.binary
    try:
        found = sha256_of(path)
    except OSError:
        return None
    if found != receipt.sha256:
        raise Damaged(
            f"{path} was changed since it was built: its SHA-256 is {found}, the receipt says "
            f"{receipt.sha256}. Build it again: wanlat system install {recipe.name}"
        )
    return Installed(path, receipt)


def install(recipes: Sequence[Recipe], cache: Cache, reporter: Reporter) -> list[Installed]:
    """Build what is not built yet, in the order given.

    Every tool that any of them needs is checked before the first build starts. Raises
    MachineError (a tool, the disk, the cache directory), InstallFailed (a build).
    """
    missing = [recipe for recipe in recipes if _present(recipe, cache) is None]
    for recipe in missing:
        _check_machine(recipe, cache)
    return [_install(recipe, cache, reporter) for recipe in recipes]


def _present(recipe: Recipe, cache: Cache) -> Installed | None:
    try:
        return find_installed(recipe, cache)
    except Damaged:
        return None


def _check_machine(recipe: Recipe, cache: Cache) -> None:
    for tool in recipe.tools:
        tool.check(f"Building {recipe.title}")
    free = shutil.disk_usage(cache.make(cache.root)).free
    if free < recipe.disk_bytes:
        raise MachineError(
            f"Building {recipe.title} takes about {recipe.disk_bytes / 1e9:.1f} GB in "
            f"{cache.root}, and {free / 1e9:.1f} GB are free there. Make room, or set "
            "WANLAT_CACHE to a directory on another disk."
        )


def _install(recipe: Recipe, cache: Cache, reporter: Reporter) -> Installed:
    lock = cache.lock(recipe.name, recipe.version)
    cache.make(lock.parent)

    def waiting(holder: str) -> None:
        reporter.note(
            f"{recipe.title}: another install is running (process {holder}); waiting for it"
        )

    with exclusive(lock, waiting):
        try:
            there = find_installed(recipe, cache)
        except Damaged as damage:
            reporter.note(f"{recipe.title}: {damage} Building it again now.")
            there = None
        if there is not None:
            reporter.note(
                f"{recipe.title}: already there: {there.path} (SHA-256 {there.receipt.sha256})"
            )
            return there
        return _build(recipe, cache, reporter)


def _build(recipe: Recipe, cache: Cache, reporter: Reporter) -> Installed:
    building = cache.make(cache.build(recipe.name, recipe.version))
    place = Place(out=building / "out", work=cache.make(building / "work"))
    log = cache.log(recipe.name, recipe.version)
    cache.make(log.parent)
    # Only `work` is carried over: a half-written binary in `out` must not pass for a whole one.
    shutil.rmtree(place.out, ignore_errors=True)
    (place.out / "bin").mkdir(parents=True)
    resumed = any(place.work.iterdir())
    reporter.note(
        f"{recipe.title}: {'going on with' if resumed else 'building'} {recipe.source}; "
        f"from nothing that takes about {recipe.minutes} minutes on two cores. Log: {log}"
    )
    begun = time.monotonic()
    try:
        with reporter.building(recipe.name) as show:
            run_build(recipe, place, log, show)
    except KeyboardInterrupt:
        reporter.note(
            f"{recipe.title}: interrupted; what is compiled is kept, and the same command goes on "
            "from there"
        )
        raise
    seconds = time.monotonic() - begun
    placed = _place(recipe, cache, place, seconds)
    shutil.rmtree(building, ignore_errors=True)
    reporter.note(
        f"{recipe.title}: built in {elapsed(seconds)}: {placed.path} "
        f"(SHA-256 {placed.receipt.sha256})"
    )
    return placed


def _place(recipe: Recipe, cache: Cache, place: Place, seconds: float) -> Installed:
    """Make the finished build appear under its final name, whole or not at all."""
    built = place.out / "bin" / recipe.binary
    log = cache.log(recipe.name, recipe.version)
    if not built.is_file():
        raise InstallFailed(
            f"Building {recipe.title} ended well but left no {recipe.binary}. The log: {log}"
        )
    says = recipe.read_version(built)
    if says != recipe.version:
        raise InstallFailed(
            f"The binary built for {recipe.title} says that it is version {says}. The log: {log}"
        )
    receipt = Receipt(
        name=recipe.name,
        version=recipe.version,
        binary=f"bin/{recipe.binary}",
        sha256=sha256_of(built),
        bytes=built.stat().st_size,
        built=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=round(seconds, 1),
        source=recipe.source,
        command=recipe.command(place),
        toolchain=[tool.check(f"Building {recipe.title}") for tool in recipe.tools],
    )
    receipt.write(place.out)
    final = cache.installed(recipe.name, recipe.version)
    cache.make(final.parent)
    if final.exists():  # damaged, or without a receipt: rename() does not replace a full directory
        shutil.rmtree(final)
    place.out.rename(final)
    return Installed(final / receipt.binary, receipt)
