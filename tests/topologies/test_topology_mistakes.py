"""Every mistake in a topology file is told with its line, what is wrong and what is allowed."""

from pathlib import Path

import pytest

from wanlat.topologies.load import TopologyError, load

HEAD = "name: t\nsites:\n  - {name: a, nodes: [n1]}\n  - {name: b, nodes: [n2]}\n"


def mistakes_in(text: str, tmp_path: Path) -> list[tuple[int | None, str, str]]:
    """Line, place and text of each mistake; the message must list exactly these."""
    file = tmp_path / "t.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(TopologyError) as caught:
        load(file)
    error = caught.value
    assert error.exit_code == 2
    assert [line for line in str(error).splitlines() if line.startswith(f"{file}:")] == [
        str(mistake) for mistake in error.mistakes
    ]
    assert all(char.isprintable() or char == "\n" for char in str(error))
    return [(mistake.line, mistake.where, mistake.text) for mistake in error.mistakes]


def links(*pairs: str, default: str = "{rtt: 10ms}") -> str:
    """Two sites with these pairs: line 5 is `links:`, 6 the default, the first pair is in 8."""
    lines = "".join(f"\n    - {pair}" for pair in pairs)
    return f"{HEAD}links:\n  default: {default}\n  pairs:{lines or ' []'}\n"


ONE_MISTAKE = [
    # keys
    (f"{HEAD}links: {{default: {{rtt: 1s}}, pears: []}}", 5, "links.pears", "mean `pairs`?"),
    (f"color: red\n{links()}", 1, "color", "allowed: name, description, sites, links"),
    ("sites: [{name: a, nodes: 1}]", 1, "", "`name` is missing"),
    ("name: t\nsites:\n  - name: a\n", 3, "sites[0]", "`nodes` is missing: names of the nodes"),
    (f"{HEAD}links: {{default: {{jitter: 1ms}}}}", 5, "links.default", "`rtt` is missing"),
    ("name: t\nname: u\nsites: [{name: a, nodes: 1}]", 2, "name", "given twice, first in line 1"),
    ("name: t\n1: x\nsites: [{name: a, nodes: 1}]", 2, "", "`1` is not text to YAML"),
    ("name: t\n? [x]\n: 1\nsites: [{name: a, nodes: 1}]", 2, "", "not a list or a mapping"),
    # kinds
    ("- a\n- b", 1, "", "a mapping is wanted here, not a list; its keys are name, description,"),
    ("hello", 1, "", "not the text `hello`"),
    ("name: t\nsites: {name: a}", 2, "sites", "a list is wanted here, not a mapping"),
    ("name: t\nsites: []", 2, "sites", "at least 1"),
    ("name: t\nsites:\n", 2, "sites", "a list is wanted here, not nothing"),
    (f"{HEAD}links:\n", 5, "links", "a mapping is wanted here, not nothing; its keys are"),
    ("name: t\nsites: [a]", 2, "sites[0]", "its keys are name, nodes, lan and access"),
    ("name: t\nsites: [{name: a, nodes: two}]", 2, "sites[0].nodes", "names such as `[n1, n2]`"),
    ("name: t\nsites: [{name: a, nodes: []}]", 2, "sites[0].nodes", "at least 1"),
    ("name: t\nsites: [{name: a, nodes: 0}]", 2, "sites[0].nodes", "at least 1"),
    ("name: t\nsites: [{name: a, nodes: -1}]", 2, "sites[0].nodes", "at least 1"),
    ("name: t\nsites: [{name: a, nodes: 1.5}]", 2, "sites[0].nodes", "neither a count nor a list"),
    ("name: t\nsites: [{name: a, nodes: 60001}]", 2, "sites[0].nodes", "at most 60000"),
    ("name: t\nsites: [{name: a, nodes: 1}]\ndescription: 5", 3, "description", "in quotes"),
    (links("{between: [a, b], rtt: 1ms, reorder: 1}"), 8, "links.pairs[0].reorder", "`true` or"),
    # names
    ("name: T\nsites: [{name: a, nodes: 1}]", 1, "name", "1 to 32 of a-z, 0-9 and -"),
    ("name: t\nsites: [{name: -a, nodes: 1}]", 2, "sites[0].name", "`-a` cannot be a host name"),
    ("name: t\nsites: [{name: a, nodes: [n_1]}]", 2, "sites[0].nodes[0]", "`n_1` cannot be"),
    (f"name: t\nsites: [{{name: {'a' * 33}, nodes: [n]}}]", 2, "sites[0].name", "1 to 32"),
    (f"name: t\nsites: [{{name: {'a' * 31}, nodes: 2}}]", 2, "sites[0].nodes", "longer than 32"),
    ("name: t\nsites:\n- {name: a, nodes: [x]}\n- {name: a, nodes: [y]}", 4, "sites[1].name",
     "site `a` is there already; every site has a name of its own (first in line 3)"),
    ("name: t\nsites: [{name: a, nodes: [x, x]}]", 2, "sites[0].nodes[1]", "node `x` is there"),
    (f"{HEAD}  - {{name: c, nodes: [n1]}}\nlinks: {{default: {{rtt: 1s}}}}", 5, "sites[2].nodes[0]",
     "node `n1` is there already; node names are unique across all sites (first in line 3)"),
    (f"{HEAD}  - {{name: n, nodes: 2}}\n  - {{name: d, nodes: [n-2]}}\n"
     "links: {default: {rtt: 0}}",
     6, "sites[3].nodes[0]", "node `n-2` is there already"),
    # what YAML 1.1 reads otherwise than people do
    ("name: no\nsites: [{name: a, nodes: 1}]", 1, "name", 'a boolean to YAML; if it is meant'),
    ("name: t\nsites: [{name: a, nodes: [1]}]", 2, "sites[0].nodes[0]", 'put it in quotes: "1"'),
    ("name: t\nsites: [{name: a, nodes: 010}]", 2, "sites[0].nodes", "an octal number to YAML"),
    ("name: t\nsites: [{name: a, nodes: 0x2}]", 2, "sites[0].nodes", "a hexadecimal number"),
    ("name: t\nsites: [{name: a, nodes: 1_0}]", 2, "sites[0].nodes", "a number with `_`"),
    ("name: 2026-01-31\nsites: [{name: a, nodes: 1}]", 1, "name", "a date to YAML"),
    ("name: !!binary aGk=\nsites: [{name: a, nodes: 1}]", 1, "name", "the tag `!!binary` is not"),
    (links(default="{rtt: 1:30}"), 6, "links.default.rtt", "base 60 to YAML, and `1:30` is not a"),
    (links(default="{rtt: .inf}"), 6, "links.default.rtt", "no finite number"),
    # quantities
    (links(default="{rtt: 100}"), 6, "links.default.rtt", "`100` has no unit; a duration is"),
    (links(default="{rtt: -1ms}"), 6, "links.default.rtt", "`-1ms` is negative"),
    (links(default="{rtt: 1d}"), 6, "links.default.rtt", "`d` in `1d` is not a unit"),
    (links(default="{rtt: 7200s}"), 6, "links.default.rtt", "a link has a rtt of at most `3600s`"),
    (links(default="{rtt: yes}"), 6, "links.default.rtt", "is not a number and a unit"),
    (links(default="{rtt: 10ms, jitter: 11ms}"), 6, "links.default.jitter", "at most `10ms`"),
    (links(default="{rtt: 10ms, loss: 2}"), 6, "links.default.loss", "2 in a hundred is `2%`"),
    (links(default="{rtt: 10ms, loss: -1%}"), 6, "links.default.loss", "outside 0..1"),
    (links(default="{rtt: 10ms, rate: 0bit}"), 6, "links.default.rate", "lets nothing through"),
    (links(default="{rtt: 10ms, queue: 1MB}"), 6, "links.default.queue", "needs a `rate`"),
    (links(default="{rtt: 1ms, rate: 1gbit, queue: 1kB}"), 6, "links.default.queue", "1514 bytes"),
    (f"{HEAD}    lan: {{rtt: 1ms, jitter: 2ms}}\nlinks: {{default: {{rtt: 1ms}}}}".replace(
        "{name: b, nodes: [n2]}", "name: b\n    nodes: [n2]"), 6, "sites[1].lan.jitter", "at most"),
    # the shape of jitter
    (links(default="{rtt: 1s, jitter: 1ms, distribution: gauss}"), 6, "links.default.distribution",
     "allowed: uniform, normal, pareto or table"),
    (links(default="{rtt: 1s, distribution: normal}"), 6, "links.default.distribution",
     "no jitter"),
    (links(default="{rtt: 1s, jitter: 0, distribution: uniform}"), 6, "links.default.distribution",
     "there is no jitter; give a `jitter`, or remove it"),
    (links(default="{rtt: 1s, correlation: 5%}"), 6, "links.default.correlation", "no jitter"),
    (links(default="{rtt: 1s, jitter: 1ms, correlation: 100%}"), 6, "links.default.correlation",
     "every packet has the draw of the first"),
    (links(default="{rtt: 1s, jitter: 1ms, correlation: -5%}"), 6, "links.default.correlation",
     "outside 0..1"),
    (links(default="{rtt: 10ms, jitter: 3ms, distribution: normal}"), 6, "links.default.jitter",
     "the smallest draw of `normal` lies 3.67 × jitter below it, so delays would be negative"),
    (links("{from: a, to: b, delay: 10ms, jitter: 17ms, distribution: pareto}"), 8,
     "links.pairs[0].jitter", "`17ms` is too large for the delay `10ms`: the smallest draw of"),
    (links(default="{rtt: 9ms, jitter: 9ms, distribution: table, table: [1, 8, 9]}"), 6,
     "links.default.jitter", "`9ms` is too large for the rtt `9ms`: the smallest draw of `table`"),
    # tables
    (links(default="{rtt: 1s, jitter: 1ms, distribution: table}"), 6, "links.default.distribution",
     "`table` needs a `table` beside it: a file of samples, or a list of numbers"),
    (links(default="{rtt: 1s, jitter: 1ms, table: [1, 2]}"), 6, "links.default.table",
     "`table` is the shape of `distribution: table`; write that, or remove it"),
    (links(default="{rtt: 1s, jitter: 1ms, distribution: pareto, table: [1, 2]}"), 6,
     "links.default.table", "`distribution: table`, not of `pareto`"),
    (links(default="\n    rtt: 1s\n    jitter: 1ms\n    distribution: table\n    table:\n    - 1\n"
           "    - many\n    - 3"), 12, "links.default.table[1]", "`many` is no number"),
    *((links(default=f"{{rtt: 1s, jitter: 1ms, distribution: table, table: {table}}}"), 6,
       "links.default.table", complaint) for table, complaint in [
        ("[]", "no samples; a distribution needs at least two"),
        ("[7]", "one sample; a distribution needs at least two"),
        ("[5, 5.0, '5']", "all 3 samples are 5, which is no distribution"),
        ("nowhere.txt", "nowhere.txt; its name is relative to the topology file"),
        ("''", "an empty value; a table is the name of a file"),
        ("5", "`5` is no table; a table is the name of a file of samples"),
        ("true", "`true` is no table"),
        (".", "is a directory; give a file of samples"),
        ("/dev/zero", "/dev/zero is no regular file"),
        ("/proc/self/mem", "cannot be read: Input/output error"),
        ("t.yaml", "t.yaml:1: `name: t` is no number (and so in"),
        ("{file: t.yaml, column: rtt}", "t.yaml has no column `rtt`; it has `name: t`"),
        ("{file: t.yaml}", "a mapping here is `{file: FILE, column: NAME}`"),
        ("{file: 1, column: rtt}", "a mapping here is `{file: FILE, column: NAME}`"),
    ]),
    (links(default="{rtt: 1s, jitter: 1ms, distribution: table, table: [1, .nan]}"), 6,
     "links.default.table[1]", "no finite number to YAML"),
    (links(default="{rtt: 1s, jitter: 1ms, distribution: table, table: [1, 2.0e+15]}"), 6,
     "links.default.table[1]", "is not within ±1e+15"),
    # loss, reordering and the rest
    (links(default="{rtt: 1s, loss: [1%]}"), 6, "links.default.loss", "r: 30%}` is loss in"),
    (links(default="{rtt: 1s, loss: {p: 1%}}"), 6, "links.default.loss", "`r` is missing: proba"),
    (links(default="{rtt: 1s, loss: {p: 1%, r: 5%, q: 1}}"), 6, "links.default.loss.q",
     "unknown key `q`; allowed: p, r, h, k"),
    (links(default="{rtt: 1s, loss: {p: 1%, r: 5}}"), 6, "links.default.loss.r", "in a hundred is"),
    (links(default="{rtt: 1s, loss: {p: 0%, r: 5%}}"), 6, "links.default.loss.p",
     "never enters the bad state; more than `0%`; without bursts, write `loss: FRACTION`"),
    (links(default="{rtt: 1s, loss: {p: 1%, r: 0}}"), 6, "links.default.loss.r", "never leaves"),
    (links(default="{rtt: 1s, loss: {p: 1%, r: 5%, h: 1, k: 0}}"), 6, "links.default.loss.h",
     "the bad state would deliver more (`100%`) than the good one (`0%`); h and k are what is"),
    (links(default="{rtt: 1s, loss: {p: 1%, r: 5%, h: 5%, k: 1%}}"), 6, "links.default.loss.h",
     "where tc wants 1-h and 1-k"),
    (links(default="{rtt: 0, reorder: 1%}"), 6, "links.default.reorder",
     "a packet overtakes those on their way, and the rtt here is 0; give a longer one"),
    (links(default="{rtt: 1s, reorder: 100%}"), 6, "links.default.reorder", "none overtakes"),
    (links(default="{rtt: 1s, reorder: often}"), 6, "links.default.reorder",
     "allowed: `true` or `false` (whether jitter may reorder), or the part that overtakes: `1%`"),
    (links(default="{rtt: 1s, duplicate: 101%}"), 6, "links.default.duplicate", "outside 0..1"),
    (links(default="{rtt: 1s, corrupt: some}"), 6, "links.default.corrupt", "is not a fraction"),
    # access
    ("name: t\nsites: [{name: a, nodes: 1, lan: {rtt: 1ms}, access: {}}]", 2, "sites[0].access",
     "`access` stands in the place of `lan`"),
    ("name: t\nsites: [{name: a, nodes: 1, access: {up: {jitter: 1ms}}}]", 2,
     "sites[0].access.up.jitter", "larger than the delay `0ms`"),
    ("name: t\nsites: [{name: a, nodes: 1, access: {up: {rtt: 1ms}}}]", 2,
     "sites[0].access.up.rtt", "one direction has a `delay`"),
    # size
    ("name: t\nsites: [{name: a, nodes: 60000}, {name: b, nodes: 40001}]\n"
     "links: {default: {rtt: 1s}}", 2, "sites", "100001 nodes in all; at most 100000"),
    # pairs
    (links("{between: [a, c], rtt: 1ms}"), 8, "links.pairs[0].between[1]", "no site is named `c`"),
    (links("{from: a, to: bb, delay: 1ms}"), 8, "links.pairs[0].to", "did you mean `b`?"),
    (links("{between: [a, a], rtt: 1ms}"), 8, "links.pairs[0].between[1]", "paired with itself"),
    (links("{from: b, to: b, delay: 1ms}"), 8, "links.pairs[0].to", "paired with itself"),
    (links("{between: [a], rtt: 1ms}"), 8, "links.pairs[0].between", "two sites are wanted here"),
    (links("{between: a, rtt: 1ms}"), 8, "links.pairs[0].between", "two sites are wanted here"),
    (links("{rtt: 1ms}"), 8, "links.pairs[0]", "`between: [a, b]`, or `from: a` and `to: b`"),
    (links("a-b"), 8, "links.pairs[0]", "`between: [a, b]`, or `from: a` and `to: b`"),
    (links("{from: a, delay: 1ms}"), 8, "links.pairs[0]", "`to` is missing"),
    (links("{between: [a, b], rtt: 1ms, to: b}"), 8, "links.pairs[0].to", "either `between`, or"),
    (links("{from: a, to: b, delay: 1ms, rtt: 1ms}"), 8, "links.pairs[0].rtt", "with `between`"),
    (links("{from: a, to: b, delay: 1ms, jitter: 2ms}"), 8, "links.pairs[0].jitter", "the delay"),
    (links("{between: [a, b], rtt: 1ms}", "{between: [b, a], rtt: 1ms}"), 9, "links.pairs[1]",
     "the pair `b`, `a` is given already; give it once (first in line 8)"),
    (links("{from: a, to: b, delay: 1ms}", "{from: a, to: b, delay: 2ms}"), 9, "links.pairs[1]",
     "the direction from `a` to `b` is given already; give it once (first in line 8)"),
    (links("{from: b, to: a, delay: 1ms}", "{between: [a, b], rtt: 1ms}"), 9, "links.pairs[1]",
     "the direction from `b` to `a` is given already"),
    (HEAD, 1, "links", "nothing says what lies between a and b; give a `default`"),
    (f"{HEAD}links:\n  pairs:\n    - {{from: b, to: a, delay: 1ms}}", 5, "links", "from a to b"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "where", "complaint"), ONE_MISTAKE)
def test_one_mistake_is_told_once_where_it_is(
    text: str, line: int, where: str, complaint: str, tmp_path: Path
) -> None:
    ((told_line, told_where, told),) = mistakes_in(text, tmp_path)
    assert (told_line, told_where) == (line, where)
    assert complaint in told


def test_every_mistake_is_told_in_one_go_in_the_order_of_the_file(tmp_path: Path) -> None:
    told = mistakes_in(
        """\
name: No Such Name
sites:
  - name: dc1
    nodes: [n1, n1]        # twice
    lan:
      rtt: 1               # no unit
  - name: dc2
    nodes: [n1]            # in dc1 already
    lam: {rtt: 1ms}        # unknown key
  - name: dc1              # twice
    nodes: 0
links:
  pairs:
    - {between: [dc1, dc2], rtt: 1ms, jitter: 2ms, los: 1%}
    - {between: [dc1, dc9], rtt: fast}
    - {from: dc2, to: dc1}
""",
        tmp_path,
    )
    assert [(line, where) for line, where, _ in told] == [
        (1, "name"),
        (4, "sites[0].nodes[1]"),
        (6, "sites[0].lan.rtt"),
        (8, "sites[1].nodes[0]"),
        (9, "sites[1].lam"),
        (10, "sites[2].name"),
        (11, "sites[2].nodes"),
        (14, "links.pairs[0].los"),
        (14, "links.pairs[0].jitter"),
        (15, "links.pairs[1].rtt"),
        (15, "links.pairs[1].between[1]"),
        (16, "links.pairs[2]"),
        (16, "links.pairs[2]"),
    ]


def test_the_missing_pairs_are_named(tmp_path: Path) -> None:
    text = HEAD + (
        "  - {name: c, nodes: [n3]}\nlinks:\n  pairs:\n"
        "    - {between: [a, c], rtt: 1ms}\n    - {from: c, to: b, delay: 1ms}\n"
    )
    ((line, where, told),) = mistakes_in(text, tmp_path)
    assert (line, where) == (6, "links")
    assert "nothing says what lies between a and b and from b to c; give a `default`" in told


def test_200_sites_are_allowed_and_201_are_not(tmp_path: Path) -> None:
    def sites(count: int) -> str:
        lines = "".join(f"  - {{name: s{i}, nodes: 1}}\n" for i in range(count))
        return f"name: t\nlinks: {{default: {{rtt: 1ms}}}}\nsites:\n{lines}"

    file = tmp_path / "many.yaml"
    file.write_text(sites(200), encoding="utf-8")
    assert len(load(file).sites) == 200
    ((line, where, told),) = mistakes_in(sites(201), tmp_path)
    assert (line, where, told) == (3, "sites", "too many; at most 200")


def test_a_mistake_behind_an_alias_is_told_where_it_is_written(tmp_path: Path) -> None:
    text = "name: t\nsites:\n  - name: a\n    nodes: 1\n    lan: &lan\n      rtt: 5\n"
    text += "  - {name: b, nodes: 1, lan: *lan}\nlinks: {default: {rtt: 1ms}}\n"
    told = mistakes_in(text, tmp_path)
    assert [(line, where) for line, where, _ in told] == [
        (6, "sites[0].lan.rtt"),
        (6, "sites[1].lan.rtt"),
    ]


def test_more_mistakes_than_anybody_reads_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "many.yaml"
    file.write_text(f"name: t\nsites: [{'x, ' * 5000}]", encoding="utf-8")
    with pytest.raises(TopologyError) as caught:
        load(file)
    assert len(caught.value.mistakes) == 5000
    assert str(caught.value).startswith(f"{file} has 5000 mistakes:\n")
    assert str(caught.value).endswith("\nand 4800 more mistakes")
