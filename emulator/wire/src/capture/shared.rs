//! What the event loop and the writer share.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde::Serialize;

/// Room for packets that the writer has yet to take: some 50,000 of them, which come in a second
/// in which the disk takes nothing.
pub(super) const QUEUE_BYTES: usize = 16 << 20;

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

/// What both ends share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) queue: Mutex<Vec<u8>>,
    /// Packets that did not get into the files, of each interface.
    pub(super) missing: Vec<AtomicU64>,
    /// The writer takes no more.
    pub(super) full: AtomicBool,
    /// The writer is to write what is there and to end.
    pub(super) stop: AtomicBool,
    pub(super) status: Mutex<Status>,
}

impl Shared {
    pub(super) fn miss(&self, interface: u32) {
        if let Some(count) = self.missing.get(interface as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}
