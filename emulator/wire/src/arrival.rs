//! When a frame arrived, on the clock that everything else here uses.
//!
//! The kernel stamps a frame as it is received, which is some 10–200 µs before we get to run.
//! Counting the delay from the stamp keeps our own lateness out of it. But the stamp is of
//! `CLOCK_REALTIME`, which steps when somebody sets it; so a stamp is turned into an age, and an
//! age is believed only as far as it is possible: what we receive now has reached the socket
//! after we last saw it empty, and was not stamped long before.

use crate::sys;

/// The same instant on both clocks.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClockPair {
    /// `CLOCK_MONOTONIC`.
    pub monotonic_ns: u64,
    /// `CLOCK_REALTIME`.
    pub realtime_ns: u64,
}

/// A frame may reach its socket this long after it was stamped. Usually that is a microsecond;
/// but the kernel stamps in the context of the sender, and on a busy machine it leaves the rest
/// to a thread (`ksoftirqd`) that has to wait for its turn; 0.3 s have been seen.
pub const LONGEST_DELIVERY_NS: u64 = 1_000_000_000;

/// Three clock readings that take longer than this were interrupted; they are taken again.
const LONGEST_READING_NS: u64 = 2_000;

impl ClockPair {
    /// Reads both clocks as one: again, at most three times, if it was interrupted.
    pub fn now() -> ClockPair {
        let (mut best, mut shortest_ns) = (ClockPair::default(), u64::MAX);
        for _ in 0..4 {
            let before_ns = sys::monotonic_ns();
            let realtime_ns = sys::realtime_ns();
            let took_ns = sys::monotonic_ns() - before_ns;
            if took_ns < shortest_ns {
                shortest_ns = took_ns;
                best = ClockPair {
                    monotonic_ns: before_ns + took_ns / 2,
                    realtime_ns,
                };
            }
            if took_ns <= LONGEST_READING_NS {
                break;
            }
        }
        best
    }

    /// The monotonic instant of a kernel timestamp, for a frame received at this pair's instant
    /// from a socket that was empty at `empty_ns`. Without a stamp, this pair's instant.
    pub fn arrival_ns(&self, stamp_realtime_ns: Option<u64>, empty_ns: u64) -> u64 {
        let Some(stamp_ns) = stamp_realtime_ns else {
            return self.monotonic_ns;
        };
        let age_ns = self.realtime_ns.saturating_sub(stamp_ns);
        let oldest_ns = empty_ns.saturating_sub(LONGEST_DELIVERY_NS);
        self.monotonic_ns
            .saturating_sub(age_ns)
            .max(oldest_ns.min(self.monotonic_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAIR: ClockPair = ClockPair {
        monotonic_ns: 5_000_000_000,
        realtime_ns: 1_700_000_000_000_000_000,
    };

    #[test]
    fn a_stamp_becomes_the_instant_that_lies_its_age_back() {
        let stamp = Some(PAIR.realtime_ns - 70_000);
        assert_eq!(PAIR.arrival_ns(stamp, 0), 4_999_930_000);
    }

    #[test]
    fn without_a_stamp_a_frame_arrives_now() {
        assert_eq!(PAIR.arrival_ns(None, 0), PAIR.monotonic_ns);
    }

    #[test]
    fn a_realtime_clock_that_was_set_back_cannot_put_an_arrival_into_the_future() {
        let stamp = Some(PAIR.realtime_ns + 3_600_000_000_000);
        assert_eq!(PAIR.arrival_ns(stamp, 0), PAIR.monotonic_ns);
    }

    #[test]
    fn a_realtime_clock_that_was_set_forward_cannot_make_a_frame_older_than_possible() {
        let stamp = Some(PAIR.realtime_ns - 3_600_000_000_000);
        let empty_ns = PAIR.monotonic_ns - 100_000;
        let oldest_ns = empty_ns - LONGEST_DELIVERY_NS;
        assert_eq!(PAIR.arrival_ns(stamp, empty_ns), oldest_ns);
    }

    #[test]
    fn reading_both_clocks_takes_no_time_worth_mentioning() {
        let before_ns = sys::monotonic_ns();
        let pair = ClockPair::now();
        assert!((before_ns..=sys::monotonic_ns()).contains(&pair.monotonic_ns));
    }
}
