"""Finding and reading a topology file, and the samples it names: every failure is one paragraph."""

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from wanlat.topologies.findings import MAX_FINDINGS
from wanlat.topologies.load import TopologyError, load, shipped
from wanlat.topologies.model import Topology
from wanlat.topologies.resolve import resolve
from wanlat.topologies.shapes import QUANTILES
from wanlat.topologies.tables import Table, TableError, read


def error_of(content: bytes | str, tmp_path: Path) -> str:
    """The only mistake in a file with this content, without the directory it is in."""
    file = tmp_path / "t.yaml"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(TopologyError) as caught:
        load(file)
    assert len(caught.value.mistakes) == 1
    return str(caught.value).replace(f"{tmp_path}/", "")


def test_anchors_aliases_and_merges_mean_what_yaml_says(tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_bytes(
        """\ufeffname: no\r
sites:
  - &site {name: a, nodes: 1, lan: &lan {rtt: 1ms, loss: 1%}}
  - {<<: *site, name: b}
  - {name: c, nodes: 1, lan: *lan}
links:
  default: &default {rtt: 10ms, jitter: 2ms, reorder: false}
  pairs:
    - {<<: [*default, *lan], between: [a, b], jitter: 1ms}
""".encode()
    )
    pair = {"between": ["a", "b"], "rtt": "10ms", "jitter": "1ms", "loss": "1%", "reorder": False}
    topology = load(file)
    assert topology.links.pairs[0].to_dict() == pair
    assert topology.sites[1].lan == topology.sites[2].lan == topology.sites[0].lan
    assert topology.name == "no"  # text, as in YAML 1.2


@pytest.mark.parametrize("asked", ["five-site", "", "a\0b", "x" * 5000, "one-site.yaml"])
def test_an_unknown_name_says_what_is_shipped_and_what_is_near(asked: str) -> None:
    with pytest.raises(TopologyError, match="no file at that path") as caught:
        load(asked)
    assert "three-datacenters" in str(caught.value)
    assert ("did you mean `five-sites`?" in str(caught.value)) == (asked == "five-site")


def test_a_shipped_name_wins_over_a_file_and_a_path_over_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one-site").write_text("name: mine\nsites: [{name: a, nodes: 1}]")
    assert load("one-site").name == "one-site"
    assert load("./one-site").name == load(Path("one-site")).name == "mine"
    assert all(load(name).name == name for name in shipped())


BOMB = "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" if i else "a0: &a0 [x]\n" for i in range(15)
)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("# only\n# comments\n", "t.yaml: the file is empty"),
        (b"name: t\nsites: \xff\n", "t.yaml:2: byte 0xff is not UTF-8"),
        ("name: t\nsites: [\n", "t.yaml:3:1: not valid YAML: did not find expected node content"),
        ("a: 1\n---\nb: 1\n", "t.yaml:2: more than one document"),
        ("name: \x07\n", "t.yaml:1:7: not valid YAML: a control character (U+0007)"),
        ("a:\n  b: &x [*x]\n", "t.yaml:2: nested too deeply; at most 50 levels"),
        ("a: &x {<<: *x}\n", "t.yaml:1: nested too deeply"),
        (BOMB, "t.yaml:1: more than 500000 values"),  # of 10^14, which take years
        (BOMB.replace("[x]", "{x: 1}").replace("[", "{<<: [").replace("]", "]}"), "t.yaml"),
    ],
)
def test_what_is_no_yaml_is_reported_with_line_and_column(
    content: bytes | str, expected: str, tmp_path: Path
) -> None:
    assert error_of(content, tmp_path).startswith(expected)


BIG = {
    "unknown keys": "name: t\n" + "".join(f"key{i}: 1\n" for i in range(20_000)),
    "names that are none": f"sites: [{{name: a, nodes: [{'1, ' * 40_000}]}}]",
    "sites that are wrong": f"sites: [{'{name: A, nodes: x}, ' * 20_000}]",
    "tags": f"sites: [{'!!python/object:x y, ' * 30_000}]",
    "keys given twice": "name: t\n" * 40_000,
    "brackets": "[" * 4_000_000,
    "a chain of aliases": "a0: &a0 [x]\n"
    + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 20_000)),
}


@pytest.mark.minutes
@pytest.mark.parametrize("content", BIG.values(), ids=BIG)
def test_large_files_are_reported_within_seconds_and_a_few_pages(
    content: str, tmp_path: Path
) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(content, encoding="utf-8")
    start = time.process_time()
    with pytest.raises(TopologyError) as caught:
        load(file)
    assert time.process_time() - start < 20
    assert len(str(caught.value)) < 100_000
    assert len(caught.value.mistakes) <= MAX_FINDINGS


def test_what_is_larger_than_a_topology_is_refused_and_not_read_to_its_end() -> None:
    with pytest.raises(TopologyError, match="larger than 4 MiB"):
        load(Path("/dev/zero"))


# Samples.


def with_table(table: Any) -> str:
    link = {"rtt": "10ms", "jitter": "1ms", "distribution": "table", "table": table}
    sites = [{"name": "a", "nodes": ["n1"], "lan": link}, {"name": "b", "nodes": ["n2"]}]
    return json.dumps({"name": "t", "sites": sites, "links": {"default": link}})


@pytest.mark.parametrize("count", [2, QUANTILES + 1])
def test_samples_are_read_from_beside_the_topology_and_are_in_the_manifest(
    count: int, tmp_path: Path
) -> None:
    numbers = [i * 7919 % 10007 / 7 for i in range(count)]
    (tmp_path / "sub").mkdir()
    file = tmp_path / "sub" / "rtts.txt"
    file.write_text("\ufeff# from ping\r\n\n" + "\n".join(f" {each} # ms" for each in numbers))
    (tmp_path / "t.yaml").write_text(with_table("sub/rtts.txt"))
    topology = load(tmp_path / "t.yaml")
    assert topology.links.default is not None and topology.sites[0].lan is not None
    assert topology.links.default.table == Table.of_samples(numbers)
    assert topology.links.default.table is topology.sites[0].lan.table  # read once
    file.unlink()
    manifest = json.loads(json.dumps(topology.to_dict()))
    assert len(manifest["links"]["default"]["table"]) == min(count, QUANTILES)
    assert Topology.model_validate(manifest) == topology
    (tmp_path / "again.yaml").write_text(yaml.safe_dump(manifest))
    assert resolve(load(tmp_path / "again.yaml")) == resolve(topology)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("1\n2\nfast\n", "r.txt:3: `fast` is no number"),
        ("7\n7.0\n", "r.txt: all 2 samples are 7, which is no distribution; a delay that never"),
        ("1\n\udcff\n", "r.txt:2: byte 0xff is not UTF-8"),
    ],
)
def test_wrong_samples_are_reported_with_their_own_line(
    content: str, expected: str, tmp_path: Path
) -> None:
    (tmp_path / "r.txt").write_bytes(content.encode(errors="surrogateescape"))
    (tmp_path / "t.yaml").write_text(with_table("r.txt"))
    with pytest.raises(TopologyError) as caught:
        load(tmp_path / "t.yaml")
    lan, default = caught.value.mistakes
    assert (lan.where, default.where) == ("sites[0].lan.table", "links.default.table")
    assert default.text.replace(f"{tmp_path}/", "").startswith(expected)


FIVE = """# five quantiles a line, as tc's own tables have them
-8000 -6000 -4500 -3000 -2000
-1000 0 1500 5000 18000
"""


@pytest.mark.parametrize(
    "content",
    [
        FIVE,
        "\n".join(FIVE.partition("\n")[2].split()),
        " -8000\t-6000 -4500  # the early ones\r\n\r\n-3000 -2000 -1000 0 1500 5000\n18000",
    ],
    ids=["five a line", "one a line", "as they come"],
)
def test_how_many_numbers_a_line_has_does_not_matter(content: str, tmp_path: Path) -> None:
    (tmp_path / "m1.dist").write_text(content)
    (tmp_path / "t.yaml").write_text(with_table("m1.dist"))
    link = load(tmp_path / "t.yaml").links.default
    assert link is not None and link.table is not None
    assert link.table.samples == (-8000, -6000, -4500, -3000, -2000, -1000, 0, 1500, 5000, 18000)


def test_every_table_of_iproute2s_is_one_here() -> None:
    files = [*Path("/usr/lib").glob("*/tc/*.dist"), *Path("/usr/lib/tc").glob("*.dist")]
    for file in files:
        numbers = re.sub("#.*", "", file.read_text()).split()
        assert read(file) == Table.of_samples(map(float, numbers)), file
    assert files or not Path("/usr/sbin/tc").exists()


def test_more_than_a_million_samples_are_refused_and_code_reads_no_files(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="1000001 samples"):
        Table.of_samples(range(1_000_001))
    with pytest.raises(ValueError, match="is read when a topology file is loaded"):
        Topology.model_validate(json.loads(with_table(str(tmp_path / "r.txt"))))
