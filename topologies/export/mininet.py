"""A wanlat topology in Mininet.

    mn --custom topologies/export/mininet.py --topo wanlat,three-datacenters
    mn --custom topologies/export/mininet.py --topo wanlat,my-topology.yaml --test wanlat

`wanlat,NAME` takes the name of a shipped topology, the path of a topology file, or a file that
`wanlat topology export NAME --to mininet` wrote. `--test wanlat` pings between all nodes and
prints what was requested beside what was measured. Every site is a router, WAN links join the
routers pairwise; a LAN link that delays is a Linux bridge between the node and its router, so
that no impairment sits on the interface from which a node sends (it would fight TCP's small
queues). Everything lives in namespaces; `mn -c` is not needed.

Mininet runs under the system's Python, which has none of wanlat's packages: the Python in the
`.venv` of the checkout that this file belongs to works the topology out. `WANLAT_PYTHON` names
another one.
"""

# `mn` executes this file without __file__ and takes over every global name: hence the leading
# underscores, and no future import, which would be `mn`'s own.
import json as _json
import os as _os
import re as _re
import shutil as _shutil
import subprocess as _subprocess
import sys as _sys
import tempfile as _tempfile
from pathlib import Path as _Path
from typing import Any as _Any

from mininet.cli import CLI as _CLI  # type: ignore[import-not-found]
from mininet.node import Host as _Host  # type: ignore[import-not-found]
from mininet.node import Switch as _Switch
from mininet.topo import Topo as _Topo  # type: ignore[import-not-found]

_THIS = _Path(_sys._getframe().f_code.co_filename).resolve()
_FORMAT = "wanlat-mininet-1"
_GATEWAY = "169.254.0.1"  # never on the wire: every node's next hop is its router


def _stop(text: str, code: int) -> None:
    # Not an exception: `mn` would answer one with its clean-up, which kills processes by name.
    _sys.stderr.write(f"wanlat: {text}\n")
    raise SystemExit(code)


def _python() -> str:
    """A Python that has wanlat."""
    given = _os.environ.get("WANLAT_PYTHON")
    beside = _THIS.parents[2] / ".venv" / "bin" / "python"
    if given is None and not beside.exists():
        _stop(
            f"there is no {beside}. Run `make build` in the checkout, or set WANLAT_PYTHON to a"
            " Python that has wanlat, or give a file that"
            " `wanlat topology export NAME --to mininet --out FILE.json` wrote",
            3,
        )
    return given or str(beside)


def _document(name: str) -> dict[str, _Any]:
    """The worked-out topology of that name, at that path, or in that exported file."""
    if name.endswith(".json"):
        try:
            document = _json.loads(_Path(name).read_text(encoding="utf-8"))
        except (OSError, ValueError) as problem:
            _stop(f"{name} cannot be read: {problem}", 2)
    else:
        # -P: a directory `topologies` where the user stands is not ours.
        command = [_python(), "-P", "-m", "wanlat", "topology", "export", name, "--to", "mininet"]
        try:
            done = _subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as problem:
            _stop(f"{command[0]} does not run: {problem}", 3)
        if done.returncode != 0:
            _sys.stderr.write(done.stderr)
            _stop(f"`{' '.join(command)}` ended with code {done.returncode}", done.returncode)
        document = _json.loads(done.stdout)
    if not isinstance(document, dict) or document.get("format") != _FORMAT:
        _stop(f"{name} is not of the form {_FORMAT}; export it again with this wanlat", 2)
    return dict(document)


def _batch(node: _Any, program: str, lines: list[str], tables: dict[str, list[int]]) -> None:
    """Have `ip` or `tc` carry out lines in a node's namespace."""
    if not lines:
        return
    with _tempfile.TemporaryDirectory(prefix="wanlat-tc-") as directory:
        for name, numbers in tables.items():
            text = "\n".join(str(number) for number in numbers)
            (_Path(directory) / f"{name}.dist").write_text(text + "\n", encoding="ascii")
        process = node.popen(
            [program, "-batch", "-"],
            stdin=_subprocess.PIPE,
            stdout=_subprocess.PIPE,
            stderr=_subprocess.STDOUT,
            env=dict(_os.environ, TC_LIB_DIR=directory),
        )
        output, _ = process.communicate("\n".join([*lines, ""]).encode())
    if process.returncode != 0:
        hint = " (has this kernel the module sch_netem?)" if program == "tc" else ""
        _stop(f"{program} in {node}: {output.decode(errors='replace').strip()}{hint}", 3)


def _netem(interface: str, words: list[str]) -> list[str]:
    return [f"qdisc replace dev {interface} root netem {' '.join(words)}"] if words else []


class _WanlatNode(_Host):  # type: ignore[misc]
    """A node: one address, one way out, and its router's MAC address known beforehand."""

    def config(self, wanlat_ip: tuple[str, ...] = (), **params: _Any) -> _Any:
        configured = super().config(**params)
        _batch(self, "ip", list(wanlat_ip), {})
        self.defaultIntf().ip = params["wanlat_address"]  # what IP() answers
        return configured


class _Namespaced(_Switch):  # type: ignore[misc]
    """What Mininet treats as a switch, in a namespace of its own, set up by ip and tc."""

    controlIntf = None  # noqa: N815 - Mininet's name

    def start(self, _controllers: object) -> None:
        if self.params.get("wanlat_forwards"):
            self.cmd("sysctl -q -w net.ipv4.ip_forward=1")
        _batch(self, "ip", self.params["wanlat_ip"], {})
        _batch(self, "tc", self.params["wanlat_tc"], self.params["wanlat_tables"])


class _Router(_Namespaced):
    """A site's router."""


class _Bridge(_Namespaced):
    """A LAN link: a Linux bridge with a port to the node and one to its router."""


def _mac(kind: int, index: int) -> str:
    octets = (2, kind, *index.to_bytes(4, "big"))
    return ":".join(f"{octet:02x}" for octet in octets)


class _WanlatTopo(_Topo):  # type: ignore[misc]
    """`--topo wanlat,NAME`: a topology of wanlat's."""

    def build(self, *names: object) -> None:
        if len(names) != 1:
            _stop("give one topology, as `--topo wanlat,NAME`; its path may hold no comma", 2)
        self.wanlat = _document(str(names[0]))
        for note in self.wanlat["notes"]:
            _sys.stderr.write(f"wanlat: {note}\n")
        # No node's name has a dot.
        self._routers = {site["name"]: f"site.{site['name']}" for site in self.wanlat["sites"]}
        self._ip: dict[str, list[str]] = {router: [] for router in self._routers.values()}
        self._tc: dict[str, list[str]] = {router: [] for router in self._routers.values()}
        self._links: list[dict[str, str]] = []
        for site in self.wanlat["sites"]:
            lines = self._ip[self._routers[site["name"]]]
            lines += [f"addr add {site['router_address']}/32 dev lo", "link set dev lo up"]
        for index, link in enumerate(self.wanlat["lan_links"]):
            self._lan(index, self.wanlat["nodes"][index], link)
        for index, link in enumerate(self.wanlat["wan_links"]):
            self._wan(index, link)
        for router, lines in self._ip.items():
            self._add_switch(router, _Router, lines, self._tc[router], forwards=True)
        for ends in self._links:
            self.addLink(**ends)

    def _add_switch(
        self,
        name: str,
        cls: type,
        ip: list[str],
        tc: list[str],
        forwards: bool = False,
    ) -> None:
        self.addSwitch(
            name,
            cls=cls,
            dpid=f"{len(self.switches()) + 1:x}",
            inNamespace=True,
            wanlat_ip=ip,
            wanlat_tc=tc,
            wanlat_tables=self.wanlat["tables"],
            wanlat_forwards=forwards,
        )

    def _lan(self, index: int, node: dict[str, _Any], link: dict[str, _Any]) -> None:
        name, router = node["name"], self._routers[node["site"]]
        node_mac, router_mac, port = _mac(1, index), _mac(2, index), f"n{index}"
        lines = [
            f"addr add {node['address']}/32 dev eth0",
            f"neigh replace {_GATEWAY} lladdr {router_mac} nud permanent dev eth0",
            f"route replace default via {_GATEWAY} dev eth0 onlink",
        ]
        if self.wanlat["single_segments"]:
            lines.append("link set dev eth0 gso_max_segs 1")
        # Mininet's own way to an address is ifconfig, which makes a /0 of a /32.
        self.addHost(
            name,
            cls=_WanlatNode,
            ip=None,
            wanlat_ip=tuple(lines),
            wanlat_address=node["address"],
        )
        self._ip[router] += [
            f"link set dev {port} up",
            f"neigh replace {node['address']} lladdr {node_mac} nud permanent dev {port}",
            f"route replace {node['address']}/32 dev {port}",
        ]
        near = {"node1": name, "intfName1": "eth0", "addr1": node_mac}
        far = {"node2": router, "intfName2": port, "addr2": router_mac}
        up, down = link["up"]["netem"], link["down"]["netem"]
        if not up and not down:
            self._links.append({**near, **far})
            return
        bridge = f"lan.{name}"
        ip = ["link add name br type bridge"]
        ip += [f"link set dev {port} up master br" for port in ("node", "router")]
        ip += ["link set dev br up"]
        self._add_switch(bridge, _Bridge, ip, [*_netem("router", up), *_netem("node", down)])
        self._links.append({**near, "node2": bridge, "intfName2": "node", "addr2": _mac(5, index)})
        self._links.append({"node1": bridge, "intfName1": "router", "addr1": _mac(6, index), **far})

    def _wan(self, index: int, link: dict[str, _Any]) -> None:
        sites = {site["name"]: site for site in self.wanlat["sites"]}
        port, macs = f"w{index}", {"a": _mac(3, index), "b": _mac(4, index)}
        for side, other, netem in (("a", "b", "forward"), ("b", "a", "backward")):
            router, peer = self._routers[link[side]], sites[link[other]]
            address = peer["router_address"]
            self._ip[router] += [
                f"link set dev {port} up",
                f"neigh replace {address} lladdr {macs[other]} nud permanent dev {port}",
                f"route replace {peer['subnet']} via {address} dev {port} onlink",
            ]
            self._tc[router] += _netem(port, link[netem]["netem"])
        self._links.append(
            {
                **{"node1": self._routers[link["a"]], "intfName1": port, "addr1": macs["a"]},
                **{"node2": self._routers[link["b"]], "intfName2": port, "addr2": macs["b"]},
            }
        )

    def requested_ms(self, a: str, b: str) -> float:
        """The round trip between two nodes that the topology defines."""
        lans = {link["node"]: link["up"]["delay_ns"] + link["down"]["delay_ns"]
                for link in self.wanlat["lan_links"]}  # fmt: skip
        site = {node["name"]: node["site"] for node in self.wanlat["nodes"]}
        total = lans[a] + lans[b]
        for link in self.wanlat["wan_links"]:
            if {link["a"], link["b"]} == {site[a], site[b]}:
                total += link["forward"]["delay_ns"] + link["backward"]["delay_ns"]
        return float(total / 1e6)


def _pings(net: _Any, count: int = 10) -> None:
    """`--test wanlat`: every ordered pair's round trips, beside what was requested.

    One line a pair: `rtt FROM TO requested R first F min L mean M max H lost N`, times in ms;
    `first` is the very first packet of the pair, which an ARP exchange would make late.
    """
    if _shutil.which("ping") is None:
        _stop("ping is not installed (Debian, Ubuntu: apt-get install iputils-ping)", 3)
    hosts = net.hosts
    for a in hosts:
        for b in hosts:
            if a is b:
                continue
            first, times, lost = _ping(a, b, count)
            requested = net.topo.requested_ms(a.name, b.name)
            _sys.stdout.write(
                f"rtt {a.name} {b.name} requested {requested:.3f} first {first:.3f}"
                f" min {times[0]:.3f} mean {times[1]:.3f} max {times[2]:.3f} lost {lost}\n"
            )
            _sys.stdout.flush()


def _ping(a: _Any, b: _Any, count: int) -> tuple[float, tuple[float, ...], int]:
    """The first round trip; the least, mean and most; how many are lost."""
    command = ["ping", "-n", "-c", str(count), "-i", "0.02", "-W", "5", b.IP()]
    output, _, _ = a.pexec(command)
    first = _re.search(r"icmp_seq=1 .*time=([\d.]+) ms", output)
    counted = _re.search(r"(\d+) packets transmitted, (\d+) received", output)
    summary = _re.search(r"= ([\d.]+)/([\d.]+)/([\d.]+)/", output)
    nan = float("nan")
    return (
        float(first[1]) if first else nan,
        tuple(float(figure) for figure in summary.groups()) if summary else (nan, nan, nan),
        int(counted[1]) - int(counted[2]) if counted else count,
    )


_CLI.identchars += "-."  # so that its command line knows `site.dc1` and `lan.n1` for nodes
topos = {"wanlat": _WanlatTopo}
tests = {"wanlat": _pings}
