"""Programs, and the command line in this process: a command costs no second interpreter."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.late_network import CHECKOUT
from wanlat import cli


def ran(*argv: object, **how: Any) -> subprocess.CompletedProcess[str]:
    """Run a program, and return what it printed and how it ended; `how` as of subprocess.run."""
    usual = {"capture_output": True, "text": True, "timeout": 600, **how}
    return subprocess.run([str(word) for word in argv], check=usual.pop("check", False), **usual)


def tracked(*patterns: str) -> list[Path]:
    """The files that git knows, or would add, of these patterns."""
    every = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    listed = ran(*every, *patterns, cwd=CHECKOUT, check=True).stdout
    return [CHECKOUT / name for name in listed.split("\0") if name]


def write_program(path: Path, text: str) -> Path:
    """Write a program, of the shell if it does not say by what it is run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if text.startswith("#!") else f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def here(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `wanlat ARGUMENTS`; for all but what hands its own streams on.

    Stores that it registers are known to it alone, as if it had a process of its own.
    """
    out, told = io.StringIO(), io.StringIO()
    argv = ["wanlat", *arguments]
    code = 0
    numbers = (signal.SIGINT, signal.SIGTERM)
    handlers = [signal.getsignal(number) for number in numbers]
    with (
        patch.object(sys, "argv", argv),
        patch.dict("os.environ", environment),
        patch.dict("wanlat.systems.registry._ADOPTED"),
        redirect_stdout(out),
        redirect_stderr(told),
    ):
        try:
            cli.main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        finally:
            for number, handler in zip(numbers, handlers, strict=True):
                signal.signal(number, handler)
    return subprocess.CompletedProcess(argv, code, out.getvalue(), told.getvalue())
