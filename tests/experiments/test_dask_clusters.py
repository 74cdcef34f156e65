"""Clusters that a run makes for itself: over SSH, and as jobs of Slurm. Both are the test's own."""

from __future__ import annotations

import os
import platform
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.command_line import ran
from tests.experiments.commands import command, manifest_of
from tests.experiments.drill.drills import await_that
from tests.experiments.matrices import points, statuses, study
from tests.late_network import CHECKOUT
from tests.needs import needs
from tests.processes import every, said
from wanlat.emulator.machine import cores, memory_bytes

pytestmark = pytest.mark.programs

HOST = "127.0.0.1"
MARK = "WANLAT_TEST_OF"
"""What processes have in their environment that a login of a test started."""
PATHS = {"PYTHONPATH": str(CHECKOUT), "WANLAT_BIN_DIR": os.environ.get("WANLAT_BIN_DIR", "")}


def free_port() -> int:
    with socket.create_server((HOST, 0)) as server:
        return int(server.getsockname()[1])


@contextmanager
def running(directory: Path, *argv: str, port: int | None = None) -> Iterator[None]:
    """Run a daemon in the foreground; where it has a port, from when it answers there."""
    with (directory / f"{Path(argv[0]).name}.log").open("wb") as log:
        daemon = subprocess.Popen(argv, stdout=log, stderr=log)
    try:
        if port is not None:
            await_that(lambda: answers(port))
        assert daemon.poll() is None
        yield
    finally:
        daemon.terminate()
        daemon.wait(timeout=30)


def answers(port: int) -> bool:
    try:
        socket.create_connection((HOST, port)).close()
    except ConnectionRefusedError:
        return False
    return True


@contextmanager
def sshd(directory: Path) -> Iterator[Path]:
    """Yield the home of a user who may log in to a server on loopback, with keys of their own."""
    home, port = directory / "home", free_port()
    (home / ".ssh").mkdir(parents=True)
    for name in ("host", "user"):
        key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(directory / name)]
        subprocess.run(key, check=True)
    host_key = (directory / "host.pub").read_text()
    (home / ".ssh/known_hosts").write_text(f"[{HOST}]:{port} {host_key}")
    (home / ".ssh/config").write_text(
        f"Host {HOST}\n  Port {port}\n  IdentityFile {directory / 'user'}\n"
    )
    settings = {
        "Port": port,
        "ListenAddress": HOST,
        "HostKey": directory / "host",
        "AuthorizedKeysFile": directory / "user.pub",
        "PidFile": "none",
        "UsePAM": "no",
        "StrictModes": "no",
        "PasswordAuthentication": "no",
        "SetEnv": " ".join(f"{key}={value}" for key, value in {**PATHS, MARK: directory}.items()),
    }
    config = directory / "sshd_config"
    config.write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # an empty directory, which it insists on
    with running(directory, "/usr/sbin/sshd", "-D", "-e", "-f", str(config), port=port):
        yield home


SLURM = """
ClusterName=test
SlurmctldHost={host}({ip})
SlurmctldPort={ctld}
SlurmdPort={d}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={at}/munge.socket
CredType=cred/munge
CryptoType=crypto/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
JobAcctGatherType=jobacct_gather/none
SlurmctldPidFile={at}/ctld.pid
SlurmdPidFile={at}/d.pid
StateSaveLocation={at}/state
SlurmdSpoolDir={at}/spool
ReturnToService=2
NodeName={host} NodeAddr={ip} CPUs={cores} RealMemory={mib} State=UNKNOWN
PartitionName=test Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


@contextmanager
def slurm(directory: Path) -> Iterator[Path]:
    """Yield the configuration of a Slurm of one node, with a munge of its own."""
    at = directory / "slurm"
    for each in ("", "state", "spool"):
        (at / each).mkdir(mode=0o755)
    key, socket_ = at / "munge.key", at / "munge.socket"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    config, ports = at / "slurm.conf", {"ctld": free_port(), "d": free_port()}
    user, host = subprocess.check_output(["id", "-un"], text=True).strip(), platform.node()
    config.write_text(
        SLURM.format(
            **{"host": host.partition(".")[0], "ip": HOST, "user": user, "at": at},
            **{"cores": cores(), "mib": memory_bytes() // (2 << 20), **ports},
        )
    )
    own = ("pid", "log", "seed")
    files = [f"--{each}-file={at}/munge.{each}" for each in own]
    munged = ("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={socket_}")
    with ExitStack() as stack:
        stack.enter_context(running(at, *munged, *files))
        await_that(socket_.exists)
        for name in ("slurmctld", "slurmd"):
            port = ports[name.removeprefix("slurm")]
            stack.enter_context(
                running(at, f"/usr/sbin/{name}", "-D", "-f", str(config), port=port)
            )
        yield config


def run(file: Path, bundle: Path, scheduler: str, **environment: str) -> None:
    where = ("--engine", "dask", "--scheduler", scheduler)
    measures = command("run", str(file), "--out", str(bundle), *where)
    # Jobs print into files of its directory.
    done = ran(*measures, cwd=bundle.parent, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    assert set(statuses(bundle)) == {"complete"}
    hosts = {manifest_of(bundle / each["directory"])["host"] for each in points(bundle)}
    assert hosts == {platform.node()}


def test_hosts_over_ssh_measure(tmp_path: Path) -> None:
    needs("sshd")
    bundle = tmp_path / "bundle"
    with sshd(tmp_path) as home:
        run(study(tmp_path, 50, 3), bundle, f"ssh:{HOST},{HOST}", HOME=str(home))
        assert manifest_of(bundle)["jobs"][-1]["jobs"] == 2
        await_that(lambda: not started_by_logins(tmp_path))


def started_by_logins(directory: Path) -> list[int]:
    mark = f"{MARK}={directory}".encode()
    return [pid for pid in every() if mark in said(pid, "environ")]


def test_jobs_of_slurm_measure(tmp_path: Path) -> None:
    needs("slurmctld")
    with slurm(tmp_path) as config:
        environment = {"SLURM_CONF": str(config), **PATHS}
        run(study(tmp_path, 50, 2), tmp_path / "bundle", "slurm:1", **environment)
