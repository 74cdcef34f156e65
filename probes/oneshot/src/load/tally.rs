//! What has been done so far, counted as records come, and the lines that tell of it.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::load::deed::Deed;
use crate::load::record::Record;
use crate::load::shared::Shared;
use crate::load::usage;
use crate::outcome::Outcome;

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    Complete,
    /// It was told to.
    Stopped,
    GaveUp(String),
}

#[derive(Debug, Default)]
pub struct Tally {
    began_ns: u64,
    ok: u64,
    failed: u64,
    /// This machine could not; they are not among `failed`.
    not_sent: u64,
    /// Of the first of them; 0: none.
    not_sent_error: u16,
    bytes_read: u64,
    bytes_written: u64,
    in_flight_ns: u64,
    verify_ns: u64,
    errors: HashMap<u16, u64>,
    /// Of errors' kinds; 0: none.
    pub last_error: u16,
    /// The begin, where none was.
    pub last_ok_ns: u64,
    /// When progress was told last, and what was done then.
    told: (u64, u64),
}

/// The line of each second.
#[derive(Debug, Serialize)]
pub struct Progress {
    t_ns: u64,
    done: u64,
    ok: u64,
    failed: u64,
    per_s: f64,
    bytes: u64,
}

/// The last line.
#[derive(Debug, Serialize)]
pub struct End {
    end: &'static str,
    reason: Option<String>,
    began_ns: u64,
    ended_ns: u64,
    done: u64,
    ok: u64,
    failed: u64,
    not_sent: u64,
    not_sent_error: Option<String>,
    bytes_read: u64,
    bytes_written: u64,
    /// Due, and never sent.
    left_out: u64,
    /// Workers whose request was still on its way.
    unanswered: usize,
    threads: usize,
    cores: usize,
    user_ns: u64,
    system_ns: u64,
    cpu_ns: u64,
    /// Of each worker that has ended.
    thread_cpu_ns: Vec<u64>,
    /// How long each of these could have run and waited for a core; empty where that is not known.
    thread_waited_ns: Vec<u64>,
    /// Of all requests together: from when they were begun until they ended.
    in_flight_ns: u64,
    verify_ns: u64,
    errors: BTreeMap<String, u64>,
    examples: BTreeMap<String, String>,
}

impl Tally {
    pub fn new(began_ns: u64) -> Self {
        Tally {
            began_ns,
            last_ok_ns: began_ns,
            told: (began_ns, 0),
            ..Tally::default()
        }
    }

    pub fn take(&mut self, records: &[Record]) {
        for record in records {
            if record.endpoint == Deed::Put as u8 {
                self.bytes_written += record.object_bytes;
            } else {
                self.bytes_read += record.object_bytes;
            }
            self.in_flight_ns += record.elapsed_ns;
            self.verify_ns += u64::from(record.verify_ns);
            if record.outcome == Outcome::Ok {
                self.ok += 1;
                self.last_ok_ns = self.last_ok_ns.max(record.start_ns + record.elapsed_ns);
            } else {
                if record.outcome == Outcome::NotSent {
                    if self.not_sent == 0 {
                        self.not_sent_error = record.error;
                    }
                    self.not_sent += 1;
                } else {
                    self.failed += 1;
                }
                self.last_error = record.error;
                *self.errors.entry(record.error).or_default() += 1;
            }
        }
    }

    fn done(&self) -> u64 {
        self.ok + self.failed + self.not_sent
    }

    pub fn progress(&mut self, now_ns: u64) -> Progress {
        let (told_ns, told_done) = self.told;
        self.told = (now_ns, self.done());
        let seconds = (now_ns - told_ns).max(1) as f64 / 1e9;
        let per_s = (self.done() - told_done) as f64 / seconds;
        Progress {
            t_ns: now_ns,
            done: self.done(),
            ok: self.ok,
            failed: self.failed,
            per_s: (per_s * 10.0).round() / 10.0,
            bytes: self.bytes_read + self.bytes_written,
        }
    }

    pub fn end(&self, ending: &Ending, shared: &Shared, ended_ns: u64) -> End {
        let (user_ns, system_ns) = usage::of_process();
        let ended: Vec<_> = shared.threads().into_iter().flatten().collect();
        let examples = shared.names.examples();
        let errors = self.errors.iter().filter_map(|(number, count)| {
            let (name, _) = examples.get(usize::from(*number).checked_sub(1)?)?;
            Some((name.clone(), *count))
        });
        let (end, reason) = match ending {
            Ending::Complete => ("complete", None),
            Ending::Stopped => ("stopped", None),
            Ending::GaveUp(why) => ("gave up", Some(why.clone())),
        };
        End {
            end,
            reason,
            began_ns: self.began_ns,
            ended_ns,
            done: self.done(),
            ok: self.ok,
            failed: self.failed,
            not_sent: self.not_sent,
            not_sent_error: (self.not_sent > 0).then(|| shared.names.example(self.not_sent_error)),
            bytes_read: self.bytes_read,
            bytes_written: self.bytes_written,
            left_out: shared.work.left_out(),
            unanswered: shared.workers - ended.len(),
            threads: shared.workers + 1,
            cores: usage::cores(),
            user_ns,
            system_ns,
            cpu_ns: user_ns + system_ns,
            thread_cpu_ns: ended.iter().map(|thread| thread.cpu_ns).collect(),
            thread_waited_ns: ended.iter().filter_map(|thread| thread.waited_ns).collect(),
            in_flight_ns: self.in_flight_ns,
            verify_ns: self.verify_ns,
            errors: errors.collect(),
            examples: examples.iter().cloned().collect(),
        }
    }
}
