"""A running cluster: its processes, where its nodes answer, whether it is well."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wanlat.emulator.binaries import SEARCH_PATH
from wanlat.systems.engine.arguments import listed
from wanlat.systems.engine.defined import DefinedSystem
from wanlat.systems.engine.process import NodeProcess, what_is_full
from wanlat.systems.engine.program import Binary
from wanlat.systems.engine.protocols import PROTOCOLS, Api, Place, Protocol, S3Target, Target
from wanlat.systems.engine.read_back import EffectiveSetting, grouped
from wanlat.systems.engine.request import PATIENCE_S, Answer, NoAnswer, encoded, send, sign
from wanlat.systems.engine.scene import Node, at
from wanlat.systems.engine.steps import Http, ReadBack, Step
from wanlat.systems.engine.text import NotYetError, evaluate, fill, filled, judge, render
from wanlat.systems.engine.wait import Wait, WhyNot, distance_remark
from wanlat.topologies.errors import MachineError, UserError
from wanlat.topologies.wording import in_words, listing, show

if TYPE_CHECKING:
    from wanlat.emulator.lab import Lab
    from wanlat.emulator.process import Process

_BUCKET_S = 30.0

OnEvent = Callable[[str, str, Mapping[str, Any]], object]
"""Takes what happened (`process started`, `listening`, `readiness step`), the node, and details."""


class Cluster:
    """A cluster on a lab's nodes. It ends with its lab; nothing has to be closed."""

    def __init__(
        self,
        defined: DefinedSystem,
        lab: Lab,
        binary: Binary,
        scene: dict[str, Any],
        options: Mapping[str, Any],
        nodes: Iterable[NodeProcess],
    ) -> None:
        self.defined = defined
        self.system = defined.name
        self.lab = lab
        self.scene = scene
        """What expressions know: `wanlat.systems.engine.scene`."""
        self.version = binary.version
        self.label = binary.label
        self.sha256 = binary.sha256
        self.options = dict(options)
        """As they are in effect: defaults filled in."""
        self.beside = binary.beside
        """What else runs: of `fronts`."""
        self.nodes = {node.node: node for node in nodes}
        self.standing: dict[str, NodeProcess] = {}
        """The processes of `fronts`, by node, as they can be started again."""
        self.on_event: OnEvent = lambda *_: None
        """Called with each step of getting ready as a node meets it, from any thread."""
        self._listening: set[tuple[str, int, int]] = set()

    @property
    def api(self) -> Api:
        """What is measured of it, as `System.api` has it beforehand."""
        return self.defined.api(self.scene["given"])

    @property
    def processes(self) -> dict[str, Process]:
        """The process that was last started on each node, by node name."""
        return {name: node.process for name, node in self.nodes.items() if node.process}

    @property
    def fronts(self) -> dict[str, Process]:
        """What stands before the cluster, by the node it runs on: nginx, of `minio-nginx`."""
        return {name: front.process for name, front in self.standing.items() if front.process}

    # -- where it answers --------------------------------------------------------------------

    def target(self, node: str) -> Target:
        """Return where a node answers, through what stands before the cluster. Raises UserError."""
        return self._target(PROTOCOLS[self.api], node, front=True)

    def own_target(self, node: str) -> Target:
        """Return the same of the node itself, whatever stands before the cluster."""
        return self._target(PROTOCOLS[self.api], node, front=False)

    def _target(self, protocol: Protocol[Any], node: str, *, front: bool) -> Target:
        definition = self.defined.definition
        section = definition.section(protocol)
        if section is None:
            raise UserError(
                f"System {self.system} does not speak {protocol.spoken} as it is set up here; "
                f"it speaks {PROTOCOLS[self.api].spoken}. Ask it for endpoints that it has."
            )
        port = None
        if front and definition.front is not None:
            # Another node's requests go to the front that there is.
            node = node if node in self.standing else next(iter(self.standing))
            port = definition.front.port
        place = Place(self.lab.node(node).address, self._at(node), self.defined.directory, port)
        return protocol.target(section, place)

    def put_on_disk(self, key: str, data: bytes) -> None:
        """Write an object where every node serves it from: one file, if one disk has them all."""
        assert self.defined.definition.objects_on_disk is not None
        first: Path | None = None
        for node in self.scene["nodes"]:
            scene = {**at(self.scene, node), "key": key}
            file = node.home / filled(self.defined.definition.objects_on_disk, scene)
            file.parent.mkdir(parents=True, exist_ok=True)
            with suppress(OSError):
                if first is not None:
                    file.hardlink_to(first)
                    continue
            file.write_bytes(data)
            first = first or file

    def replicas(self, key: bytes) -> tuple[str, ...] | None:
        """Return the nodes that hold a key, the first one first; None when that is not known."""
        return self.defined.replicas(self.lab.plan, self.scene["given"])(key)

    @property
    def roles(self) -> Mapping[str, tuple[str, ...]]:
        """Nodes with a part of their own, by its name: ``{"leader": ("n1",)}``; mostly none."""
        return self.defined.roles(self.lab.plan, self.scene["given"])

    # -- getting ready -----------------------------------------------------------------------

    def start_processes(self) -> None:
        """Start the process of every node. Raises SystemFailed, MachineError."""
        for node in self.nodes.values():
            node.start(self.lab)
            self.on_event("process started", node.node, {})

    def make_ready(self, wait: Wait) -> None:
        """Join the started processes to one cluster; return when every node serves requests."""
        for step in self.defined.definition.after_start:
            self._do(step, wait, list(self.nodes))
        if any(step.facts for step in self.defined.definition.after_start):
            self.write_files()  # what was learnt is there when a node is started again
        self.await_serving(wait)

    def await_serving(self, wait: Wait, names: Iterable[str] | None = None) -> None:
        """Wait until nodes that were started again serve as they did before, each other too.

        ``names`` are the nodes that are expected to; None: all. Nothing is requested of the
        others, they may be down: where too many are for the store to serve requests at all, it is
        waited only until the named ones have found each other. Nothing is set up that stays. Raises
        SystemFailed, as `make_ready` does.
        """
        expected = self.expected(names)
        for step in self.defined.ready(self.scene["given"]):
            self._do(step, wait, expected)

    def await_fronts(self, wait: Wait) -> None:
        """Wait until what stands before the cluster passes a signed ListBuckets on, or listens."""

        def passes_on(name: str) -> str | None:
            target = self.target(name)
            if isinstance(target, S3Target):
                answer = self.send_s3(name, timeout_s=PATIENCE_S, front=True)
                return None if answer.ok else f"ListBuckets: {answer.brief()}"
            assert self.defined.definition.front is not None
            self._connect(name, self.defined.definition.front.port)
            return None

        if self.standing:
            self._await(wait, "front", passes_on, list(self.standing))

    def expected(self, names: Iterable[str] | None) -> list[str]:
        """Return the nodes that names stand for, in the order of the cluster; None: all."""
        return list(self.nodes) if names is None else [n for n in self.nodes if n in set(names)]

    def leader(self) -> str | None:
        """Return the node that leads now, by the step of its definition; None: no node does."""
        step = self.defined.definition.leader
        for name in self.nodes if step else ():
            with suppress(NoAnswer):
                if step and self._why_not(step, list(self.nodes), name) is None:
                    return name
        return None

    def await_leader(self, wait: Wait) -> str:
        """Wait until a node leads, and return which. Raises SystemFailed."""
        leaders: list[str] = []

        def why_not(_: str) -> str | None:
            leaders.extend(name for name in [self.leader()] if name is not None)
            return None if leaders else "no node says that it leads"

        self._await(wait, "leader", why_not, list(self.nodes)[:1])
        return leaders[0]

    def create_bucket(self, name: str) -> None:
        """Make a bucket where its administrator has to; elsewhere S3's CreateBucket does.

        One that is there already is no mistake. Raises SystemFailed.
        """
        first = self.nodes[next(iter(self.nodes))]
        self.scene["bucket"] = name
        try:
            for step in self.defined.definition.bucket:
                if step.when is None or evaluate(step.when, self._at(first.node)):
                    refused = self._why_not(step, [first.node], first.node, _BUCKET_S)
                    if refused:
                        raise first.failure(f"bucket {name}: {refused}")
        except NoAnswer as silence:
            self.check()
            raise first.failure(f"bucket {name} was not made: {silence}") from silence

    def write_files(self) -> None:
        """Write every node's configuration, with what is known by now."""
        definition = self.defined.definition
        for node in self.scene["nodes"]:
            scene = at(self.scene, node)
            for target, template in definition.files.items():
                file = node.home / filled(target, scene)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(render(self.defined.directory / template, scene), encoding="utf-8")

    def _at(self, name: str) -> dict[str, Any]:
        return at(self.scene, self.node(name))

    def node(self, name: str) -> Node:
        """Return a node as expressions see it."""
        match: Node = next(node for node in self.scene["nodes"] if node.name == name)
        return match

    def _do(self, step: Step, wait: Wait, expected: list[str]) -> None:
        scene = {**self.scene, "expected": expected}
        if step.when is not None and not evaluate(step.when, scene):
            return
        names = expected[:1] if step.at == "first" else expected
        why_not = partial(self._why_not, step, expected, wait=wait)
        self._await(wait, step.name, why_not, names)

    def _await(self, wait: Wait, step: str, why_not: WhyNot, names: list[str]) -> None:
        wait.for_all(
            step,
            why_not,
            names,
            on_met=lambda name: self.on_event("readiness step", name, {"step": step}),
            remark=distance_remark(self.lab.plan),
        )

    def _why_not(
        self,
        step: Step,
        expected: Sequence[str],
        name: str,
        timeout_s: float = PATIENCE_S,
        wait: Wait | None = None,
    ) -> str | None:
        """Do a step on a node. Return why it is not as it should be. Raises NoAnswer."""
        scene: dict[str, Any] = {**self._at(name), "expected": list(expected)}
        answer: Any = None
        if step.hook is not None:
            return self.defined.hook(step.hook)(self, name, list(expected))  # type: ignore[no-any-return]
        if step.s3 is not None:
            listed = self.send_s3(name)
            self._note_listening(name, self._s3_target(name).port)
            return None if listed.ok else f"{step.s3}: {listed.brief()}"
        if step.tcp is not None:
            self._connect(name, _port(step.tcp, scene))
            self._note_listening(name, _port(step.tcp, scene))
        elif step.log is not None:
            wanted = filled(step.log, scene)
            if not any(wanted in line for line in self.nodes[name].printed().splitlines()):
                return f"it has not printed {show(wanted)}"
        elif step.run is not None:
            answer = self._output(name, [filled(word, scene) for word in step.run])
        elif step.http is not None:
            if step.once and wait is not None:
                timeout_s = wait.remaining_s
            got = self._send(name, step.http, scene, timeout_s)
            self._note_listening(name, _port(step.http.port, scene))
            if got.status not in step.status:
                refusal = f"{_operation(step.http, scene)}: {got.brief()}"
                if step.once:
                    raise self.nodes[name].failure(f"refused: {refusal}")
                return refusal
            answer = got.json() if step.facts or step.where or step.missing else None
        return self._judged(step, {**scene, "answer": answer}, name)

    def _judged(self, step: Step, scene: dict[str, Any], name: str) -> str | None:
        """Return what is wrong with an answer, or not in it yet; keep what is to be known of it."""

        def of_answer(expression: str) -> Any:
            try:
                return judge(expression, scene)
            except NotYetError as lack:
                raise NoAnswer(f"`{expression}` has no value yet: {lack}, in {answer}") from lack

        answer = json.dumps(scene["answer"])[:200]
        if step.missing is not None:
            missing = [n for n in listed(of_answer(step.missing)) if n != name]
            if missing:
                return f"it does not see {listing(missing)}"
        if step.where is not None and not of_answer(step.where):
            return f"`{step.where}` does not hold of its answer {answer}"
        for fact, expression in step.facts.items():
            setattr(scene["node"].facts, fact, of_answer(expression))
        return None

    def _note_listening(self, name: str, port: int) -> None:
        """Report that a process was first seen to answer on a port."""
        node = self.nodes[name]
        seen = (name, node.starts, port)
        if seen not in self._listening:
            self._listening.add(seen)
            self.on_event("listening", name, {"port": port})

    def _connect(self, name: str, port: int) -> None:
        try:
            self.lab.connect(name, (self.lab.node(name).address, port), PATIENCE_S).close()
        except OSError as error:
            raise NoAnswer(f"port {port} is not open: {in_words(error)}") from error

    def _output(self, name: str, argv: Sequence[str]) -> Any:
        """Run a command on a node; return what it prints, read as JSON where it is that."""
        try:
            env = {"PYTHONPATH": str(SEARCH_PATH), **self.nodes[name].env}
            done = self.lab.run(name, argv, env=env)
        except (OSError, TimeoutError) as error:
            raise NoAnswer(f"{argv[0]}: {in_words(error)}") from error
        if done.returncode != 0:
            output = (done.stderr or done.stdout).strip()[-200:]
            raise NoAnswer(f"{' '.join(argv)} ended with exit code {done.returncode}: {output}")
        try:
            return json.loads(done.stdout)
        except ValueError:
            return done.stdout.strip()

    def _send(self, name: str, http: Http, scene: dict[str, Any], timeout_s: float) -> Answer:
        body = fill(http.body, scene)
        return send(
            self.lab,
            name,
            _port(http.port, scene),
            filled(http.path, scene),
            method=http.method,
            body=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {filled(http.token, scene)}"} if http.token else {},
            timeout_s=http.timeout.ns / 1e9 if http.timeout else timeout_s,
        )

    # -- what is in effect -------------------------------------------------------------------

    def read_settings(self) -> list[EffectiveSetting]:
        """Return the settings that nodes report, beside what was meant; of equal ones one.

        What a node does not answer has an error in place of a value.
        """
        settings: list[EffectiveSetting] = []
        for source in self.defined.definition.settings:
            if source.when is None or evaluate(source.when, self.scene):
                names = list(self.nodes)[:1] if source.at == "first" else list(self.nodes)
                settings += [entry for name in names for entry in self._settings_of(name, source)]
        return grouped(settings)

    def _settings_of(self, name: str, source: ReadBack) -> Iterator[EffectiveSetting]:
        scene = self._at(name)
        answer: Any = None
        error: str | None = None
        try:
            answer = self._report(name, source, scene)
        except NoAnswer as silence:
            error = str(silence)
        for setting, how in source.settings.items():
            value: Any = None
            why_not = error
            if why_not is None:
                value, why_not = _value_in(answer, how.read, scene)
            expected = evaluate(how.expected, scene)
            yield EffectiveSetting(setting, (name,), value, expected, why_not)

    def _report(self, name: str, source: ReadBack, scene: dict[str, Any]) -> Any:
        """Return what a node answers: as JSON, or a text. Raises NoAnswer."""
        if source.log:
            return self.nodes[name].printed()
        if source.run is not None:
            return self._output(name, [filled(word, scene) for word in source.run])
        if source.http is not None:
            got, what = (
                self._send(name, source.http, scene, PATIENCE_S),
                _operation(source.http, scene),
            )
        else:
            assert source.s3 is not None
            what = filled(source.s3, scene)
            got = self.send_s3(name, what)
        if not got.ok:
            raise NoAnswer(f"{what}: {got.brief()}")
        try:
            return got.json()
        except NoAnswer:
            return got.body.decode("utf-8", "replace")

    # -- while it runs -----------------------------------------------------------------------

    def _all(self) -> list[NodeProcess]:
        return [*self.nodes.values(), *self.standing.values()]

    def check(self) -> None:
        """Raise SystemFailed when a process died, with its node and log."""
        for process in self._all():
            process.check()

    def on_exit(self, report: Callable[[str], object]) -> None:
        """Have ``report`` called with what `check` would raise as soon as it would, from a thread.

        Of the processes that run now; it may abort the lab, and use it for nothing else.
        """
        for process in self._all():
            process.on_exit(report)

    def full(self) -> str | None:
        """Return which node's disk is full, as a sentence; None when none is."""
        return what_is_full(node.home for node in self.nodes.values() if node.home)

    def check_space(self) -> None:
        """Raise SystemFailed when a node's disk is full: whoever goes on measures refusals."""
        for node in self.nodes.values():
            if node.home and what_is_full([node.home]):
                raise node.failure("it has no room left")

    def remarks(self) -> list[str]:
        """Return what of the cluster's state makes samples doubtful, for the bundle's warnings."""
        remarks = getattr(self.defined.hooks, "remarks", None)
        return [] if remarks is None else remarks(self)

    def stop(self) -> None:
        """End every process by the definition; what has not ended in time is killed."""
        with suppress(MachineError):  # the lab has ended, and they with it
            for process in (*self.standing.values(), *self.nodes.values()):
                process.end(self.defined.definition.stop)

    def _s3_target(self, node: str, *, front: bool = False) -> S3Target:
        target = self._target(PROTOCOLS["s3"], node, front=front)
        assert isinstance(target, S3Target)
        return target

    def send_s3(
        self,
        node: str,
        path: str = "/",
        timeout_s: float = 10.0,
        *,
        method: str = "GET",
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        front: bool = False,
    ) -> Answer:
        """Send a signed request without a body to a node's own S3 port, from the node itself.

        ``front``: to what stands before the cluster there. ``headers`` are sent beside the signed
        ones. Raises NoAnswer.
        """
        target = self._s3_target(node, front=front)
        encoded_query = encoded(query or {})
        return send(
            self.lab,
            node,
            target.port,
            f"{path}?{encoded_query}" if encoded_query else path,
            method=method,
            headers={**(headers or {}), **sign(method, target, path, query=encoded_query)},
            timeout_s=timeout_s,
        )


def _value_in(answer: Any, read: str, scene: dict[str, Any]) -> tuple[Any, str | None]:
    """Return what an expression finds in an answer; why, where that is nothing."""
    try:
        value = judge(read, {**scene, "answer": answer})
    except NotYetError as lack:
        return None, f"its answer has no `{read}`: {lack}"
    return value, f"its answer has no `{read}`" if value is None else None


def _port(port: str | int, scene: dict[str, Any]) -> int:
    return int(fill(port, scene))


def _operation(http: Http, scene: dict[str, Any]) -> str:
    return filled(http.path, scene).partition("?")[0]
