//! Reads a record back, as far as it is whole.

use std::io::{self, Read};

use super::packet::{Marks, Outcome};
use super::pcapng::{self, Entry};

/// No block of ours is longer.
const LONGEST_BLOCK_BYTES: usize = 1 << 20;

/// A record that is being read.
pub struct Reader<R> {
    input: R,
    block: Vec<u8>,
    names: Vec<String>,
    behind_ns: u64,
    cut_short: bool,
}

impl<R: Read> Reader<R> {
    /// Reads the head of a record. The error says why it is none.
    pub fn open(input: R) -> Result<Reader<R>, String> {
        let mut reader = Reader {
            input,
            block: Vec::new(),
            names: Vec::new(),
            behind_ns: 0,
            cut_short: false,
        };
        if reader.next_block()? != Some(pcapng::SECTION_HEADER)
            || reader.word(8) != Some(pcapng::BYTE_ORDER_MAGIC)
        {
            return Err("it is not a pcapng file of wanlat".into());
        }
        let comment = reader.option(24, pcapng::OPTION_COMMENT).unwrap_or(&[]);
        reader.behind_ns = between(comment, pcapng::CLOCK_BEFORE, pcapng::CLOCK_AFTER)
            .and_then(|text| text.parse().ok())
            .ok_or("it does not say how its timestamps relate to CLOCK_MONOTONIC")?;
        Ok(reader)
    }

    /// What the timestamps are ahead of the monotonic clock.
    pub fn behind_ns(&self) -> u64 {
        self.behind_ns
    }

    /// Names of the interfaces met so far.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether the file ended within a block.
    pub fn is_cut_short(&self) -> bool {
        self.cut_short
    }

    /// The next packet; `None` at the end of what is whole.
    pub fn next_packet(&mut self) -> Result<Option<Entry<'_>>, String> {
        loop {
            match self.next_block()? {
                None => return Ok(None),
                Some(pcapng::INTERFACE_DESCRIPTION) => {
                    let name = self.option(16, pcapng::OPTION_INTERFACE_NAME);
                    let name = String::from_utf8_lossy(name.unwrap_or(&[])).into_owned();
                    self.names.push(name);
                }
                Some(pcapng::ENHANCED_PACKET) => break,
                Some(_) => {}
            }
        }
        self.packet()
            .map(Some)
            .ok_or_else(|| "a packet makes no sense".into())
    }

    fn packet(&self) -> Option<Entry<'_>> {
        let captured_bytes = self.word(20)? as usize;
        let captured = self.block.get(28..28usize.checked_add(captured_bytes)?)?;
        let options = 28 + captured_bytes.next_multiple_of(4);
        let frame_bytes = self.word(24)?;
        let comment = std::str::from_utf8(self.option(options, pcapng::OPTION_COMMENT)?).ok()?;
        let mut entry = Entry {
            interface: self.word(8)?,
            timestamp_ns: u64::from(self.word(12)?) << 32 | u64::from(self.word(16)?),
            outcome: Outcome::Unknown,
            marks: Marks::default(),
            held_ns: 0,
            segments: 1,
            wire_bytes: frame_bytes.into(),
            frame_bytes,
            captured,
        };
        if entry.interface as usize >= self.names.len() {
            return None;
        }
        for phrase in comment.split("; ") {
            read_phrase(phrase, &mut entry)?;
        }
        Some(entry)
    }

    /// Reads a whole block into memory and returns its kind; `None` at the end of what is whole.
    fn next_block(&mut self) -> Result<Option<u32>, String> {
        self.block.resize(8, 0);
        if !self.fill(0)? {
            return Ok(None);
        }
        let length = self.word(4).unwrap_or(0) as usize;
        if !(12..=LONGEST_BLOCK_BYTES).contains(&length) || !length.is_multiple_of(4) {
            return Err(format!("a block claims to have {length} bytes"));
        }
        self.block.resize(length, 0);
        if !self.fill(8)? {
            return Ok(None);
        }
        if self.word(length - 4) != Some(length as u32) {
            return Err("a block ends with another length than it begins with".into());
        }
        Ok(self.word(0))
    }

    /// Fills the block from `start` on. Returns whether there was enough.
    fn fill(&mut self, start: usize) -> Result<bool, String> {
        let mut at = start;
        while at < self.block.len() {
            match self.input.read(&mut self.block[at..]) {
                Ok(0) => {
                    self.cut_short |= at > 0;
                    return Ok(false);
                }
                Ok(length) => at += length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(true)
    }

    fn word(&self, at: usize) -> Option<u32> {
        let bytes = self.block.get(at..at + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    }

    /// The first option of a kind, where options start at `at`.
    fn option(&self, mut at: usize, code: u16) -> Option<&[u8]> {
        loop {
            let head = self.word(at)?;
            let (found, length) = (head as u16, (head >> 16) as usize);
            if found == 0 {
                return None;
            }
            if found == code {
                return self.block.get(at + 4..at + 4 + length);
            }
            at += 4 + length.next_multiple_of(4);
        }
    }
}

fn between<'a>(text: &'a [u8], before: &str, after: &str) -> Option<&'a str> {
    let text = std::str::from_utf8(text).ok()?;
    let (_, rest) = text.split_once(before)?;
    Some(rest.split_once(after)?.0)
}

/// Reads one phrase of a comment into the packet.
fn read_phrase(phrase: &str, entry: &mut Entry<'_>) -> Option<()> {
    if let Some(delay) = between(phrase.as_bytes(), "departed ", " ms later") {
        let (ms, ns) = delay.split_once('.')?;
        entry.outcome = Outcome::Sent;
        entry.held_ns = ms.parse::<u64>().ok()?.checked_mul(1_000_000)? + ns.parse::<u64>().ok()?;
    } else if let Some((segments, rest)) = phrase.split_once(" segments, ") {
        entry.segments = segments.parse().ok()?;
        entry.wire_bytes = rest.split_once(' ')?.0.parse().ok()?;
    } else if let Some(outcome) = Outcome::ALL.iter().find(|each| each.word() == phrase) {
        entry.outcome = *outcome;
    } else {
        match phrase {
            "departed" => entry.outcome = Outcome::Sent,
            "entry not seen" => entry.marks.entry_unseen = true,
            "duplicate" => entry.marks.duplicate = true,
            "corrupted" => entry.marks.corrupted = true,
            _ => {} // what a later version says
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(captured: &[u8]) -> Entry<'_> {
        Entry {
            interface: 1,
            timestamp_ns: 1_700_000_000_123_456_789,
            outcome: Outcome::Sent,
            marks: Marks::default(),
            held_ns: 50_012_345,
            segments: 1,
            wire_bytes: 98,
            frame_bytes: 98,
            captured,
        }
    }

    fn file(entries: &[Entry<'_>]) -> Vec<u8> {
        let mut file = Vec::new();
        pcapng::section(&mut file, 1_000_000_000);
        pcapng::interface(&mut file, "dc1->dc2", 256);
        pcapng::interface(&mut file, "dc2->dc1", 256);
        for entry in entries {
            pcapng::packet(&mut file, entry, &mut String::new());
        }
        file
    }

    #[test]
    fn every_kind_of_packet_comes_back_as_it_was_written() {
        let mut entries = vec![
            entry(b"frame"),
            Entry {
                segments: 45,
                wire_bytes: 65_483,
                frame_bytes: 62_579,
                marks: Marks {
                    duplicate: true,
                    corrupted: true,
                    entry_unseen: false,
                },
                ..entry(b"")
            },
            Entry {
                held_ns: 0,
                marks: Marks {
                    entry_unseen: true,
                    ..Marks::default()
                },
                ..entry(b"abc")
            },
        ];
        for outcome in &Outcome::ALL[1..] {
            entries.push(Entry {
                outcome: *outcome,
                held_ns: 0,
                ..entry(b"frame")
            });
        }
        let file = file(&entries);
        let mut reader = Reader::open(file.as_slice()).unwrap();
        assert_eq!(reader.behind_ns(), 1_000_000_000);
        for entry in entries {
            assert_eq!(reader.next_packet().unwrap(), Some(entry));
        }
        assert_eq!(reader.next_packet(), Ok(None));
        assert_eq!(reader.names(), ["dc1->dc2", "dc2->dc1"]);
        assert!(!reader.is_cut_short());
    }

    #[test]
    fn a_file_that_was_cut_short_is_read_up_to_the_cut() {
        let entries = [entry(b"one"), entry(b"two")];
        let whole = file(&entries);
        let first = file(&entries[..1]).len();
        for length in first + 1..whole.len() {
            let mut reader = Reader::open(&whole[..length]).unwrap();
            assert_eq!(reader.next_packet().unwrap(), Some(entries[0]));
            assert_eq!(reader.next_packet(), Ok(None));
            assert!(reader.is_cut_short());
        }
    }

    #[test]
    fn a_damaged_file_is_an_error_or_ends_but_never_a_panic() {
        let whole = file(&[entry(b"one"), entry(b"two")]);
        for at in 0..whole.len() {
            for value in [0, 0x7f, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] = value;
                let Ok(mut reader) = Reader::open(damaged.as_slice()) else {
                    continue;
                };
                while let Ok(Some(_)) = reader.next_packet() {}
            }
        }
    }
}
