//! What all workers of a job share.

use std::mem;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::clock;
use crate::load::deed::Deed;
use crate::load::lines::Job;
use crate::load::objects::Objects;
use crate::load::record::{Names, Record};
use crate::load::usage::OfThread;
use crate::load::work::Work;

/// How long nothing is noticed of a stop at most.
const SLICE_NS: u64 = 50_000_000;
const SOUND: &str = "nobody panics while he holds it";

pub struct Shared {
    pub work: Work,
    pub objects: Objects,
    pub begin_ns: u64,
    pub ramp_ns: u64,
    pub workers: usize,
    pub give_up_ns: u64,
    pub stop: AtomicBool,
    /// Workers that have not ended.
    pub alive: AtomicUsize,
    pub names: Names,
    records: Mutex<Vec<Record>>,
    /// Why a worker gave up that does each turn until it is done.
    gave_up: Mutex<Option<String>>,
    /// Of those that have ended.
    threads: Mutex<Vec<Option<OfThread>>>,
}

impl Shared {
    /// The job begins now.
    pub fn new(job: &Job, mix: Vec<(Deed, f64)>) -> Self {
        let begin_ns = clock::now_ns();
        Shared {
            work: Work::new(job, mix, begin_ns),
            objects: Objects::new(&job.operations, job.seed, &job.buckets, job.object_bytes),
            begin_ns,
            ramp_ns: job.ramp_ms.saturating_mul(1_000_000),
            workers: job.workers,
            give_up_ns: job.give_up_ms.saturating_mul(1_000_000),
            stop: AtomicBool::new(false),
            alive: AtomicUsize::new(job.workers),
            names: Names::default(),
            records: Mutex::default(),
            gave_up: Mutex::default(),
            threads: Mutex::new(vec![None; job.workers]),
        }
    }

    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Sleeps; false when it is time to stop.
    pub fn sleep_until(&self, instant_ns: u64) -> bool {
        loop {
            if self.is_stopped() {
                return false;
            }
            let left_ns = instant_ns.saturating_sub(clock::now_ns());
            if left_ns == 0 {
                return true;
            }
            thread::sleep(Duration::from_nanos(left_ns.min(SLICE_NS)));
        }
    }

    pub fn add(&self, record: Record) {
        self.records.lock().expect(SOUND).push(record);
    }

    pub fn take_records(&self) -> Vec<Record> {
        mem::take(&mut *self.records.lock().expect(SOUND))
    }

    /// Stops all workers.
    pub fn give_up(&self, why: String) {
        self.gave_up.lock().expect(SOUND).get_or_insert(why);
        self.stop.store(true, Ordering::Relaxed);
    }

    pub fn gave_up(&self) -> Option<String> {
        self.gave_up.lock().expect(SOUND).clone()
    }

    /// A worker is done; its records are all here.
    pub fn ended(&self, worker: usize, usage: OfThread) {
        self.threads.lock().expect(SOUND)[worker] = Some(usage);
        self.alive.fetch_sub(1, Ordering::Release);
    }

    pub fn threads(&self) -> Vec<Option<OfThread>> {
        self.threads.lock().expect(SOUND).clone()
    }
}
