//! The end of the record that whoever sees packets holds: it never waits.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, TryLockError};
use std::thread::JoinHandle;

use super::packet::Packet;
use super::writer::Writer;
use super::{Settings, Status};
use crate::sys;

/// Room for packets that the writer has yet to take: some 50,000 of them, which come in a second
/// in which the disk takes nothing.
pub(super) const QUEUE_BYTES: usize = 16 << 20;

/// Room for packets that come while the writer is just taking those before them.
const SPILL_BYTES: usize = 256 << 10;

/// What both ends share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) queue: Mutex<Vec<u8>>,
    /// Packets that did not get into the file, of each interface.
    pub(super) missing: Vec<AtomicU64>,
    /// The writer takes no more.
    pub(super) full: AtomicBool,
    /// The writer is to write what is there and to end.
    pub(super) stop: AtomicBool,
    pub(super) status: Mutex<Status>,
}

impl Shared {
    pub(super) fn miss(&self, interface: u32) {
        if let Some(count) = self.missing.get(interface as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A running record.
#[derive(Debug)]
pub struct Recorder {
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
    spill: Vec<u8>,
    snap_bytes: u32,
}

impl Recorder {
    /// Opens the file, writes its head and starts the writer's thread. The error says what is
    /// wrong.
    pub fn start(settings: &Settings) -> Result<Recorder, String> {
        settings.check()?;
        sys::ignore_file_size_signal();
        let shared = Arc::new(Shared {
            queue: Mutex::new(Vec::with_capacity(QUEUE_BYTES)),
            missing: settings.names.iter().map(|_| AtomicU64::new(0)).collect(),
            full: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            status: Mutex::new(Status::default()),
        });
        let explain = |error: io::Error| format!("{}: {error}", settings.file.display());
        let writer = Writer::start(settings, shared.clone()).map_err(explain)?;
        Ok(Recorder {
            shared,
            writer: Some(writer),
            spill: Vec::with_capacity(SPILL_BYTES),
            snap_bytes: settings.snap_bytes,
        })
    }

    /// Takes a packet: its message is cut to the snap length here.
    pub fn record(&mut self, mut packet: Packet<'_>) {
        if self.shared.full.load(Ordering::Relaxed) {
            self.shared.miss(packet.interface);
            return;
        }
        let kept = Packet::kept_bytes(packet.message.len(), self.snap_bytes);
        packet.message = &packet.message[..kept];
        if let Some(mut queue) = unlocked(&self.shared.queue) {
            if !self.spill.is_empty() && queue.len() + self.spill.len() <= QUEUE_BYTES {
                queue.extend_from_slice(&self.spill);
                self.spill.clear();
            }
            if self.spill.is_empty() && queue.len() + packet.queued_bytes() <= QUEUE_BYTES {
                packet.append_to(&mut queue);
                return;
            }
        }
        if self.spill.len() + packet.queued_bytes() <= SPILL_BYTES {
            packet.append_to(&mut self.spill);
        } else {
            self.shared.miss(packet.interface);
        }
    }

    /// Counts packets that crossed a link unseen.
    pub fn miss(&mut self, interface: u32, packets: u64) {
        if let Some(count) = self.shared.missing.get(interface as usize) {
            count.fetch_add(packets, Ordering::Relaxed);
        }
    }

    /// How the record stands.
    pub fn status(&self) -> Status {
        let status = self.shared.status.lock().expect("the writer never panics");
        let missing = &self.shared.missing;
        Status {
            missing: missing.iter().map(|n| n.load(Ordering::Relaxed)).collect(),
            ..status.clone()
        }
    }

    /// Writes what is there, ends the file and tells how it stands.
    pub fn finish(mut self) -> Status {
        self.end();
        self.status()
    }

    fn end(&mut self) {
        let Some(writer) = self.writer.take() else {
            return;
        };
        if !self.spill.is_empty() {
            let mut queue = self.shared.queue.lock().expect("the writer never panics");
            queue.append(&mut self.spill);
        }
        self.shared.stop.store(true, Ordering::Release);
        writer.thread().unpark();
        writer.join().expect("the writer never panics");
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.end();
    }
}

fn unlocked(queue: &Mutex<Vec<u8>>) -> Option<std::sync::MutexGuard<'_, Vec<u8>>> {
    match queue.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::WouldBlock) => None,
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::path::PathBuf;

    use super::*;
    use crate::capture::reader::Reader;
    use crate::capture::{Marks, Outcome, Packet};

    fn settings(name: &str, limit_bytes: u64) -> Settings {
        let name = format!("wire-capture-{}-{name}", std::process::id());
        let file: PathBuf = std::env::temp_dir().join(name);
        File::create(&file).unwrap();
        Settings {
            file,
            limit_bytes,
            snap_bytes: 256,
            names: vec!["dc1->dc2".into(), "dc2->dc1".into()],
        }
    }

    /// Known in another order than that of entry.
    fn packet(start_ns: u64, number: u64, message: &[u8]) -> Packet<'_> {
        let entry_ns = start_ns + 1_000 * (number ^ 7);
        Packet {
            interface: (number % 2) as u32,
            outcome: Outcome::Sent,
            marks: Marks::default(),
            entry_ns,
            departure_ns: entry_ns + 5_000_000,
            frame_bytes: message.len().saturating_sub(10) as u32,
            message,
        }
    }

    fn entries(settings: &Settings) -> Vec<u64> {
        let mut reader = Reader::open(File::open(&settings.file).unwrap()).unwrap();
        let mut entries = Vec::new();
        while let Some(entry) = reader.next_packet().unwrap() {
            assert_eq!(entry.held_ns, 5_000_000);
            assert!(entry.captured.len() <= settings.snap_bytes as usize);
            entries.push(entry.timestamp_ns);
        }
        assert!(!reader.is_cut_short());
        entries
    }

    #[test]
    fn all_packets_are_in_the_file_in_the_order_of_their_entry() {
        let settings = settings("order", 1 << 30);
        let mut recorder = Recorder::start(&settings).unwrap();
        // They enter so late that none is written before all are known: a thread that is held up
        // between two of them may else find the later one's file position taken.
        let start_ns = sys::monotonic_ns() + 3_600_000_000_000;
        let message = vec![1; 1_510];
        for number in 0..20_000 {
            recorder.record(packet(start_ns, number, &message));
        }
        let status = recorder.finish();
        let entries = entries(&settings);
        assert_eq!(entries.len(), 20_000);
        assert!(entries.is_sorted());
        assert_eq!((status.packets, status.missing), (20_000, vec![0, 0]));
        assert_eq!(
            status.bytes,
            std::fs::metadata(&settings.file).unwrap().len()
        );
        assert_eq!(status.ended, None);
        std::fs::remove_file(&settings.file).unwrap();
    }

    #[test]
    fn at_its_limit_a_record_ends_whole_and_the_rest_is_counted() {
        let settings = settings("limit", 100_000);
        let mut recorder = Recorder::start(&settings).unwrap();
        let start_ns = sys::monotonic_ns();
        for number in 0..5_000 {
            recorder.record(packet(start_ns, number, &[1; 200]));
        }
        let status = recorder.finish();
        let recorded = entries(&settings).len() as u64;
        assert!(
            status.bytes <= 100_000 && status.bytes > 99_000,
            "{status:?}"
        );
        assert_eq!(status.packets, recorded);
        assert_eq!(status.missing.iter().sum::<u64>(), 5_000 - recorded);
        assert!(status.limit_reached && status.ended.is_some());
        std::fs::remove_file(&settings.file).unwrap();
    }

    #[test]
    fn settings_that_cannot_be_are_refused() {
        for (wrong, word) in [
            (
                Settings {
                    snap_bytes: 10,
                    ..settings("snap", 1 << 20)
                },
                "snap_bytes",
            ),
            (settings("small", 100), "limit_bytes"),
            (
                Settings {
                    file: "/nowhere/at/all".into(),
                    ..settings("path", 1 << 20)
                },
                "nowhere",
            ),
        ] {
            assert!(Recorder::start(&wrong).unwrap_err().contains(word));
        }
    }
}
