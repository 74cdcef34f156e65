"""A store as the rest of wanlat knows it: its definition, and how a cluster of it is started."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wanlat.systems.engine.arguments import argv_of, listed
from wanlat.systems.engine.cluster import Cluster, OnEvent
from wanlat.systems.engine.defined import DefinedSystem
from wanlat.systems.engine.options import Options
from wanlat.systems.engine.process import NodeProcess
from wanlat.systems.engine.program import Binary
from wanlat.systems.engine.scene import Node, at, of_lab, recorded, scene_of
from wanlat.systems.engine.text import evaluate, fill, render
from wanlat.systems.engine.wait import Wait
from wanlat.topologies.errors import MachineError

if TYPE_CHECKING:
    from wanlat.emulator.lab import Lab, LabNode


class System(DefinedSystem):
    """A store: how its cluster is configured, started and made ready, as its definition states."""

    # -- starting ----------------------------------------------------------------------------

    def start(
        self,
        lab: Lab,
        options: Options,
        log_dir: Path,
        ready_timeout_s: float,
        on_progress: Callable[[str], None],
        binary: Binary | None = None,
        *,
        targets: Sequence[str] = (),
        before: Callable[[Cluster], object] = lambda _: None,
        on_event: OnEvent = lambda *_: None,
    ) -> Cluster:
        """Start one process a node and return once every node serves requests.

        ``binary`` is what to start; None looks for it. ``targets`` are the nodes that requests will
        be sent to, where what stands before a cluster stands; none: the first. ``before`` is called
        once everything is configured and nothing runs. ``on_event`` is called with each process
        that was started, and with each step that makes it ready, then and later.

        What an earlier start left in the nodes' directories is removed.

        What node NAME prints goes to ``log_dir/<system>-NAME.log``. Raises SystemMissing,
        UserError (topology), MachineError (what the store needs of
        the machine), and SystemFailed with the end of a log when a process dies or
        ``ready_timeout_s`` is over.
        """
        binary = binary or self.binary_for(options)
        self.check_topology(lab.plan, options)
        log_dir.mkdir(parents=True, exist_ok=True)
        homes = {node.name: self.home_of(node) for node in lab.nodes}
        for home in homes.values():
            _clear(home)
        cluster = self.configure(lab, options, binary, log_dir)
        for node in cluster.nodes.values():
            node.home = homes[node.node]
        cluster.on_event = on_event
        before(cluster)
        try:
            wait = Wait(cluster.nodes, ready_timeout_s, on_progress)
            cluster.start_processes()
            cluster.make_ready(wait)
            cluster.standing = self.stand_before(cluster, log_dir, targets)
            for front in cluster.standing.values():
                front.start(lab)
            cluster.await_fronts(Wait(cluster.standing, wait.remaining_s, on_progress))
        except BaseException:
            cluster.stop()
            raise
        return cluster

    def configure(self, lab: Lab, options: Options, binary: Binary, log_dir: Path) -> Cluster:
        """Write what the processes need into the nodes' directories; start nothing."""
        definition, nodes = self.definition, of_lab(lab, self.name)
        scene = scene_of(definition, self.hooks, lab.plan, options, nodes)
        scene |= {"program": str(binary.path), "version": binary.version}
        scene |= {"here": self.directory.absolute(), "python": sys.executable}
        for node in nodes:
            node.home.mkdir(parents=True, exist_ok=True)
            for directory in definition.directories:
                for name in listed(fill(directory, at(scene, node))):
                    (node.home / name).mkdir(parents=True, exist_ok=True)
        self._hooked("check_nodes", scene)
        processes = [self._process(node, at(scene, node), binary, log_dir) for node in nodes]
        in_effect = recorded(definition, options, scene)
        cluster = Cluster(self, lab, binary, scene, in_effect, processes)
        cluster.write_files()
        return cluster

    def _process(
        self, node: Node, scene: dict[str, Any], binary: Binary, log_dir: Path
    ) -> NodeProcess:
        argv: list[str] | None = self._hooked("command", scene)
        if argv is None:
            argv = argv_of(self.definition.command, scene)
        env = {key: fill(value, scene) for key, value in self.definition.environment.items()}
        env |= self._hooked("environment", scene) or {}
        env = {key: str(value) for key, value in env.items() if value is not None}
        env = {**dict(binary.environment), **env}
        # What a definition calls its program by name is the one that was found.
        ours = argv[0] if argv[0] not in (self._file, self.name) else str(binary.path)
        argv = [ours, *argv[1:]]
        return NodeProcess(self.title, node.name, argv, env, log_dir / f"{self.name}-{node}.log")

    @property
    def _file(self) -> str:
        return self.definition.install.file if self.definition.install else self.name

    def stand_before(
        self, cluster: Cluster, log_dir: Path, targets: Sequence[str]
    ) -> dict[str, NodeProcess]:
        """Return what is to stand before a cluster that serves, by node; start nothing."""
        front = self.definition.front
        if front is None:
            return {}
        (its,) = cluster.beside
        chosen = evaluate(front.at, cluster.scene) if front.at else None
        names = [chosen] if chosen else list(targets) or [next(iter(cluster.nodes))]
        fronts = {}
        for name in dict.fromkeys(names):
            node = cluster.node(name)
            home = node.home / front.program.name
            home.mkdir(exist_ok=True)
            own = replace(node, directory=f"{node.directory}/{front.program.name}", home=home)
            scene = {**cluster.scene, "node": own, "version": its.version, "listen": front.port}
            for file, template in front.files.items():
                (home / file).write_text(render(self.directory / template, scene), "utf-8")
            argv = [str(its.path), *argv_of(front.command, scene)[1:]]
            log = log_dir / f"{self.name}-{name}-{front.program.name}.log"
            fronts[name] = NodeProcess(front.program.name, name, argv, dict(its.environment), log)
        return fronts

    def home_of(self, node: LabNode) -> Path:
        """Return where a node keeps all that is this system's, as we see it from outside."""
        return node.host_directory / self.name


def _clear(home: Path) -> None:
    """Remove what an earlier start left in a node's directory.

    A program of the lab may have put a link there, which leads out of the lab for us. Raises
    MachineError.
    """
    for directory in (home.parent, home):
        if directory.is_symlink():
            raise MachineError(
                f"{directory} is a link that a program of the lab made: nothing is removed."
            )
    if home.exists():
        shutil.rmtree(home)
