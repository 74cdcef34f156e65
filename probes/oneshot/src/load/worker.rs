//! One worker: asks, waits for the answer, asks again.

use tonic::Code;

use crate::clock;
use crate::load::deed::Deed;
use crate::load::record::Record as LoadRecord;
use crate::load::shared::Shared;
use crate::load::usage;
use crate::load::work::{Own, Task};
use crate::outcome::Outcome;
use crate::protocol::{Client, Protocol};
use crate::record::Record;

/// After a failure, so that a store that is down is not asked ten thousand times a second: doubled
/// with each in a row, up to the last.
const FIRST_PAUSE_NS: u64 = 50_000_000;
const LAST_PAUSE_NS: u64 = 2_000_000_000;
/// A request is made ready so long before it is due, and its signature is no older.
const READY_NS: u64 = 20_000_000;

pub struct Worker<'a, P: Protocol> {
    number: usize,
    shared: &'a Shared,
    client: Client<P>,
    own: Own,
}

impl<'a, P: Protocol> Worker<'a, P> {
    pub fn new(number: usize, shared: &'a Shared, client: Client<P>, own: Own) -> Self {
        Worker {
            number,
            shared,
            client,
            own,
        }
    }

    /// Works until there is nothing left to do, or it is time to stop.
    pub fn run(mut self) {
        wake_exactly();
        let shared = self.shared;
        let begin_ns =
            shared.begin_ns + shared.ramp_ns * self.number as u64 / shared.workers as u64;
        let mut failures = 0;
        let mut goes_on = shared.sleep_until(begin_ns);
        while goes_on {
            let Some(went_well) = self.next().and_then(|task| self.ask(&task)) else {
                break;
            };
            failures = if went_well { 0 } else { failures + 1 };
            if failures > 0 {
                goes_on = shared.sleep_until(clock::now_ns() + pause_ns(failures));
            }
        }
        shared.ended(self.number, usage::of_thread());
    }

    fn next(&mut self) -> Option<Task> {
        if self.shared.is_stopped() {
            return None;
        }
        self.shared.work.next(&mut self.own, clock::now_ns())
    }

    /// Carries out a task, in as many attempts as are wanted. None: it is time to stop. False: it
    /// went wrong, and a pause is due.
    fn ask(&mut self, task: &Task) -> Option<bool> {
        if let Some(due_ns) = task.due_ns
            && !self.shared.sleep_until(due_ns.saturating_sub(READY_NS))
        {
            return None;
        }
        if !self.shared.work.insists() {
            return Some(self.ask_once(task)?.outcome == Outcome::Ok);
        }
        let first_ns = clock::now_ns();
        for failures in 1.. {
            let came = self.ask_once(task)?;
            let is_gone = is_absent(&came) && task.deed == Deed::Remove;
            if came.outcome == Outcome::Ok || is_gone {
                return Some(true);
            }
            let is_refused = is_refused(&came);
            let error = came.error.unwrap_or_default();
            let spent_ns = clock::now_ns() - first_ns;
            if is_refused || spent_ns > self.shared.give_up_ns {
                self.give_up(task, &error, failures);
                return None;
            }
            let until_ns = clock::now_ns() + pause_ns(failures);
            if !self.shared.sleep_until(until_ns) {
                return None;
            }
        }
        unreachable!("attempts end by a return")
    }

    fn ask_once(&mut self, task: &Task) -> Option<Record> {
        let shared = self.shared;
        let request = shared.objects.request(task.deed, task.object);
        let built = self.client.build(&request);
        let built = built.expect("a job that was checked makes requests that make sense");
        let goes_on = match task.due_ns {
            Some(due_ns) => shared.sleep_until(due_ns),
            // To make a body takes its time, and the core may be somebody else's meanwhile.
            None => !shared.work.is_over(clock::now_ns()),
        };
        if !goes_on {
            return None;
        }
        let came = self.client.perform(&request, built);
        self.note(task, &came);
        if came.outcome == Outcome::Ok {
            self.own.done(task, shared.work.removes());
        }
        Some(came)
    }

    fn note(&self, task: &Task, came: &Record) {
        let shared = self.shared;
        let moves = matches!(task.deed, Deed::Get | Deed::Put);
        let error = came.error.as_deref();
        let verify_ns = came.verify_ns.unwrap_or(0).min(u64::from(u32::MAX));
        let timing = &came.timing;
        shared.add(LoadRecord {
            start_ns: timing.start_ns,
            due_ns: task.due_ns,
            first_byte_ns: timing.first_byte_ns,
            total_ns: timing.total_ns,
            elapsed_ns: timing.elapsed_ns,
            index: task.object.index as u32,
            object_bytes: if moves { came.object_bytes } else { 0 },
            verify_ns: verify_ns as u32,
            worker: self.number as u16,
            bucket: task.object.bucket,
            status: came.status.unwrap_or(0),
            grpc_status: came.grpc_status.map(|status| status as i16),
            endpoint: task.deed as u8,
            outcome: came.outcome,
            error: error.map_or(0, |error| shared.names.number(error)),
            ramp: timing.start_ns < shared.begin_ns + shared.ramp_ns,
            new_connection: came.new_connection,
        });
    }

    fn give_up(&self, task: &Task, error: &str, attempts: u32) {
        let what = format!(
            "{} of object {} of bucket {} failed {attempts} time{}, at last with: {error}",
            self.shared.objects.name(task.deed),
            task.object.index,
            task.object.bucket,
            if attempts == 1 { "" } else { "s" },
        );
        self.shared.give_up(what);
    }
}

/// Has the store refused it for good, so that to ask again would change nothing?
fn is_refused(came: &Record) -> bool {
    let by_grpc = came.grpc_status.map(Code::from_i32);
    let by_http = came
        .status
        .filter(|status| matches!(status, 300..=499 | 501) && *status != 429);
    let refuses = |code| {
        use Code::{InvalidArgument, NotFound, PermissionDenied, Unauthenticated, Unimplemented};
        matches!(
            code,
            InvalidArgument | NotFound | PermissionDenied | Unauthenticated | Unimplemented
        )
    };
    came.outcome == Outcome::Fail && (by_http.is_some() || by_grpc.is_some_and(refuses))
}

/// Is the answer that there is no such object?
fn is_absent(came: &Record) -> bool {
    came.outcome == Outcome::Fail
        && (came.status == Some(404) || came.grpc_status == Some(Code::NotFound as i32))
}

fn pause_ns(failures: u32) -> u64 {
    (FIRST_PAUSE_NS << (failures - 1).min(20)).min(LAST_PAUSE_NS)
}

/// The kernel wakes this thread when it asked for it, and not up to 50 µs later to save power.
fn wake_exactly() {
    // SAFETY: it changes nothing but this thread's timer slack.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_last() {
        let ms: Vec<u64> = (1..8)
            .map(|failures| pause_ns(failures) / 1_000_000)
            .collect();
        assert_eq!(ms, [50, 100, 200, 400, 800, 1600, 2000]);
        assert_eq!(pause_ns(u32::MAX), LAST_PAUSE_NS);
    }
}
