//! What a measurement on a machine that others use is worth.
//!
//! A test that measures time on a machine that others use cannot know what is late because of
//! `wire`. So a thread sleeps a millisecond, again and again, while frames are measured; what
//! is tolerated is the stated tolerance, or what that thread suffers where it is worse: its median
//! lateness, or twice its 99th percentile, which is of a few samples only.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use wire::sys::{self, Epoll};

use crate::station::quantile;

const SLEEP_NS: u64 = 1_000_000;

/// A measurement that is running.
pub struct Noise {
    stop: Arc<AtomicBool>,
    sleeper: JoinHandle<Vec<i64>>,
}

impl Noise {
    pub fn start() -> Noise {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let sleeper = thread::spawn(move || {
            let mut epoll = Epoll::new().unwrap();
            let mut lateness_ns = Vec::new();
            while !stopped.load(Ordering::Relaxed) || lateness_ns.is_empty() {
                let before_ns = sys::monotonic_ns();
                epoll.wait(Some(SLEEP_NS)).unwrap();
                let slept_ns = sys::monotonic_ns() - before_ns;
                lateness_ns.push(slept_ns as i64 - SLEEP_NS as i64);
            }
            lateness_ns
        });
        Noise { stop, sleeper }
    }

    /// Ends the measurement.
    pub fn stop(self) -> Lateness {
        self.stop.store(true, Ordering::Relaxed);
        let lateness_ns = self.sleeper.join().unwrap();
        Lateness {
            p50_ns: quantile(&lateness_ns, 0.50),
            p99_ns: quantile(&lateness_ns, 0.99),
        }
    }
}

/// How late the sleeper was.
pub struct Lateness {
    pub p50_ns: i64,
    pub p99_ns: i64,
}

impl Lateness {
    /// The median that is tolerated where `stated_ns` is promised.
    pub fn tolerated_p50_ns(&self, stated_ns: i64) -> i64 {
        stated_ns.max(self.p50_ns)
    }

    /// The 99th percentile that is tolerated where `stated_ns` is promised.
    pub fn tolerated_p99_ns(&self, stated_ns: i64) -> i64 {
        stated_ns.max(2 * self.p99_ns)
    }
}

/// Measures until a measurement is good, `most_rounds` times at most, and panics with the error
/// of the last one if none is. Other programs on the machine can spoil a measurement, but a
/// defect of `wire` spoils all of them. On a quiet machine the first one is good.
pub fn in_one_round_of(most_rounds: usize, mut measure: impl FnMut() -> Result<(), String>) {
    for round in 1..=most_rounds {
        match measure() {
            Ok(()) => return,
            Err(error) if round == most_rounds => panic!("in none of {round} rounds: {error}"),
            Err(error) => println!("measured: round {round}: {error}"),
        }
    }
}

/// An error unless something holds.
pub fn hold(holds: bool, what: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what.to_owned()) }
}
