"""One build command, run to its end: its output read for progress and kept in a log."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

from wanlat.systems.errors import InstallFailed
from wanlat.systems.logs import last_lines, plain
from wanlat.systems.recipe import Place, Recipe, Step

_PATIENCE_S = 10  # for a build that was asked to end
_HEARTBEAT_S = 1.0

# Run in the child before the build command takes its place: PR_SET_PDEATHSIG (prctl(2)), so that
# the build ends when the installer is killed and cannot stop it. Popen's preexec_fn would do the
# same, but is not safe in a process with threads, and a live progress bar is a thread.
_END_WITH_PARENT = (
    "import ctypes, os, sys\n"
    "ctypes.CDLL(None).prctl(1, 15, 0, 0, 0)\n"
    "os.execvp(sys.argv[1], sys.argv[1:])\n"
)


def run_build(recipe: Recipe, place: Place, log: Path, show: Callable[[Step], None]) -> None:
    """Run the recipe's command; every line goes to ``log``, progress to ``show``.

    Raises InstallFailed with the last lines of the log when the command fails. Whatever ends this
    call early (Ctrl-C included) ends the command and its children first.
    """
    command = recipe.command(place)
    environment = os.environ | recipe.environment(place)
    with log.open("w", encoding="utf-8") as written:
        written.write(f"$ {' '.join(command)}\n")
        written.flush()
        build = subprocess.Popen(
            [sys.executable, "-I", "-c", _END_WITH_PARENT, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd=place.work,
            start_new_session=True,  # a group of its own, so that all of it can be ended
        )
        assert build.stdout is not None
        try:
            _follow(recipe, build.stdout, written, show)
            code = build.wait()
        except BaseException:
            _end(build)
            raise
        finally:
            build.stdout.close()
    if code != 0:
        raise InstallFailed(
            f"Building {recipe.title} failed with exit code {code}. The last lines of its log:\n"
            f"{last_lines(log)}\nThe whole log: {log}"
        )


def _follow(recipe: Recipe, output: IO[bytes], log: IO[str], show: Callable[[Step], None]) -> None:
    step = Step(None, None, "starting")
    for text, final in _pieces(output):
        # A progress bar redraws itself ("\r"); only finished lines belong into a log.
        if final and text:
            log.write(text + "\n")
            log.flush()
        step = recipe.progress(text.rstrip(), step) or step
        show(step)


def _pieces(output: IO[bytes]) -> Iterator[tuple[str, bool]]:
    r"""Yield what is printed, cut at "\n" (then True) and at "\r" (then False).

    While nothing is printed, ("", False) now and then, so that time is seen to pass.
    """
    rest = b""
    while True:
        if not select.select([output], [], [], _HEARTBEAT_S)[0]:
            yield "", False
            continue
        chunk = os.read(output.fileno(), 65536)
        if not chunk:
            break
        *pieces, rest = re.split(rb"([\r\n])", rest + chunk)
        for text, end in zip(pieces[::2], pieces[1::2], strict=True):
            yield plain(text.decode("utf-8", "replace")), end == b"\n"
    if rest:
        yield plain(rest.decode("utf-8", "replace")), True


def _end(build: subprocess.Popen[bytes]) -> None:
    for ending, patience in ((signal.SIGTERM, _PATIENCE_S), (signal.SIGKILL, None)):
        with suppress(ProcessLookupError):
            os.killpg(build.pid, ending)
        with suppress(subprocess.TimeoutExpired):
            build.wait(patience)
            return
