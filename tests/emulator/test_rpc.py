"""Messages between processes: whole, in order, with their descriptors, and with a deadline."""

from __future__ import annotations

import binascii
import copyreg
import fcntl
import os
import pickle
import resource
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from wanlat.emulator.capture import CaptureStatus
from wanlat.emulator.rpc import JSON, PICKLE, Closed, Stream, pickled
from wanlat.topologies.errors import MachineError, UserError

LARGE = "x" * 3_000_000


@pytest.fixture(params=[JSON, PICKLE], ids=["JSON", "pickle"])
def ends(request: pytest.FixtureRequest) -> Iterator[tuple[Stream, Stream]]:
    one, other = (Stream(each, codec=request.param) for each in socket.socketpair())
    yield one, other
    one.close()
    other.close()


def test_descriptors_come_with_the_message_that_they_were_sent_with(ends) -> None:
    one, other = ends
    with open("/dev/null") as first, open("/dev/zero") as second:
        one.send(["none"])
        one.send(["some"], [first.fileno(), second.fileno()])
        one.send(["none again"])
        one.send(["one"], [second.fileno()])
    expected = {"none": [], "some": ["null", "zero"], "none again": [], "one": ["zero"]}
    for said, names in expected.items():
        (message, fds) = other.receive(10)
        assert message == [said]
        assert [Path(f"/proc/self/fd/{fd}").readlink().name for fd in fds] == names
        # What a program is started with is told it one by one.
        assert all(fcntl.fcntl(fd, fcntl.F_GETFD) & fcntl.FD_CLOEXEC for fd in fds)
        for fd in fds:
            os.close(fd)


def test_a_number_of_numpy_arrives_as_a_plain_one() -> None:
    """What receives it may import nothing any more (`emulator.imports`)."""
    values = [np.float64(1.5), np.float32(0.5), np.int64(7), np.bool_(True), np.arange(3)]
    sent = PICKLE.encode(values)
    received = PICKLE.decode(sent)
    assert received == [1.5, 0.5, 7, True, [0, 1, 2]]
    assert [type(value) for value in received] == [float, float, int, bool, list]
    assert b"numpy" not in binascii.a2b_base64(sent)


def test_an_error_arrives_as_itself_whatever_is_registered_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(copyreg.dispatch_table, MachineError, lambda _: (str, ("another",)))
    received = PICKLE.decode(PICKLE.encode(MachineError("mine")))
    assert (type(received), str(received)) == (MachineError, "mine")


def test_there_is_a_deadline_to_both_directions(ends) -> None:
    one, other = ends
    with pytest.raises(TimeoutError):
        one.receive(0.01)
    with pytest.raises(TimeoutError):
        one.send(LARGE, timeout_s=0.01)  # nobody reads
    with pytest.raises(TimeoutError):
        other.receive(0.01)  # half of it


def test_a_program_is_asked_over_pipes_with_descriptors_beyond_what_select_takes() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard <= 1100:
        pytest.skip("this process may not have so many open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1100), hard))
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdin is not None and program.stdout is not None
        high = fcntl.fcntl(program.stdout.fileno(), fcntl.F_DUPFD_CLOEXEC, 1050)
        with open(high, "rb") as reader:
            stream = Stream(reader, program.stdin)
            for asked in ({"op": "start"}, [LARGE[:60_000]], "ü"):
                assert stream.query(asked, 60) == asked
            stream.finish()
            with pytest.raises(Closed):
                stream.receive(60)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Calls:
    """What an attacker who has one end sends to the other."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.path),)


def test_what_is_not_allowed_is_neither_made_nor_called(tmp_path: Path) -> None:
    one, other = socket.socketpair()
    sender = Stream(one, codec=PICKLE)
    receiver = Stream(other, codec=pickled(RuntimeError, MachineError, CaptureStatus))
    for refused in (Calls(tmp_path / "made"), [Calls(tmp_path / "made")], os.mkdir, UserError("")):
        sender.send(("error", 1, refused))
        with pytest.raises(pickle.UnpicklingError):
            receiver.receive(10)
    assert not (tmp_path / "made").exists()
    status = CaptureStatus(1, 2, {"dc1->dc2": 3})
    sender.send([status, {"set": {1, None, 0.5}}, b"bytes"])
    assert receiver.receive(10)[0] == [status, {"set": {1, None, 0.5}}, b"bytes"]
    error = MachineError("no")
    error.add_note("because")
    sender.send(error)
    received = receiver.receive(10)[0]
    assert (type(received), str(received), received.__notes__) == (MachineError, "no", ["because"])
    sender.close()
    receiver.close()
