//! The thread that writes packets to files, in the order of their entry.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::files::{Files, Full};
use super::packet::{Outcome, Packet};
use super::settings::Settings;
use super::shared::{QUEUE_BYTES, Shared};
use super::{pcapng, rows};
use crate::arrival::ClockPair;
use crate::frame::Headers;
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
    files: Files,
    /// Wall clock minus monotonic clock, in this record.
    ahead_ns: u64,
    started_ns: u64,
    limit: u64,
    /// Packets in the files, of each interface.
    recorded: Vec<u64>,
    waiting: BinaryHeap<Reverse<Waiting>>,
    waiting_bytes: usize,
    arrived: u64,
    longest_wait_ns: u64,
    flushed_ns: u64,
    /// The packet that is being written; kept for their memory.
    block: Vec<u8>,
    row: Vec<u8>,
    comment: String,
}

/// A packet that waits for earlier ones: ordered by entry, then by when it became known.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    entry_ns: u64,
    number: u64,
    queued: Box<[u8]>,
}

/// Bytes of the files beside their packets: their heads, and what is kept free for statistics.
pub(super) fn fixed_bytes(settings: &Settings) -> u64 {
    let heads = pcapng_head(settings, u64::MAX).len() + rows::head(settings.names()).len();
    heads as u64 + statistics_bytes(settings)
}

fn statistics_bytes(settings: &Settings) -> u64 {
    settings.directions.len() as u64 * pcapng::STATISTICS_BYTES
}

fn pcapng_head(settings: &Settings, ahead_ns: u64) -> Vec<u8> {
    let mut head = Vec::new();
    pcapng::section(&mut head, ahead_ns);
    for name in settings.names() {
        pcapng::interface(&mut head, name, settings.snap_bytes);
    }
    head
}

impl Writer {
    /// Writes the heads of the files and goes on in a thread.
    pub(super) fn start(
        settings: &Settings,
        shared: Arc<Shared>,
    ) -> Result<JoinHandle<()>, String> {
        let clocks = ClockPair::now();
        let ahead_ns = clocks.realtime_ns.saturating_sub(clocks.monotonic_ns);
        let limit = settings.limit_bytes - statistics_bytes(settings);
        let mut files = Files::open(&settings.pcapng, &settings.rows, limit)?;
        let refusal = |full: Full| match full {
            Full::Limit => "the limit leaves no room for the heads of the files".to_owned(),
            Full::Refused(error, _) => format!("{}: {error}", settings.pcapng.display()),
        };
        let heads = (
            pcapng_head(settings, ahead_ns),
            rows::head(settings.names()),
        );
        files.take(&heads.0, &heads.1).map_err(refusal)?;
        files.flush().map_err(refusal)?;
        let mut writer = Writer {
            files,
            ahead_ns,
            started_ns: clocks.monotonic_ns,
            limit: settings.limit_bytes,
            recorded: vec![0; settings.directions.len()],
            waiting: BinaryHeap::new(),
            waiting_bytes: 0,
            arrived: 0,
            longest_wait_ns: SHORTEST_WAIT_NS,
            flushed_ns: clocks.monotonic_ns,
            block: Vec::new(),
            row: Vec::new(),
            comment: String::new(),
            shared,
        };
        writer.tell();
        let thread = thread::Builder::new().name("wire-capture".into());
        let started = thread.spawn(move || writer.run());
        started.map_err(|error| format!("no thread to write packets: {error}"))
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
        let headers = Headers::of(packet.captured());
        let on_the_wire = packet.on_the_wire(&headers);
        self.block.clear();
        self.row.clear();
        let timestamp_ns = packet.entry_ns + self.ahead_ns;
        let comment = &mut self.comment;
        pcapng::packet(&mut self.block, packet, timestamp_ns, on_the_wire, comment);
        rows::append(&mut self.row, packet, &headers, on_the_wire);
        let taken = self
            .files
            .take_packet(packet.interface, &self.block, &self.row);
        match taken {
            Ok(()) => self.recorded[packet.interface as usize] += 1,
            Err(Full::Limit) => {
                self.shared.miss(packet.interface);
                self.end_early(Full::Limit);
            }
            Err(refused) => {
                // The packet may be among those that the files say they have lost.
                self.recorded[packet.interface as usize] += 1;
                self.end_early(refused);
            }
        }
    }

    fn flush(&mut self) {
        if !self.is_full()
            && let Err(full) = self.files.flush()
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
        let full = match (full, self.files.flush()) {
            (Full::Limit, Err(refused)) => refused,
            (full, _) => full,
        };
        let mut status = self.shared.status.lock().expect("nobody panics with it");
        match full {
            Full::Limit => {
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

    /// Writes what is left and the statistics.
    fn finish(&mut self) {
        let ended_early = self.is_full();
        self.files.set_limit(self.limit);
        let began_and_ended_ns = (
            self.started_ns + self.ahead_ns,
            sys::monotonic_ns() + self.ahead_ns,
        );
        for (interface, &recorded) in self.recorded.iter().enumerate() {
            let missing = self.shared.missing[interface].load(Ordering::Relaxed);
            self.block.clear();
            let seen_and_missing = (recorded + missing, missing);
            let interface = interface as u32;
            pcapng::statistics(
                &mut self.block,
                interface,
                began_and_ended_ns,
                seen_and_missing,
            );
            if self.files.take(&self.block, &[]).is_err() {
                break;
            }
        }
        if let Err(full) = self.files.flush()
            && !ended_early
        {
            self.end_early(full);
        }
        self.tell();
    }

    fn tell(&self) {
        let mut status = self.shared.status.lock().expect("nobody panics with it");
        status.packets = self.recorded.iter().sum();
        status.bytes = self.files.length();
    }
}
