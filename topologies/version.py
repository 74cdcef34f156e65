"""The version of wanlat. Here because every room may import from this one."""

VERSION = "0.1.0"
