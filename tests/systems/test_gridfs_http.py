"""GridFS over HTTP, really run with a stand-in for its mongod: de.bwaldvogel:mongo-java-server.

It shows that the ASGI program writes, reads and deletes objects, alone and behind nginx. Nothing of
a mongod is seen here.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests import mongo_stand_in
from tests.command_line import write_program
from tests.experiments.commands import samples_of
from tests.needs import needs
from tests.own_store import adopted
from wanlat.experiments.config.study import Study
from wanlat.experiments.prepare import prepare
from wanlat.experiments.run import run
from wanlat.experiments.session import silent
from wanlat.systems.engine.definition import SHIPPED

NAME, VERSION = "stand-in", f"stand-in-{mongo_stand_in.VERSION}"
TITLE = "mongo-java-server, a stand-in"
INSTALLED = r"""
install: {path: called-as-mongod}
version: {run: [--version], match: '(\S+)'}
"""
ABSENT = {"name": "Absent", "get": "/none"}
ALONE = f"""
schema: 1
name: {NAME}
extends: gridfs-http
title: {TITLE}
{INSTALLED}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    needs("mvn", "javac", "nginx-light")
    command = mongo_stand_in.brought(tmp_path_factory.mktemp("stand-in"))
    return f'[ "$1" != --version ] || exec echo {VERSION}\nexec {shlex.join(command)} "$2" "$4"'


@pytest.mark.registry
@pytest.mark.parametrize("front", [None, "nginx"])
def test_objects_go_over_http_to_gridfs_and_back(
    front: str | None, program: str, tmp_path: Path
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    text = ALONE
    if front:
        shipped = SHIPPED / "gridfs-http-nginx"
        (own / "nginx.conf.j2").write_text((shipped / "nginx.conf.j2").read_text())
        text = (shipped / "system.yaml").read_text().replace("gridfs-http-nginx", NAME)
        text = text.replace("MongoDB GridFS over HTTP behind nginx", TITLE) + INSTALLED
    write_program(own / "called-as-mongod", program)
    system = adopted(own, text)
    own_names = ["PutObject", "GetObject", "HeadObject", "RemoveObject", "ListBuckets"]
    for number, (endpoints, outcome) in enumerate([(own_names, "ok"), ([ABSENT], "fail")]):
        study = Study(
            name="gridfs",
            topology="one-site",
            systems=[system.name],
            endpoints=endpoints,
            object_size="300KiB",  # more than one of GridFS's chunks
            samples=3,
            warmup=1,
        )
        came = run(prepare(study, directory=tmp_path / f"bundle-{number}"), silent)
        assert came.status == "complete", came.reason
        rows = samples_of(came.directory)
        names = {"Absent"} if number else {"Put", "Get", "Head", "Delete"}
        assert set(rows["endpoint"]) == names and set(rows["outcome"]) == {outcome}
        assert set(rows["system"]) == {NAME} and set(rows["version"]) == {VERSION}
