"""Finding and reading a topology file, and the samples it names: every failure is one paragraph."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from wanlat.topologies.findings import MAX_FINDINGS
from wanlat.topologies.load import TopologyError, load, shipped
from wanlat.topologies.model import Topology
from wanlat.topologies.resolve import Impairment, resolve
from wanlat.topologies.shapes import QUANTILES
from wanlat.topologies.tables import Table, TableError, read
from wanlat.topologies.wording import listing


def error_of(content: bytes | str, tmp_path: Path) -> str:
    """The only mistake in a file with this content, without the directory it is in."""
    file = tmp_path / "t.yaml"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(TopologyError) as caught:
        load(file)
    assert len(caught.value.mistakes) == 1
    return str(caught.value).replace(f"{tmp_path}/", "")


def test_the_shipped_topologies_load_by_name_and_survive_being_written_down(tmp_path: Path) -> None:
    assert {"one-site", "four-sites", "five-sites", "three-datacenters"} <= set(shipped())
    for name in shipped():
        topology = load(name)
        assert topology.name == name and topology.description
        file = tmp_path / f"{name}.yaml"
        file.write_text(yaml.safe_dump(topology.to_dict()), encoding="utf-8")
        assert load(file) == load(str(file)) == topology
        assert Topology.model_validate(topology.model_dump()) == topology


def test_anchors_aliases_and_merges_mean_what_yaml_says(tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(
        """\
name: no
sites:
  - &site {name: a, nodes: 1, lan: &lan {rtt: 1ms, loss: 1%}}
  - {<<: *site, name: b}
  - {name: c, nodes: 1, lan: *lan}
links:
  default: &default {rtt: 10ms, jitter: 2ms, reorder: false}
  pairs:
    - {<<: [*default, *lan], between: [a, b], jitter: 1ms}
""",
        encoding="utf-8",
    )
    pair = {"between": ["a", "b"], "rtt": "10ms", "jitter": "1ms", "loss": "1%", "reorder": False}
    assert load(file).links.pairs[0].to_dict() == pair
    assert load(file).sites[1].lan == load(file).sites[2].lan == load(file).sites[0].lan
    assert load(file).name == "no"  # text, as in YAML 1.2


def test_a_byte_order_mark_and_windows_line_ends_are_fine(tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_bytes("\ufeffname: t\r\nsites: [{name: a, nodes: 1}]\r\n".encode())
    assert load(file).name == "t"


@pytest.mark.parametrize(
    "asked", ["five-site", "", "nowhere/t.yaml", "a\0b", "x" * 5000, "one-site.yaml"]
)
def test_an_unknown_name_says_what_is_shipped_and_what_is_near(asked: str) -> None:
    with pytest.raises(TopologyError, match="no file at that path") as caught:
        load(asked)
    assert f"shipped are {listing(shipped())}, any other" in str(caught.value)
    assert ("did you mean `five-sites`?" in str(caught.value)) == (asked == "five-site")


def test_a_shipped_name_wins_over_a_file_and_a_path_over_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one-site").write_text("name: mine\nsites: [{name: a, nodes: 1}]")
    assert load("one-site").name == "one-site"
    assert load("./one-site").name == load(Path("one-site")).name == "mine"


@pytest.mark.parametrize(
    ("path", "says"),
    [
        (".", "this is a directory; give a YAML file"),
        ("/proc/self/mem", "the file cannot be read: Input/output error"),
        ("/dev/zero", "larger than 4 MiB"),
    ],
)
def test_what_cannot_be_read_is_an_error_at_once(path: str, says: str) -> None:
    with pytest.raises(TopologyError, match=says):
        load(Path(path))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "t.yaml: the file is empty"),
        ("# only\n# comments\n", "t.yaml: the file is empty"),
        (b"name: t\nsites: \xff\n", "t.yaml:2: byte 0xff is not UTF-8"),
        ("name: t\nsites: [\n", "t.yaml:3:1: not valid YAML: did not find expected node content"),
        ("name: t\n\tsites: 1\n", "t.yaml:2:1: not valid YAML: found a tab character that"),
        ("name: @t\n", "t.yaml:1:7: not valid YAML: found character that cannot start"),
        ("name: a: b\n", "t.yaml:1:8: not valid YAML: mapping values are not allowed"),
        ("name: *a\n", "t.yaml:1:7: not valid YAML: found undefined alias"),
        ("a: 1\n---\nb: 1\n", "t.yaml:2: more than one document"),
        ("name: \x07\n", "t.yaml:1:7: not valid YAML: a control character (U+0007)"),
        ('name: "\\UFFFFFFFF"\n', "t.yaml:1:10: not valid YAML: found invalid Unicode character"),
        ("a:\n  b: &x [*x]\n", "t.yaml:2: nested too deeply; at most 50 levels"),
        ("a: &x {<<: *x}\n", "t.yaml:1: nested too deeply"),
        ("[" * 5000, "t.yaml:1: nested too deeply; at most 50 levels"),
    ],
)
def test_what_is_no_yaml_is_reported_with_line_and_column(
    content: bytes | str, expected: str, tmp_path: Path
) -> None:
    assert error_of(content, tmp_path).startswith(expected)


@pytest.mark.parametrize(
    ("seed", "row"),
    [
        ("a0: &a0 [x, x]\n", "a{i}: &a{i} [{tens}]\n"),
        ("a0: &a0 {x: 1}\n", "a{i}: &a{i} {{<<: [{tens}]}}\n"),
    ],
    ids=["lists", "merges"],
)
def test_aliases_that_multiply_are_stopped(seed: str, row: str, tmp_path: Path) -> None:
    tens = (", ".join([f"*a{i - 1}"] * 10) for i in range(1, 15))
    bomb = seed + "".join(row.format(i=i, tens=ten) for i, ten in enumerate(tens, start=1))
    assert "more than 500000 values" in error_of(bomb, tmp_path)  # of 10^14, which take years


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


def test_an_error_prints_on_any_terminal(tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(
        'name: t\nsites: [{name: "\\e[31m", nodes: 1}, {name: "\\u202e", nodes: 1}]\n"\\a": 1\n',
        encoding="utf-8",
    )
    with pytest.raises(TopologyError) as caught:
        load(file)
    assert len(caught.value.mistakes) == 4  # two names, a key, and no link between the two
    assert r"between \x1b[31m and \u202e" in str(caught.value)
    assert all(str(mistake).isprintable() for mistake in caught.value.mistakes)


# Samples.


def with_table(table: Any) -> str:
    link = {"rtt": "10ms", "jitter": "1ms", "distribution": "table", "table": table}
    sites = [{"name": "a", "nodes": ["n1"], "lan": link}, {"name": "b", "nodes": ["n2"]}]
    return json.dumps({"name": "t", "sites": sites, "links": {"default": link}})


def wan(topology: Topology) -> Impairment:
    return resolve(topology).wan_links[0].forward


def test_samples_are_read_once_from_beside_the_topology(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "rtts.txt").write_bytes(
        "\ufeff# from ping\r\n41.2\r\n\n 40.7 # late\n+5.53e1\n.5\n".encode()
    )
    (tmp_path / "t.yaml").write_text(with_table("sub/rtts.txt"))
    topology = load(tmp_path / "t.yaml")
    assert topology.links.default is not None and topology.sites[0].lan is not None
    assert topology.links.default.table == Table((0.5, 40.7, 41.2, 55.3))
    assert topology.links.default.table is topology.sites[0].lan.table
    assert wan(topology).table == Table.of([41.2, 40.7, 55.3, 0.5]).quantiles
    (tmp_path / "t.yaml").write_text(with_table([40.7, 41.2, 55.3, 0.5]))
    assert load(tmp_path / "t.yaml") == topology


@pytest.mark.parametrize("count", [2, QUANTILES, QUANTILES + 1, 30_000])
def test_the_manifest_holds_the_numbers_and_gives_the_same_topology(
    count: int, tmp_path: Path
) -> None:
    file = tmp_path / "rtts.txt"
    file.write_text("\n".join(str(i * 7919 % 10007 / 7) for i in range(count)))
    (tmp_path / "t.yaml").write_text(with_table("rtts.txt"))
    topology = load(tmp_path / "t.yaml")
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
        ("1\n2 3\n", "r.txt:2: `2 3` is no number"),
        ("nan\n1\n", "r.txt:1: `nan` is not within ±1e+15"),
        ("# 1\n# 2\n", "r.txt: 0 samples; a distribution needs 2"),
        ("7\n7.0\n", "r.txt: all 2 samples are 7, which is no distribution; a delay that never"),
        ("1\n\x1b[31m\n", r"r.txt:2: `\x1b[31m` is no number"),
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


def test_a_million_samples_are_a_table_and_more_are_refused() -> None:
    assert len(Table.of(i % 9973 for i in range(1_000_000)).samples) == QUANTILES
    with pytest.raises(TableError, match="1000001 samples"):
        Table.of(range(1_000_001))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "r.txt").touch(0)
    with pytest.raises(TableError, match="cannot be read: Permission denied"):
        read(tmp_path / "r.txt")


def test_a_model_made_in_code_reads_no_files(tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_text("1\n2\n")
    with pytest.raises(ValueError, match="is read when a topology file is loaded"):
        Topology.model_validate(json.loads(with_table(str(tmp_path / "r.txt"))))
