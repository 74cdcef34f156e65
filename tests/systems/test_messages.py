"""What stores' nodes say to each other is told from the first bytes of their packets."""

from __future__ import annotations

import struct

import pytest

from wanlat.systems import registry
from wanlat.systems.base import Messages

CONNECTION = 1


def _new(system: str) -> Messages:
    found = registry.messages_of(system)
    assert found is not None
    return found()


REQUEST = bytes.fromhex("827e0028" + "97ccc200cd752f010e03c4" + "20") + b"p" * 32
REPLY = bytes.fromhex("821a" + "97ccc20000000f03c40c82a4436f646500a3457272a04fac09e7")


def masked(message: bytes) -> bytes:
    """A client's frame."""
    key = b"\x12\x34\x56\x78"
    body = bytes(octet ^ key[place % 4] for place, octet in enumerate(message))
    return bytes([0x82, 0x80 | len(message)]) + key + body


def test_a_call_of_the_grid_is_told_and_so_is_its_reply() -> None:
    calls = _new("minio")
    assert calls.label(REQUEST, CONNECTION, is_request=True) == "LockLock"
    assert calls.label(REPLY, 2, is_request=False) == "reply", "of another connection"
    assert calls.label(REPLY, CONNECTION, is_request=False) == "reply to LockLock"
    assert calls.label(REPLY, CONNECTION, is_request=False) == "reply", "it was replied to already"


INNER = bytes.fromhex("97050000020e00c400"), bytes.fromhex("97060000140e00c400")
TOGETHER = b"".join(b"\xc4" + bytes([len(one)]) + one for one in INNER)


@pytest.mark.parametrize(
    ("payload", "label"),
    [
        (masked(INNER[0]), "LockRLock"),
        (masked(bytes.fromhex("97050000000300c400")), "ping"),
        (masked(bytes.fromhex("97050000020ec0c0")), None),
        (masked(bytes.fromhex("97000200001100c400") + TOGETHER), "LockRLock + ReadAll"),
        (b"\x82\x05hello", None),  # other websockets
        (b"\x81\x05hello", None),
        (b"\x82", None),
    ],
)
def test_the_grid_is_read_through_the_mask_of_a_client(payload: bytes, label: str | None) -> None:
    assert _new("minio").label(payload, CONNECTION, is_request=True) == label


def reference_frame(head: bytes) -> bytes:
    length = 12 + len(head)
    return struct.pack("<IQBIQ", length, 75, 1, len(head), 0) + head


@pytest.mark.parametrize(
    ("payload", "is_request", "label"),
    [
        (reference_frame(b"\x00\x07x"), True, "Write"),
        (reference_frame(b"\x05x"), False, "written"),
        (reference_frame(b"\x00x"), False, "reply"),
        (reference_frame(b"\x01\x06x"), True, "forwarded"),
        (b"x" * 40, True, None),
    ],
)
def test_the_reference_store_is_told_by_its_enums(
    payload: bytes, is_request: bool, label: str | None
) -> None:
    assert _new("quorum").label(payload, CONNECTION, is_request=is_request) == label
