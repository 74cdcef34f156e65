//! The instants of one request, whatever its protocol.

use serde::Serialize;

/// Nanoseconds since `start_ns`, None where it was not reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Timing {
    /// On CLOCK_MONOTONIC: just before connecting, or before writing on a kept connection.
    pub start_ns: u64,
    /// The connection is established; 0 on a kept one.
    pub connect_ns: Option<u64>,
    /// The kernel has taken the request's last byte.
    pub sent_ns: Option<u64>,
    /// The read that brought the response's first byte has returned.
    pub first_byte_ns: Option<u64>,
    /// The read that brought the response's last byte has returned.
    pub total_ns: Option<u64>,
    /// The clock was stopped, whatever the reason.
    pub elapsed_ns: u64,
    /// The longest time between two reads that brought bytes of the response.
    pub longest_gap_ns: u64,
    /// How many reads brought bytes.
    pub reads: u32,
}
