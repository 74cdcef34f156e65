"""The command line in this process: an error in what a user wrote costs no second interpreter."""

from __future__ import annotations

import io
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from unittest.mock import patch

from wanlat import cli


def here(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `wanlat ARGUMENTS`; for what ends before anything starts."""
    out, told = io.StringIO(), io.StringIO()
    argv = ["wanlat", *arguments]
    code = 0
    with (
        patch.object(sys, "argv", argv),
        patch.dict("os.environ"),
        redirect_stdout(out),
        redirect_stderr(told),
    ):
        try:
            cli.main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return subprocess.CompletedProcess(argv, code, out.getvalue(), told.getvalue())
