"""What a script adds to a Mininet of its own, recorded: nothing is built, and no command is run.

A script calls `net.addHost`, `net.addSwitch`, `net.addLink` and then starts the network. While it
runs here, `mininet.net.Mininet` is a recorder: it keeps what is added, and stops the script where
it would start the network, open the command line or clean up.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from wanlat.topologies.errors import UserError
from wanlat.topologies.wording import listing


class _Started(BaseException):
    """The script has added all that it adds, and would start its network now."""


def _stop(*_: object, **__: object) -> None:
    raise _Started


class _Node:
    """Stands for a node: it has a name, and commands for it are noted."""

    def __init__(self, name: str, network: Recorder) -> None:
        self.name, self._network = name, network

    def __str__(self) -> str:
        return self.name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "start":
            return _stop

        def noted(*words: object, **_: object) -> str:
            if name in ("cmd", "cmdPrint", "sendCmd", "popen", "pexec"):
                self._network.commands.append(f"{self.name}: {' '.join(map(str, words))}")
            return ""

        return noted


class Recorder:
    """In the place of `mininet.net.Mininet`: hosts, switches and links as they are added."""

    made: list[Recorder]

    def __init__(self, topo: Any = None, *_: object, **options: Any) -> None:
        self.made.append(self)
        self.topo, self.link = topo, options.get("link")
        self.commands: list[str] = []
        self.without_tc: list[str] = []
        self.hosts: list[_Node] = []
        self.switches: list[_Node] = []
        self.controllers: list[_Node] = []
        self.links: list[Any] = []
        self._links: list[tuple[str, str, dict[str, Any]]] = []
        self._nodes: dict[str, _Node] = {}
        if topo is not None:
            _stop()  # with a topology of its own it is built at once

    def _add(self, name: Any, nodes: list[_Node]) -> _Node:
        node = _Node(str(name), self)
        nodes.append(node)
        self._nodes[node.name] = node
        return node

    def addHost(self, name: Any, *_: object, **__: object) -> _Node:  # noqa: N802
        """Record a host."""
        return self._add(name, self.hosts)

    def addSwitch(self, name: Any, *_: object, **__: object) -> _Node:  # noqa: N802
        """Record a switch."""
        return self._add(name, self.switches)

    def addController(self, name: Any = "c0", *_: object, **__: object) -> _Node:  # noqa: N802
        """Return what stands for a controller, which forwards nothing."""
        return self._add(name, self.controllers)

    def addNAT(self, *_: object, **__: object) -> _Node:  # noqa: N802
        """Raise UserError: a way to the host's network is no part of a topology."""
        raise UserError("addNAT leads out of the network, which a topology cannot; remove it")

    def addLink(  # noqa: N802
        self, node1: Any, node2: Any, *_: object, cls: Any = None, **options: Any
    ) -> Any:
        """Record a link; its options only if its class applies them."""
        from mininet.link import TCIntf, TCLink  # type: ignore[import-not-found]

        kind = cls or self.link
        sets = inspect.isclass(kind) and issubclass(kind, TCLink)
        sets |= getattr(kind, "func", None) is not None  # a partial, of which nothing is known
        interface = options.get("intf")
        sets |= inspect.isclass(interface) and issubclass(interface, TCIntf)
        ends = str(node1), str(node2)
        if not sets and {"delay", "bw", "loss", "jitter"} & options.keys():
            self.without_tc.append("-".join(ends))
            options = {}
        self._links.append((*ends, options))
        return _Node("-".join(ends), self)

    def get(self, *names: str) -> Any:
        """Return the nodes of these names."""
        nodes = [self._nodes[name] for name in names]
        return nodes[0] if len(nodes) == 1 else nodes

    getNodeByName = get  # noqa: N815

    def __getitem__(self, name: str) -> _Node:
        return self._nodes[name]

    def build(self) -> None:
        """Do nothing: what follows may still add links."""

    start = run = interact = stop = pingAll = staticmethod(_stop)  # noqa: N815

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: None

    # -- as a Topo is read --------------------------------------------------------------------

    def as_topo(self) -> Any:
        """Return a `mininet.topo.Topo` of what was added."""
        from mininet.topo import Topo  # type: ignore[import-not-found]

        topo = Topo()
        for host in self.hosts:
            topo.addHost(host.name)
        for switch in self.switches:
            topo.addSwitch(switch.name)
        for a, b, options in self._links:
            topo.addLink(a, b, **options)
        return topo


class Networks:
    """The Mininets that a script made while it was watched."""

    def __init__(self, kind: type[Recorder]) -> None:
        self._kind = kind
        self.made: list[Recorder] = kind.made

    def run(self, script: Callable[[], Any]) -> Any:
        """Run a part of the script, up to where it would start a network."""
        try:
            return script()
        except _Started:
            return None

    def builders(self, inside: Mapping[str, Any], module: str) -> dict[str, Any]:
        """The functions of a script that make a Mininet, and can be called without arguments."""
        return {
            name: value
            for name, value in inside.items()
            if inspect.isfunction(value) and value.__module__ == module
            if any(self._is_kind(inside.get(word)) for word in value.__code__.co_names)
            or "Mininet" in value.__code__.co_names
            if all(
                parameter.default is not parameter.empty
                or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
                for parameter in inspect.signature(value).parameters.values()
            )
        }

    def _is_kind(self, value: object) -> bool:
        return isinstance(value, type) and issubclass(value, self._kind)

    def topo(self, notes: list[str], origin: str = "its script") -> Any:
        """The topology of the one network. Raises UserError where there is none, or several."""
        if len(self.made) != 1:
            raise UserError(f"{origin} makes {len(self.made)} networks (Mininet), and not one")
        (network,) = self.made
        if network.topo is None and not network.hosts:
            raise UserError(
                f"{origin} adds no hosts to its Mininet; name the function that does: FILE.py:NAME"
            )
        notes.append(f"read from what {origin} adds to its Mininet, before it is started")
        if network.without_tc:
            notes.append(
                "links that are no TCLink do nothing in Mininet, whatever their options say:"
                f" {listing(network.without_tc, at_most=5)}"
            )
        if network.commands:
            notes.append(
                "commands that it runs in nodes are not run, and what they change is not read:"
                f" {listing(network.commands, at_most=3)}"
            )
        return network.topo if network.topo is not None else network.as_topo()


@contextmanager
def recorded() -> Iterator[Networks]:
    """Have Mininet record what is added to it, and start, run and clean up nothing."""
    import mininet.clean  # type: ignore[import-not-found]
    import mininet.cli  # type: ignore[import-not-found]
    import mininet.net  # type: ignore[import-not-found]
    import mininet.node  # type: ignore[import-not-found]

    kind = type("Mininet", (Recorder,), {"made": []})

    def refuse(node: Any, *_: object, **__: object) -> None:
        raise UserError(
            f"the script starts the node {node} itself; what is read is a class of Topo, or a"
            " Mininet to which it adds hosts, switches and links"
        )

    with ExitStack() as patches:
        for owner, name, value in (
            (mininet.net, "Mininet", kind),
            (mininet.net, "MininetWithControlNet", kind),
            (mininet.cli, "CLI", type("CLI", (mininet.cli.CLI,), {"__init__": _stop})),
            (mininet.clean, "cleanup", lambda: None),
            (mininet.clean.Cleanup, "cleanup", classmethod(lambda _: None)),
            (mininet.node.Node, "startShell", refuse),
        ):
            patches.enter_context(patch.object(owner, name, value))
        yield Networks(kind)
