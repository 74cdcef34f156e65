"""What YAML cannot express of the reference store: its placement, and its nodes' messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wanlat.systems.placement import layout_of

if TYPE_CHECKING:
    from wanlat.systems.engine.scene import Node

layout = layout_of


def given_of(given: Any, names: Iterable[str]) -> list[str]:
    """Return those of the options that have a value."""
    return [name for name in names if getattr(given, name) is not None]


def defective(options: Any, nodes: Sequence[Node]) -> dict[str, list[str]]:
    """Return who has which defect."""
    chosen = [options.defect_node] if options.defect_node else [node.name for node in nodes]
    return {defect: chosen[:1] if defect == "stale-reads" else chosen for defect in options.defects}


def of_node(who: Mapping[str, Sequence[str]], node: Node) -> list[str]:
    """Return a node's defects."""
    return [defect for defect, names in who.items() if node.name in names]


def alike(near: Sequence[int], needed: int) -> int | None:
    """Return the round trips of a request that so many must answer; None where keys differ."""
    numbers = {int(count < needed) for count in near}
    return numbers.pop() if len(numbers) == 1 else None


def replicas(scene: dict[str, Any], key: bytes) -> tuple[str, ...] | None:
    """Known of Bob's keys; S3's objects are on every node."""
    return scene["layout"].replicas(key) if scene["bob"] else None


# A frame (systems/quorum/src/peers/frame.rs) has its length, the message's number and whether it is
# the message's first; a message has the lengths of its head and its body.
_HEADER = 13  # length: u32, message: u64, first: u8
_START = 12  # length of the head: u32, of the body: u64
_LONGEST_FRAME = 64 << 20
# In the order of the enums in systems/quorum/src/replica.rs.
_COMMANDS = ("Nothing", "Buckets", "Bucket", "CreateBucket", "MergeBucket", "List", "Get", "Write")
_ANSWERS = ("reply", "buckets", "bucket", "page", "object", "written", "refused", "failed")
_GREETING = b"quorum 1"


class Messages:
    """Of its nodes' connections, which need no memory of what went before."""

    def label(self, payload: bytes, connection: int, *, is_request: bool) -> str | None:  # noqa: ARG002
        """ "Write", "written", "forwarded", "reply"; None for what begins no message."""
        if _GREETING in payload[: _HEADER + _START + 16]:
            return "greeting"
        if len(payload) < _HEADER + _START + 1 or payload[12] != 1:
            return None
        length = int.from_bytes(payload[:4], "little")
        head_bytes = int.from_bytes(payload[13:17], "little")
        if not _START <= length <= _LONGEST_FRAME or head_bytes > length - _START:
            return None
        head = payload[_HEADER + _START : _HEADER + _START + 2]
        if not is_request:
            # 0 begins an answer without content, and the answer to what was forwarded, too.
            return _ANSWERS[head[0]] if 0 < head[0] < len(_ANSWERS) else "reply"
        if head[0] != 0:
            return "forwarded"
        return _COMMANDS[head[1]] if len(head) > 1 and head[1] < len(_COMMANDS) else None
