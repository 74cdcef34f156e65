"""Networks in other tools' files are read for what they mean, or named for what they are."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.command_line import here
from wanlat.topologies.errors import UserError
from wanlat.topologies.export.targets import export
from wanlat.topologies.formats.detection import reader
from wanlat.topologies.formats.network import Options
from wanlat.topologies.imported import Imported
from wanlat.topologies.load import load, shipped
from wanlat.topologies.model import Topology
from wanlat.topologies.resolve import Plan, resolve
from wanlat.topologies.units import Duration

SHADOW = """graph [
  directed 0
  node [ id 0 label "oslo" ]
  node [ id 1 label "rome" ]
  node [ id 2 label "ix" ]
  edge [ source 0 target 2 latency "8 ms" packet_loss 0.0 ]
  edge [ source 2 target 1 latency "12 ms" packet_loss 0.01 ]
]
"""
# Bandwidths of hosts, self-loops, a detour that is quicker, one direction that differs.
HOSTS = """graph [
  directed 1
  node [ id 0 host_bandwidth_up "16 Mibit" host_bandwidth_down "1 Gbit" ]
  node [ id 1 host_bandwidth_up "10 Mbit" host_bandwidth_down "10 Mbit" ]
  node [ id 2 host_bandwidth_up "10 Mbit" host_bandwidth_down "10 Mbit" ]
  edge [ source 0 target 0 latency "1000 us" packet_loss 0.0 ]
  edge [ source 0 target 1 latency "50 ms" packet_loss 0.5 ]
  edge [ source 0 target 2 latency "10 ms" packet_loss 0.1 ]
  edge [ source 2 target 1 latency "20 ms" packet_loss 0.2 ]
  edge [ source 1 target 0 latency "40 ms" packet_loss 0.0 ]
  edge [ source 1 target 2 latency "20 ms" packet_loss 0.0 ]
  edge [ source 2 target 0 latency "10 ms" packet_loss 0.0 ]
]
"""
ZOO = """Creator "Topology Zoo Toolset"
graph [
  Network "An example"
  node [ id 0 label "Athens" Country "Greece" Longitude 23.71622 Internal 1 Latitude 37.97945 ]
  node [ id 1 label "Paris" Country "France" Longitude 2.3488 Internal 1 Latitude 48.85341 ]
  node [ id 2 label "GEANT" Internal 0 ]
  edge [ source 0 target 1 LinkSpeed "10" LinkSpeedUnits "G" LinkSpeedRaw 10000000000.0 ]
  edge [ source 1 target 2 LinkLabel "peering" ]
]
"""
GRAPHML = """<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="packetloss" attr.type="double" for="edge" id="d9"><default>0.01</default></key>
  <key attr.name="latency" attr.type="double" for="edge" id="d7" />
  <key attr.name="bandwidthup" attr.type="int" for="node" id="d4" />
  <graph edgedefault="undirected">
    <node id="poi-1"><data key="d4">1024</data></node>
    <node id="poi-2"><data key="d4">10240</data></node>
    <edge source="poi-1" target="poi-2"><data key="d7">50.5</data></edge>
    <edge source="poi-1" target="poi-1"><data key="d7">5.0</data></edge>
  </graph>
</graphml>
"""
KOLLAPS = """<?xml version="1.0" encoding="UTF-8"?>
<experiment>
  <services><service name="n1"/><service name="n2"/></services>
  <bridges><bridge name="b1"/></bridges>
  <links>
    <link origin="n1" dest="b1" latency="8" upload="100Mbps" download="100Mbps"/>
    <link origin="b1" dest="n2" latency="12" upload="50Mbps" download="50Mbps"/>
  </links>
</experiment>
"""
SEVERAL = """<experiment boot="kollaps:2.0">
  <services>
    <service name="dashboard" image="d" supervisor="true" port="8088"/>
    <service name="client" image="c" replicas="2"/> <service name="server" image="s"/>
  </services>
  <bridges><bridge name="s1"/><bridge name="s2"/></bridges>
  <links>
    <link origin="client" dest="s1" latency="10" jitter="3" upload="10Mbps" download="1Gbps"/>
    <link origin="s1" dest="s2" latency="20.5" jitter="4" drop="0.1" upload="5Mbps"
          download="5Mbps" network="n"/>
    <link origin="s2" dest="server" latency="1" drop="0.1" upload="5Mbps" download="5Mbps"/>
  </links>
  <dynamic><schedule name="server" time="0.0" action="join"/></dynamic>
</experiment>
"""


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def made(text: str, name: str, **options: Any) -> Imported:
    """Import a file, and make sure that the text loads to the same topology."""
    path = Path(name)
    path.write_text(text, encoding="utf-8")
    read = reader(path)
    assert read is not None
    imported = read(path, Options(**options))
    Path("made.yaml").write_text(imported.text, encoding="utf-8")
    assert load("made.yaml") == imported.topology
    return imported


def plan(text: str, name: str, **options: Any) -> Plan:
    return resolve(made(text, name, **options).topology)


def one_way(network: Plan, a: str, b: str) -> tuple[float, float, float | None]:
    """Milliseconds, the part that arrives, and the rate of the path between two sites' nodes."""
    path = network.path(network.site(a).nodes[0].name, network.site(b).nodes[0].name)
    arrives = 1.0
    for step in path:
        arrives *= 1 - step.loss
    rates = [step.rate_bps for step in path if step.rate_bps]
    return sum(step.delay_ns for step in path) / 1e6, arrives, min(rates, default=None)


@pytest.mark.parametrize("name", ["graph.gml", "graph.txt", "graph"])
def test_a_graph_is_read_into_its_paths(name: str) -> None:
    network = plan(SHADOW, name)
    assert network.rtt_ms("oslo-1", "rome-1") == 40
    for a, b in (("oslo", "rome"), ("rome", "oslo")):
        assert one_way(network, a, b) == (20, pytest.approx(0.99), None)
    assert one_way(network, "ix", "oslo") == (8, 1, None)


def test_of_a_graphs_nodes_some_may_be_places_and_paths_stay() -> None:
    imported = made(SHADOW, "graph.gml", places=["oslo", "rome"])
    assert [site.name for site in imported.topology.sites] == ["oslo", "rome"]
    assert resolve(imported.topology).rtt_ms("oslo-1", "rome-1") == 40
    with pytest.raises(UserError, match=r"no place `rom` \(did you mean `rome`\?\)"):
        made(SHADOW, "graph.gml", places=["oslo", "rom"])


def test_the_quickest_path_counts_direction_by_direction_with_what_lies_within() -> None:
    network = plan(HOSTS, "hosts.gml", nodes=2)
    assert one_way(network, "node-0", "node-1") == (30, pytest.approx(0.9 * 0.8), 10**7)
    assert one_way(network, "node-1", "node-0") == (30, 1, 10**7)
    assert network.rtt_ms("node-0-1", "node-0-2") == 2
    assert one_way(network, "node-0", "node-2") == (10, pytest.approx(0.9), 10**7)
    assert network.lan_links[0].up.rate_bps == 16 * 2**20
    assert plan(HOSTS, "hosts.gml").rtt_ms("node-0-1", "node-1-1") == 60


def test_a_graph_without_latencies_has_those_of_fibre_and_the_note_says_so() -> None:
    imported = made(ZOO, "Example.gml")
    (link,) = resolve(imported.topology).wan_links
    # Athens and Paris are 2096 km apart, by the formula of the sphere.
    assert link.forward.delay_ns / 1e6 == pytest.approx(2096 * 0.005, rel=0.002)
    assert link.forward.rate_bps == 10**10
    assert any("light in fibre" in note for note in imported.notes)
    assert any("GEANT" in note for note in imported.notes)


def test_a_graph_without_lengths_is_refused_with_the_ways_out() -> None:
    bare = ZOO.replace("Latitude", "Altitude")
    with pytest.raises(UserError) as caught:
        made(bare, "bare.gml")
    for way in ("latency", "Latitude", "--default"):
        assert way in str(caught.value)
    assert (
        plan(bare, "bare.gml", default=Duration.parse("30ms")).rtt_ms("athens-1", "paris-1") == 30
    )


def test_graphml_of_shadow_has_milliseconds_and_kibibytes_and_notes() -> None:
    imported = made(GRAPHML, "topology.graphml.xml")
    network = resolve(imported.topology)
    assert one_way(network, "poi-1", "poi-2") == (50.5, pytest.approx(0.99), 1024 * 8 * 1024)
    assert any("read as ms" in note for note in imported.notes)
    assert any("KiB/s" in note for note in imported.notes)
    assert plan(GRAPHML, "g.xml", unit="us").rtt_ms("poi-1-1", "poi-2-1") == 0.101


def test_units_are_those_of_the_names_and_round_trips_are_halved() -> None:
    named = SHADOW.replace('latency "8 ms"', "latency_us 8000").replace('latency "12', 'rtt "24')
    assert one_way(plan(named, "graph.gml"), "oslo", "rome")[0] == 20
    with pytest.raises(UserError, match=r"graph\.gml:6: the edge from oslo to ix: `furlongs`"):
        made(SHADOW.replace("8 ms", "8 furlongs"), "graph.gml")


def test_kollaps_services_are_places() -> None:
    network = plan(KOLLAPS, "links.xml")
    assert network.rtt_ms("n1-1", "n2-1") == 40
    assert one_way(network, "n1", "n2") == (20, 1, 50_000_000)
    assert one_way(network, "n2", "n1") == (20, 1, 50_000_000)


def test_replicas_have_links_of_their_own_and_what_is_left_out_is_noted() -> None:
    imported = made(SEVERAL, "several.xml")
    network = resolve(imported.topology)
    assert [site.name for site in network.sites] == ["client-1", "client-2", "server"]
    assert one_way(network, "client-1", "client-2") == (20, 1, 10**7)
    assert one_way(network, "client-2", "server") == (31.5, pytest.approx(0.81), 5 * 10**6)
    assert network.path("client-1-1", "server-1")[1].jitter_ns == 5_000_000  # 3 and 4 ms
    for word in ("dashboard", "1 events", "even spread"):
        assert any(word in note for note in imported.notes), word


@pytest.mark.parametrize("name", shipped())
def test_what_is_exported_to_containerlab_comes_back(name: str) -> None:
    topology = load(name)
    for file, text in export(topology, "containerlab").files.items():
        Path(file).write_text(text)
    back = plan(Path(f"{name}.clab.yml").read_text(), f"{name}.clab.yml")
    ours = resolve(topology)
    assert {node.name: node.site for node in back.nodes} == {n.name: n.site for n in ours.nodes}
    pairs = [(a.name, b.name) for a in ours.nodes for b in ours.nodes]
    assert all(steps(back, *pair) == steps(ours, *pair) for pair in pairs)


def steps(network: Plan, a: str, b: str) -> list[tuple[int, int, int | None]]:
    """What a path does, with rates as containerlab has them: in kbit/s."""
    path = network.path(a, b)
    return [
        (step.delay_ns, step.jitter_ns, step.rate_bps and round(step.rate_bps / 1000))
        for step in path
    ]


def test_a_lab_without_impairments_is_refused_with_the_ways_out() -> None:
    lab = "name: x\ntopology:\n  nodes: {a: {kind: linux}, b: {}}\n"
    lab += '  links:\n    - endpoints: ["a:eth1", "b:eth1"]\n'
    with pytest.raises(UserError) as caught:
        made(lab, "x.clab.yml")
    assert "not what the links do" in str(caught.value) and "x.netem.sh" in str(caught.value)
    assert plan(lab, "x.clab.yml", default=Duration.parse("30ms")).rtt_ms("a-1", "b-1") == 30
    Path("x.netem.sh").write_text(
        "sudo containerlab tools netem set -n clab-x-a -i eth1 --delay 7ms\n"
    )
    assert plan(lab, "x.clab.yml").rtt_ms("a-1", "b-1") == 7


@pytest.mark.parametrize("name", ["three-datacenters", "four-sites", "five-sites", "azure-regions"])
def test_what_is_exported_to_chaos_mesh_comes_back(name: str) -> None:
    ours = resolve(load(name))
    ((file, text),) = export(load(name), "chaos-mesh").files.items()
    most = max(len(site.nodes) for site in ours.sites)
    back = plan(text, file, nodes=most)
    firsts = [[site.nodes[0].name for site in network.sites] for network in (ours, back)]
    for a, a_back in zip(*firsts, strict=True):
        for b, b_back in zip(*firsts, strict=True):
            assert back.rtt_ms(a_back, b_back) == pytest.approx(ours.rtt_ms(a, b), abs=1e-5)
            assert back.jitter_ms(a_back, b_back) == pytest.approx(ours.jitter_ms(a, b), abs=1e-5)


CHAOS = """
apiVersion: chaos-mesh.org/v1alpha1
kind: NetworkChaos
metadata: {name: slow}
spec:
  action: %s
  mode: all
  selector: {labelSelectors: {app: web}}
  direction: %s
  target: {mode: all, selector: {namespaces: [db]}}
  %s
"""


def test_networkchaos_is_one_way_and_its_rates_are_bytes() -> None:
    delay = CHAOS % ("delay", "both", "delay: {latency: 10ms, jitter: 2ms, correlation: '25'}")
    rate = CHAOS % ("bandwidth", "from", "bandwidth: {rate: 1mbps, limit: 1000, buffer: 1000}")
    loss = CHAOS % ("loss", "to", "loss: {loss: '25'}")
    imported = made("---".join((delay, rate, loss)), "chaos.yaml")
    network = resolve(imported.topology)
    assert one_way(network, "web", "db") == (10, 0.75, None)
    assert one_way(network, "db", "web") == (10, 1, 8_000_000)
    assert network.path("web-1", "db-1")[1].reorder  # netem's jitter without a rate
    assert any("correlation" in note for note in imported.notes)


def test_networkchaos_without_a_target_is_named_with_the_way_out() -> None:
    alone = CHAOS.replace("  target:", "  # target:") % ("delay", "to", "delay: {latency: 10ms}")
    with pytest.raises(UserError, match=r"no second place.*lab change"):
        made(alone, "alone.yaml")


def zipped(name: str) -> bytes:
    with zipfile.ZipFile("made.zip", "w") as archive:
        archive.writestr(name, "1")
    return Path("made.zip").read_bytes()


@pytest.mark.parametrize(
    ("name", "content", "is_"),
    [
        ("empty.csv", b"", "is empty"),
        ("blank.csv", b" \n\n", "is empty"),
        ("a.pcap", b"\xd4\xc3\xb2\xa1\x02\x00", "a packet capture"),
        ("a.pcapng", b"\n\r\r\n\x1c\x00", "a packet capture"),
        ("a.png", b"\x89PNG\r\n\x1a\n", "a picture (PNG)"),
        ("a.csv.gz", b"\x1f\x8b\x08\x00", "compressed by gzip"),
        ("a.pdf", b"%PDF-1.7\n", "a PDF"),
        ("a.html", b"<!DOCTYPE html>\n<html><body><table>", "a web page"),
        ("a.svg", b"<?xml version='1.0'?>\n<!-- x --><svg width='1'>", "a picture (SVG)"),
        ("a.xml", b"<network xmlns='x'><nodes/></network>", "XML, of <network>"),
        ("a.dot", b"graph {\n  a -- b;\n}", "a graph in DOT"),
        ("a.json", b'{"nodes": [], "links": [], "directed": false}', "a graph as JSON"),
        ("a.mn", b'{"hosts": [], "switches": [], "links": []}', "MiniEdit"),
        ("a.json", b"[1, 2]", "no format that is read"),
        ("a.yaml", b"name: t\nsites: []\n", "a topology of wanlat's already"),
        ("shadow.yaml", b"general: {}\nnetwork: {}\nhosts: {}\n", "configuration of Shadow"),
        ("a.yaml", b"apiVersion: v1\nkind: Pod\n", "an object of Kubernetes (Pod)"),
        ("ping.txt", b"PING a (1.2.3.4) 56(84) bytes of data.\n", "the output of ping"),
        ("drill.yaml", b"name: d\nsystems: [quorum]\nfaults: []\n", "a drill of wanlat's"),
    ],
)
def test_any_other_file_is_named_for_what_it_is_in_one_line(
    name: str, content: bytes, is_: str
) -> None:
    Path(name).write_bytes(content)
    done = here("topology", "import", name)
    assert (done.returncode, done.stdout) == (2, "")
    (sentence,) = done.stderr.replace("\n ", " ").strip().splitlines()
    assert is_ in " ".join(sentence.split())


@pytest.mark.parametrize(
    ("name", "is_"), [("xl/workbook.xml", "a spreadsheet"), ("a.csv", "a ZIP archive")]
)
def test_archives_are_named(name: str, is_: str) -> None:
    Path("a.zip").write_bytes(zipped(name))
    with pytest.raises(UserError, match=is_):
        reader(Path("a.zip"))


@pytest.mark.parametrize(
    "text",
    [
        "from,to,rtt_ms\na,b,1\n",
        ",a,b\na,0,1\nb,1,0\n",
        "# from: where\ngraph,a,b\ngraph,0,1\n",
        "node 1,a\nnode 1,0\n",
        "| RTT | a |\n| --- | --- |\n",
        "a:b,c\n",
    ],
)
def test_tables_are_left_to_who_reads_tables(text: str) -> None:
    Path("t.csv").write_text(text)
    assert reader(Path("t.csv")) is None


ENTITIES = """<!DOCTYPE graphml [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]>
<graphml><graph><node id="&b;"/></graph></graphml>"""


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("g.xml", ENTITIES, "g.xml:1: it has a document type"),
        ("g.xml", GRAPHML.replace("</graph>", "</grph>"), "this is not XML"),
        ("g.xml", GRAPHML.replace('target="poi-2"', 'target="poi-3"'), "ends at poi-3"),
        ("g.gml", SHADOW.replace("id 1", ""), "g.gml:4: this node has no `id`"),
        ("g.gml", SHADOW.rstrip("]\n"), "ends before its `]`"),
        ("g.gml", SHADOW.replace('"8 ms"', '"8 ms'), "g.gml"),
        ("g.gml", SHADOW.replace("target 1", "target 9"), "ends at 9"),
        ("g.gml", SHADOW.replace("source 2 target 1", "source 2 target 2"), "no links lead from"),
        ("g.gml", "graph [ [ ] ]", "stands where a key does"),
        ("g.gml", "graph [ " + "a [ " * 100, "nested too deeply"),
        ("g.gml", "graph [ ]", "has no places"),
        ("k.xml", KOLLAPS.replace('origin="b1"', 'origin="b9"'), "k.xml:7: origin is `b9`"),
        ("k.xml", KOLLAPS.replace("50Mbps", "50", 1), "has no unit"),
        ("k.xml", KOLLAPS.replace('latency="8" ', ""), "k.xml:6: the link from n1 to b1"),
        ("k.xml", KOLLAPS.replace('name="n2"', 'name="n1"'), "is there already"),
    ],
)
def test_what_is_wrong_in_a_network_is_told_with_its_place(name: str, text: str, says: str) -> None:
    with pytest.raises(UserError) as caught:
        made(text, name)
    assert says in str(caught.value)


def test_more_places_than_a_topology_has_sites_are_refused_with_the_way_out() -> None:
    nodes = "".join(f'node [ id {n} label "p{n}" ]\n' for n in range(201))
    edges = "".join(f'edge [ source 0 target {n} latency "1 ms" ]\n' for n in range(1, 201))
    with pytest.raises(UserError, match=r"201 places.*at most 200.*--places"):
        made(f"graph [ {nodes}{edges} ]", "many.gml")
    assert len(made(f"graph [ {nodes}{edges} ]", "many.gml", places=3).topology.sites) == 3


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(["g.gml", "g.xml", "g.yaml", "g.json", "g"]),
    st.text() | st.text("graph [node]{}<>:-\"'\n#0a ", max_size=60).map(lambda t: f"graph [{t}"),
)
def test_noise_is_a_network_or_a_clean_error(name: str, text: str) -> None:
    try:
        Path(name).write_bytes(text.encode("utf-8", "surrogatepass"))
        if (read := reader(Path(name))) is not None:
            assert isinstance(read(Path(name), Options()).topology, Topology)
    except UserError as error:
        assert json.dumps(str(error))


def between_pods(action: str) -> str:
    """An object of Chaos Mesh on one line."""
    target = "target: {selector: {labelSelectors: {app: b}}}"
    spec = f"selector: {{labelSelectors: {{app: a}}}}, direction: both, {target}, {action}"
    return f"{{kind: NetworkChaos, apiVersion: v1, metadata: {{name: x}}, spec: {{{spec}}}}}\n"


def test_what_kubectl_prints_is_a_list_of_the_same_objects() -> None:
    text = between_pods("action: delay, delay: {latency: 10ms}")
    listed = f"apiVersion: v1\nkind: List\nitems:\n- {text}"
    assert plan(listed, "chaos.yaml").rtt_ms("a-1", "b-1") == 20


def test_a_bare_number_is_no_duration_of_go() -> None:
    with pytest.raises(UserError, match="latency `10` has no unit; write it as `10ms`"):
        made(between_pods('action: delay, delay: {latency: "10"}'), "chaos.yaml")


def test_links_of_kollaps_that_lose_much_or_have_other_attributes_are_noted() -> None:
    text = KOLLAPS.replace('latency="8"', 'latency="8" drop="0.5" loss="1"')
    assert plan(text, "kollaps.xml").path("n1-1", "n2-1")
    notes = " ".join(made(text, "kollaps.xml").notes)
    assert "0.01 is 1%" in notes and "no such attribute: loss" in notes


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("x.html", "<table><tr><td>1</td></tr></table>", "a web page"),
        ("x.gns3", '{"topology": {"nodes": [], "links": []}}', "a project of GNS3's"),
        ("x.json", '[{"listen": "localhost:1", "toxics": []}]', "YAML or JSON with a list"),
    ],
)
def test_files_of_others_are_named(name: str, text: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        made(text, name)


LAB = {
    "name": "lab",
    "topology": {
        "defaults": {"kind": "linux"},
        "nodes": {"a": {"kind": "linux", "group": "g"}, "b": {}, "r": {"sysctls": {}}},
        "links": [{"endpoints": ["a:eth1", "r:eth1"]}, {"endpoints": ["b:eth1", "r:eth2"]}],
    },
}
OBJECT = {
    "kind": "NetworkChaos",
    "metadata": {"name": "x"},
    "spec": {
        "action": "delay",
        "selector": {"labelSelectors": {"app": "a"}},
        "target": {"selector": {"labelSelectors": {"app": "b"}}},
        "delay": {"latency": "10ms", "jitter": "1ms"},
        "loss": {"loss": "1"},
        "rate": {"rate": "1mbps"},
    },
}
SCHEDULE = {"kind": "Schedule", "spec": {"networkChaos": OBJECT["spec"]}}
ODD: list[Any] = [None, 1, -1, True, "x", "", "10", [], {}, [1], [None], {"a": 1}, {"a": None}]


def changed(document: Any) -> list[Any]:
    """The document with each of its values replaced by each odd one."""
    if not isinstance(document, dict | list):
        return ODD
    items = document.items() if isinstance(document, dict) else enumerate(document)
    results = list(ODD)
    for key, value in items:
        for other in changed(value):
            copy = document.copy()
            copy[key] = other
            results.append(copy)
    return results


@pytest.mark.parametrize("document", [LAB, OBJECT, SCHEDULE])
def test_values_of_any_type_are_read_or_refused(document: dict[str, Any]) -> None:
    path = Path("x.json")
    for odd in changed(document):
        path.write_text(json.dumps(odd), encoding="utf-8")
        try:
            read = reader(path)
            if read is not None:
                read(path, Options(default=Duration(10**7)))
        except UserError as problem:
            assert "x.json" in str(problem)
