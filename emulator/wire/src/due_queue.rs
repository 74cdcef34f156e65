//! The frames that are on their way, by the instant at which they are due.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Where a frame comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// In which direction it goes, and who counts it: index of the direction.
    pub direction: usize,
    /// When it arrived; a copy when its original did.
    pub arrival_ns: u64,
    /// Whether it is a copy that the link made.
    pub duplicate: bool,
    /// How late it is on purpose.
    pub planted_ns: u64,
}

/// A frame that is held until it is due.
#[derive(Debug)]
pub struct HeldFrame {
    /// When it is to leave.
    pub due_ns: u64,
    /// Where it comes from.
    pub origin: Origin,
    /// Offload header and frame, at the start of a buffer of the pool.
    pub buffer: Box<[u8]>,
    /// How much of the buffer is message.
    pub length: usize,
    /// Order of arrival, among all frames of the lab.
    sequence: u64,
}

impl HeldFrame {
    /// Offload header and frame.
    pub fn message(&self) -> &[u8] {
        &self.buffer[..self.length]
    }
}

/// A heap of held frames. Frames that are due at the same instant leave as they arrived, which
/// is what keeps order within a flow.
#[derive(Debug, Default)]
pub struct DueQueue {
    heap: BinaryHeap<HeldFrame>,
    next_sequence: u64,
}

impl DueQueue {
    /// Holds a message until `due_ns`.
    pub fn push(&mut self, due_ns: u64, origin: Origin, buffer: Box<[u8]>, length: usize) {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        self.heap.push(HeldFrame {
            due_ns,
            origin,
            buffer,
            length,
            sequence,
        });
    }

    /// The frame that is due next.
    pub fn peek(&self) -> Option<&HeldFrame> {
        self.heap.peek()
    }

    /// All frames, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &HeldFrame> {
        self.heap.iter()
    }

    /// Takes the next frame if it is due at `until_ns` or before.
    pub fn pop_due(&mut self, until_ns: u64) -> Option<HeldFrame> {
        if self.heap.peek()?.due_ns > until_ns {
            return None;
        }
        self.heap.pop()
    }
}

/// The heap gives the greatest first, so the earliest is the greatest.
impl Ord for HeldFrame {
    fn cmp(&self, other: &HeldFrame) -> Ordering {
        (other.due_ns, other.sequence).cmp(&(self.due_ns, self.sequence))
    }
}

impl PartialOrd for HeldFrame {
    fn partial_cmp(&self, other: &HeldFrame) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for HeldFrame {
    fn eq(&self, other: &HeldFrame) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for HeldFrame {}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(queue: &mut DueQueue, due_ns: u64, mark: u8) {
        let origin = Origin {
            direction: 0,
            arrival_ns: 0,
            duplicate: false,
            planted_ns: 0,
        };
        queue.push(due_ns, origin, Box::new([mark]), 1);
    }

    fn drain(queue: &mut DueQueue, until_ns: u64) -> Vec<u8> {
        std::iter::from_fn(|| queue.pop_due(until_ns).map(|held| held.message()[0])).collect()
    }

    #[test]
    fn frames_leave_by_due_time_and_not_before() {
        let mut queue = DueQueue::default();
        push(&mut queue, 300, 3);
        push(&mut queue, 100, 1);
        push(&mut queue, 200, 2);
        assert!(drain(&mut queue, 99).is_empty());
        assert_eq!(drain(&mut queue, 200), [1, 2]);
        assert_eq!(queue.peek().unwrap().due_ns, 300);
        assert_eq!(drain(&mut queue, 300), [3]);
    }

    #[test]
    fn frames_due_at_the_same_instant_leave_in_the_order_in_which_they_came() {
        let mut queue = DueQueue::default();
        for mark in 0..100 {
            push(&mut queue, 50, mark);
        }
        assert_eq!(drain(&mut queue, 50), (0..100).collect::<Vec<u8>>());
    }
}
