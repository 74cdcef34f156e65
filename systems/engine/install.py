"""Bringing programs into the cache: resumable, one at a time, placed in one rename."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT

from wanlat.emulator.own_directories import mark
from wanlat.emulator.reaper import Reaped
from wanlat.systems.engine.cache import (
    WAY_OUT,
    Cache,
    Receipt,
    contents_of,
    demand_building,
    demand_installed,
    exclusive,
    sha256_of,
)
from wanlat.systems.engine.definition import Install
from wanlat.systems.engine.kinds import KINDS, Kind, Place, check_tool, unpinned
from wanlat.systems.engine.process import last_lines, plain
from wanlat.systems.engine.progress import Reporter, elapsed
from wanlat.systems.errors import InstallFailed
from wanlat.topologies.errors import MachineError
from wanlat.topologies.wording import listing

_PATIENCE_S = 10  # for a build that was asked to end


@dataclass(frozen=True)
class Recipe:
    """One version of a program, and how it is brought here."""

    name: str
    install: Install
    read_version: Callable[[Path, dict[str, str]], str]
    kind: Kind

    @property
    def version(self) -> str:
        """The pinned version."""
        return self.install.version

    @property
    def minutes(self) -> int:
        """About how long it takes on two cores."""
        return self.install.minutes

    @property
    def source(self) -> str:
        """Where the source comes from, for people."""
        return self.kind.what.format(self.install)

    @property
    def title(self) -> str:
        """Name and version, for messages."""
        return f"{self.name} {self.version}"

    def tools(self) -> list[str]:
        """Check the tools that it needs; return the version that each prints. MachineError."""
        oldest = [self.install.tool]  # of the first
        return [
            check_tool(name, f"Building {self.title}", oldest.pop() if oldest else None)
            for name in (*self.kind.tools, *self.install.needs)
        ]


@dataclass(frozen=True)
class Installed:
    """A binary in the cache; all that was installed with it is as in its receipt."""

    path: Path
    receipt: Receipt
    environment: tuple[tuple[str, str], ...] = ()


class Damaged(MachineError):
    """What lies in the cache is not what was installed."""


def find_installed(name: str, install: Install, cache: Cache) -> Installed | None:
    """Return the finished build of a program, None when there is none.

    Raises Damaged where a file of it was changed, removed or added since.
    """
    directory = cache.installed(name, install)
    receipt = Receipt.read(directory)
    if receipt is None:
        return None
    path = directory / receipt.binary
    try:
        cache.check_owners(path)
        changed = cache.changed(name, install, receipt)
    except OSError as error:
        text = f"{error.filename} cannot be read: {error.strerror}. {_again(name)}"
        raise Damaged(text) from error
    if changed is not None:
        raise Damaged(f"{directory / changed} was changed since it was built. {_again(name)}")
    needed = KINDS[install.kind].needed(directory) if install.kind in KINDS else {}
    return Installed(path, receipt, tuple(needed.items()))


def _again(name: str) -> str:
    return f"Build it again: wanlat system install {name}"


def install(recipes: Sequence[Recipe], cache: Cache, reporter: Reporter) -> list[Installed]:
    """Build what is not built yet, in the order given.

    Every tool that any of them needs is checked before the first build starts. Raises
    MachineError (a tool, the disk, the cache directory), InstallFailed (a build).
    """
    for recipe in recipes:
        there = None
        with suppress(Damaged):
            there = find_installed(recipe.name, recipe.install, cache)
        if there is None:
            recipe.tools()
            _check_room(recipe, cache)
    try:
        return [_install(recipe, cache, reporter) for recipe in recipes]
    except OSError as error:  # of a build that another user began there, or of a full disk
        raise MachineError(
            f"{error.filename or cache.root} cannot be written: {error.strerror}. {WAY_OUT}"
        ) from error


def _check_room(recipe: Recipe, cache: Cache) -> None:
    free, wanted = shutil.disk_usage(cache.make(cache.root)).free, recipe.install.disk.bytes
    if free < wanted:
        raise MachineError(
            f"Building {recipe.title} takes about {wanted / 1e9:.1f} GB in "
            f"{cache.root}, and {free / 1e9:.1f} GB are free there. Make room, or set "
            "WANLAT_CACHE to a directory on another disk."
        )


def _install(recipe: Recipe, cache: Cache, reporter: Reporter) -> Installed:
    lock = cache.lock(recipe.name, recipe.install)
    cache.make(lock.parent)

    def waiting(holder: str) -> None:
        who = f"another install is running (process {holder})"
        if not Path("/proc", holder).exists():
            who = f"what an install started that was killed (process {holder}) is still ending"
        reporter.note(f"{recipe.title}: {who}; waiting for it")

    with exclusive(lock, waiting) as held:
        try:
            there = find_installed(recipe.name, recipe.install, cache)
        except Damaged as damage:
            reporter.note(f"{recipe.title}: {damage} Building it again now.")
            there = None
        if there is None:
            return _build(recipe, cache, reporter, held)
        reporter.note(
            f"{recipe.title}: already there: {there.path} (SHA-256 {there.receipt.sha256})"
        )
        return there


def _build(recipe: Recipe, cache: Cache, reporter: Reporter, held: int) -> Installed:
    demand_installed(cache.installed(recipe.name, recipe.install), recipe.name)
    demand_building(cache.build(recipe.name, recipe.install))
    building = cache.make(cache.build(recipe.name, recipe.install))
    mark(building)
    place = Place(out=building / "out", work=cache.make(building / "work"))
    log = cache.log(recipe.name, recipe.install)
    cache.make(log.parent)
    log.unlink(missing_ok=True)  # and not written to: it may be a link to any file
    log.open("xb").close()
    # Only `work` is carried over: a half-written binary in `out` must not pass for a whole one.
    shutil.rmtree(place.out, ignore_errors=True)
    (place.out / "bin").mkdir(parents=True)
    resumed = any(place.work.iterdir())
    reporter.note(
        f"{recipe.title}: {'resuming' if resumed else 'building'} {recipe.source}; "
        f"from nothing that takes {recipe.install.takes}. Log: {log}"
    )
    started = time.monotonic()
    try:
        with reporter.building(recipe.name) as show:
            for command in recipe.kind.commands(recipe.install, place):
                _run(recipe, command, place, log, show, held)
    except KeyboardInterrupt:
        reporter.note(
            f"{recipe.title}: interrupted; what is compiled is kept, and the same command goes on "
            "from there"
        )
        raise
    seconds = time.monotonic() - started
    placed = _place(recipe, cache, place, seconds)
    shutil.rmtree(building, ignore_errors=True)
    _note_unpinned(recipe, placed.receipt, reporter)
    reporter.note(
        f"{recipe.title}: built in {elapsed(seconds)}: {placed.path} "
        f"(SHA-256 {placed.receipt.sha256})"
    )
    return placed


def _place(recipe: Recipe, cache: Cache, place: Place, seconds: float) -> Installed:
    """Make the finished build appear under its final name, whole or not at all."""
    file, kind = recipe.install.file, recipe.kind
    log = cache.log(recipe.name, recipe.install)
    fitting = [path for path in place.out.glob(f"{kind.at}/{file}") if path.is_file()]
    if not fitting:
        raise InstallFailed(
            f"Building {recipe.title} ended well but left no {file}. The log: {log}"
        )
    built = fitting[0]
    if recipe.install.kind in ("go", "cargo"):
        reported = recipe.read_version(built, kind.needed(place.out))
        if reported != recipe.version:
            raise InstallFailed(
                f"The binary built for {recipe.title} says that it is version {reported}. "
                f"The log: {log}"
            )
    receipt = Receipt(
        name=recipe.name,
        version=kind.exact(recipe.install, place.out),
        binary=str(built.relative_to(place.out)),
        sha256=sha256_of(built),
        bytes=built.stat().st_size,
        built=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=round(seconds, 1),
        source=recipe.source,
        command=kind.commands(recipe.install, place)[0],
        toolchain=recipe.tools(),
        files=contents_of(place.out),
        packages=kind.packages(place.out),
    )
    receipt.write(place.out)
    final = cache.installed(recipe.name, recipe.install)
    cache.make(final.parent)
    if final.exists():  # damaged, or without a receipt: rename() does not replace a full directory
        shutil.rmtree(final)
    place.out.rename(final)
    return Installed(final / receipt.binary, receipt, tuple(kind.needed(final).items()))


def _note_unpinned(recipe: Recipe, receipt: Receipt, reporter: Reporter) -> None:
    free = unpinned(recipe.install, receipt.packages)
    if free:
        reporter.note(
            f"{recipe.title}: its definition does not pin {listing(free)}. Another install may "
            "bring others, which is another program; `also` of `install` pins them."
        )


# -- one build ---------------------------------------------------------------------------------


def _run(
    recipe: Recipe,
    command: list[str],
    place: Place,
    log: Path,
    show: Callable[[str], None],
    held: int,
) -> None:
    """Run one of a recipe's commands; every line goes to ``log``, and to ``show``.

    Raises InstallFailed with the last lines of the log when it fails. Whatever ends this call
    early ends the command and all that it started; until that has ended, it has ``held`` open.
    """
    build = Reaped(
        command,
        held=[held],
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=STDOUT,
        env=os.environ | recipe.kind.environment(recipe.install, place),
        cwd=place.work,
    )
    assert build.stdout is not None
    try:
        with log.open("a", encoding="utf-8", buffering=1) as written:
            print(f"$ {' '.join(command)}", file=written)
            # A progress bar redraws itself with "\r", which ends a line here too.
            for line in build.stdout:
                if text := plain(line).rstrip():
                    print(text, file=written)
                    show(text)
        code = build.wait()
    except BaseException:
        build.end(_PATIENCE_S)
        raise
    finally:
        build.stdout.close()
    if code != 0:
        raise InstallFailed(
            f"Building {recipe.title} failed with exit code {code}. The last lines of its "
            f"log:\n{last_lines(log)}\nThe whole log: {log}"
        )
