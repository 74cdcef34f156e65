"""Samples from a file: read beside the topology, told by line when wrong, kept in the manifest."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from wanlat.topologies.load import TopologyError, load
from wanlat.topologies.model import Topology
from wanlat.topologies.resolve import Impairment, resolve
from wanlat.topologies.shapes import QUANTILES
from wanlat.topologies.tables import Table, TableError, read


def topology_text(table: Any, name: str = "t") -> str:
    link = {"rtt": "10ms", "jitter": "1ms", "distribution": "table", "table": table}
    sites = [{"name": "a", "nodes": ["n1"]}, {"name": "b", "nodes": ["n2"]}]
    return json.dumps({"name": name, "sites": sites, "links": {"default": link}})


def wan(topology: Topology) -> Impairment:
    return resolve(topology).wan_links[0].forward


def told(table: Any, tmp_path: Path) -> str:
    """The only mistake of a topology with this table, without directories."""
    (tmp_path / "t.yaml").write_text(topology_text(table), encoding="utf-8")
    with pytest.raises(TopologyError) as caught:
        load(tmp_path / "t.yaml")
    (mistake,) = caught.value.mistakes
    assert mistake.where == "links.default.table"
    return mistake.text.replace(f"{tmp_path}/", "")


def test_a_file_is_read_relative_to_the_topology(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "rtts.txt").write_text("# from ping\n41.2\n\n 40.7 # late\n+5.53e1\n.5\n")
    (tmp_path / "t.yaml").write_text(topology_text("sub/rtts.txt"))
    topology = load(tmp_path / "t.yaml")
    assert topology.links.default is not None
    assert topology.links.default.table == Table((0.5, 40.7, 41.2, 55.3))
    assert wan(topology).table == Table.of([41.2, 40.7, 55.3, 0.5]).quantiles
    assert len(wan(topology).table) == QUANTILES


def test_an_absolute_name_and_windows_line_ends_are_fine(tmp_path: Path) -> None:
    file = tmp_path / "rtts.txt"
    file.write_bytes("\ufeff1\r\n2\r\n4".encode())
    (tmp_path / "t.yaml").write_text(topology_text(str(file)))
    assert wan(load(tmp_path / "t.yaml")).table == Table.of([1, 2, 4]).quantiles


def test_a_column_of_a_csv_file(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text(
        '# made by hand\nwhen, "rtt, ms" ,x\n1,5,y\n\n2, 7.5 ,\n3,"6"\n'
    )
    (tmp_path / "t.yaml").write_text(topology_text({"file": "r.csv", "column": "rtt, ms"}))
    with pytest.raises(TopologyError):  # a space before the quotes: they are part of the cell
        load(tmp_path / "t.yaml")
    (tmp_path / "r.csv").write_text('# made by hand\nwhen,"rtt, ms",x\n1,5,y\n\n2, 7.5 ,\n3,"6"\n')
    assert wan(load(tmp_path / "t.yaml")).table == Table.of([5, 7.5, 6]).quantiles


def test_numbers_in_the_topology_are_the_same_as_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "rtts.txt").write_text("1\n2\n4\n")
    (tmp_path / "a.yaml").write_text(topology_text("rtts.txt"))
    (tmp_path / "b.yaml").write_text(topology_text([4, 1, 2.0]))
    assert load(tmp_path / "a.yaml") == load(tmp_path / "b.yaml")


@pytest.mark.parametrize("count", [2, 3, QUANTILES - 1, QUANTILES, QUANTILES + 1, 30_000])
def test_the_manifest_holds_the_numbers_and_gives_the_same_topology(
    count: int, tmp_path: Path
) -> None:
    file = tmp_path / "rtts.txt"
    file.write_text("\n".join(str(i * 7919 % 10007 / 7) for i in range(count)))
    (tmp_path / "t.yaml").write_text(topology_text("rtts.txt"))
    topology = load(tmp_path / "t.yaml")
    file.unlink()
    manifest = json.loads(json.dumps(topology.to_dict()))
    assert len(manifest["links"]["default"]["table"]) == min(count, QUANTILES)
    again = Topology.model_validate(manifest)
    assert again == topology
    assert resolve(again) == resolve(topology)
    (tmp_path / "again.yaml").write_text(yaml.safe_dump(manifest))
    assert load(tmp_path / "again.yaml") == topology


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("1\n2\nfast\n", "r.txt:3: `fast` is no number"),
        ("1\nx\n\ny\nz\n", "r.txt:2: `x` is no number (and so in 2 more)"),
        ("1\n2 3\n", "r.txt:2: `2 3` is no number"),
        ("1ms\n2ms\n", "r.txt:1: `1ms` is no number (and so in 1 more)"),
        ("nan\ninf\n", "r.txt:1: `nan` is no number (and so in 1 more)"),
        ("1\n1e16\n", "r.txt:2: `1e16` is not within ±1e+15"),
        ("1_0\n2\n", "r.txt:1: `1_0` is no number"),
        ("", "r.txt: no samples; a distribution needs at least two"),
        ("# 1\n# 2\n", "r.txt: no samples; a distribution needs at least two"),
        ("7\n", "r.txt: one sample; a distribution needs at least two"),
        ("7\n7.0\n", "r.txt: all 2 samples are 7, which is no distribution; a delay that never"),
        (
            "time,rtt\n1,2\n",
            "r.txt:1: `time,rtt` is no number (and so in 1 more); of a CSV file, name the column:"
            " `table: {file: r.txt, column: rtt}`",
        ),
        (b"1\n\xff\n", "r.txt:2: byte 0xff is not UTF-8; a table is text"),
        ("1\n\x1b[31m\n", r"r.txt:2: `\x1b[31m` is no number"),
    ],
)
def test_a_wrong_file_is_told_with_its_own_line(
    content: str | bytes, expected: str, tmp_path: Path
) -> None:
    file = tmp_path / "r.txt"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    assert told("r.txt", tmp_path).startswith(expected)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "r.csv is empty; the first line names the columns"),
        (
            "time,rt\n1,2\n",
            "r.csv has no column `rtt` (did you mean `rt`?); it has `time` and `rt`",
        ),
        ("rtt,rtt\n1,2\n", "r.csv:1: two columns are named `rtt`"),
        ("rtt,x\n1,2\n,3\n", "r.csv:3: an empty value is no number"),
        ("x,rtt\n1,2\n3\n", "r.csv:3: an empty value is no number"),
        ('x,rtt\n1,"2\n', "r.csv:2: not CSV: unexpected end of data"),
    ],
)
def test_a_wrong_column_is_told_too(content: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text(content)
    assert told({"file": "r.csv", "column": "rtt"}, tmp_path).startswith(expected)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert told("pipe", tmp_path) == "pipe is no regular file; give a file of samples"


@pytest.mark.parametrize("name", ["/dev/zero", "/dev/stdin", "/dev/full", "\0", "x" * 5000])
def test_what_is_no_file_is_an_error_at_once(name: str, tmp_path: Path) -> None:
    assert told(name, tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_text("1\n2\n")
    (tmp_path / "r.txt").chmod(0)
    assert told("r.txt", tmp_path) == "r.txt cannot be read: Permission denied"


def test_a_file_that_several_links_name_is_read_once_and_wrong_for_each(tmp_path: Path) -> None:
    text = topology_text("r.txt").replace('"nodes": ["n1"]', '"nodes": ["n1"], "lan": LINK')
    link = '{"rtt": "1ms", "jitter": "0.1ms", "distribution": "table", "table": "r.txt"}'
    (tmp_path / "t.yaml").write_text(text.replace("LINK", link))
    with pytest.raises(TopologyError) as caught:
        load(tmp_path / "t.yaml")
    assert [each.where for each in caught.value.mistakes] == [
        "sites[0].lan.table",
        "links.default.table",
    ]
    (tmp_path / "r.txt").write_text("1\n2\n")
    topology = load(tmp_path / "t.yaml")
    assert topology.sites[0].lan is not None and topology.links.default is not None
    assert topology.sites[0].lan.table is topology.links.default.table


def test_other_mistakes_are_told_beside_that_of_the_file(tmp_path: Path) -> None:
    text = topology_text("r.txt").replace("10ms", "10").replace("1ms", "-1ms")
    (tmp_path / "t.yaml").write_text(text)
    with pytest.raises(TopologyError) as caught:
        load(tmp_path / "t.yaml")
    assert {each.where for each in caught.value.mistakes} == {
        "links.default.rtt",
        "links.default.jitter",
        "links.default.table",
    }


def test_a_million_samples_are_a_table_and_more_are_refused(tmp_path: Path) -> None:
    assert len(Table.of(i % 9973 for i in range(1_000_000)).samples) == QUANTILES
    file = tmp_path / "r.txt"
    file.write_text("1\n2\n" * 500_000 + "3\n")
    with pytest.raises(TableError, match="more than 1000000 samples; take a part of them"):
        read(file)


def test_a_model_made_in_code_reads_no_files(tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_text("1\n2\n")
    with pytest.raises(ValueError, match="is read when a topology file is loaded"):
        Topology.model_validate(yaml.safe_load(topology_text(str(tmp_path / "r.txt"))))
    given = yaml.safe_load(topology_text(list(read(tmp_path / "r.txt").samples)))
    assert wan(Topology.model_validate(given)).table == Table.of([1, 2]).quantiles
