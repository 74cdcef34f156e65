//! Runs a future on this thread until it is ready or its deadline has passed.
//!
//! The only thing that anything here ever waits for is one socket, so there is no runtime: the wait
//! is a `ppoll` with the time that is left, exact to the nanosecond, where a runtime's timers tick in
//! milliseconds and its wake-ups pass through a queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use crate::clock;
use crate::connection;
use crate::failure::Cause;
use crate::grpc::wire::Wire;

#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Remembers whether what was polled last can go on at once.
pub struct Driver {
    flag: Arc<Flag>,
    waker: Waker,
}

impl Default for Driver {
    fn default() -> Self {
        let flag = Arc::<Flag>::default();
        let waker = flag.clone().into();
        Driver { flag, waker }
    }
}

impl Driver {
    /// Polls again and again, and waits on the wire in between.
    pub fn run<T>(
        &self,
        wire: &Wire,
        deadline_ns: u64,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Result<T, Cause> {
        loop {
            if let Poll::Ready(done) = self.poll(wire, &mut poll) {
                return Ok(done);
            }
            let wake = if self.can_go_on() {
                if clock::now_ns() < deadline_ns {
                    continue;
                }
                connection::Wake::Deadline
            } else if wire.wants_to_write.get() {
                wire.connection.wait_either(deadline_ns)?
            } else {
                wire.connection.wait_readable(deadline_ns)?
            };
            if wake == connection::Wake::Deadline {
                return Err(Cause::Timeout);
            }
        }
    }

    /// Polls for as long as there is something to do without waiting.
    pub fn run_for_now<T>(
        &self,
        wire: &Wire,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        loop {
            let polled = self.poll(wire, &mut poll);
            if polled.is_ready() || !self.can_go_on() {
                return polled;
            }
        }
    }

    fn poll<T>(&self, wire: &Wire, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        self.flag.0.store(false, Ordering::Relaxed);
        wire.is_polled();
        poll(&mut Context::from_waker(&self.waker))
    }

    fn can_go_on(&self) -> bool {
        self.flag.0.load(Ordering::Relaxed)
    }
}
