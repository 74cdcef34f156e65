//! The line that comes out for each request.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Serialize;

use crate::outcome::{Outcome, Verdict};
use crate::plan::{Phase, Request};
use crate::tcp_info::TcpInfo;
use crate::timing::Timing;
use crate::verify::Verifier;

/// What one request yielded. Durations count from `start_ns`; null is "not reached".
#[derive(Debug, Clone, Default, Serialize)]
pub struct Record {
    pub seq: u64,
    pub phase: Phase,
    pub endpoint: Cow<'static, str>,
    #[serde(flatten)]
    pub timing: Timing,
    pub outcome: Outcome,
    /// HTTP's.
    pub status: Option<u16>,
    /// gRPC's, as the server said it; null where it said none, and where gRPC is not spoken.
    pub grpc_status: Option<i32>,
    pub error: Option<String>,
    /// Body bytes moved: those the kernel took of an object being put, else those received.
    pub object_bytes: u64,
    /// SHA-256 of the object put or got.
    pub sha256: Option<String>,
    /// How long comparing the object that came, byte by byte, with what it must be took; null where
    /// that is not known. While the clock runs this is done of objects longer than
    /// [`crate::body::WHOLE_BYTES`] only, all but what the last read brought.
    pub verify_ns: Option<u64>,
    /// How long making the object took while the clock ran: 0 up to that length. Null where none was
    /// sent.
    pub make_ns: Option<u64>,
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
}

impl Record {
    /// The record of a request that nothing but the time is known of.
    pub fn new(request: &Request, timing: Timing) -> Self {
        Record {
            seq: request.seq,
            phase: request.phase,
            endpoint: request.endpoint.clone(),
            timing,
            ..Record::default()
        }
    }

    /// Notes an object that came, of which `expected` is the length, and judges it: `came` has been
    /// compared with what it must be, None where that is not known.
    pub fn object_came(
        &mut self,
        bytes: u64,
        came: Option<&Verifier>,
        expected: Option<u64>,
    ) -> Verdict {
        self.object_bytes = bytes;
        self.verify_ns = came.map(Verifier::spent_ns);
        match expected {
            Some(expected) if expected != bytes => {
                Verdict::fail(format!("length mismatch: {bytes} bytes, not {expected}"))
            }
            _ if came.is_none_or(|came| came.first_wrong().is_none()) => Verdict::ok(),
            _ => Verdict::fail("checksum mismatch"),
        }
    }

    /// The same, judged.
    pub fn judged(mut self, verdict: Verdict) -> Self {
        self.outcome = verdict.outcome;
        self.error = verdict.error;
        self
    }

    /// What happened on the connection during the request: `before` it, None where the connection
    /// began with it, and `after` it.
    pub fn add_tcp_info(&mut self, before: Option<TcpInfo>, after: TcpInfo) {
        let tcp = after.since(before);
        self.retransmits = tcp.retransmits;
        self.out_of_order = tcp.out_of_order;
        self.acks_sent = tcp.acks_sent;
        self.rtt_us = after.rtt_us;
    }

    /// Writes the record as one line, at once.
    pub fn write(&self, mut to: impl Write) -> io::Result<()> {
        let mut line = serde_json::to_vec(self).map_err(io::Error::other)?;
        line.push(b'\n');
        to.write_all(&line)?;
        to.flush()
    }
}
