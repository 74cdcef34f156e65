//! Nothing but `tests/generated.rs`.
