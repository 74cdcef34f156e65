//! The thread that turns packets into blocks of a file.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::file::{BlockFile, Full};
use super::packet::{Outcome, Packet};
use super::pcapng::{self, Entry};
use super::recorder::{QUEUE_BYTES, Shared};
use super::{Settings, rows};
use crate::arrival::ClockPair;
use crate::frame::OFFLOAD_HEADER_BYTES;
use crate::sys;

/// How often the writer looks whether there is something to write.
const PERIOD: Duration = Duration::from_millis(10);

/// What has been taken is written after this long at the latest.
const LONGEST_UNWRITTEN_NS: u64 = 200_000_000;

/// A packet becomes known when it departs. It waits this long after its entry, or twice as long
/// as the slowest packet took to become known, for earlier ones to become known too.
const SHORTEST_WAIT_NS: u64 = 100_000_000;
const LONGEST_WAIT_NS: u64 = 30_000_000_000;

/// Bytes of packets that wait for earlier ones.
const MOST_WAITING_BYTES: usize = 64 << 20;

/// Where it runs, other programs come first.
const NICE: i32 = 10;

pub(super) struct Writer {
    shared: Arc<Shared>,
    file: BlockFile,
    /// Wall clock minus monotonic clock, in this file.
    behind_ns: u64,
    started_ns: u64,
    limit: u64,
    /// Packets in the file, of each interface.
    recorded: Vec<u64>,
    waiting: BinaryHeap<Reverse<Waiting>>,
    waiting_bytes: usize,
    arrived: u64,
    longest_wait_ns: u64,
    flushed_ns: u64,
    block: Vec<u8>,
    comment: String,
}

/// A packet that waits for earlier ones: ordered by entry, then by when it became known.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    entry_ns: u64,
    number: u64,
    queued: Box<[u8]>,
}

/// Bytes of a file beside its packets: what describes the interfaces and what is kept free for
/// their statistics.
pub(super) fn fixed_bytes(names: &[String]) -> u64 {
    let mut head = Vec::new();
    write_head(&mut head, names, 0, u64::MAX);
    (head.iter().map(Vec::len).sum::<usize>() as u64)
        + names.len() as u64 * pcapng::STATISTICS_BYTES
}

fn write_head(blocks: &mut Vec<Vec<u8>>, names: &[String], snap_bytes: u32, behind_ns: u64) {
    let mut section = Vec::new();
    pcapng::section(&mut section, behind_ns);
    blocks.push(section);
    for name in names {
        let mut block = Vec::new();
        pcapng::interface(&mut block, name, snap_bytes);
        blocks.push(block);
    }
}

impl Writer {
    /// Writes the head of the file and goes on in a thread.
    pub(super) fn start(settings: &Settings, shared: Arc<Shared>) -> io::Result<JoinHandle<()>> {
        let clocks = ClockPair::now();
        let behind_ns = clocks.realtime_ns.saturating_sub(clocks.monotonic_ns);
        let kept_free = settings.names.len() as u64 * pcapng::STATISTICS_BYTES;
        let limit = settings.limit_bytes;
        let mut file = BlockFile::open(&settings.file, limit - kept_free)?;
        let mut head = Vec::new();
        write_head(&mut head, &settings.names, settings.snap_bytes, behind_ns);
        for block in &head {
            file.take(block).map_err(refusal)?;
        }
        file.flush().map_err(refusal)?;
        let mut writer = Writer {
            file,
            behind_ns,
            started_ns: clocks.monotonic_ns,
            limit,
            recorded: vec![0; settings.names.len()],
            waiting: BinaryHeap::new(),
            waiting_bytes: 0,
            arrived: 0,
            longest_wait_ns: SHORTEST_WAIT_NS,
            flushed_ns: clocks.monotonic_ns,
            block: Vec::new(),
            comment: String::new(),
            shared,
        };
        writer.tell();
        thread::Builder::new()
            .name("wire-capture".into())
            .spawn(move || writer.run())
    }

    fn run(&mut self) {
        sys::lower_priority(NICE);
        let mut batch = Vec::with_capacity(QUEUE_BYTES);
        loop {
            let stop = self.shared.stop.load(Ordering::Acquire);
            batch.clear();
            std::mem::swap(
                &mut batch,
                &mut self.shared.queue.lock().expect("recording never panics"),
            );
            self.take(&batch);
            let now_ns = sys::monotonic_ns();
            self.write_until(if stop {
                u64::MAX
            } else {
                now_ns.saturating_sub(self.longest_wait_ns)
            });
            if stop {
                return self.finish();
            }
            if now_ns - self.flushed_ns > LONGEST_UNWRITTEN_NS {
                self.flush();
                self.flushed_ns = now_ns;
            }
            self.tell();
            thread::park_timeout(PERIOD);
        }
    }

    /// Lets packets wait for those before them.
    fn take(&mut self, mut batch: &[u8]) {
        loop {
            let whole = batch;
            let Some(packet) = Packet::take_from(&mut batch) else {
                return;
            };
            if self.is_full() {
                self.shared.miss(packet.interface);
                continue;
            }
            if packet.outcome == Outcome::Sent {
                let took_ns = packet.departure_ns.saturating_sub(packet.entry_ns);
                self.longest_wait_ns = (2 * took_ns).min(LONGEST_WAIT_NS).max(self.longest_wait_ns);
            }
            let queued = &whole[..whole.len() - batch.len()];
            self.waiting_bytes += queued.len();
            self.arrived += 1;
            self.waiting.push(Reverse(Waiting {
                entry_ns: packet.entry_ns,
                number: self.arrived,
                queued: queued.into(),
            }));
            if self.waiting_bytes > MOST_WAITING_BYTES {
                self.write_first();
            }
        }
    }

    /// Writes the packets that entered before `until_ns`.
    fn write_until(&mut self, until_ns: u64) {
        while let Some(Reverse(first)) = self.waiting.peek()
            && first.entry_ns < until_ns
        {
            self.write_first();
        }
    }

    fn write_first(&mut self) {
        let Some(Reverse(first)) = self.waiting.pop() else {
            return;
        };
        self.waiting_bytes -= first.queued.len();
        if let Some(packet) = Packet::take_from(&mut &first.queued[..]) {
            self.write(&packet);
        }
    }

    fn write(&mut self, packet: &Packet<'_>) {
        if self.is_full() {
            return self.shared.miss(packet.interface);
        }
        let frame_bytes = packet.frame_bytes as usize;
        let (segments, wire_bytes) = rows::on_the_wire(packet.message, frame_bytes);
        self.block.clear();
        pcapng::packet(
            &mut self.block,
            &Entry {
                interface: packet.interface,
                timestamp_ns: packet.entry_ns + self.behind_ns,
                outcome: packet.outcome,
                marks: packet.marks,
                held_ns: packet.departure_ns.saturating_sub(packet.entry_ns),
                segments,
                wire_bytes,
                frame_bytes: packet.frame_bytes,
                captured: packet.message.get(OFFLOAD_HEADER_BYTES..).unwrap_or(&[]),
            },
            &mut self.comment,
        );
        match self.file.take(&self.block) {
            Ok(()) => self.recorded[packet.interface as usize] += 1,
            Err(Full::Limit) => {
                self.shared.miss(packet.interface);
                self.end_early(Full::Limit);
            }
            Err(refused) => {
                // The block is among those that the file says it has lost.
                self.recorded[packet.interface as usize] += 1;
                self.end_early(refused);
            }
        }
    }

    fn flush(&mut self) {
        if !self.is_full()
            && let Err(full) = self.file.flush()
        {
            self.end_early(full);
        }
    }

    fn is_full(&self) -> bool {
        self.shared.full.load(Ordering::Relaxed)
    }

    /// From now on packets are only counted.
    fn end_early(&mut self, full: Full) {
        self.shared.full.store(true, Ordering::Relaxed);
        let full = match (full, self.file.flush()) {
            (Full::Limit, Err(refused)) => refused,
            (full, _) => full,
        };
        let mut status = self.shared.status.lock().expect("nobody panics with it");
        match full {
            Full::Limit => {
                status.limit_reached = true;
                status.ended = Some(format!("its limit of {} bytes was reached", self.limit));
            }
            Full::Refused(error, lost) => {
                status.ended = Some(error.to_string());
                for interface in lost {
                    self.recorded[interface as usize] -= 1;
                    self.shared.miss(interface);
                }
            }
        }
    }

    /// Writes the statistics and what is left.
    fn finish(&mut self) {
        let ended_early = self.is_full();
        self.file.set_limit(self.limit);
        let ended_ns = sys::monotonic_ns() + self.behind_ns;
        for (interface, &recorded) in self.recorded.iter().enumerate() {
            let missing = self.shared.missing[interface].load(Ordering::Relaxed);
            self.block.clear();
            pcapng::statistics(
                &mut self.block,
                interface as u32,
                self.started_ns + self.behind_ns,
                ended_ns,
                recorded + missing,
                missing,
            );
            if self.file.take(&self.block).is_err() {
                break;
            }
        }
        if let Err(full) = self.file.flush()
            && !ended_early
        {
            self.end_early(full);
        }
        self.tell();
    }

    fn tell(&self) {
        let mut status = self.shared.status.lock().expect("nobody panics with it");
        status.packets = self.recorded.iter().sum();
        status.bytes = self.file.length();
    }
}

fn refusal(full: Full) -> io::Error {
    match full {
        Full::Limit => io::Error::other("the limit leaves no room for the head of the file"),
        Full::Refused(error, _) => error,
    }
}
