//! When requests are due.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::clock;

/// With a rate, request k of all workers together is due k / rate after the begin, whether a worker
/// is free then or not: what waits for a free worker is late, and its record says when it was due.
/// So a store that stands still for a second is not asked less, as it is by workers that only wait
/// for their answers (coordinated omission).
pub struct Pace {
    begin_ns: u64,
    end_ns: u64,
    rate: f64,
    next: AtomicU64,
}

impl Pace {
    pub fn new(rate: f64, begin_ns: u64, end_ns: u64) -> Self {
        Pace {
            begin_ns,
            end_ns,
            rate,
            next: AtomicU64::new(0),
        }
    }

    /// The instant of the next request that nobody has taken; None when it comes after the end.
    pub fn take(&self) -> Option<u64> {
        let due_ns = self.due_ns(self.next.fetch_add(1, Ordering::Relaxed));
        (due_ns < self.end_ns).then_some(due_ns)
    }

    /// How many were due until now (or the end), and nobody took.
    pub fn left_out(&self) -> u64 {
        let until_ns = clock::now_ns().min(self.end_ns);
        let due = ((until_ns.saturating_sub(self.begin_ns)) as f64 * self.rate / 1e9).ceil() as u64;
        due.saturating_sub(self.next.load(Ordering::Relaxed))
    }

    fn due_ns(&self, number: u64) -> u64 {
        self.begin_ns + (number as f64 * 1e9 / self.rate) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_due_evenly_until_the_end_and_what_nobody_took_is_counted() {
        let pace = Pace::new(4.0, 1_000, 1_000 + 1_000_000_000);
        assert_eq!([pace.take(), pace.take()], [Some(1_000), Some(250_001_000)]);
        assert_eq!(pace.left_out(), 2);
        let due: Vec<u64> = std::iter::from_fn(|| pace.take()).collect();
        assert_eq!(due, [500_001_000, 750_001_000]);
    }
}
