"""Runs tests, or any command, in a kernel that has netem: User-Mode Linux, on the host's files.

    python -m tests.kernel.boot                      tests/kernel and tests/calibration in two
                                                     kernels side by side
    python -m tests.kernel.boot tests/kernel -k loss  what pytest is to be told instead
    python -m tests.kernel.boot --run tc -V           any command

User-Mode Linux is a kernel that runs as an ordinary program, root or not. Its root file system
is the host's own (hostfs), so nothing has to be installed in it, and its modules include
sch_netem. It has one processor, no network but loopback, and no fine timers.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import IO

from wanlat.emulator.syscalls import die_with_parent

CHECKOUT = Path(__file__).resolve().parents[2]
SUITES = (("tests/kernel",), ("tests/calibration", "tests/emulator/test_queue.py"))
BACKEND_VARIABLE = "WANLAT_TEST_BACKEND"  # suites that run on both backends read it

_MODULES = Path("/usr/lib/uml/modules")
_WANTED_MODULES = (
    *("sch_netem", "veth", "bridge", "af_packet", "dummy", "ifb", "tun"),
    *("sch_htb", "sch_tbf", "sch_hfsc", "sch_ingress", "sch_fq", "sch_fq_codel", "sch_prio"),
    *("cls_u32", "cls_fw", "cls_matchall", "cls_flower", "cls_basic", "act_mirred"),
    *("inet_diag", "tcp_diag", "packet_diag"),
)
_MEMORY = "2G"
_CONSOLE_BYTES = 4000
_TIMEOUT_S = 3600

# The console and the command's output are two lines of this kernel (con0, con1), so that what
# the command prints can be seen while it runs. hostfs would hold it back until it is closed.
_INIT = """#!/bin/sh
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /run
# Temporary files stay in this kernel's memory; /tmp is the host's and may hold the checkout.
mkdir /run/tmp /run/netns
mkdir -p /dev/pts /dev/shm
mount -t devpts -o ptmxmode=666 devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
ln -sf /proc/self/fd /dev/fd
export HOME=/run/tmp TMPDIR=/run/tmp
# modprobe looks for lib/modules/VERSION below a directory of our own: the host's stays as it is.
mkdir -p /run/kernel/lib
ln -s {modules} /run/kernel/lib/modules
for module in {wanted}; do modprobe -d /run/kernel $module 2>/dev/null; done
ip link set lo up
# All links' packets wait for one processor: where it is late, none of them is dropped for that.
echo 100000 > /proc/sys/net/core/netdev_max_backlog
stty -F /dev/tty1 raw -echo
cd {checkout}
{environment} {command} </dev/null >/dev/tty1 2>&1
echo $? > {status}
sync
echo o > /proc/sysrq-trigger
sleep 30
"""


def missing() -> str | None:
    """Return what is not installed that this needs; None when everything is there."""
    system = "/usr/sbin:/sbin:/usr/bin:/bin"
    if shutil.which("linux.uml") is None or not _MODULES.is_dir():
        return "User-Mode Linux is not installed (Debian, Ubuntu: apt-get install user-mode-linux)"
    for program, package in (("modprobe", "kmod"), ("ip", "iproute2"), ("stty", "coreutils")):
        if shutil.which(program, path=system) is None:
            return f"{program} is not installed (Debian, Ubuntu: apt-get install {package})"
    if _needs_whole_state() and shutil.which("cc") is None:
        return (
            "on this processor it needs cc as well (Debian, Ubuntu: apt-get install gcc libc6-dev)"
        )
    return None


def _needs_whole_state() -> bool:
    """Whether the processor has registers that this kernel does not know (`xstate.c`)."""
    return "amx_tile" in Path("/proc/cpuinfo").read_text().split()


def run(
    command: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    output: IO[bytes] | None = None,
) -> int:
    """Run ``command`` inside, pass on what it prints as it comes, return its exit code.

    ``output`` is where it goes (None: this process's stdout). The code is 3 when something is
    not installed, 124 when time is up, 125 when the kernel ended without the command having.
    """
    problem = missing()
    if problem is not None:
        print(f"A kernel with netem cannot be booted: {problem}", file=sys.stderr)
        return 3
    with tempfile.TemporaryDirectory(prefix="wanlat-kernel-") as name:
        directory = Path(name)
        status, init, console = (directory / part for part in ("status", "init", "console"))
        init.write_text(_script(command, environment or {}, status))
        init.chmod(0o755)
        preloaded = directory / "xstate.so"
        if _needs_whole_state():
            source = Path(__file__).with_name("xstate.c")
            compile_ = ["cc", "-shared", "-fPIC", "-O2", "-o", str(preloaded), str(source)]
            subprocess.run(compile_, check=True)
        with console.open("wb") as log:
            ended = _boot(init, preloaded, log, output or sys.stdout.buffer)
        if status.exists() and (code := status.read_text().strip()):
            return int(code)
        _show_console(console, ended)
        return 124 if ended is None else 125


def _script(command: Sequence[str], environment: Mapping[str, str], status: Path) -> str:
    return _INIT.format(
        modules=_MODULES,
        wanted=" ".join(_WANTED_MODULES),
        checkout=shlex.quote(str(CHECKOUT)),
        environment=" ".join(f"{name}={shlex.quote(value)}" for name, value in environment.items()),
        command=shlex.join(command),
        status=shlex.quote(str(status)),
    )


def _boot(init: Path, preloaded: Path, console: IO[bytes], output: IO[bytes]) -> int | None:
    """Run the kernel to its end and return its exit code; None when time was up."""
    preload = {"LD_PRELOAD": str(preloaded)} if preloaded.exists() else {}
    machine = subprocess.Popen(
        [
            *("linux.uml", "rootfstype=hostfs", "rootflags=/", "rw", f"init={init}"),
            *(f"mem={_MEMORY}", "con=null", "con0=null,fd:2", "con1=null,fd:1", "quiet"),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=console,
        env=os.environ | preload,
        start_new_session=True,  # it is many processes of the host; they end together
        preexec_fn=partial(die_with_parent, signal.SIGKILL),  # noqa: PLW1509 - no thread yet
    )
    pump = threading.Thread(target=_pump, args=(machine.stdout, output), daemon=True)
    pump.start()
    try:
        code = machine.wait(_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return None
    finally:
        _end(machine)
    pump.join(5)
    return code


def _pump(source: IO[bytes] | None, target: IO[bytes]) -> None:
    assert source is not None
    while piece := os.read(source.fileno(), 65536):
        target.write(piece)
        target.flush()


def _end(machine: subprocess.Popen[bytes]) -> None:
    for _ in range(50):
        try:
            os.killpg(machine.pid, signal.SIGKILL)  # the group is the session we made
        except (ProcessLookupError, PermissionError):
            break
        machine.poll()
        time.sleep(0.02)
    machine.wait()


def _show_console(console: Path, ended: int | None) -> None:
    what = f"was stopped after {_TIMEOUT_S} s" if ended is None else f"ended early ({ended})"
    print(f"The kernel {what}. Its console:", file=sys.stderr)
    print(console.read_text(errors="replace")[-_CONSOLE_BYTES:], file=sys.stderr)


def _side_by_side(suites: Sequence[Sequence[str]]) -> int:
    """Run each suite in a kernel of its own, which has one processor; return the worst exit code.

    What the first prints comes as it comes; what the others print, when they have ended.
    """
    with ExitStack() as opened:
        running: list[tuple[subprocess.Popen[bytes], IO[bytes] | None]] = []
        for suite in suites:
            output = opened.enter_context(tempfile.TemporaryFile()) if running else None
            command = [sys.executable, "-m", "tests.kernel.boot", *suite]
            machine = subprocess.Popen(
                command,
                cwd=CHECKOUT,
                stdout=output,
                preexec_fn=partial(die_with_parent, signal.SIGTERM),  # noqa: PLW1509
            )
            opened.callback(machine.wait)
            opened.callback(machine.terminate)  # first; of one that has ended it does nothing
            running.append((machine, output))
        codes = []
        for machine, held in running:
            codes.append(machine.wait())
            if held is not None:
                held.seek(0)
                shutil.copyfileobj(held, sys.stdout.buffer)
                sys.stdout.flush()
        return max(map(abs, codes))


def main(arguments: list[str]) -> int:
    """Run what the command line says."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is ended
    if not arguments:
        if (problem := missing()) and "kernel" not in os.environ.get("WANLAT_REQUIRE", "").split():
            print(f"Skipped, the tests of netem: {problem}")
            return 0
        return _side_by_side(SUITES)
    # In there its output is a terminal, whatever it is out here.
    plain = {} if sys.stdout.isatty() else {"NO_COLOR": "1", "TERM": "dumb"}
    size = {"COLUMNS": str(shutil.get_terminal_size().columns)}
    passed_on = ("PYTEST_ADDOPTS", "WANLAT_LONG")
    given = {name: os.environ[name] for name in passed_on if name in os.environ}
    environment = {BACKEND_VARIABLE: "netem", **size, **plain, **given}
    if arguments[:1] == ["--run"]:
        return run(arguments[1:], environment=environment)
    # Its files belong to the host's user, who may not be the one that root is in there.
    pytest = [sys.executable, "-B", "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    return run(pytest, environment=environment)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
