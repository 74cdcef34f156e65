//! The packet record: every packet that crosses a link, with the instants of its entry and its
//! departure, in a pcapng file.
//!
//! ```text
//!   event loop (engine)  ─┐                      thread of its own
//!   or watcher (netem)    ├─► Recorder ─► queue ─► Writer ─► pcapng file ─► rows (later)
//! ```
//!
//! Whoever sees packets never waits: what finds no room in the queue is counted as missing.

mod file;
pub mod matcher;
pub mod offset;
pub mod packet;
pub mod pcapng;
pub mod reader;
mod recorder;
pub mod rows;
pub mod taps;
pub mod watch;
mod writer;

pub use packet::{Marks, Outcome, Packet};
pub use recorder::Recorder;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Headers are always kept whole: Ethernet, two VLAN tags, the longest IPv4 and TCP headers.
pub const FEWEST_SNAP_BYTES: u32 = 160;

/// The largest frame.
pub const MOST_SNAP_BYTES: u32 = 65_600;

/// What to record, and where.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The file. It is there already, and is emptied.
    pub file: PathBuf,
    /// The file does not grow beyond this.
    pub limit_bytes: u64,
    /// What is kept of each packet.
    pub snap_bytes: u32,
    /// Names of the interfaces of the record, such as `dc1->dc2`.
    pub names: Vec<String>,
}

impl Settings {
    /// Says what is wrong, if something is.
    pub fn check(&self) -> Result<(), String> {
        if !(FEWEST_SNAP_BYTES..=MOST_SNAP_BYTES).contains(&self.snap_bytes) {
            return Err(format!(
                "snap_bytes is {}; {FEWEST_SNAP_BYTES} to {MOST_SNAP_BYTES} is allowed",
                self.snap_bytes
            ));
        }
        let least = writer::fixed_bytes(&self.names) + 4_096;
        if self.limit_bytes < least {
            return Err(format!(
                "limit_bytes is {}; at least {least} is needed",
                self.limit_bytes
            ));
        }
        Ok(())
    }
}

/// How a record stands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Status {
    /// Packets in the file.
    pub packets: u64,
    /// Length of the file.
    pub bytes: u64,
    /// Packets that are not in the file though they crossed a link, of each interface.
    pub missing: Vec<u64>,
    /// Why it ended before it was told to; `None` while it goes on.
    pub ended: Option<String>,
    /// Whether the reason was the limit.
    pub limit_reached: bool,
}
