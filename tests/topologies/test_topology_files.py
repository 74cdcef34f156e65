"""Finding and reading a topology file: every way it can fail is one clear paragraph."""

import os
import time
from pathlib import Path

import pytest
import yaml

from wanlat.topologies.load import TopologyError, load, shipped
from wanlat.topologies.model import Topology
from wanlat.topologies.wording import listing
from wanlat.topologies.yaml_lines import MAX_TOLD


def error_of(content: bytes | str, tmp_path: Path) -> str:
    """The only mistake in a file with this content, without the directory it is in."""
    file = tmp_path / "t.yaml"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(TopologyError) as caught:
        load(file)
    assert len(caught.value.mistakes) == 1
    return str(caught.value).removeprefix(f"{tmp_path}/")


def test_the_shipped_topologies_load_by_name() -> None:
    assert {"one-site", "four-sites", "five-sites", "three-datacenters"} <= set(shipped())
    for name in shipped():
        topology = load(name)
        assert topology.name == name
        assert topology.description


def test_a_topology_survives_being_written_down(tmp_path: Path) -> None:
    for name in shipped():
        file = tmp_path / f"{name}.yaml"
        file.write_text(yaml.safe_dump(load(name).to_dict()), encoding="utf-8")
        assert load(file) == load(name)
        assert load(str(file)) == load(name)
        assert Topology.model_validate(load(name).model_dump()) == load(name)


def test_anchors_aliases_and_merges_mean_what_yaml_says(tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(
        """\
name: t
sites:
  - &site {name: a, nodes: 1, lan: &lan {rtt: 1ms, loss: 1%}}
  - {<<: *site, name: b}
  - {name: c, nodes: 1, lan: *lan}
links:
  default: &default {rtt: 10ms, jitter: 2ms}
  pairs:
    - {<<: [*default, *lan], between: [a, b], jitter: 1ms}
""",
        encoding="utf-8",
    )
    assert load(file) == Topology.model_validate(yaml.safe_load(file.read_text(encoding="utf-8")))
    assert load(file).links.pairs[0].to_dict() == {
        "between": ["a", "b"],
        "rtt": "10ms",
        "jitter": "1ms",
        "loss": "1%",
        "reorder": False,
    }


def test_a_byte_order_mark_and_windows_line_ends_are_fine(tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_bytes("\ufeffname: t\r\nsites: [{name: a, nodes: 1}]\r\n".encode())
    assert load(file).name == "t"


@pytest.mark.parametrize(
    ("asked", "near"), [("five-site", "five-sites"), ("three-datacentres", "three-datacenters")]
)
def test_an_unknown_name_says_what_is_shipped_and_what_is_near(asked: str, near: str) -> None:
    with pytest.raises(TopologyError) as caught:
        load(asked)
    assert f"there is no topology named `{asked}`" in str(caught.value)
    assert f"did you mean `{near}`?" in str(caught.value)
    assert f"shipped are {listing(shipped())}, any other" in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("asked", ["", "nowhere/t.yaml", "a\0b", "x" * 5000, "one-site.yaml"])
def test_a_missing_file_is_told_too(asked: str) -> None:
    with pytest.raises(TopologyError, match=r"no file at that path.*shipped are .*five-sites"):
        load(asked)


def test_a_shipped_name_wins_over_a_file_and_a_path_over_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one-site").write_text("name: mine\nsites: [{name: a, nodes: 1}]")
    assert load("one-site").name == "one-site"
    assert load("./one-site").name == load(Path("one-site")).name == "mine"


def test_a_directory_is_no_topology(tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match="this is a directory; give a YAML file"):
        load(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_text("name: t")
    file.chmod(0)
    with pytest.raises(TopologyError, match="the file cannot be read: Permission denied"):
        load(file)


def test_a_file_that_fails_while_being_read() -> None:
    with pytest.raises(TopologyError, match="the file cannot be read: Input/output error"):
        load("/proc/self/mem")


def test_an_endless_file_is_not_read_to_its_end() -> None:
    with pytest.raises(TopologyError, match="larger than 4 MiB"):
        load("/dev/zero")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "t.yaml: the file is empty"),
        ("# only\n# comments\n", "t.yaml: the file is empty"),
        (b"name: t\nsites: \xff\n", "t.yaml:2: byte 0xff is not UTF-8"),
        ("name: t".encode("utf-16"), "t.yaml:1: byte 0xff is not UTF-8"),
        ("name: t\nsites: [\n", "t.yaml:3:1: not valid YAML: did not find expected node content"),
        (
            "name: t\n\tsites: 1\n",
            "t.yaml:2:1: not valid YAML: found a tab character that violates",
        ),
        ("name: t\nsites:\n- \t- a\n", "t.yaml:3:3: not valid YAML: no value starts with a tab"),
        ("name: @t\n", "t.yaml:1:7: not valid YAML: no value starts with `@`"),
        ("name: a: b\n", "t.yaml:1:8: not valid YAML: mapping values are not allowed"),
        ("name: *a\n", "t.yaml:1:7: not valid YAML: found undefined alias `*a`; an alias"),
        ("a: 1\n---\nb: 1\n", "t.yaml:2:1: not valid YAML: more than one document"),
        ("name: \x07\n", "t.yaml:1:7: not valid YAML: a control character (U+0007)"),
        (
            'name: "\\UFFFFFFFF"\n',
            "t.yaml:1:10: not valid YAML: found invalid Unicode character escape",
        ),
        ("a:\n  b: &x [*x]\n", "t.yaml:2: an alias stands inside the value that it stands for"),
        ("a: &x {<<: *x}\n", "t.yaml:1: an alias stands inside the value that it stands for"),
        ("[" * 5000, "t.yaml:1: nested too deeply; at most 50 levels"),
        ("[" * 60 + "]" * 60, "t.yaml:1: nested too deeply; at most 50 levels"),
    ],
)
def test_what_is_no_yaml_is_told_with_line_and_column(
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
)  # fmt: skip
def test_aliases_that_multiply_are_stopped_in_time(seed: str, row: str, tmp_path: Path) -> None:
    bomb = seed + "".join(
        row.format(i=i, tens=", ".join([f"*a{i - 1}"] * 10)) for i in range(1, 15)
    )
    start = time.process_time()
    assert "with its aliases this is more than 500000 values" in error_of(bomb, tmp_path)
    # 10^14 values would take years, 500,000 some seconds: they are counted, and none is made.
    assert time.process_time() - start < 1  # takes 1 ms


BIG = {
    "unknown keys": "name: t\n" + "".join(f"key{i}: 1\n" for i in range(20_000)),
    "unknown keys in a link": "links:\n  default:\n"
    + "".join(f"    rt{i}: 1\n" for i in range(8000)),
    "values that are none": f"sites: [{'x, ' * 40_000}]",
    "names that are none": f"sites: [{{name: a, nodes: [{'1, ' * 40_000}]}}]",
    "sites that are wrong": f"sites: [{'{name: A, nodes: x}, ' * 20_000}]",
    "tags": f"sites: [{'!!python/object:x y, ' * 30_000}]",
    "a tag": "!" * 4_000_000,
    "keys given twice": "name: t\n" * 40_000,
    "samples": f"links: {{default: {{table: [{'1, ' * 40_000}]}}}}",
    "brackets": "[" * 4_000_000,
    "a chain of aliases": "a0: &a0 [x]\n"
    + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 20_000)),
    "anchors": "".join(f"- &a{i} x\n" for i in range(40_000)),
}


@pytest.mark.minutes
@pytest.mark.parametrize("content", BIG.values(), ids=BIG)
def test_large_files_are_told_within_seconds_and_a_few_pages(content: str, tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(content, encoding="utf-8")
    start = time.process_time()
    with pytest.raises(TopologyError) as caught:
        load(file)
    assert time.process_time() - start < 20  # the longest takes 1.5 s
    assert len(str(caught.value)) < 100_000
    assert len(caught.value.mistakes) <= MAX_TOLD


def test_an_error_prints_on_any_terminal(tmp_path: Path) -> None:
    content = (
        'name: t\nsites: [{name: "\\e[31m", nodes: 1}, {name: "\\u202e", nodes: 1}]\n"\\a": 1\n'
    )
    file = tmp_path / "t.yaml"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(TopologyError) as caught:
        load(file)
    assert len(caught.value.mistakes) == 4  # two names, a key, and no link between the two
    assert r"between \x1b[31m and \u202e" in str(caught.value)
    assert all(str(mistake).isprintable() for mistake in caught.value.mistakes)
