"""The command line in this process: a command costs no second interpreter."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from unittest.mock import patch

from wanlat import cli


def here(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `wanlat ARGUMENTS`; for all but what hands its own streams on."""
    out, told = io.StringIO(), io.StringIO()
    argv = ["wanlat", *arguments]
    code = 0
    numbers = (signal.SIGINT, signal.SIGTERM)
    handlers = [signal.getsignal(number) for number in numbers]
    with (
        patch.object(sys, "argv", argv),
        patch.dict("os.environ", environment),
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
