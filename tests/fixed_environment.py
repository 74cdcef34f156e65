"""The environment that every test sees, whatever that of the user who runs them.

What a terminal, a CI or a shell's start-up file sets changes colors, widths, words and times. What
says where packages come from and installed stores are, and which tests are wanted, stays.
"""

from __future__ import annotations

import locale
import os
import re
import resource
import time
from collections.abc import MutableMapping

FIXED = {"TERM": "xterm", "LANG": "C.UTF-8", "TZ": "UTC", "MPLBACKEND": "Agg"}
_LEFT_OUT = re.compile(
    r"""
    .*_COLOR | FORCE_COLOR | CLICOLOR.* | PY_COLORS | COLORTERM | TTY_.* | COLUMNS | LINES
    | LC_.* | LANGUAGE | .*PAGER | LESS.* | MAN.*
    | CI | GITHUB_.* | MPLCONFIGDIR | MATPLOTLIBRC
    | XDG_(?!CACHE_HOME$).*
    | PYTHON(?!PATH$|HOME$|DONTWRITEBYTECODE$|UNBUFFERED$).*
    | PYTEST_(?!XDIST_).*
    | WANLAT_(?!BIN_DIR$|CACHE$|GENERATE$|LONG$|REQUIRE$|SOUND_RUNS$|TEST_).*
    """,
    re.VERBOSE,
)
_HERE = "localhost,127.0.0.1,::1"
"""Where tests serve: what a proxy is not for."""
_OPEN_FILES = 4096


def fix(environment: MutableMapping[str, str] = os.environ) -> None:
    """Make it that of every test."""
    for name in [name for name in environment if _LEFT_OUT.fullmatch(name)]:
        del environment[name]
    environment.update(FIXED)
    for name in ("no_proxy", "NO_PROXY"):
        environment[name] = _HERE


def fix_process() -> None:
    """Make what this process was started with that of every test, and of what they start."""
    fix()
    time.tzset()
    locale.setlocale(locale.LC_ALL, "C.UTF-8")  # how files are read and written by default
    os.umask(0o022)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
