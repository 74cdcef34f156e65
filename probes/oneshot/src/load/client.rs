//! One worker's connection to the store, whatever its API.

use crate::load::work::Task;
use crate::outcome::Verdict;
use crate::timing::Timing;

/// What came of a request.
#[derive(Debug)]
pub struct Came {
    pub timing: Timing,
    pub verdict: Verdict,
    /// Body bytes moved.
    pub object_bytes: u64,
    /// Of the wall clock, for comparing the body.
    pub verify_ns: u64,
    pub status: Option<u16>,
    pub grpc_status: Option<i32>,
    pub new_connection: bool,
    /// The store has refused it for good: to ask again would change nothing.
    pub refused: bool,
    /// The answer is that there is no such object.
    pub absent: bool,
}

/// Sends requests, one at a time, on a connection that is kept.
pub trait Client {
    /// Makes ready what is to be sent, before any clock runs.
    fn prepare(&mut self, task: &Task);

    /// Sends what was made ready.
    fn perform(&mut self, task: &Task) -> Came;
}
