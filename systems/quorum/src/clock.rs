//! Versions, and the hybrid logical clock that makes them.
//!
//! A version is the wall clock in microseconds with a 12-bit counter below it, so that two writes
//! within one microsecond, or after the wall clock stepped back, still get rising versions. The
//! node's number breaks ties. Kulkarni et al., "Logical Physical Clocks" (2014), squeezed into one
//! word: when the counter overflows it carries into the microseconds, which only pushes the clock
//! ahead by one of them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// A node's number: its place in the list of peers, the same on every node.
pub type NodeId = u16;

const COUNTER_BITS: u32 = 12;

/// When a value was written and by whom; the greater of two versions wins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Version {
    time: u64,
    node: NodeId,
}

impl Version {
    /// Older than every version that a clock makes.
    pub const ZERO: Self = Self { time: 0, node: 0 };
    /// Older than every version that a clock makes, and newer than none at all.
    pub const FIRST: Self = Self { time: 1, node: 0 };

    pub fn wall_time(self) -> SystemTime {
        UNIX_EPOCH + Duration::from_micros(self.time >> COUNTER_BITS)
    }

    /// The node whose clock made it.
    pub fn made_by(self) -> NodeId {
        self.node
    }

    /// The next greater version, for what replaces this one and nothing newer.
    #[must_use]
    pub fn next(self) -> Self {
        Self {
            time: self.time + 1,
            node: self.node,
        }
    }

    #[cfg(test)]
    pub fn of(time: u64, node: NodeId) -> Self {
        Self { time, node }
    }
}

pub struct Clock {
    node: NodeId,
    last: AtomicU64,
}

impl Clock {
    pub fn new(node: NodeId) -> Self {
        Self {
            node,
            last: AtomicU64::new(0),
        }
    }

    /// A version greater than all that this clock has made or observed.
    pub fn tick(&self) -> Version {
        self.tick_at(SystemTime::now())
    }

    /// Takes note of a version made elsewhere: the next tick will be greater.
    pub fn observe(&self, version: Version) {
        self.last.fetch_max(version.time, Ordering::AcqRel);
    }

    fn tick_at(&self, now: SystemTime) -> Version {
        let micros = now
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_micros() as u64;
        let wall = micros << COUNTER_BITS;
        let next = |last: u64| wall.max(last + 1);
        let last = self
            .last
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |last| Some(next(last)))
            .expect("the closure never refuses");
        Version {
            time: next(last),
            node: self.node,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_rise_although_the_wall_clock_stands_still_or_steps_back() {
        let clock = Clock::new(1);
        let now = SystemTime::now();
        let versions = (0..10_000).map(|number| match number {
            9_999 => clock.tick_at(now - Duration::from_secs(3600)),
            _ => clock.tick_at(now),
        });
        assert!(versions.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn a_version_observed_from_a_clock_ahead_is_overtaken() {
        let behind = Clock::new(0);
        let ahead = Clock::new(9);
        let theirs = ahead.tick_at(SystemTime::now() + Duration::from_secs(60));
        assert!(behind.tick() < theirs);
        behind.observe(theirs);
        assert!(behind.tick() > theirs);
    }
}
