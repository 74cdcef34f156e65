//! How much work a test does.

/// A tenth of `full`; all of it where the variable WANLAT_LONG is 1.
pub fn portion(full: u64) -> u64 {
    match std::env::var_os("WANLAT_LONG") {
        Some(long) if long == "1" => full,
        _ => full / 10,
    }
}
