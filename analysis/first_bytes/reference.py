"""The reference store's frames between nodes (systems/quorum/src/peers/frame.rs)."""

from __future__ import annotations

_HEADER = 13  # length: u32, message: u64, first: u8
_START = 12  # length of the head: u32, of the body: u64
_LONGEST_FRAME = 64 << 20
# In the order of the enums in systems/quorum/src/replica.rs.
_COMMANDS = (
    "Nothing",
    "Buckets",
    "Bucket",
    "CreateBucket",
    "MergeBucket",
    "List",
    "Get",
    "Write",
)
_ANSWERS = ("reply", "buckets", "bucket", "page", "object", "written", "refused", "failed")
_GREETING = b"quorum 1"


def reference(payload: bytes, *, is_request: bool) -> str | None:
    """ "Write", "written", "forwarded", "reply"; None for what is no first frame of a message."""
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
