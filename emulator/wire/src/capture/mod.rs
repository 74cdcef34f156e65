//! The packet record: every packet that crosses a link, with the instants of its entry and its
//! departure, as rows for a table and as a pcapng file for people.
//!
//! ```text
//!   event loop: Recorder ─► queue ─► Writer, in a thread of its own ─► Files: rows and pcapng
//! ```
//!
//! The event loop never waits: what finds no room in the queue is counted as missing.

mod files;
mod packet;
mod pcapng;
mod recorder;
mod rows;
mod writer;

pub use packet::Outcome;
pub use recorder::Recorder;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::control::Way;

/// Headers are always kept whole: Ethernet, two VLAN tags, the longest IPv4 and TCP headers.
const FEWEST_SNAP_BYTES: u32 = 160;

/// The largest frame.
const MOST_SNAP_BYTES: u32 = 65_600;

/// What to record, and where. Both files are there already, and are emptied.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The packets, in pcapng.
    pub pcapng: PathBuf,
    /// What is known of each, as a row of fixed length ([`rows`]).
    pub rows: PathBuf,
    /// The files together do not grow beyond this.
    pub limit_bytes: u64,
    /// What the pcapng file keeps of each packet.
    pub snap_bytes: u32,
    /// What is recorded: the record's interfaces, numbered from 0 in this order.
    pub directions: Vec<Place>,
}

/// One direction of one link, as an interface of the record.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// Number of the link.
    pub link: usize,
    /// Which way.
    pub direction: Way,
    /// What the record calls it, such as `dc1->dc2`.
    pub name: String,
}

impl Settings {
    /// Says what is wrong, if something is.
    fn check(&self) -> Result<(), String> {
        if !(FEWEST_SNAP_BYTES..=MOST_SNAP_BYTES).contains(&self.snap_bytes) {
            return Err(format!(
                "snap_bytes is {}; {FEWEST_SNAP_BYTES} to {MOST_SNAP_BYTES} is allowed",
                self.snap_bytes
            ));
        }
        let least = writer::fixed_bytes(self) + 4_096;
        if self.limit_bytes < least {
            return Err(format!(
                "limit_bytes is {}; at least {least} is needed",
                self.limit_bytes
            ));
        }
        Ok(())
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.directions.iter().map(|place| place.name.as_str())
    }
}

/// How a record stands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Status {
    /// Packets in the files.
    pub packets: u64,
    /// Length of both files.
    pub bytes: u64,
    /// Packets that are not in the files though they crossed a link, of each interface.
    pub missing: Vec<u64>,
    /// Why it ended before it was told to; `None` while it goes on.
    pub ended: Option<String>,
}
