//! A station: sends frames at known instants and tells when the kernel received frames.
//!
//! Arrivals are the kernel's timestamps of the interface, so that neither the scheduling of the
//! test nor that of an answering process is in the measured times: echo requests are answered by
//! the kernel, within the call that delivers them.

use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use wire::arrival::ClockPair;
use wire::buffers;
use wire::frame::OFFLOAD_HEADER_BYTES;
use wire::sys::{self, PacketSocket, ReceiveBatch};

use crate::frames;

pub const MILLISECOND: u64 = 1_000_000;

/// `wire` hands a frame to the kernel up to this long before it is due, because that takes time.
pub const LEAD_NS: u64 = 5_000;

/// Frames that must come are waited for this long, on however busy a machine.
pub const PATIENCE_NS: u64 = 30_000_000_000;

/// The quickest of many frames is late by less than this, however busy the machine: each of them
/// would have to wait for a processor.
pub const QUICKEST_LATE_NS: i64 = 2_000_000;

/// A frame that arrived.
pub struct Arrival {
    pub at_ns: u64,
    pub frame: Vec<u8>,
}

impl Arrival {
    /// The number of a frame made by [`frames`].
    pub fn number(&self) -> u32 {
        frames::number(&self.frame).expect("stations receive numbered frames only")
    }
}

/// The numbers of frames, as they arrived.
pub fn numbers(arrivals: &[Arrival]) -> Vec<u32> {
    arrivals.iter().map(Arrival::number).collect()
}

/// One end of a link.
pub struct Station {
    socket: PacketSocket,
    empty_ns: u64,
}

impl Station {
    /// On an interface of the caller's network namespace.
    pub fn open(interface: &str) -> Station {
        Station {
            socket: PacketSocket::open(interface).unwrap(),
            empty_ns: sys::monotonic_ns(),
        }
    }

    /// Sends a frame and returns the instant just before. Waits a little if there is no room.
    pub fn send(&self, frame: &[u8]) -> u64 {
        let mut message = vec![0; OFFLOAD_HEADER_BYTES];
        message.extend(frame);
        for _ in 0..1_000 {
            let now_ns = sys::monotonic_ns();
            match self.socket.send(std::iter::once(&message[..])) {
                Ok(_) => return now_ns,
                Err(_) => sys::wait_writable(self.socket.as_fd(), 1_000_000),
            };
        }
        panic!("the interface takes no frames");
    }

    /// Sends frames `apart_ns` from each other, or more: after a stall none catches up, which
    /// would overflow a buffer. Returns the instant of each.
    pub fn send_all(&self, frames: impl Iterator<Item = Vec<u8>>, apart_ns: u64) -> Vec<u64> {
        let mut next_ns = 0;
        frames
            .map(|frame| {
                sleep_until(next_ns);
                let sent_ns = self.send(&frame);
                next_ns = sent_ns + apart_ns;
                sent_ns
            })
            .collect()
    }

    /// Receives until `count` numbered frames are there or `patience_ns` have passed.
    pub fn receive(&mut self, count: usize, patience_ns: u64) -> Vec<Arrival> {
        let mut batch = ReceiveBatch::new(buffers::LARGEST_BYTES);
        let deadline_ns = sys::monotonic_ns() + patience_ns;
        let mut arrivals = Vec::new();
        while arrivals.len() < count {
            let now_ns = sys::monotonic_ns();
            if now_ns >= deadline_ns {
                break;
            }
            let left = Duration::from_nanos(deadline_ns - now_ns);
            let left = Timespec::try_from(left).unwrap();
            let mut sockets = [PollFd::new(&self.socket, PollFlags::IN)];
            poll(&mut sockets, Some(&left)).unwrap();
            self.receive_batch(&mut batch, &mut arrivals);
        }
        let dropped = self.socket.take_receive_drops().unwrap();
        assert_eq!(dropped, 0, "the test itself lost frames");
        arrivals
    }

    /// Receives `count` frames while `send` runs, or fewer if more than `patience_ns` pass in
    /// all. Returns what `send` returns as well.
    pub fn receive_while<T>(
        &mut self,
        count: usize,
        patience_ns: u64,
        send: impl FnOnce() -> T,
    ) -> (Vec<Arrival>, T) {
        thread::scope(|scope| {
            let receiver = scope.spawn(|| self.receive(count, patience_ns));
            let sent = send();
            (receiver.join().unwrap(), sent)
        })
    }

    fn receive_batch(&mut self, batch: &mut ReceiveBatch, arrivals: &mut Vec<Arrival>) {
        let asked_ns = sys::monotonic_ns();
        let Ok(received) = self.socket.receive(batch) else {
            return;
        };
        let clocks = ClockPair::now();
        for index in 0..received {
            let frame = batch.bytes(index)[OFFLOAD_HEADER_BYTES..].to_vec();
            if frames::number(&frame).is_some() {
                let stamp_ns = batch.stamp_realtime_ns(index);
                let at_ns = clocks.arrival_ns(stamp_ns, self.empty_ns);
                arrivals.push(Arrival { at_ns, frame });
            }
        }
        if received < sys::BATCH {
            self.empty_ns = asked_ns;
        }
    }
}

/// Sleeps until `instant_ns`, or not at all if it has passed.
pub fn sleep_until(instant_ns: u64) {
    let left_ns = instant_ns.saturating_sub(sys::monotonic_ns());
    if left_ns > 0 {
        thread::sleep(Duration::from_nanos(left_ns));
    }
}

/// The value that a part `quantile` of the samples does not exceed (nearest rank).
pub fn quantile(samples: &[i64], quantile: f64) -> i64 {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    let rank = (quantile * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}
