"""The version of wanlat, here alone: setuptools reads it, and a test holds Cargo.toml to it."""

VERSION = "0.1.0"
