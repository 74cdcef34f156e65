"""wanlat in your own tests: a store on an emulated network, probed, broken and healed.

    @pytest.mark.wanlat_topology("three-datacenters")
    @pytest.mark.wanlat_system("garage", replication_factor=3)
    def test_a_write_survives_the_loss_of_a_node(wanlat_probe, wanlat_fault):
        key = wanlat_probe.put().key
        with wanlat_fault("kill", "n2"):
            assert wanlat_probe.at("n3").get(key).ok

docs/how-to/testing.md has all of it. Everything heavy is imported when a test uses it.
"""

from __future__ import annotations

import re
import shutil
import zlib
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from wanlat.emulator.lab import Lab
    from wanlat.experiments.session import Recording
    from wanlat.systems.base import Cluster
    from wanlat.testing import Drills, Faults, Probe
    from wanlat.topologies.model import Topology

_READY_S = 120.0
_FAILED = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("wanlat", "stores on emulated networks")
    add, bundles = group.addoption, "where failed tests leave their bundles"
    required = "fail, instead of skip, where a store is not installed or a lab cannot be"
    add("--wanlat-bundles", metavar="DIR", help=f"{bundles} (default: results/tests)")
    add("--wanlat-keep", action="store_true", help="keep the bundles of tests that passed, too")
    add("--wanlat-require", action="store_true", help=required)
    add("--wanlat-seed", type=int, metavar="N", help="of every random choice (default: the test's)")


def pytest_configure(config: pytest.Config) -> None:
    """Make the markers known."""
    for line in (
        "wanlat_topology(name, splice='all', storage='memory', calibrate=False): the network of "
        "wanlat's fixtures; a shipped topology, or the path of a file",
        "wanlat_system(*names, **options): the store of wanlat's fixtures, by name, or the "
        "directory of one of your own; with several the test runs on each",
    ):
        config.addinivalue_line("markers", line)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test once for each system that its marker names."""
    marker = metafunc.definition.get_closest_marker("wanlat_system")
    if "wanlat_system" in metafunc.fixturenames and marker is not None and marker.args:
        metafunc.parametrize("wanlat_system", marker.args, indirect=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note for the fixtures whether the test has failed so far; report where its bundle is."""
    report = yield
    recording = getattr(item, "funcargs", {}).get("wanlat_bundle")
    if report.failed:
        item.stash[_FAILED] = True
        if recording is not None:
            where = f"the bundle of this test: {recording.bundle.directory}"
            report.sections.append(("wanlat", where))
    return report


@pytest.fixture
def wanlat_seed(request: pytest.FixtureRequest) -> int:
    """Seed of every random choice: the same for a test at every run, unless an option sets it."""
    given: int | None = request.config.getoption("--wanlat-seed")
    return zlib.crc32(request.node.nodeid.encode()) if given is None else given


@pytest.fixture
def wanlat_system(request: pytest.FixtureRequest) -> str:
    """Name of the store under test (default: quorum); one of the user's own becomes known."""
    from wanlat.systems import registry

    given = str(getattr(request, "param", "quorum"))
    return registry.adopt(_located(request, given)) if "/" in given else given


@pytest.fixture
def wanlat_topology(request: pytest.FixtureRequest) -> Topology:
    """The network that the test's marker names (default: one-site)."""
    from wanlat.topologies.load import load

    return load(_topology_name(request) or "one-site")


@pytest.fixture
def wanlat_bundle(request: pytest.FixtureRequest, wanlat_seed: int) -> Iterator[Recording]:
    """The bundle, as every run's, that the test leaves when it fails."""
    from wanlat.bundle.write import claim_directory
    from wanlat.experiments.manifest import manifest_of
    from wanlat.experiments.session import Recording

    test, given = request.node.nodeid, request.config.getoption("--wanlat-bundles")
    base = Path(given) if given else request.config.rootpath / "results" / "tests"
    name = re.sub(r"[^A-Za-z0-9_.=-]+", "-", test.replace("::", "."))
    is_theirs = base.exists()
    directory = claim_directory(base / name)
    about: Any = {
        "storage": "memory",
        "places": {},
        "systems": (),
        "own": {"study": {"name": test}},
    }
    manifest = manifest_of("study", topology=None, seed=wanlat_seed, **about)
    recording = Recording(directory, {**manifest, "command": ["pytest", test]})
    yield recording
    failed = request.node.stash.get(_FAILED, False)
    reason = "the test failed" if failed else None
    recording.bundle.close("failed" if failed else "complete", reason)
    if not (failed or request.config.getoption("--wanlat-keep")):
        shutil.rmtree(directory, ignore_errors=True)
        if not is_theirs:
            with suppress(OSError):  # other tests' bundles are in it
                base.rmdir()


@pytest.fixture
def wanlat_lab(
    request: pytest.FixtureRequest, wanlat_topology: Topology, wanlat_bundle: Recording
) -> Iterator[Lab]:
    """A fresh network, of which every link can be changed; gone when the test is over."""
    from wanlat.experiments.calibration_gate import FOR_LATENCY
    from wanlat.experiments.session import LabSetup, Session
    from wanlat.topologies.resolve import resolve

    settings = {"splice": "all", **_marked(request, "wanlat_topology")}
    must_be_right = settings.pop("calibrate", False)
    plan = resolve(wanlat_topology)
    first, seed = plan.nodes[0].name, wanlat_bundle.bundle.manifest["seed"]
    setup = LabSetup(name="test", plan=plan, client=first, seed=seed, **settings)
    wanlat_bundle.bundle.write_manifest(topology=wanlat_topology.to_dict(), storage=setup.storage)
    session = Session(wanlat_bundle, setup)
    with ExitStack() as opened:
        with _skipping(request):
            lab = opened.enter_context(session.lab(is_proved=must_be_right))
        session.network_errors(lab, FOR_LATENCY.p99_ms)
        if must_be_right:
            session.calibrate(lab, FOR_LATENCY)
        yield lab


@pytest.fixture
def wanlat_cluster(
    request: pytest.FixtureRequest, wanlat_lab: Lab, wanlat_system: str, wanlat_bundle: Recording
) -> Cluster:
    """A fresh cluster of the marked system, one process a node, that serves requests."""
    from wanlat.experiments.session import Session, Setup, system_entry
    from wanlat.systems import registry

    system, plan = registry.get(wanlat_system), wanlat_lab.plan
    options = system.parse_options(_marked(request, "wanlat_system"))
    with _skipping(request):
        binary = system.binary_for(options)
        system.check_machine(plan, wanlat_lab.storage)
    setup = Setup(
        name=system.name,
        plan=plan,
        client=plan.nodes[0].name,
        seed=wanlat_bundle.bundle.manifest["seed"],
        system=system,
        options=options,
        binary=binary,
        targets=(),
    )
    cluster = Session(wanlat_bundle, setup).start(wanlat_lab, setup, _READY_S)
    entry = {**system_entry(setup, cluster.api), "endpoints": []}
    wanlat_bundle.bundle.write_manifest(systems=[entry])
    return cluster


@pytest.fixture
def wanlat_probe(
    wanlat_lab: Lab, wanlat_cluster: Cluster, wanlat_bundle: Recording
) -> Iterator[Probe]:
    """Single requests: put, get, remove; from the first node, or `.at(node)`."""
    from wanlat.testing import Probe

    bundle = wanlat_bundle.bundle
    seed = bundle.manifest["seed"]
    with closing(Probe(wanlat_lab, wanlat_cluster, bundle.sample, seed=seed)) as probe:
        yield probe


@pytest.fixture
def wanlat_fault(
    request: pytest.FixtureRequest, wanlat_lab: Lab, wanlat_bundle: Recording
) -> Faults:
    """Something broken for as long as a ``with`` block lasts: ``wanlat_fault("kill", "n2")``."""
    from wanlat.testing import Faults

    has_cluster = "wanlat_cluster" in request.fixturenames
    cluster = request.getfixturevalue("wanlat_cluster") if has_cluster else None
    return Faults(wanlat_lab, cluster, wanlat_bundle.bundle.event)


@pytest.fixture
def wanlat_drill(
    request: pytest.FixtureRequest, wanlat_system: str, wanlat_bundle: Recording
) -> Drills:
    """Whole drills on the marked system: ``wanlat_drill("one-node-killed", scale=0.2)``."""
    from wanlat.emulator.doctor import demand_lab
    from wanlat.systems import registry
    from wanlat.testing import Drills

    system, options = registry.get(wanlat_system), _marked(request, "wanlat_system")
    with _skipping(request):
        system.binary_for(system.parse_options(options))
        demand_lab()
    bundle, topology = wanlat_bundle.bundle, _topology_name(request)
    return Drills(
        directory=bundle.directory,
        system=wanlat_system,
        options=options,
        topology=topology,
        seed=bundle.manifest["seed"],
        locate=partial(_located_file, request),
    )


@contextmanager
def _skipping(request: pytest.FixtureRequest) -> Iterator[None]:
    """Take what the machine cannot do for a reason to skip the test, unless it must not be.

    A mistake of wanlat's is no MachineError, and fails the test.
    """
    from wanlat.topologies.errors import MachineError

    try:
        yield
    except MachineError as impossible:
        if request.config.getoption("--wanlat-require"):
            raise
        pytest.skip(str(impossible))


def _marked(request: pytest.FixtureRequest, name: str) -> dict[str, Any]:
    marker = request.node.get_closest_marker(name)
    return dict(marker.kwargs) if marker is not None else {}


def _topology_name(request: pytest.FixtureRequest) -> str | None:
    """Return the topology of the test's marker: a name, or the path of a file."""
    marker = request.node.get_closest_marker("wanlat_topology")
    return _located_file(request, marker.args[0]) if marker is not None and marker.args else None


def _located_file(request: pytest.FixtureRequest, given: str | Path) -> str:
    """Return the name of what is shipped, or where the path of a YAML file leads."""
    is_path = "/" in str(given) or str(given).endswith((".yaml", ".yml"))
    return _located(request, given) if is_path else str(given)


def _located(request: pytest.FixtureRequest, given: str | Path) -> str:
    """Return where a path leads: from the directory of the test's file, else from the rootdir.

    Raises UserError.
    """
    from wanlat.topologies.errors import UserError
    from wanlat.topologies.wording import show

    places = dict.fromkeys((Path(request.path).parent, request.config.rootpath))
    for place in places:
        if (place / given).exists():
            return str(place / given)
    raise UserError(
        f"There is no {show(str(given))} in {' nor in '.join(map(str, places))}: a path is "
        "relative to the directory of the test's file, or else to pytest's rootdir."
    )
