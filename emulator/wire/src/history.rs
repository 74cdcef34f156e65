//! Which impairment was in force when.
//!
//! A change takes effect at an instant, but frames that arrived before that instant may reach us
//! after it: they wait in the socket, or in the kernel before the socket. They meet what was in
//! force when they arrived.

use std::collections::VecDeque;

use crate::arrival::LONGEST_DELIVERY_NS;
use crate::impairment::Impairment;

/// Changes in quick succession are remembered up to this many.
const MOST_ENTRIES: usize = 1_024;

/// The impairment in force, and those before it for which frames may still come.
#[derive(Debug)]
pub struct History {
    /// Each with the instant from which it is in force, in rising order. Never empty.
    entries: VecDeque<(u64, Impairment)>,
}

impl History {
    /// One impairment, in force from the beginning of time.
    pub fn new(impairment: Impairment) -> History {
        History {
            entries: VecDeque::from([(0, impairment)]),
        }
    }

    /// Another impairment, in force from `now_ns`.
    pub fn change(&mut self, impairment: Impairment, now_ns: u64) {
        self.entries.push_back((now_ns, impairment));
        let oldest_ns = now_ns.saturating_sub(LONGEST_DELIVERY_NS);
        // The first is of use for frames that arrived before the second came into force.
        while self.entries.len() > MOST_ENTRIES
            || self
                .entries
                .get(1)
                .is_some_and(|&(since_ns, _)| since_ns < oldest_ns)
        {
            self.entries.pop_front();
        }
    }

    /// The impairment that was in force at `instant_ns`, or the oldest that is remembered.
    pub fn at(&self, instant_ns: u64) -> &Impairment {
        let newest_first = self.entries.iter().rev();
        let in_force = newest_first
            .clone()
            .find(|(since_ns, _)| *since_ns <= instant_ns);
        let (_, impairment) = in_force.unwrap_or(&self.entries[0]);
        impairment
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delay(delay_ns: u64) -> Impairment {
        Impairment {
            delay_ns,
            ..Impairment::default()
        }
    }

    #[test]
    fn a_frame_meets_what_was_in_force_when_it_arrived_however_many_changes_came_since() {
        let mut history = History::new(delay(0));
        for step in 1..=10 {
            history.change(delay(step), step * 1_000);
        }
        for step in 0..=10 {
            assert_eq!(history.at(step * 1_000).delay_ns, step);
            assert_eq!(history.at(step * 1_000 + 999).delay_ns, step);
        }
    }

    #[test]
    fn changes_are_forgotten_when_no_frame_can_come_from_before_them() {
        let mut history = History::new(delay(0));
        for step in 1..=100 {
            history.change(delay(step), step * LONGEST_DELIVERY_NS);
        }
        assert!(history.entries.len() <= 3, "{}", history.entries.len());
        assert_eq!(history.at(100 * LONGEST_DELIVERY_NS).delay_ns, 100);
        assert_eq!(history.at(100 * LONGEST_DELIVERY_NS - 1).delay_ns, 99);
    }

    #[test]
    fn a_million_changes_at_once_take_little_memory_and_the_last_one_counts() {
        let mut history = History::new(delay(0));
        for step in 1..=1_000_000 {
            history.change(delay(step), 5_000);
        }
        assert!(history.entries.len() <= MOST_ENTRIES);
        assert_eq!(history.at(5_000).delay_ns, 1_000_000);
    }
}
