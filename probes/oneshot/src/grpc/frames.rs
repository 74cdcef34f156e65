//! HTTP/2 frames as they go by: where each begins and ends, and nothing of what they hold.
//!
//! The layout is RFC 9113's, section 4.1: a header of nine bytes (length, type, flags, stream), then
//! as many bytes as the length says. That is enough to know exactly which read brought the first
//! byte of a response and which write took the last byte of a request.

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const GOAWAY: u8 = 7;
pub const CONTINUATION: u8 = 9;

const HEADER_BYTES: usize = 9;
const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;

/// A frame's header, and the beginning of its payload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    /// When its first byte went by.
    pub began_ns: u64,
    /// The first bytes of its payload, as far as there are any: all of RST_STREAM, and of GOAWAY
    /// what it says.
    pub beginning: [u8; 8],
}

impl Frame {
    pub fn ends_stream(&self) -> bool {
        matches!(self.kind, DATA | HEADERS) && self.flags & END_STREAM != 0
    }

    pub fn ends_headers(&self) -> bool {
        matches!(self.kind, HEADERS | CONTINUATION) && self.flags & END_HEADERS != 0
    }

    /// One of the four-byte numbers at the payload's beginning.
    pub fn number(&self, index: usize) -> u32 {
        let at = index * 4;
        u32::from_be_bytes(self.beginning[at..at + 4].try_into().expect("four bytes"))
    }
}

/// What a piece of the byte stream holds of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The header is complete.
    Header(Frame),
    /// So many bytes of payload.
    Payload(Frame, usize),
    /// The last byte has gone by.
    End(Frame),
}

/// Finds the frames in one direction of a connection.
#[derive(Debug, Default)]
pub struct Frames {
    /// Bytes that belong to no frame: the client's preface.
    preface: usize,
    header: [u8; HEADER_BYTES],
    header_bytes: usize,
    frame: Frame,
    length: usize,
    payload_bytes: usize,
}

impl Frames {
    /// `preface`: how many bytes come before the first frame.
    pub fn after(preface: usize) -> Self {
        Frames {
            preface,
            ..Frames::default()
        }
    }

    /// The next bytes went by at `now_ns`; `each` gets what they hold.
    pub fn pass(&mut self, mut bytes: &[u8], now_ns: u64, mut each: impl FnMut(Part)) {
        let skipped = self.preface.min(bytes.len());
        self.preface -= skipped;
        bytes = &bytes[skipped..];
        while !bytes.is_empty() {
            if self.header_bytes < HEADER_BYTES {
                bytes = self.take_header(bytes, now_ns);
                if self.header_bytes < HEADER_BYTES {
                    return;
                }
                each(Part::Header(self.frame));
            } else {
                let taken = (self.length - self.payload_bytes).min(bytes.len());
                self.keep_beginning(&bytes[..taken]);
                self.payload_bytes += taken;
                bytes = &bytes[taken..];
                each(Part::Payload(self.frame, taken));
            }
            if self.payload_bytes == self.length {
                each(Part::End(self.frame));
                self.header_bytes = 0;
            }
        }
    }

    fn take_header<'a>(&mut self, bytes: &'a [u8], now_ns: u64) -> &'a [u8] {
        if self.header_bytes == 0 {
            self.frame = Frame {
                began_ns: now_ns,
                ..Frame::default()
            };
            self.payload_bytes = 0;
        }
        let taken = (HEADER_BYTES - self.header_bytes).min(bytes.len());
        self.header[self.header_bytes..][..taken].copy_from_slice(&bytes[..taken]);
        self.header_bytes += taken;
        if self.header_bytes == HEADER_BYTES {
            let [a, b, c, kind, flags, stream @ ..] = self.header;
            self.length = u32::from_be_bytes([0, a, b, c]) as usize;
            self.frame.kind = kind;
            self.frame.flags = flags;
            self.frame.stream = u32::from_be_bytes(stream) & 0x7fff_ffff;
        }
        &bytes[taken..]
    }

    fn keep_beginning(&mut self, payload: &[u8]) {
        let beginning = &mut self.frame.beginning;
        if self.payload_bytes < beginning.len() {
            let room = &mut beginning[self.payload_bytes..];
            let taken = room.len().min(payload.len());
            room[..taken].copy_from_slice(&payload[..taken]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
        bytes.extend([kind, flags]);
        bytes.extend(stream.to_be_bytes());
        bytes.extend(payload);
        bytes
    }

    /// (kind, stream, began at, ended at, payload bytes) of every frame, the stream being passed in
    /// pieces of `piece` bytes at the instants 1, 2, ...
    fn seen(preface: usize, bytes: &[u8], piece: usize) -> Vec<(u8, u32, u64, u64, usize)> {
        let mut frames = Frames::after(preface);
        let (mut seen, mut payload) = (Vec::new(), 0);
        for (index, piece) in bytes.chunks(piece).enumerate() {
            let now_ns = index as u64 + 1;
            frames.pass(piece, now_ns, |part| match part {
                Part::Header(_) => payload = 0,
                Part::Payload(_, bytes) => payload += bytes,
                Part::End(f) => seen.push((f.kind, f.stream, f.began_ns, now_ns, payload)),
            });
        }
        seen
    }

    #[test]
    fn frames_are_found_however_the_stream_is_cut() {
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        let stream = [
            preface.to_vec(),
            frame(4, 0, 0, &[7; 12]),
            frame(4, 1, 0, &[]),
            frame(HEADERS, END_HEADERS, 1, &[9; 30]),
            frame(DATA, END_STREAM, 0x8000_0001, &[0; 300]), // a bit that is none of the stream's
        ]
        .concat();
        for piece in 1..=stream.len() {
            let seen = seen(preface.len(), &stream, piece);
            let piece_of = |byte: usize| (byte / piece) as u64 + 1;
            let expected = [
                (4, 0, piece_of(24), piece_of(44), 12),
                (4, 0, piece_of(45), piece_of(53), 0),
                (HEADERS, 1, piece_of(54), piece_of(92), 30),
                (DATA, 1, piece_of(93), piece_of(401), 300),
            ];
            assert_eq!(seen, expected, "in pieces of {piece}");
        }
    }

    #[test]
    fn what_a_reset_and_a_goaway_say_is_kept() {
        let goaway = frame(GOAWAY, 0, 0, &[0, 0, 0, 5, 0, 0, 0, 2, b'b', b'y', b'e']);
        for piece in 1..=goaway.len() {
            let mut frames = Frames::default();
            let mut said = None;
            for piece in goaway.chunks(piece) {
                frames.pass(piece, 0, |part| {
                    if let Part::End(frame) = part {
                        said = Some((frame.number(0), frame.number(1)));
                    }
                });
            }
            assert_eq!(said, Some((5, 2)));
        }
    }
}
