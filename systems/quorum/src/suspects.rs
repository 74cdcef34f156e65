//! What may be stale on some replica, and how much is repaired at once.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard};

use tokio::sync::Semaphore;

use crate::record::ObjectName;

/// Suspicions beyond this many are dropped: the next read raises them again.
const MAX_SUSPECTS: usize = 4096;
const AT_ONCE: usize = 4;
/// What may wait at once to be told to replicas that missed it, in KiB of bodies, each counted as
/// one more: 256 MiB.
const MAX_MISSED_KIB: usize = 256 << 10;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Suspect {
    Object(ObjectName),
    Bucket(String),
}

pub struct Repairs {
    suspects: Mutex<HashSet<Suspect>>,
    /// One for each repair that may be under way.
    pub slots: Semaphore,
    /// One for each KiB that may wait for replicas that missed it.
    pub missed: Semaphore,
}

impl Default for Repairs {
    fn default() -> Self {
        Self {
            suspects: Mutex::default(),
            slots: Semaphore::new(AT_ONCE),
            missed: Semaphore::new(MAX_MISSED_KIB),
        }
    }
}

impl Repairs {
    /// Adds a suspect; false if it is known already, or there are too many.
    pub fn add(&self, suspect: Suspect) -> bool {
        let mut known = self.known();
        known.len() < MAX_SUSPECTS && known.insert(suspect)
    }

    pub fn remove(&self, suspect: &Suspect) {
        self.known().remove(suspect);
    }

    fn known(&self) -> MutexGuard<'_, HashSet<Suspect>> {
        self.suspects.lock().expect("no holder panics")
    }
}
