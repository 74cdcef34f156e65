"""What tests see does not depend on who runs them, where."""

from __future__ import annotations

import os
import sys

from tests.command_line import CHECKOUT, ran
from tests.fixed_environment import FIXED, fix

STRANGE = {
    **{"TERM": "dumb", "NO_COLOR": "1", "FORCE_COLOR": "1", "COLUMNS": "31", "LINES": "5"},
    **{"LC_ALL": "C", "PYTHONUTF8": "0", "TZ": "Pacific/Chatham", "PAGER": "false"},
    **{"MPLBACKEND": "svg", "MPLCONFIGDIR": "/none", "XDG_CONFIG_HOME": "/none", "CI": "1"},
    **{"GITHUB_ACTIONS": "true", "http_proxy": "http://127.0.0.1:1", "PYTHONSAFEPATH": "1"},
    **{"WANLAT_QUORUM_BINARY": "/none", "WANLAT_LABS": "/none", "PYTEST_ADDOPTS": "--color=yes"},
}
KEPT = {"WANLAT_CACHE": "/stores", "WANLAT_REQUIRE": "1", "PIP_CERT": "/cert", "HOME": "/home/me"}
SENSITIVE = (
    "wanlat/test_first_result.py",
    "wanlat/test_help.py",
    "topologies/test_files.py",
    "analysis/test_report.py::test_a_terminal_gets_one_table_then_sentences_and_one_chart",
    "analysis/test_report.py::test_a_table_says_the_same_in_any_terminal_and_on_a_page",
    "analysis/test_compare.py::test_every_line_names_its_endpoint_and_what_is_gone_fails",
)
"""Tests that an environment has been seen to fail."""


def test_what_is_the_users_is_left_out_and_what_names_stores_and_packages_stays() -> None:
    environment = {**STRANGE, **KEPT}
    fix(environment)
    proxy = STRANGE.keys() & {"http_proxy"}
    assert not environment.keys() & (STRANGE.keys() - FIXED.keys() - proxy)
    assert environment.items() >= {**FIXED, **KEPT}.items()


def test_tests_pass_in_an_environment_as_strange_as_any() -> None:
    start = 'umask 077; ulimit -n 256; exec "$@"'
    tests = [f"{CHECKOUT}/tests/{name}" for name in SENSITIVE]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, **STRANGE, "PYTHONPATH": str(CHECKOUT)}
    done = ran("bash", "-c", start, "sh", *command, env=environment, cwd=CHECKOUT)
    assert done.returncode == 0, done.stdout
