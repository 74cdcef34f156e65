"""MinIO behind nginx, which passes each request on to one of its nodes.

The way MinIO was asked in published comparisons, and the way its makers say how to set up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from wanlat.systems import nginx
from wanlat.systems.ask import Answer, ask
from wanlat.systems.base import Binary, Cluster, NodeProcess, S3Target
from wanlat.systems.binary import setting
from wanlat.systems.errors import SystemMissing
from wanlat.systems.least import Least
from wanlat.systems.minio import Minio, MinioOptions
from wanlat.systems.minio_cluster import PORT, MinioCluster
from wanlat.systems.sigv4 import sign
from wanlat.systems.wait import Wait
from wanlat.topologies.errors import UserError
from wanlat.topologies.wording import did_you_mean

if TYPE_CHECKING:
    from wanlat.topologies.resolve import Plan


class MinioNginxOptions(MinioOptions):
    """Options of MinIO, and of the nginx before it."""

    balance: nginx.Balance = "least_conn"
    """How nginx chooses a node: the one with the fewest open requests, or one after the other."""
    workers: int = Field(default=1, ge=1, le=64)
    """nginx's worker processes; its own default is one, Debian's one for each core."""
    front: str | None = None
    """The node that nginx runs on; default: the one that requests are sent to."""


class FrontedMinioCluster(MinioCluster):
    """A running MinIO cluster that is asked through nginx."""

    def s3(self, node: str) -> S3Target:
        """The nginx on that node; where none is, the first one."""
        where = node if node in self.standing else next(iter(self.standing))
        return replace(self.own_s3(where), port=nginx.PORT)

    def await_fronts(self, wait: Wait) -> None:
        """Wait until each nginx passes on a signed ListBuckets."""
        wait.each("nginx", self._passes_on, list(self.standing))

    def _passes_on(self, name: str) -> str | None:
        answer = self.ask_front(name)
        return None if answer.ok else f"ListBuckets: {answer.brief()}"

    def ask_front(self, name: str, path: str = "/", method: str = "GET") -> Answer:
        """Send a signed request to the nginx on a node, from there. Raises NoAnswer."""
        at = self.s3(name)
        signed = sign(
            method,
            f"{at.host}:{at.port}",
            path,
            region=at.region,
            access_key=at.access_key,
            secret_key=at.secret_key,
        )
        return ask(self.lab, name, at.port, path, method=method, headers=signed)


class MinioNginx(Minio):
    """MinIO behind nginx as a system under test."""

    name = "minio-nginx"
    title = "MinIO behind nginx"
    origin = "MinIO, and nginx from your distribution before it"
    recipe = None
    options_model = MinioNginxOptions
    cluster = FrontedMinioCluster

    @property
    def how_to_get(self) -> str:
        """Both are needed."""
        return (
            "wanlat system install minio, and on Debian and Ubuntu `sudo apt install "
            f"nginx-light` (or name an nginx with {setting(nginx.NAME)})"
        )

    def find(self) -> Binary:
        """Return MinIO's binary, nginx beside it. SystemMissing says which of them is missing."""
        try:
            minio = super().find()
        except SystemMissing as absent:
            nginx_too = _why_missing()
            raise SystemMissing(f"{absent} {nginx_too}" if nginx_too else str(absent)) from None
        front = nginx.find()
        return replace(minio, label=f"{minio.label}, nginx {front.version}", beside=(front,))

    def check_topology(self, plan: Plan, options: MinioOptions) -> None:
        """As MinIO; and the front must be a node."""
        super().check_topology(plan, options)
        assert isinstance(options, MinioNginxOptions)
        names = [node.name for node in plan.nodes]
        if options.front is not None and options.front not in names:
            raise UserError(
                f"nginx is to stand on `{options.front}`, which is not a node of topology "
                f"{plan.name}{did_you_mean(options.front, names)}. Correct the option front of "
                f"{self.name}, or leave it out."
            )

    def effective(self, plan: Plan, options: MinioOptions) -> dict[str, Any]:
        """As MinIO's, and nginx's."""
        assert isinstance(options, MinioNginxOptions)
        of_nginx: dict[str, Any] = {"balance": options.balance, "workers": options.workers}
        if options.front is not None:
            of_nginx["front"] = options.front
        return super().effective(plan, options) | of_nginx

    def least_round_trips(
        self, plan: Plan, options: MinioOptions, target: str, endpoint: str, placement: str
    ) -> Least | None:
        """Known where there is no distance; else it depends on which node nginx chooses."""
        if len(plan.sites) > 1:
            return None
        return super().least_round_trips(plan, options, target, endpoint, placement)

    def stand_before(
        self, cluster: Cluster, options: MinioOptions, log_dir: Path, asked: Sequence[str]
    ) -> dict[str, NodeProcess]:
        """Write the configuration of one nginx for each node that is asked."""
        assert isinstance(options, MinioNginxOptions)
        (program,) = cluster.beside
        lab = cluster.lab
        names = [options.front] if options.front else list(asked) or [lab.nodes[0].name]
        upstreams = [f"{node.address}:{PORT}" for node in lab.nodes]
        fronts = {}
        for name in dict.fromkeys(names):
            inside, outside = self.home(lab.node(name), nginx.NAME)
            front = nginx.Front(
                address=lab.node(name).address,
                home=inside,
                upstreams=upstreams,
                balance=options.balance,
                workers=options.workers,
                version=program.version,
            )
            (outside / "nginx.conf").write_text(front.configuration(), encoding="utf-8")
            log = log_dir / f"{self.name}-{name}-nginx.log"
            fronts[name] = NodeProcess("nginx", name, front.argv(program.path), {}, log)
        return fronts


def _why_missing() -> str | None:
    try:
        nginx.find()
    except SystemMissing as absent:
        return str(absent)
    return None
