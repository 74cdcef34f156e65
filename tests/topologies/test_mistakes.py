"""Every mistake in a topology file is reported with its line, what is wrong and what is allowed."""

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


def sites(*entries: str) -> str:
    """A topology of these sites, each in a line of its own from the third on, without links."""
    return "name: t\nsites:\n" + "".join(f"  - {{{entry}}}\n" for entry in entries)


OF_A_FILE = [
    # keys
    (f"{HEAD}links: {{default: {{rtt: 1s}}, pears: []}}", 5, "links.pears", "mean `pairs`?"),
    (f"color: red\n{links()}", 1, "color", "allowed: name, description, sites, links"),
    ("sites: [{name: a, nodes: 1}]", 1, "", "`name` is missing"),
    (sites("name: a"), 3, "sites[0]", "`nodes` is missing: names of the nodes"),
    ("name: t\nname: u\nsites: [{name: a, nodes: 1}]", 1, "name", "again in line 2"),
    ("name: t\n<<: 5\nsites: [{name: a, nodes: 1}]", 1, "", "`<<` merges a mapping"),
    # kinds
    ("- a\n- b", 1, "", "a mapping is wanted here, not a list; its keys are name, description,"),
    (sites("name: a, nodes: two"), 3, "sites[0].nodes", "names such as `[n1, n2]`"),
    (sites("name: a, nodes: 0"), 3, "sites[0].nodes", "at least 1"),
    ("name: t\nsites: [{name: a, nodes: 1}]\ndescription: 5", 3, "description", "in quotes"),
    # names
    ("name: T\nsites: [{name: a, nodes: 1}]", 1, "name", "1 to 32 of a-z, 0-9 and -"),
    (sites("name: a, nodes: [n_1]"), 3, "sites[0].nodes[0]", "`n_1` cannot be"),
    (sites(f"name: {'a' * 31}, nodes: 2"), 3, "sites[0].nodes", "longer than 32"),
    (sites("name: a, nodes: [x]", "name: a, nodes: [y]"), 4, "sites[1].name", "(first in line 3)"),
    (sites("name: a, nodes: [x, x]"), 3, "sites[0].nodes[1]", "node `x` is there"),
    (f"{sites('name: n, nodes: 2', 'name: d, nodes: [n-2]')}links: {{default: {{rtt: 0}}}}",
     4, "sites[1].nodes[0]", "node `n-2` is there already"),
    # what YAML 1.1 read otherwise than people do is text
    (sites("name: a, nodes: [1]"), 3, "sites[0].nodes[0]", 'put it in quotes: "1"'),
    (sites("name: a, nodes: 010"), 3, "sites[0].nodes", "`010` is neither a count nor a list"),
    (sites("name: !!binary aGk=, nodes: 1"), 3, "sites[0].name", "the tag `!!binary` is not"),
    (sites("name: a, nodes: 1, lan: {rtt: 1ms}, access: {}"), 3, "sites[0].access",
     "`access` stands in the place of `lan`"),
    (f"{sites('name: a, nodes: 60000', 'name: b, nodes: 40001')}links: {{default: {{rtt: 1s}}}}",
     2, "sites", "100001 nodes in all; at most 100000"),
    (HEAD, 1, "links", "nothing says what lies between a and b; give a `default`"),
    (f"{HEAD}links:\n  pairs:\n    - {{from: b, to: a, delay: 1ms}}", 5, "links", "from a to b"),
]  # fmt: skip
OF_A_LINK = [
    ("{rtt: 100}", ".rtt", "`100` has no unit; a duration is"),
    ("{rtt: 7200s}", ".rtt", "a link has a rtt of at most `3600s`"),
    ("{rtt: 10ms, jitter: 11ms}", ".jitter", "at most `10ms`"),
    ("{rtt: 10ms, queue: 1MB}", ".queue", "needs a `rate`"),
    ("{rtt: 1ms, rate: 1gbit, queue: 1kB}", ".queue", "1514 bytes"),
    # the shape of jitter
    ("{rtt: 1s, jitter: 1ms, distribution: gauss}", ".distribution", "normal, pareto or table"),
    ("{rtt: 1s, jitter: 0, distribution: normal}", ".distribution", "no jitter"),
    ("{rtt: 10ms, jitter: 3ms, distribution: normal}", ".jitter", "is 3.67 × jitter below it, so"),
    ("{rtt: 9ms, jitter: 9ms, distribution: table, table: [1, 8, 9]}", ".jitter", "of `table`"),
    ("{rtt: 1s, jitter: 1ms, distribution: table}", ".distribution", "needs a `table` beside it"),
    ("{rtt: 1s, jitter: 1ms, table: [1, 2]}", ".table", "the shape of `distribution: table`"),
    *((f"{{rtt: 1s, jitter: 1ms, distribution: table, table: {table}}}", where, complaint)
      for table, where, complaint in [
        ("[5, 5.0]", ".table", "all 2 samples are 5, which is no distribution"),
        ("5", ".table", "a list is wanted here, not the number `5`"),
        ("t.yaml", ".table", "t.yaml:1: `name:` is no number"),
    ]),
    # loss, reordering and the rest
    ("{rtt: 1s, loss: {p: 1%, r: 5%, q: 1}}", ".loss.q", "unknown key `q`; allowed: p, r, h, k"),
    ("{rtt: 1s, loss: {p: 0%, r: 5%}}", ".loss.p", "without bursts, write `loss: FRACTION`"),
    ("{rtt: 1s, loss: {p: 1%, r: 5%, h: 5%, k: 1%}}", ".loss.h", "where tc wants 1-h and 1-k"),
    ("{rtt: 0, reorder: 1%}", ".reorder", "the rtt here is 0; give a longer one"),
    ("{rtt: 1s, reorder: 100%}", ".reorder", "none overtakes"),
    ("{rtt: 1s, reorder: yes}", ".reorder", "`true` or `false` (whether jitter may reorder)"),
]  # fmt: skip
OF_A_PAIR = [
    ("{between: [a, c], rtt: 1ms}", ".between[1]", "no site is named `c`"),
    ("{from: a, to: bb, delay: 1ms}", ".to", "did you mean `b`?"),
    ("{between: [a, a], rtt: 1ms}", ".between[1]", "paired with itself"),
    ("{rtt: 1ms}", "", "`between: [a, b]`, or `from: a` and `to: b`"),
    ("{between: [a, b], rtt: 1ms, to: b}", ".to", "either `between`, or"),
    ("{from: a, to: b, delay: 1ms, rtt: 1ms}", ".rtt", "with `between`"),
]
ONE_MISTAKE = [
    *OF_A_FILE,
    *((links(default=text), 6, f"links.default{where}", what) for text, where, what in OF_A_LINK),
    *((links(text), 8, f"links.pairs[0]{where}", what) for text, where, what in OF_A_PAIR),
    *((links(text, "{between: [b, a], rtt: 1ms}"), 9, "links.pairs[1]", "(first in line 8)")
      for text in ("{between: [a, b], rtt: 1ms}", "{from: a, to: b, delay: 1ms}")),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "where", "complaint"), ONE_MISTAKE)
def test_one_mistake_is_reported_once_where_it_is(
    text: str, line: int, where: str, complaint: str, tmp_path: Path
) -> None:
    ((found_line, found_where, found),) = mistakes_in(text, tmp_path)
    assert (found_line, found_where) == (line, where)
    assert complaint in found


def test_every_mistake_is_reported_in_one_go_in_the_order_of_the_file(tmp_path: Path) -> None:
    found = mistakes_in(
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
    assert [(line, where) for line, where, _ in found] == [
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


def test_more_mistakes_than_anybody_reads_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "many.yaml"
    file.write_text(f"name: t\nsites: [{'x, ' * 5000}]", encoding="utf-8")
    with pytest.raises(TopologyError) as caught:
        load(file)
    assert len(caught.value.mistakes) == 5000
    assert str(caught.value).startswith(f"{file} has 5000 mistakes:\n")
    assert str(caught.value).endswith("\nand 4800 more mistakes")
