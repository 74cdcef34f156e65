//! How far the wall clock is ahead of the monotonic one, known better with every reading.
//!
//! The kernel derives both from one counter, so what lies between them changes only when somebody
//! sets the wall clock. A reading takes time, and says what lies between them only within that
//! time, which is long where the reader is interrupted or a system call is slow. But what is true
//! lies in all readings. So packets that were stamped by one clock keep their order and their
//! distances, whichever reading they were taken with.

use crate::arrival::Reading;

/// The two clocks are rounded to nanoseconds apart from one another.
const ROUNDING_NS: i64 = 2;

/// The offset of `CLOCK_REALTIME` from `CLOCK_MONOTONIC`, as all readings so far allow it.
#[derive(Debug, Default)]
pub struct Offset {
    /// The least and the greatest that it can be.
    bounds_ns: Option<(i64, i64)>,
}

impl Offset {
    /// Takes in a reading. One that contradicts those before tells that the clock was set.
    pub fn learn(&mut self, reading: Reading) {
        let realtime_ns = reading.realtime_ns as i64;
        let least_ns = realtime_ns - reading.after_ns as i64 - ROUNDING_NS;
        let most_ns = realtime_ns - reading.before_ns as i64 + ROUNDING_NS;
        let (known_least_ns, known_most_ns) = self.bounds_ns.unwrap_or((least_ns, most_ns));
        let both = (known_least_ns.max(least_ns), known_most_ns.min(most_ns));
        self.bounds_ns = Some(if both.0 <= both.1 {
            both
        } else {
            (least_ns, most_ns)
        });
    }

    /// An instant of `CLOCK_REALTIME` on `CLOCK_MONOTONIC`. It takes a reading first.
    pub fn monotonic_ns(&self, realtime_ns: u64) -> u64 {
        let (least_ns, most_ns) = self.bounds_ns.unwrap_or_default();
        let offset_ns = least_ns + (most_ns - least_ns) / 2;
        u64::try_from(realtime_ns as i64 - offset_ns).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AHEAD_NS: u64 = 1_700_000_000_000_000_000;

    fn reading(before_ns: u64, after_ns: u64, at_ns: u64) -> Reading {
        Reading {
            before_ns,
            realtime_ns: AHEAD_NS + at_ns,
            after_ns,
        }
    }

    #[test]
    fn a_reading_that_was_interrupted_takes_nothing_from_a_good_one() {
        let mut offset = Offset::default();
        offset.learn(reading(1_000, 1_100, 1_050));
        let good_ns = offset.monotonic_ns(AHEAD_NS + 500);
        assert!(good_ns.abs_diff(500) <= 52);
        offset.learn(reading(5_000, 195_000, 5_020));
        offset.learn(reading(200_000, 390_000, 389_990));
        assert!(offset.monotonic_ns(AHEAD_NS + 500).abs_diff(500) <= 52);
    }

    #[test]
    fn slow_readings_together_know_more_than_each() {
        let mut offset = Offset::default();
        for (before_ns, at_ns, after_ns) in [
            (0, 10, 90_000),
            (100_000, 189_990, 190_000),
            (200_000, 240_000, 290_000),
        ] {
            offset.learn(reading(before_ns, after_ns, at_ns));
        }
        assert!(offset.monotonic_ns(AHEAD_NS + 777).abs_diff(777) <= 20);
    }

    #[test]
    fn a_wall_clock_that_was_set_is_followed_at_once() {
        let mut offset = Offset::default();
        offset.learn(reading(1_000, 1_100, 1_050));
        offset.learn(reading(2_000, 2_100, 2_050 + 3_600_000_000_000));
        let stamp_ns = AHEAD_NS + 3_600_000_000_000 + 2_050;
        assert!(offset.monotonic_ns(stamp_ns).abs_diff(2_050) <= 52);
    }
}
