//! What to record.

use std::path::PathBuf;

use serde::Deserialize;

use crate::way::Way;

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
    /// What is known of each, as a row of fixed length ([`super::rows`]).
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
    /// Says what is wrong, if something is; `fixed_bytes` of the files are not packets.
    pub(super) fn check(&self, fixed_bytes: u64) -> Result<(), String> {
        if !(FEWEST_SNAP_BYTES..=MOST_SNAP_BYTES).contains(&self.snap_bytes) {
            return Err(format!(
                "snap_bytes is {}; {FEWEST_SNAP_BYTES} to {MOST_SNAP_BYTES} is allowed",
                self.snap_bytes
            ));
        }
        let least = fixed_bytes + 4_096;
        if self.limit_bytes < least {
            return Err(format!(
                "limit_bytes is {}; at least {least} is needed",
                self.limit_bytes
            ));
        }
        Ok(())
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.directions.iter().map(|place| place.name.as_str())
    }
}
