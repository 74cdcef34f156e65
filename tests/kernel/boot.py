"""Runs this directory's tests in a kernel that has netem: User-Mode Linux, on the host's files.

    python -m tests.kernel.boot

User-Mode Linux is a kernel that runs as an ordinary program. Its root file system is the host's
own (hostfs), so nothing has to be installed in it, and its modules include sch_netem.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
_MODULES = Path("/usr/lib/uml/modules")
_MEMORY = "1G"
_BOOT_TIMEOUT_S = 600

_INIT = """#!/bin/sh
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /run
# Temporary files stay in this kernel's memory; /tmp is the host's and may hold the checkout.
mkdir /run/tmp
export HOME=/run/tmp TMPDIR=/run/tmp
# modprobe looks for lib/modules/VERSION below a directory of our own: the host's stays as it is.
mkdir -p /run/kernel/lib
ln -s {modules} /run/kernel/lib/modules
for module in sch_netem veth bridge af_packet; do modprobe -d /run/kernel $module 2>/dev/null; done
ip link set lo up
cd {checkout}
{command} > {output} 2>&1
echo $? > {status}
echo o > /proc/sysrq-trigger
sleep 5
"""


def _missing() -> str | None:
    if shutil.which("linux.uml") is None or not _MODULES.is_dir():
        return "User-Mode Linux is not installed (Debian, Ubuntu: apt-get install user-mode-linux)"
    if shutil.which("modprobe", path="/usr/sbin:/sbin:/usr/bin:/bin") is None:
        return "modprobe is not installed (Debian, Ubuntu: apt-get install kmod)"
    return None


def run(command: list[str]) -> int:
    """Run ``command`` inside, copy what it prints to stdout, return its exit code."""
    problem = _missing()
    if problem is not None:
        print(f"tests/kernel need a kernel with netem: {problem}", file=sys.stderr)
        return 3
    with tempfile.TemporaryDirectory(prefix=".kernel-", dir=CHECKOUT) as name:
        directory = Path(name)
        output, status, init = (directory / part for part in ("output", "status", "init"))
        init.write_text(
            _INIT.format(
                modules=_MODULES,
                checkout=shlex.quote(str(CHECKOUT)),
                command=shlex.join(command),
                output=shlex.quote(str(output)),
                status=shlex.quote(str(status)),
            )
        )
        init.chmod(0o755)
        output.touch()
        console = directory / "console"
        with console.open("wb") as log:
            machine = subprocess.run(
                [
                    *("linux.uml", "rootfstype=hostfs", "rootflags=/", "rw", f"init={init}"),
                    *(f"mem={_MEMORY}", "con=null", "con0=null,fd:1", "quiet"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                timeout=_BOOT_TIMEOUT_S,
                check=False,
            )
        sys.stdout.write(output.read_text(errors="replace"))
        if not status.exists():
            print(f"The kernel ended early (exit code {machine.returncode}). Its console:")
            sys.stdout.write(console.read_text(errors="replace")[-2000:])
            return 1
        return int(status.read_text())


if __name__ == "__main__":
    arguments = sys.argv[1:] or ["tests/kernel"]
    sys.exit(run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]))
