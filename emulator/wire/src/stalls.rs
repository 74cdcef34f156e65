//! A clock that stands still while the machine does.
//!
//! A host takes a virtual machine off its processors, one of them or all; a container's share of
//! time is used up; a lid is closed. Then nothing moves for up to some hundred milliseconds, and
//! `CLOCK_MONOTONIC` goes on. A packet that was due meanwhile would be late by all of it, and so
//! would the answer that somebody measures. That time is neither the network's nor the store's.
//! So links count running time: `CLOCK_MONOTONIC` without the stalls, which are told to whoever
//! measures, so that they take them off as well.
//!
//! A thread on each processor, up to [`MOST_BEATS`] of them, beats once a millisecond. When one of
//! them has not for three, running time stops, and goes on when all of them have. A processor that
//! is merely busy lets a thread run sooner that sleeps nearly all the time. Of each stall those
//! three count as running time, for links and for who measures alike: a delay that spans stalls is
//! right, and only what falls into them is late by up to that. A machine that has stood still for
//! so long that no scheduler was the reason is likely to do it again at once, running for a moment
//! now and then: for a second it is watched four times as closely.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde::Serialize;

use crate::sys;

/// How closely the processors are watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Watch {
    /// How often each thread shows that its processor runs.
    beat: Duration,
    /// Silence of a processor that may still be its scheduler's turn-taking.
    patience_ns: u64,
}

const USUALLY: Watch = Watch {
    beat: Duration::from_millis(1),
    patience_ns: 3_000_000,
};
const CLOSELY: Watch = Watch {
    beat: Duration::from_micros(250),
    patience_ns: 750_000,
};

/// So long after a stall of at least so long they are watched closely.
const CLOSELY_FOR_NS: u64 = 1_000_000_000;
const LONG_STALL_NS: u64 = 10_000_000;

/// Where there are more processors, the first ones stand for all.
const MOST_BEATS: usize = 4;

/// A processor that is silent for this much longer than another one is not waited for any more.
const GONE_NS: u64 = 5_000_000_000;

/// So many stalls are remembered: hours of a machine that stalls all the time.
const MOST_STALLS: usize = 200_000;

/// Who asks for the stalls during one waits for its end, but not longer.
const LONGEST_WAIT: Duration = Duration::from_millis(200);

/// A time in which a processor stood still, on `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Stall {
    /// From when on running time stood still.
    pub start_ns: u64,
    /// When it went on.
    pub end_ns: u64,
}

/// Running time: `CLOCK_MONOTONIC` less all stalls since this clock was started.
#[derive(Debug)]
pub struct RunningClock {
    shared: Arc<Shared>,
    beats: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    machine: Mutex<Machine>,
    ended: AtomicBool,
}

/// When each processor was last seen to run, and when one did not.
#[derive(Debug, Default)]
struct Machine {
    seen_ns: Vec<u64>,
    /// Since when one of them stands still.
    still_since_ns: Option<u64>,
    /// Until when they are watched closely.
    closely_until_ns: u64,
    /// The stalls, each with how long those before it lasted.
    stalls: VecDeque<(Stall, u64)>,
    /// How many more there were, and how long all lasted.
    forgotten: usize,
    stalled_ns: u64,
}

impl Machine {
    /// A machine whose processors were all seen to run at this instant.
    fn new(processors: usize, now_ns: u64) -> Machine {
        Machine {
            seen_ns: vec![now_ns; processors],
            ..Machine::default()
        }
    }

    fn watch(&self, now_ns: u64) -> Watch {
        if now_ns < self.closely_until_ns {
            CLOSELY
        } else {
            USUALLY
        }
    }

    /// The processor was seen to run.
    fn beat(&mut self, processor: usize, now_ns: u64) {
        self.look(now_ns);
        self.seen_ns[processor] = now_ns;
        self.look(now_ns);
    }

    /// Does running time stand still?
    fn look(&mut self, now_ns: u64) {
        let newest_ns = self.seen_ns.iter().max().copied().unwrap_or(now_ns);
        let here = self.seen_ns.iter().filter(|&&ns| newest_ns - ns < GONE_NS);
        let until_ns = here.min().map_or(u64::MAX, |&oldest_ns| {
            oldest_ns + self.watch(oldest_ns).patience_ns
        });
        match self.still_since_ns {
            None if now_ns > until_ns => {
                let last_ns = self.stalls.back().map_or(0, |(stall, _)| stall.end_ns);
                self.still_since_ns = Some(until_ns.max(last_ns));
            }
            Some(start_ns) if now_ns <= until_ns => {
                self.still_since_ns = None;
                if now_ns > start_ns {
                    self.note(start_ns, now_ns);
                }
            }
            _ => {}
        }
    }

    fn note(&mut self, start_ns: u64, end_ns: u64) {
        if self.stalls.len() == MOST_STALLS {
            self.stalls.pop_front();
            self.forgotten += 1;
        }
        if end_ns - start_ns >= LONG_STALL_NS {
            self.closely_until_ns = end_ns + CLOSELY_FOR_NS;
        }
        let stall = Stall { start_ns, end_ns };
        self.stalls.push_back((stall, self.stalled_ns));
        self.stalled_ns += end_ns - start_ns;
    }

    /// The running time of an instant that is not in the future.
    fn at(&self, monotonic_ns: u64) -> u64 {
        if let Some(since_ns) = self.still_since_ns
            && monotonic_ns > since_ns
        {
            return since_ns - self.stalled_ns;
        }
        let mut latest = self.stalls.iter().rev();
        match latest.find(|(stall, _)| stall.start_ns <= monotonic_ns) {
            Some((stall, before_ns)) => {
                stall.start_ns - before_ns + monotonic_ns.saturating_sub(stall.end_ns)
            }
            None => monotonic_ns - self.stalls.front().map_or(0, |(_, before_ns)| *before_ns),
        }
    }
}

impl RunningClock {
    /// Starts the beating threads. Without them this is `CLOCK_MONOTONIC`.
    pub fn start() -> RunningClock {
        let mut processors = sys::processors();
        processors.truncate(MOST_BEATS);
        let machine = Machine::new(processors.len(), sys::monotonic_ns());
        let shared = Arc::new(Shared {
            machine: Mutex::new(machine),
            ended: AtomicBool::new(false),
        });
        let beats: Vec<_> = processors
            .iter()
            .enumerate()
            .map_while(|(place, &processor)| {
                let shared = Arc::clone(&shared);
                let beat = move || {
                    sys::bind_to(processor);
                    sys::prepare_thread();
                    while !shared.ended.load(Ordering::Relaxed) {
                        let mut machine = shared.machine();
                        let now_ns = sys::monotonic_ns();
                        machine.beat(place, now_ns);
                        let Watch { beat, .. } = machine.watch(now_ns);
                        drop(machine);
                        thread::sleep(beat);
                    }
                };
                let named = thread::Builder::new().name("beat".into());
                named.spawn(beat).ok()
            })
            .collect();
        shared.machine().seen_ns.truncate(beats.len());
        RunningClock { shared, beats }
    }

    /// Running time.
    pub fn now_ns(&self) -> u64 {
        let mut machine = self.shared.machine();
        let now_ns = sys::monotonic_ns();
        machine.look(now_ns);
        machine.at(now_ns)
    }

    /// The running time of an instant of `CLOCK_MONOTONIC` that is not in the future. What lies
    /// within a stall counts as its beginning.
    pub fn at(&self, monotonic_ns: u64) -> u64 {
        let mut machine = self.shared.machine();
        machine.look(sys::monotonic_ns());
        machine.at(monotonic_ns)
    }

    /// The stalls but for the first `known`, in order of time. Waits for the end of one.
    pub fn stalls(&self, known: usize) -> Vec<Stall> {
        let since_ns = sys::monotonic_ns();
        let mut machine = self.shared.machine();
        machine.look(since_ns);
        while machine.still_since_ns.is_some()
            && u128::from(sys::monotonic_ns() - since_ns) < LONGEST_WAIT.as_nanos()
        {
            drop(machine);
            thread::sleep(USUALLY.beat);
            machine = self.shared.machine();
        }
        let skipped = known.saturating_sub(machine.forgotten);
        let new = machine.stalls.iter().skip(skipped);
        new.map(|(stall, _)| *stall).collect()
    }
}

impl Drop for RunningClock {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        for beat in self.beats.drain(..) {
            let _ = beat.join();
        }
    }
}

impl Shared {
    fn machine(&self) -> MutexGuard<'_, Machine> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: u64 = 1_000_000;

    /// A machine on which each processor was seen to run at these instants, all of them at 1000.
    fn seen(processors: usize, beats_ms: &[(u64, usize)]) -> Machine {
        let mut machine = Machine::new(processors, 1_000 * MILLISECOND);
        for &(instant_ms, processor) in beats_ms {
            machine.beat(processor, instant_ms * MILLISECOND);
        }
        machine
    }

    fn stalls_ms(machine: &Machine) -> Vec<(u64, u64)> {
        let ms =
            |(stall, _): &(Stall, u64)| (stall.start_ns / MILLISECOND, stall.end_ns / MILLISECOND);
        machine.stalls.iter().map(ms).collect()
    }

    fn at_ms(machine: &Machine, monotonic_ms: u64) -> u64 {
        machine.at(monotonic_ms * MILLISECOND) / MILLISECOND
    }

    #[test]
    fn a_silence_within_the_patience_is_no_stall() {
        let machine = seen(1, &[(1_001, 0), (1_004, 0), (1_007, 0)]);
        assert_eq!(stalls_ms(&machine), []);
        assert_eq!(at_ms(&machine, 1_007), 1_007);
    }

    #[test]
    fn running_time_stands_still_during_a_stall_and_goes_on_after_it() {
        let mut machine = seen(1, &[(1_001, 0)]);
        // The second one is no more within a second of the first.
        for now_ms in (1_301..=2_600).chain([2_802]) {
            machine.beat(0, now_ms * MILLISECOND);
        }
        assert_eq!(stalls_ms(&machine), [(1_004, 1_301), (2_603, 2_802)]);
        for (monotonic_ms, running_ms) in [
            (900, 900),
            (1_004, 1_004),
            (1_200, 1_004),
            (1_301, 1_004),
            (2_603, 2_306),
            (2_700, 2_306),
            (2_802, 2_306),
            (2_810, 2_314),
        ] {
            assert_eq!(at_ms(&machine, monotonic_ms), running_ms, "{monotonic_ms}");
        }
    }

    #[test]
    fn after_a_long_stall_shorter_ones_are_seen_for_a_second() {
        let (mut machine, mut now_us) = (Machine::new(1, 1_000 * MILLISECOND), 1_300_000);
        while now_us < 2_400_000 {
            machine.beat(0, now_us * 1_000);
            now_us += 1_750;
        }
        let stalled_us = |(stall, _): &(Stall, u64)| (stall.end_ns - stall.start_ns) / 1_000;
        let each_us: Vec<u64> = machine.stalls.iter().map(stalled_us).collect();
        assert_eq!(each_us[0], 297_000);
        assert!(each_us[1..].iter().all(|&us| us == 1_000));
        assert_eq!(each_us.len(), 1 + 1_000_000 / 1_750 + 1);
    }

    #[test]
    fn one_processor_that_stands_still_is_enough() {
        let machine = seen(
            2,
            &[(1_001, 0), (1_001, 1), (1_003, 0), (1_005, 0), (1_050, 1)],
        );
        // The second was silent from 1001 on, and the first then as well.
        assert_eq!(stalls_ms(&machine), []);
        assert_eq!(at_ms(&machine, 1_050), 1_004);
        let mut machine = machine;
        machine.beat(0, 1_051 * MILLISECOND);
        assert_eq!(stalls_ms(&machine), [(1_004, 1_051)]);
        assert_eq!(at_ms(&machine, 1_060), 1_013);
    }

    #[test]
    fn while_it_stands_still_running_time_is_that_of_its_beginning() {
        let mut machine = seen(1, &[(1_001, 0)]);
        for (now_ms, running_ms) in [(1_003, 1_003), (1_004, 1_004), (1_090, 1_004)] {
            machine.look(now_ms * MILLISECOND);
            assert_eq!(at_ms(&machine, now_ms), running_ms, "{now_ms}");
        }
    }

    #[test]
    fn a_processor_that_never_comes_back_is_not_waited_for() {
        let mut machine = seen(2, &[]);
        for ms in 1_001..7_100 {
            machine.beat(0, ms * MILLISECOND);
        }
        assert_eq!(stalls_ms(&machine), [(1_003, 6_000)]);
        assert_eq!(machine.still_since_ns, None);
    }

    #[test]
    fn the_oldest_stalls_are_forgotten_and_running_time_stays() {
        let mut machine = Machine::new(1, 0);
        for n in 1..=MOST_STALLS as u64 + 2 {
            machine.beat(0, n * 10 * MILLISECOND);
        }
        assert_eq!((machine.stalls.len(), machine.forgotten), (MOST_STALLS, 2));
        let last_ms = (MOST_STALLS as u64 + 2) * 10;
        assert_eq!(at_ms(&machine, last_ms), 3 * (MOST_STALLS as u64 + 2));
    }

    #[test]
    fn running_time_never_goes_back_and_is_the_clock_without_its_stalls() {
        let clock = RunningClock::start();
        let (first_ns, first_running_ns) = (sys::monotonic_ns(), clock.now_ns());
        let mut last_ns = first_running_ns;
        while sys::monotonic_ns() < first_ns + 200 * MILLISECOND {
            let now_ns = clock.now_ns();
            assert!(now_ns >= last_ns);
            last_ns = now_ns;
        }
        let stalls = clock.stalls(0);
        let before_ns = sys::monotonic_ns();
        let running_ns = clock.now_ns();
        let after_ns = sys::monotonic_ns();
        let stalled_ns: u64 = stalls
            .iter()
            .map(|stall| stall.end_ns - stall.start_ns)
            .sum();
        // Another stall may have come since; it only takes more off.
        assert!(running_ns - first_running_ns <= after_ns - first_ns - stalled_ns);
        if clock.stalls(stalls.len()).is_empty() {
            let passed_ns = before_ns - first_ns - stalled_ns;
            assert!(running_ns - first_running_ns + MILLISECOND >= passed_ns);
        }
        assert_eq!(clock.at(first_ns), first_running_ns.min(clock.at(first_ns)));
    }

    #[test]
    fn without_a_processor_that_beats_it_is_the_clock() {
        let mut machine = Machine::new(0, 0);
        machine.look(1_000 * MILLISECOND);
        assert_eq!(at_ms(&machine, 1_000), 1_000);
    }
}
