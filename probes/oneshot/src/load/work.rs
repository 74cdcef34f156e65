//! What a worker does next.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::load::deed::Deed;
use crate::load::lines::{Job, What};
use crate::load::objects::Object;
use crate::load::pace::Pace;

/// One request that is to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    pub deed: Deed,
    pub object: Object,
    /// With a rate.
    pub due_ns: Option<u64>,
}

/// What all workers share of it.
pub struct Work {
    what: What,
    mix: Vec<(Deed, f64)>,
    pace: Option<Pace>,
    end_ns: u64,
    buckets: u64,
    first: u64,
    objects: u64,
    /// Of a mix: how many objects have been written, or are being written.
    written: AtomicU64,
    turns: Turns,
}

/// What one worker knows by itself.
pub struct Own {
    chance: Chance,
    /// Objects that it has put, which it may remove.
    put: Vec<Object>,
}

impl Own {
    pub fn new(seed: u64, worker: usize) -> Self {
        Own {
            chance: Chance(seed ^ (worker as u64 + 1).wrapping_mul(0xD1B5_4A32_D192_ED03)),
            put: Vec::new(),
        }
    }

    /// A request of this worker was ok.
    pub fn done(&mut self, task: &Task, removes: bool) {
        if removes && task.deed == Deed::Put {
            self.put.push(task.object);
        }
    }
}

impl Work {
    /// `end_ns`: of a mix, when the last request may begin.
    pub fn new(job: &Job, mix: Vec<(Deed, f64)>, begin_ns: u64) -> Self {
        let duration_ns = job.duration_ms.map(|ms| ms.saturating_mul(1_000_000));
        let end_ns = duration_ns.map_or(u64::MAX, |ns| begin_ns.saturating_add(ns));
        Work {
            what: job.job,
            mix,
            pace: job.rate.map(|rate| Pace::new(rate, begin_ns, end_ns)),
            end_ns,
            buckets: job.buckets.len() as u64,
            first: job.first,
            objects: job.objects,
            written: AtomicU64::new(0),
            turns: Turns::new(job.turns(), &job.done),
        }
    }

    /// The next request of a worker; None when there is none any more. `now_ns`: the present.
    pub fn next(&self, own: &mut Own, now_ns: u64) -> Option<Task> {
        let deed = match self.what {
            What::Mix => return self.next_of_mix(own, now_ns),
            What::Fill => Deed::Put,
            What::Remove => Deed::Remove,
        };
        let turn = self.turns.take()?;
        Some(Task {
            deed,
            object: self.object(turn, self.first),
            due_ns: None,
        })
    }

    /// Has the time of a mix run out?
    pub fn is_over(&self, now_ns: u64) -> bool {
        self.what == What::Mix && now_ns >= self.end_ns
    }

    /// Of a mix with removals, workers remember what they have put.
    pub fn removes(&self) -> bool {
        self.what == What::Mix && self.mix.iter().any(|(deed, _)| *deed == Deed::Remove)
    }

    /// Is every turn done until it is ok?
    pub fn insists(&self) -> bool {
        self.what != What::Mix
    }

    /// How many requests were due and not made.
    pub fn left_out(&self) -> u64 {
        self.pace.as_ref().map_or(0, Pace::left_out)
    }

    fn next_of_mix(&self, own: &mut Own, now_ns: u64) -> Option<Task> {
        if self.is_over(now_ns) {
            return None;
        }
        let due_ns = match &self.pace {
            Some(pace) => Some(pace.take()?),
            None => None,
        };
        let (deed, object) = match self.drawn(own) {
            Deed::Remove if !own.put.is_empty() => {
                let place = own.chance.below(own.put.len() as u64) as usize;
                (Deed::Remove, own.put.swap_remove(place))
            }
            // Nothing to remove yet: something is put, which can be.
            Deed::Put | Deed::Remove => {
                let number = self.written.fetch_add(1, Ordering::Relaxed);
                let object = self.object(number, self.first + self.objects);
                (Deed::Put, object)
            }
            deed => {
                let number = own.chance.below(self.buckets * self.objects);
                (deed, self.object(number, self.first))
            }
        };
        Some(Task {
            deed,
            object,
            due_ns,
        })
    }

    fn drawn(&self, own: &mut Own) -> Deed {
        let mut left = own.chance.share() * self.mix.iter().map(|(_, share)| share).sum::<f64>();
        for (deed, share) in &self.mix {
            if left < *share {
                return *deed;
            }
            left -= share;
        }
        self.mix.last().expect("shares add up to 1").0
    }

    /// Number 0, 1, 2, … of the objects from `first` on, the buckets taking turns.
    fn object(&self, number: u64, first: u64) -> Object {
        Object {
            bucket: (number % self.buckets) as u16,
            index: first + number / self.buckets,
        }
    }
}

/// The turns of a fill or a removal that are still to be taken, each once.
struct Turns {
    /// Half-open ranges, and how many turns there are before each.
    ranges: Vec<(u64, u64, u64)>,
    taken: AtomicU64,
    hint: AtomicUsize,
}

impl Turns {
    fn new(total: u64, done: &[(u64, u64)]) -> Self {
        let mut ranges = Vec::new();
        let (mut from, mut before) = (0, 0);
        for (done_from, done_to) in done.iter().copied().chain([(total, total)]) {
            let to = done_from.min(total);
            if from < to {
                ranges.push((before, from, to));
                before += to - from;
            }
            from = from.max(done_to);
        }
        Turns {
            ranges,
            taken: AtomicU64::new(0),
            hint: AtomicUsize::new(0),
        }
    }

    fn take(&self) -> Option<u64> {
        let number = self.taken.fetch_add(1, Ordering::Relaxed);
        // Numbers grow, so the range of one is that of those before it or a later one; a hint that
        // another worker has moved too far is moved back.
        let mut place = self.hint.load(Ordering::Relaxed);
        while place > 0 && self.ranges.get(place).is_none_or(|range| number < range.0) {
            place -= 1;
        }
        loop {
            let (before, from, to) = *self.ranges.get(place)?;
            if number - before < to - from {
                self.hint.store(place, Ordering::Relaxed);
                return Some(from + number - before);
            }
            place += 1;
        }
    }
}

/// SplitMix64, as a stream.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        let mut word = [0; 8];
        crate::body::fill(self.0, 0, &mut word);
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        u64::from_le_bytes(word)
    }

    /// From 0 to below 1.
    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn below(&mut self, limit: u64) -> u64 {
        // Off from uniform by less than limit / 2^64 (Lemire's method without its rejection).
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(changes: &[(&str, &str)]) -> Work {
        let mut line: serde_json::Value = serde_json::from_str(
            r#"{"job":"mix","workers":2,"buckets":["a","b"],"objects":50,"object_bytes":1,
                "seed":1,"records":"r","duration_ms":1000,
                "mix":{"read":0.6,"write":0.3,"delete":0.1},"operations":{}}"#,
        )
        .unwrap();
        for (name, value) in changes {
            line[*name] = serde_json::from_str(value).unwrap();
        }
        let job: Job = serde_json::from_value(line).unwrap();
        let mix = job.mix.clone().into_iter().collect();
        Work::new(&job, mix, 0)
    }

    #[test]
    fn turns_that_were_done_are_not_taken_again() {
        let turns = Turns::new(10, &[(0, 2), (4, 5), (8, 20)]);
        let taken: Vec<u64> = std::iter::from_fn(|| turns.take()).collect();
        assert_eq!(taken, [2, 3, 5, 6, 7]);
        assert_eq!(Turns::new(3, &[(0, 3)]).take(), None);
    }

    #[test]
    fn a_fill_puts_every_object_once_the_buckets_taking_turns() {
        let work = work(&[("job", "\"fill\""), ("objects", "2"), ("first", "5")]);
        let mut own = Own::new(1, 0);
        let objects: Vec<(u16, u64)> = std::iter::from_fn(|| work.next(&mut own, 0))
            .map(|task| (task.object.bucket, task.object.index))
            .collect();
        assert_eq!(objects, [(0, 5), (1, 5), (0, 6), (1, 6)]);
    }

    #[test]
    fn a_mix_has_its_shares_reads_what_is_there_and_removes_what_it_put() {
        let work = work(&[]);
        let mut own = Own::new(1, 0);
        let mut counts = std::collections::HashMap::<Deed, u32>::new();
        let mut there = std::collections::HashSet::new();
        for _ in 0..20_000 {
            let task = work.next(&mut own, 0).unwrap();
            *counts.entry(task.deed).or_default() += 1;
            let object = (task.object.bucket, task.object.index);
            match task.deed {
                Deed::Put => assert!(task.object.index >= 50 && there.insert(object)),
                Deed::Remove => assert!(there.remove(&object)),
                _ => assert!(task.object.index < 50),
            }
            own.done(&task, work.removes());
        }
        assert!(
            work.next(&mut own, 1_000_000_000).is_none(),
            "its time is over"
        );
        for (deed, share) in [(Deed::Get, 0.6_f64), (Deed::Put, 0.3), (Deed::Remove, 0.1)] {
            let count = f64::from(counts[&deed]);
            // Five standard deviations of a binomial.
            let sigma = (20_000.0 * share * (1.0 - share)).sqrt();
            assert!(
                (count - 20_000.0 * share).abs() < 5.0 * sigma,
                "{deed:?}: {count}"
            );
        }
    }
}
