//! How late frames left, and whether the machine stood still meanwhile, in bins of time.
//!
//! A machine that is busy, or whose host takes its processors away, makes packets late, and no
//! priority prevents that. So it is recorded, and who measures knows which samples it spoilt.
//!
//! Frames tell it of their direction. A sentinel tells it of the machine, whether or not a frame
//! was due: while there are links, the loop sleeps no longer than a bin at a time, and how late
//! each sleep ends is recorded too.

use std::collections::VecDeque;
use std::mem;

use serde::Serialize;

/// Width of a bin.
pub const BIN_NS: u64 = 4_000_000;

/// Bins in which nothing was as late as this are not kept: any sleep may end so late.
const LEAST_NS: u64 = 250_000;

/// So many are kept, some 3 MiB: a minute of a lab of 200 directions that are late all the time.
const MOST_BINS: usize = 1 << 16;

/// What left within one bin of time in one direction, or how sleeps ended that ended in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LateBin {
    /// When the bin begins.
    pub start_ns: u64,
    /// Index of the direction; `None`: of the sentinel.
    pub direction: Option<usize>,
    /// Frames, or sleeps.
    pub n: u64,
    /// The greatest lateness of them.
    pub max_ns: u64,
    /// The sum of their latenesses.
    pub sum_ns: u64,
}

/// The record of all directions, and the sentinel's.
#[derive(Debug)]
pub struct Lateness {
    /// Of each direction the bin that is being filled; the last is the sentinel's.
    open: Vec<LateBin>,
    kept: VecDeque<LateBin>,
    /// How many were kept before the first of those that are.
    forgotten: u64,
}

impl Lateness {
    /// A record of so many directions.
    pub fn new(directions: usize) -> Lateness {
        Lateness {
            open: vec![LateBin::default(); directions + 1],
            kept: VecDeque::new(),
            forgotten: 0,
        }
    }

    /// A frame of a direction left at `now_ns`, so late.
    pub fn left(&mut self, direction: usize, late_ns: u64, now_ns: u64) {
        self.record(direction, Some(direction), late_ns, now_ns);
    }

    /// The loop woke up at `now_ns`, so late.
    pub fn woke(&mut self, late_ns: u64, now_ns: u64) {
        self.record(self.open.len() - 1, None, late_ns, now_ns);
    }

    /// The bins from number `since` on, and the number of the next. What is late from now on is in
    /// another bin than these.
    pub fn since(&mut self, since: u64) -> (Vec<LateBin>, u64) {
        for place in 0..self.open.len() {
            self.close(place);
        }
        let known = usize::try_from(since.saturating_sub(self.forgotten)).unwrap_or(usize::MAX);
        let bins = self.kept.iter().skip(known).copied().collect();
        (bins, self.forgotten + self.kept.len() as u64)
    }

    fn record(&mut self, place: usize, direction: Option<usize>, late_ns: u64, now_ns: u64) {
        let start_ns = now_ns - now_ns % BIN_NS;
        if self.open[place].start_ns != start_ns {
            self.close(place);
        }
        let bin = &mut self.open[place];
        (bin.start_ns, bin.direction) = (start_ns, direction);
        bin.n += 1;
        bin.max_ns = bin.max_ns.max(late_ns);
        bin.sum_ns += late_ns;
    }

    fn close(&mut self, place: usize) {
        let bin = mem::take(&mut self.open[place]);
        if bin.max_ns < LEAST_NS {
            return;
        }
        if self.kept.len() == MOST_BINS {
            self.kept.pop_front();
            self.forgotten += 1;
        }
        self.kept.push_back(bin);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: u64 = 1_000_000;

    #[test]
    fn bins_have_count_greatest_and_sum_of_each_direction_and_of_the_sentinel() {
        let mut lateness = Lateness::new(2);
        for (late, now) in [(1, 400), (3, 402), (0, 403), (2, 405)] {
            lateness.left(1, late * MILLISECOND, now * MILLISECOND);
        }
        lateness.left(0, 100_000, 400 * MILLISECOND); // as any may be
        lateness.woke(9 * MILLISECOND, 401 * MILLISECOND);
        let bin = |start: u64, direction, n, max: u64, sum: u64| LateBin {
            start_ns: start * MILLISECOND,
            direction,
            n,
            max_ns: max * MILLISECOND,
            sum_ns: sum * MILLISECOND,
        };
        let expected = vec![
            bin(400, Some(1), 3, 3, 4),
            bin(404, Some(1), 1, 2, 2),
            bin(400, None, 1, 9, 9),
        ];
        assert_eq!(lateness.since(0), (expected.clone(), 3));
        assert_eq!(lateness.since(2), (vec![expected[2]], 3));
        assert_eq!(lateness.since(3), (vec![], 3));
        lateness.woke(9 * MILLISECOND, 402 * MILLISECOND);
        assert_eq!(lateness.since(3), (vec![expected[2]], 4));
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_are_forgotten() {
        let (mut lateness, more) = (Lateness::new(0), 10);
        for bin in 1..=MOST_BINS as u64 + more {
            lateness.woke(MILLISECOND, bin * BIN_NS);
        }
        let (bins, next) = lateness.since(0);
        assert_eq!((bins.len(), next), (MOST_BINS, MOST_BINS as u64 + more));
        assert_eq!(bins[0].start_ns, (more + 1) * BIN_NS);
        assert_eq!(lateness.since(next - 1).0.len(), 1);
    }
}
