//! A transmitter with a rate and a queue in front of it.

use std::collections::VecDeque;

/// Serialises frames one after the other and drops what finds the queue full.
///
/// It moves no bytes: it computes, for every frame that arrives, when its last bit has been
/// sent. The frame that is being sent counts as waiting until then.
#[derive(Debug, Default)]
pub struct Transmitter {
    /// End of transmission and size of every frame that is not sent yet.
    waiting: VecDeque<(u64, u64)>,
    waiting_bytes: u64,
    /// When the last accepted frame has been sent.
    free_at_ns: u64,
    /// What `free_at_ns` has been rounded down by, in (1 / rate) nanoseconds: without it, the
    /// rounding of every small frame would add up to a wrong rate.
    remainder: u64,
}

impl Transmitter {
    /// When a frame of `bytes` that arrived at `arrival_ns` has been sent; `None` if there is no
    /// room for it. An empty queue takes a frame of any size, or it would never pass.
    pub fn send(
        &mut self,
        arrival_ns: u64,
        bytes: u64,
        rate_bps: u64,
        limit_bytes: u64,
    ) -> Option<u64> {
        while let Some(&(sent_ns, sent_bytes)) = self.waiting.front() {
            if sent_ns > arrival_ns {
                break;
            }
            self.waiting.pop_front();
            self.waiting_bytes -= sent_bytes;
        }
        if !self.waiting.is_empty() && self.waiting_bytes + bytes > limit_bytes {
            return None;
        }
        if self.free_at_ns <= arrival_ns {
            self.free_at_ns = arrival_ns;
            self.remainder = 0;
        }
        let rate = u128::from(rate_bps);
        // A remainder of an earlier, higher rate may exceed this one; it is below 1 ns then too.
        let nanobits = u128::from(bytes) * 8_000_000_000 + u128::from(self.remainder) % rate;
        self.free_at_ns += u64::try_from(nanobits / rate).unwrap_or(u64::MAX / 4);
        self.remainder = (nanobits % rate) as u64;
        self.waiting.push_back((self.free_at_ns, bytes));
        self.waiting_bytes += bytes;
        Some(self.free_at_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEGABIT: u64 = 1_000_000;

    #[test]
    fn a_frame_takes_its_bits_divided_by_the_rate() {
        let mut transmitter = Transmitter::default();
        assert_eq!(
            transmitter.send(5_000, 1_250, MEGABIT, 100_000),
            Some(10_005_000)
        );
    }

    #[test]
    fn frames_are_sent_one_after_the_other() {
        let mut transmitter = Transmitter::default();
        transmitter.send(0, 1_250, MEGABIT, 100_000);
        assert_eq!(
            transmitter.send(1_000, 1_250, MEGABIT, 100_000),
            Some(20_000_000)
        );
        assert_eq!(
            transmitter.send(90_000_000, 1_250, MEGABIT, 100_000),
            Some(100_000_000)
        );
    }

    #[test]
    fn rounding_does_not_add_up() {
        let mut transmitter = Transmitter::default();
        // 60 bytes at 7 Gbit/s take 68.57 ns.
        let sent_ns = (0..7_000_000)
            .map(|_| transmitter.send(0, 60, 7_000 * MEGABIT, u64::MAX).unwrap())
            .last();
        assert_eq!(sent_ns, Some(480_000_000));
    }

    #[test]
    fn a_full_queue_drops_what_comes_last_and_takes_frames_again_once_it_has_drained() {
        let mut transmitter = Transmitter::default();
        let limit_bytes = 3_000;
        for _ in 0..3 {
            assert!(transmitter.send(0, 1_000, MEGABIT, limit_bytes).is_some());
        }
        assert_eq!(transmitter.send(0, 1_000, MEGABIT, limit_bytes), None);
        // The first has been sent after 8 ms.
        assert_eq!(
            transmitter.send(7_999_999, 1_000, MEGABIT, limit_bytes),
            None
        );
        assert_eq!(
            transmitter.send(8_000_000, 1_000, MEGABIT, limit_bytes),
            Some(32_000_000)
        );
    }

    #[test]
    fn an_empty_queue_takes_a_frame_larger_than_its_limit() {
        let mut transmitter = Transmitter::default();
        assert!(transmitter.send(0, 9_000, MEGABIT, 1_000).is_some());
        assert_eq!(transmitter.send(1, 9_000, MEGABIT, 1_000), None);
    }

    #[test]
    fn a_change_of_rate_keeps_what_waits_in_its_place_and_its_bytes_as_they_are() {
        let mut transmitter = Transmitter::default();
        transmitter.send(0, 1_250, MEGABIT, 3_000);
        // A thousand times faster now: it starts when the first one has been sent, and does not
        // take the 10 ms that are left of it for 1.25 MB of backlog.
        let sent_ns = transmitter.send(1, 1_250, 1_000 * MEGABIT, 3_000);
        assert_eq!(sent_ns, Some(10_010_000));
    }

    #[test]
    fn the_slowest_rate_does_not_overflow() {
        let mut transmitter = Transmitter::default();
        for _ in 0..3 {
            assert!(
                transmitter
                    .send(0, u64::from(u32::MAX), 1, u64::MAX)
                    .is_some()
            );
        }
    }
}
