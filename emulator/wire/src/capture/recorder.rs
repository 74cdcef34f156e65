//! The end of the record that the event loop holds: it never waits.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, TryLockError};
use std::thread::JoinHandle;

use super::packet::{Outcome, Packet};
use super::settings::Settings;
use super::shared::{QUEUE_BYTES, Shared, Status};
use super::writer::{Writer, fixed_bytes};
use crate::due_queue::Origin;
use crate::frame::OFFLOAD_HEADER_BYTES;
use crate::sys;

/// Room for packets that come while the writer is just taking those before them.
const SPILL_BYTES: usize = 256 << 10;

/// A running record.
#[derive(Debug)]
pub struct Recorder {
    /// The record's interface of each direction; `None` where it is not recorded.
    interfaces: Vec<Option<u32>>,
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
    spill: Vec<u8>,
    snap_bytes: u32,
}

impl Recorder {
    /// Opens the files, writes their heads and starts the writer's thread; there are so many
    /// `directions`. The error says what is wrong.
    pub fn start(settings: &Settings, directions: usize) -> Result<Recorder, String> {
        settings.check(fixed_bytes(settings))?;
        let mut interfaces = vec![None; directions];
        for (interface, place) in (0..).zip(&settings.directions) {
            let direction = interfaces.get_mut(place.direction.of_link(place.link));
            *direction.ok_or_else(|| format!("there is no link {}", place.link))? = Some(interface);
        }
        sys::ignore_file_size_signal();
        let shared = Arc::new(Shared {
            queue: Mutex::new(Vec::with_capacity(QUEUE_BYTES)),
            missing: settings.names().map(|_| AtomicU64::new(0)).collect(),
            full: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            status: Mutex::new(Status::default()),
        });
        let writer = Writer::start(settings, Arc::clone(&shared))?;
        Ok(Recorder {
            interfaces,
            shared,
            writer: Some(writer),
            spill: Vec::with_capacity(SPILL_BYTES),
            snap_bytes: settings.snap_bytes,
        })
    }

    /// Records what became of a message; `departure_ns` is without meaning unless it was sent.
    pub fn record(&mut self, origin: Origin, message: &[u8], outcome: Outcome, departure_ns: u64) {
        let Some(interface) = self.interfaces[origin.direction] else {
            return;
        };
        if self.shared.full.load(Ordering::Relaxed) {
            return self.shared.miss(interface);
        }
        let kept = message
            .len()
            .min(OFFLOAD_HEADER_BYTES + self.snap_bytes as usize);
        let packet = Packet {
            interface,
            outcome,
            duplicate: origin.duplicate,
            entry_ns: origin.arrival_ns,
            departure_ns,
            frame_bytes: message.len().saturating_sub(OFFLOAD_HEADER_BYTES) as u32,
            message: &message[..kept],
        };
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

    /// How the record stands.
    pub fn status(&self) -> Status {
        let status = self.shared.status.lock().expect("the writer never panics");
        let missing = &self.shared.missing;
        Status {
            missing: missing.iter().map(|n| n.load(Ordering::Relaxed)).collect(),
            ..status.clone()
        }
    }

    /// Writes what is there, ends the files and tells how the record stands.
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
    use std::fs::{self, File};

    use super::*;
    use crate::capture::Place;
    use crate::capture::rows::ROW_BYTES;
    use crate::way::Way;

    fn settings(name: &str, limit_bytes: u64) -> Settings {
        let base = std::env::temp_dir().join(format!("wire-record-{}-{name}", std::process::id()));
        let (pcapng, rows) = (base.with_extension("pcapng"), base.with_extension("rows"));
        File::create(&pcapng).unwrap();
        File::create(&rows).unwrap();
        let place = |direction, name: &str| Place {
            link: 0,
            direction,
            name: name.into(),
        };
        Settings {
            pcapng,
            rows,
            limit_bytes,
            snap_bytes: 256,
            directions: vec![place(Way::Ab, "dc1->dc2"), place(Way::Ba, "dc2->dc1")],
        }
    }

    /// Records packets that become known in another order than that of entry, and ends the record.
    fn record(settings: &Settings, packets: u64, message: &[u8]) -> Status {
        let mut recorder = Recorder::start(settings, 2).unwrap();
        // They enter so late that none is written before all are known: a thread that is held up
        // between two of them may else find the later one's place in the file taken.
        let start_ns = sys::monotonic_ns() + 3_600_000_000_000;
        for number in 0..packets {
            let origin = Origin {
                direction: (number % 2) as usize,
                arrival_ns: start_ns + 1_000 * (number ^ 7),
                duplicate: false,
                planted_ns: 0,
            };
            let departure_ns = origin.arrival_ns + 5_000_000;
            recorder.record(origin, message, Outcome::Sent, departure_ns);
        }
        recorder.finish()
    }

    /// The entries of all rows; and as many packets must be in the pcapng file, whole.
    fn entries(settings: &Settings) -> Vec<i64> {
        let rows = fs::read(&settings.rows).unwrap();
        let head = rows.iter().position(|&byte| byte == b'\n').unwrap() + 1;
        let (rows, rest) = rows[head..].as_chunks::<ROW_BYTES>();
        assert!(rest.is_empty());
        let pcapng = fs::read(&settings.pcapng).unwrap();
        let (mut at, mut packets) = (0, 0);
        let word = |at: usize| u32::from_le_bytes(pcapng[at..at + 4].try_into().unwrap());
        while at < pcapng.len() {
            packets += usize::from(word(at) == 6);
            at += word(at + 4) as usize;
        }
        assert_eq!((at, packets), (pcapng.len(), rows.len()));
        let entry = |row: &[u8; ROW_BYTES]| *row.first_chunk().unwrap();
        rows.iter()
            .map(|row| i64::from_le_bytes(entry(row)))
            .collect()
    }

    fn remove(settings: &Settings) {
        fs::remove_file(&settings.pcapng).unwrap();
        fs::remove_file(&settings.rows).unwrap();
    }

    #[test]
    fn all_packets_are_in_the_files_in_the_order_of_their_entry() {
        let settings = settings("order", 1 << 30);
        let status = record(&settings, 20_000, &[1; 1_510]);
        let entries = entries(&settings);
        assert_eq!(entries.len(), 20_000);
        assert!(entries.is_sorted());
        assert_eq!((status.packets, status.missing), (20_000, vec![0, 0]));
        let length = |file| fs::metadata(file).unwrap().len();
        let lengths = length(&settings.pcapng) + length(&settings.rows);
        assert_eq!((status.bytes, status.ended), (lengths, None));
        remove(&settings);
    }

    #[test]
    fn at_its_limit_a_record_ends_whole_and_the_rest_is_counted() {
        let settings = settings("limit", 100_000);
        let status = record(&settings, 5_000, &[1; 200]);
        let recorded = entries(&settings).len() as u64;
        assert!((99_000..=100_000).contains(&status.bytes), "{status:?}");
        assert_eq!(status.packets, recorded);
        assert_eq!(status.missing.iter().sum::<u64>(), 5_000 - recorded);
        assert!(status.ended.is_some());
        remove(&settings);
    }

    #[test]
    fn settings_that_cannot_be_are_refused() {
        let sound = settings("settings", 1 << 20);
        let refused = |change: &dyn Fn(&mut Settings)| {
            let mut settings = sound.clone();
            change(&mut settings);
            Recorder::start(&settings, 2).unwrap_err()
        };
        assert!(refused(&|it| it.snap_bytes = 10).contains("snap_bytes"));
        assert!(refused(&|it| it.limit_bytes = 100).contains("limit_bytes"));
        assert!(refused(&|it| it.rows = "/nowhere/at/all".into()).contains("nowhere"));
        assert!(refused(&|it| it.directions[1].link = 7).contains("no link 7"));
        remove(&sound);
    }
}
