"""Bringing programs into the cache: resumable, one at a time, placed in one rename."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from wanlat.emulator.own_directories import MARKER, mark
from wanlat.systems.engine.cache import (
    RECEIPT,
    Cache,
    Receipt,
    demand_ours,
    exclusive,
    sha256_of,
)
from wanlat.systems.engine.definition import Install
from wanlat.systems.engine.kinds import KINDS, Kind, Place, check_tool
from wanlat.systems.engine.process import last_lines, plain
from wanlat.systems.engine.progress import Reporter, elapsed
from wanlat.systems.errors import InstallFailed
from wanlat.topologies.errors import MachineError

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
        """Name and version, as messages say it."""
        return f"{self.name} {self.version}"

    def tools(self) -> list[str]:
        """Check the tools that it needs; return what each says of its version. MachineError."""
        oldest = [self.install.tool]  # of the first
        return [
            check_tool(name, f"Building {self.title}", oldest.pop() if oldest else None)
            for name in (*self.kind.tools, *self.install.needs)
        ]


@dataclass(frozen=True)
class Installed:
    """A binary in the cache whose hash is that of its receipt."""

    path: Path
    receipt: Receipt
    environment: tuple[tuple[str, str], ...] = ()


class Damaged(MachineError):
    """A binary in the cache is not the one that was built."""


def find_installed(name: str, install: Install, cache: Cache) -> Installed | None:
    """Return the finished build of a program, None when there is none.

    Raises Damaged when the binary's SHA-256 is not the one in its receipt.
    """
    directory = cache.installed(name, install.version)
    receipt = Receipt.read(directory)
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
            f"{receipt.sha256}. Build it again: wanlat system install {name}"
        )
    needed = KINDS[install.kind].needed(directory) if install.kind in KINDS else {}
    return Installed(path, receipt, tuple(needed.items()))


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
    return [_install(recipe, cache, reporter) for recipe in recipes]


def _check_room(recipe: Recipe, cache: Cache) -> None:
    free, wanted = shutil.disk_usage(cache.make(cache.root)).free, recipe.install.disk.bytes
    if free < wanted:
        raise MachineError(
            f"Building {recipe.title} takes about {wanted / 1e9:.1f} GB in "
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
            there = find_installed(recipe.name, recipe.install, cache)
        except Damaged as damage:
            reporter.note(f"{recipe.title}: {damage} Building it again now.")
            there = None
        if there is None:
            return _build(recipe, cache, reporter)
        reporter.note(
            f"{recipe.title}: already there: {there.path} (SHA-256 {there.receipt.sha256})"
        )
        return there


def _build(recipe: Recipe, cache: Cache, reporter: Reporter) -> Installed:
    demand_ours(cache.installed(recipe.name, recipe.version), RECEIPT)
    demand_ours(cache.build(recipe.name, recipe.version), MARKER)
    building = cache.make(cache.build(recipe.name, recipe.version))
    mark(building)
    place = Place(out=building / "out", work=cache.make(building / "work"))
    log = cache.log(recipe.name, recipe.version)
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
    begun = time.monotonic()
    try:
        with reporter.building(recipe.name) as show:
            for command in recipe.kind.commands(recipe.install, place):
                _run(recipe, command, place, log, show)
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
    file, kind = recipe.install.file, recipe.kind
    log = cache.log(recipe.name, recipe.version)
    fitting = [each for each in place.out.glob(f"{kind.at}/{file}") if each.is_file()]
    if not fitting:
        raise InstallFailed(
            f"Building {recipe.title} ended well but left no {file}. The log: {log}"
        )
    built = fitting[0]
    if recipe.install.kind in ("go", "cargo"):
        says = recipe.read_version(built, kind.needed(place.out))
        if says != recipe.version:
            raise InstallFailed(
                f"The binary built for {recipe.title} says that it is version {says}. "
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
    )
    receipt.write(place.out)
    final = cache.installed(recipe.name, recipe.version)
    cache.make(final.parent)
    if final.exists():  # damaged, or without a receipt: rename() does not replace a full directory
        shutil.rmtree(final)
    place.out.rename(final)
    return Installed(final / receipt.binary, receipt, tuple(kind.needed(final).items()))


# -- one build ---------------------------------------------------------------------------------

# Run in the child before the build command takes its place: PR_SET_PDEATHSIG (prctl(2)), so that
# the build ends when the installer is killed and cannot stop it. Popen's preexec_fn would do the
# same, but is not safe in a process with threads, and a live progress bar is a thread.
_END_WITH_PARENT = (
    "import ctypes, os, sys\n"
    "ctypes.CDLL(None).prctl(1, 15, 0, 0, 0)\n"
    "os.execvp(sys.argv[1], sys.argv[1:])\n"
)


def _run(
    recipe: Recipe, command: list[str], place: Place, log: Path, show: Callable[[str], None]
) -> None:
    """Run one of a recipe's commands; every line goes to ``log``, and to ``show``.

    Raises InstallFailed with the last lines of the log when it fails. Whatever ends this call
    early (Ctrl-C included) ends the command and its children first.
    """
    build = subprocess.Popen(
        [sys.executable, "-I", "-c", _END_WITH_PARENT, *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=os.environ | recipe.kind.environment(recipe.install, place),
        cwd=place.work,
        start_new_session=True,  # a group of its own, so that all of it can be ended
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
        _end(build)
        raise
    finally:
        build.stdout.close()
    if code != 0:
        raise InstallFailed(
            f"Building {recipe.title} failed with exit code {code}. The last lines of its "
            f"log:\n{last_lines(log)}\nThe whole log: {log}"
        )


def _end(build: subprocess.Popen[str]) -> None:
    for ending, patience in ((signal.SIGTERM, _PATIENCE_S), (signal.SIGKILL, None)):
        with suppress(ProcessLookupError):
            os.killpg(build.pid, ending)
        with suppress(subprocess.TimeoutExpired):
            build.wait(patience)
            return
