//! What happened in one direction, counted.

use serde::Serialize;

/// Counters of one direction. At any instant, every frame that was received, and every one that
/// was `duplicated`, is in exactly one of `packets`, `lost`, `queue_drops`, `memory_drops`,
/// `receive_errors`, `send_errors` and `held`; `rx_drops` were never received.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Counters {
    /// Frames read from the interface.
    pub received: u64,
    /// Frames sent.
    pub packets: u64,
    /// Bytes of the frames sent, Ethernet header included.
    pub bytes: u64,
    /// Lost as asked.
    pub lost: u64,
    /// Second copies that were made.
    pub duplicated: u64,
    /// Left at once, ahead of those on their way.
    pub overtaken: u64,
    /// Found the transmission queue full.
    pub queue_drops: u64,
    /// Found the memory for held frames used up.
    pub memory_drops: u64,
    /// Could not be read whole: longer than a frame can be, or of an unknown kind of offload.
    pub receive_errors: u64,
    /// The kernel did not take them: the interface was down or its queue full for too long.
    pub send_errors: u64,
    /// Dropped by the kernel because our receive buffer was full.
    pub rx_drops: u64,
    /// On their way.
    pub held: u64,
}

impl Counters {
    /// Counts a frame that was sent.
    pub fn sent(&mut self, frame_bytes: usize) {
        self.packets += 1;
        self.bytes += frame_bytes as u64;
    }
}
