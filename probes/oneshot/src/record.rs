//! The line that comes out for each request.

use std::io::{self, Write};

use serde::Serialize;

use crate::outcome::Outcome;
use crate::plan::Phase;

/// What one request yielded. Durations count from `start_ns`; null is "not reached".
#[derive(Debug, Clone, Serialize)]
pub struct Record {
    pub seq: u64,
    pub phase: Phase,
    pub endpoint: &'static str,
    /// CLOCK_MONOTONIC, just before connecting or writing.
    pub start_ns: u64,
    /// 0 where the connection was kept.
    pub connect_ns: Option<u64>,
    /// The kernel had taken the whole request.
    pub sent_ns: Option<u64>,
    pub first_byte_ns: Option<u64>,
    pub total_ns: Option<u64>,
    /// When the clock stopped, whatever the outcome.
    pub elapsed_ns: u64,
    pub outcome: Outcome,
    pub status: Option<u16>,
    pub error: Option<String>,
    /// Body bytes moved: those the kernel took of an object being put, else those received.
    pub object_bytes: u64,
    /// SHA-256 of the object put or got.
    pub sha256: Option<String>,
    /// Items in a listing.
    pub listed: Option<u64>,
    pub new_connection: bool,
    /// TCP_INFO: segments sent again during this request.
    pub retransmits: u32,
    /// TCP_INFO: segments that arrived out of order during this request.
    pub out_of_order: u32,
    /// TCP_INFO: acknowledgements sent without data during this request. A response in one piece
    /// needs none before it is complete; a delayed-ACK stall shows as at least one, together with
    /// a `longest_gap_ns` of some 40 ms.
    pub acks_sent: u32,
    /// TCP_INFO: the kernel's estimate after this request.
    pub rtt_us: u32,
    /// The longest time between two reads of the response, and how many reads it took.
    pub longest_gap_ns: u64,
    pub reads: u32,
}

impl Record {
    /// Writes the record as one line, at once.
    pub fn write(&self, mut to: impl Write) -> io::Result<()> {
        let mut line = serde_json::to_vec(self).map_err(io::Error::other)?;
        line.push(b'\n');
        to.write_all(&line)?;
        to.flush()
    }
}
