//! Order within a flow: a frame is never due before an earlier one of the same flow.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::arrival::LONGEST_DELIVERY_NS;

/// The table is not swept while it is smaller than this.
const SMALLEST_SWEEP: usize = 1_024;

/// The last due instant of every flow that still has a frame on its way.
///
/// A flow whose last frame has left holds no other back, so its entry is worth nothing. Entries
/// of that kind are swept out whenever the table has doubled since the last sweep: the cost is
/// constant per frame, and the table has at most about twice as many entries as there are frames
/// held, whose number the memory limit bounds, or received within the last
/// second.
#[derive(Debug, Default)]
pub struct FlowOrder {
    last_due_ns: HashMap<u64, u64, BuildHasherDefault<AlreadyHashed>>,
    sweep_at: usize,
}

impl FlowOrder {
    /// When a frame is due that by itself would be at `own_due_ns`, and arrived at
    /// `arrival_ns`. With `may_overtake` that is its own instant; either way it is recorded, so
    /// that the switch from reordering to order holds for the frames that are on their way.
    pub fn due_ns(
        &mut self,
        flow: u64,
        arrival_ns: u64,
        own_due_ns: u64,
        may_overtake: bool,
    ) -> u64 {
        if self.last_due_ns.len() >= self.sweep_at {
            self.sweep(arrival_ns);
        }
        let last_ns = self.last_due_ns.entry(flow).or_insert(own_due_ns);
        let in_order_ns = own_due_ns.max(*last_ns);
        *last_ns = in_order_ns;
        if may_overtake {
            own_due_ns
        } else {
            in_order_ns
        }
    }

    /// No frame that arrives from now on can be due before now. But those that reach us from
    /// now on may have arrived a little earlier.
    fn sweep(&mut self, now_ns: u64) {
        let oldest_ns = now_ns.saturating_sub(LONGEST_DELIVERY_NS);
        self.last_due_ns.retain(|_, last_ns| *last_ns > oldest_ns);
        self.sweep_at = (self.last_due_ns.len() * 2).max(SMALLEST_SWEEP);
    }
}

/// The keys are hashes; hashing them again would be for nothing.
#[derive(Debug, Default)]
struct AlreadyHashed(u64);

impl Hasher for AlreadyHashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_asked_for_later_holds_for_what_is_on_its_way() {
        let mut order = FlowOrder::default();
        order.due_ns(1, 0, 500, true);
        order.due_ns(1, 10, 300, true);
        assert_eq!(order.due_ns(1, 20, 400, false), 500);
    }

    #[test]
    fn a_million_flows_need_no_more_entries_than_frames_are_on_their_way() {
        let mut order = FlowOrder::default();
        let on_their_way = 5_000;
        for flow in 0..1_000_000u64 {
            let arrival_ns = flow * 1_000_000;
            let due_ns = arrival_ns + on_their_way * 1_000_000;
            order.due_ns(
                flow.wrapping_mul(0x9e37_79b9_7f4a_7c15),
                arrival_ns,
                due_ns,
                false,
            );
        }
        assert!(order.last_due_ns.len() <= 3 * on_their_way as usize);
        assert!(order.last_due_ns.capacity() <= 8 * on_their_way as usize);
    }
}
