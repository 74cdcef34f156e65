"""nginx before a cluster: its program on this machine, and what it is told.

Sources: nginx's documentation of its directives, and MinIO's page "Configure NGINX Proxy for MinIO
Server", whose configuration this is, with what is added said beside it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from wanlat.systems.binary import Companion, said, setting
from wanlat.systems.errors import SystemMissing
from wanlat.systems.receipt import sha256_of
from wanlat.systems.tools import numbers

NAME = "nginx"
PORT = 9080
_ELSEWHERE = Path("/usr/sbin/nginx")  # Debian's, which is on the PATH of administrators alone
_ERROR_LOG_FLAG = (1, 19, 5)  # `-e`
_KEEPALIVE_TIME = (1, 19, 10)  # `keepalive_time`; before, there was no such limit
_OLDEST = (1, 15, 3)  # `keepalive_requests` and `keepalive_timeout` of upstreams

Balance = Literal["least_conn", "round_robin"]


def find() -> Companion:
    """Return nginx: what the environment names, else on PATH, else where Debian puts it.

    Raises SystemMissing, which says how to get it.
    """
    variable = setting(NAME)
    named = os.environ.get(variable)
    if named:
        path = Path(named).expanduser().absolute()
        if not (path.is_file() and os.access(path, os.X_OK)):
            raise SystemMissing(
                f"{variable} names {path}, which is not a program. Correct it, or remove it from "
                "the environment."
            )
    else:
        path = Path(shutil.which(NAME) or _ELSEWHERE).absolute()
        if not path.is_file():
            raise SystemMissing(
                f"nginx is not on this machine: it is neither on PATH nor {_ELSEWHERE}. "
                f"Install it, on Debian and Ubuntu with `sudo apt install nginx-light`, or name "
                f"one with {variable}. A service of it need not run: wanlat starts its own."
            )
    return Companion(NAME, path, read_version(path), sha256_of(path))


def read_version(program: Path) -> str:
    """Ask the program; it prints ``nginx version: nginx/1.22.1``, on stderr."""
    line = next(iter(said(program, "-v")[1].splitlines()), "")
    name, _, version = line.removeprefix("nginx version: ").partition("/")
    version = version.split(" ")[0]
    if name != NAME or not version:
        raise SystemMissing(f"{program} does not look like nginx: its version is {line!r}.")
    if numbers(version) < _OLDEST:
        raise SystemMissing(
            f"{program} is nginx {version}; {'.'.join(map(str, _OLDEST))} is the oldest that "
            f"keeps connections to a store open. Install a newer one, or name it with "
            f"{setting(NAME)}."
        )
    return version


@dataclass(frozen=True)
class Front:
    """An nginx before all nodes of a store; ``upstreams`` are their ``address:port``."""

    address: str
    home: PurePosixPath
    """A directory of its own, as the lab names it."""
    upstreams: Sequence[str]
    balance: Balance
    workers: int
    version: str

    def argv(self, program: Path) -> list[str]:
        """Return the command, which stays in the foreground."""
        argv = [str(program), "-p", str(self.home), "-c", str(self.home / "nginx.conf")]
        # Else it first looks for the log that it was built with, which is the machine's.
        return [*argv, "-e", "stderr"] if numbers(self.version) >= _ERROR_LOG_FLAG else argv

    def configuration(self) -> str:
        """Return the text of its configuration file."""
        limits = ["keepalive_requests 1000000000;"]
        if numbers(self.version) >= _KEEPALIVE_TIME:
            limits.append("keepalive_time 30d;")
        servers = [f"server {each};" for each in self.upstreams]
        balance = ["least_conn;"] if self.balance == "least_conn" else []
        # The same for all workers, so that one counts the others' connections too.
        upstream = ["zone store 1m;", *balance, *servers]
        upstream += [f"keepalive {_KEPT_OPEN};", "keepalive_timeout 20s;", *limits]
        temporary = [
            f"{kind}_temp_path {self.home}/{kind};"
            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        ]
        server = [f"listen {self.address}:{PORT} backlog=4096;", *_AS_MINIO_SAYS]
        location = _block("location /", [*_PASSED_ON, "proxy_pass http://store;"])
        http = [
            *temporary,
            "access_log off;",
            "keepalive_timeout 1h;",
            *limits,
            *_block("upstream store", upstream),
            *_block("server", [*server, *location]),
        ]
        main = [
            "daemon off;",
            # Root of the lab alone, which is nobody special on the machine; there is no other user.
            "user root;",
            f"worker_processes {self.workers};",
            "worker_rlimit_nofile 16384;",
            f"pid {self.home}/nginx.pid;",
            "error_log stderr warn;",
            *_block("events", ["worker_connections 8192;"]),
            *_block("http", http),
        ]
        return "\n".join(main) + "\n"


_KEPT_OPEN = 256  # idle connections to the store that each worker keeps

_AS_MINIO_SAYS = (
    "ignore_invalid_headers off;",
    "client_max_body_size 0;",
    "proxy_buffering off;",
    "proxy_request_buffering off;",
    # Not its makers': longer than the 60 s of nginx, so that a study's own time-out ends a request.
    "client_body_timeout 1h;",
    "send_timeout 1h;",
    "proxy_read_timeout 1h;",
    "proxy_send_timeout 1h;",
)
_PASSED_ON = (
    # With its port, as the client has signed it.
    "proxy_set_header Host $http_host;",
    "proxy_set_header X-Real-IP $remote_addr;",
    "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;",
    "proxy_set_header X-Forwarded-Proto $scheme;",
    "proxy_connect_timeout 300;",
    "proxy_http_version 1.1;",
    'proxy_set_header Connection "";',
    "chunked_transfer_encoding off;",
)


def _block(name: str, lines: Sequence[str]) -> list[str]:
    return [f"{name} {{", *(f"    {line}" for line in lines), "}"]
