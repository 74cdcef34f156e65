//! The engine's side of the packet record: which directions are in it, and what is told of them.

use crate::capture::{Marks, Outcome, Packet, Recorder, Settings, Status};
use crate::control::{Place, Way};
use crate::due_queue::HeldFrame;
use crate::frame::OFFLOAD_HEADER_BYTES;

/// A running record.
#[derive(Debug)]
pub(crate) struct Capture {
    recorder: Recorder,
    /// The record's interface of each direction; `None` where it is not recorded.
    interfaces: Vec<Option<u32>>,
}

impl Capture {
    /// Begins a record of the directions `places` of `directions`.
    pub(crate) fn start(
        settings: &Settings,
        places: &[Place],
        directions: usize,
    ) -> Result<Capture, String> {
        if places.len() != settings.names.len() {
            return Err(format!(
                "there are {} names for {} directions",
                settings.names.len(),
                places.len()
            ));
        }
        let mut interfaces = vec![None; directions];
        for (interface, place) in places.iter().enumerate() {
            let direction = 2 * place.link + usize::from(place.direction == Way::Ba);
            let entry = interfaces.get_mut(direction);
            *entry.ok_or_else(|| format!("there is no link {}", place.link))? =
                Some(interface as u32);
        }
        Ok(Capture {
            recorder: Recorder::start(settings)?,
            interfaces,
        })
    }

    /// Records a frame that was held: it left at `departure_ns`, or what else became of it.
    pub(crate) fn note(&mut self, frame: &HeldFrame, outcome: Outcome, departure_ns: u64) {
        let Some(interface) = self.interfaces[frame.direction] else {
            return;
        };
        self.recorder.record(Packet {
            interface,
            outcome,
            marks: frame.marks,
            entry_ns: frame.arrival_ns,
            departure_ns,
            frame_bytes: frame.length.saturating_sub(OFFLOAD_HEADER_BYTES) as u32,
            message: frame.message(),
        });
    }

    /// Records a message of `length` bytes that goes no further.
    pub(crate) fn note_refused(
        &mut self,
        direction: usize,
        message: &[u8],
        length: usize,
        (entry_ns, marks): (u64, Marks),
        outcome: Outcome,
    ) {
        let Some(interface) = self.interfaces[direction] else {
            return;
        };
        self.recorder.record(Packet {
            interface,
            outcome,
            marks,
            entry_ns,
            departure_ns: 0,
            frame_bytes: length.saturating_sub(OFFLOAD_HEADER_BYTES) as u32,
            message,
        });
    }

    pub(crate) fn status(&self) -> Status {
        self.recorder.status()
    }

    pub(crate) fn finish(self) -> Status {
        self.recorder.finish()
    }
}
