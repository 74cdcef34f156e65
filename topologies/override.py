"""A topology with the delays between its sites replaced: the same study, nearer or steadier."""

from typing import Any

from wanlat.topologies.findings import Mistake, path_text
from wanlat.topologies.load import TopologyError
from wanlat.topologies.model import Topology
from wanlat.topologies.units import Duration
from wanlat.topologies.yaml_lines import checked
from wanlat.topologies.yaml_tree import Document


def override(
    topology: Topology, rtt: Duration | None = None, jitter: Duration | None = None
) -> Topology:
    """The topology with every link between sites set to this rtt and this jitter.

    None leaves what the file says. A direction that is given alone gets half of each. Links inside
    a site are left alone. A jitter keeps the shape that the file gives it, and 0 has none.
    TopologyError if a jitter would be too large for its rtt.
    """
    values = topology.to_dict()
    links = values["links"]
    for link in [*links["pairs"], *([links["default"]] if "default" in links else [])]:
        _set(link, rtt, jitter)
    made, findings = checked(Document(values), Topology)
    if made is None or findings:
        asked = {"rtt": rtt, "jitter": jitter}
        what = " and ".join(f"{key} {value}" for key, value in asked.items() if value is not None)
        source = f"topology {topology.name} with {what}"
        raise TopologyError.of(
            Mistake(source, None, None, path_text(found.path), found.text) for found in findings
        )
    return made


def _set(link: dict[str, Any], rtt: Duration | None, jitter: Duration | None) -> None:
    one_way = "from" in link
    if rtt is not None:
        link["delay" if one_way else "rtt"] = Duration(rtt.ns // 2) if one_way else rtt
    if jitter is not None:
        link["jitter"] = Duration(jitter.ns // 2) if one_way else jitter
        if not link["jitter"].ns:
            for shape in ("distribution", "table"):
                link.pop(shape, None)
