//! An HTTP/1.1 response taken from the socket piece by piece (RFC 9112).
//!
//! The whole response lies in one buffer, which is reused from request to request and is large
//! enough, and already in memory, before the clock starts. The body is never moved: it is the list
//! of the buffer's parts that belong to it, one for a body with a length, one a chunk otherwise.
//!
//! But a body whose bytes are known beforehand is not kept ([`Response::prepare_verified`]): it is
//! compared as it comes, and its place in the buffer is used again.

use std::mem;
use std::ops::Range;

use httparse::Status;

use crate::outcome::Verdict;
use crate::verify::Verifier;

const HEAD_BYTES: usize = 64 * 1024;
/// What is compared at a time, at most: it stays in the processor's second-level cache meanwhile.
pub const COMPARED_BYTES: u64 = 256 * 1024;
const MAX_HEADERS: usize = 128;
/// A body that nobody announced may not fill the memory.
const UNEXPECTED_BODY_BYTES: usize = 1 << 30;

/// The parts of the response's head that matter to anyone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    pub status: u16,
    pub location: Option<String>,
    pub content_length: Option<u64>,
    /// May the connection serve another request?
    pub keep_alive: bool,
    chunked: bool,
    /// Transfer-Encoding was there but does not end in chunked: the body ends with the connection.
    until_close: bool,
}

/// Is the response complete?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    More,
    Done,
}

/// It is not an HTTP/1.1 response, or not one that can be understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed(pub String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Head,
    Length {
        left: usize,
    },
    ChunkSize,
    ChunkData {
        left: usize,
    },
    ChunkEnd,
    Trailers,
    UntilClose,
    Done,
}

/// The response that is being read.
#[derive(Default)]
pub struct Response {
    buffer: Vec<u8>,
    filled: usize,
    parsed: usize,
    body_limit: usize,
    to_head_request: bool,
    state: State,
    head: Option<Head>,
    body: Vec<Range<usize>>,
    body_bytes: usize,
    verifier: Option<Verifier>,
    started_ns: Option<u64>,
    ended_by_close: bool,
}

impl Response {
    /// Makes ready for the response to a request whose answer's body should have `expected_bytes`.
    pub fn prepare(&mut self, expected_bytes: u64, to_head_request: bool) {
        let expected = usize::try_from(expected_bytes).unwrap_or(usize::MAX);
        self.body.clear();
        *self = Response {
            buffer: mem::take(&mut self.buffer),
            body: mem::take(&mut self.body),
            body_limit: expected.max(UNEXPECTED_BODY_BYTES),
            to_head_request,
            ..Response::default()
        };
        // One in 64 for the framing of chunks. `resize` writes the new bytes, so that no page of
        // the buffer is touched for the first time while the clock runs.
        let wanted = HEAD_BYTES
            .saturating_add(expected)
            .saturating_add(expected / 64);
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
    }

    /// The same, where the body of an answer with a status of 2xx is to be compared as it comes,
    /// and not kept.
    pub fn prepare_verified(&mut self, verifier: Verifier, expected_bytes: u64) {
        self.prepare(expected_bytes.min(COMPARED_BYTES), false);
        let expected = usize::try_from(expected_bytes).unwrap_or(usize::MAX);
        self.body_limit = expected.max(UNEXPECTED_BODY_BYTES);
        self.verifier = Some(verifier);
    }

    /// Where the next bytes go. Never empty.
    pub fn spare(&mut self) -> &mut [u8] {
        if self.compares() {
            // At most the beginning of a chunk's framing is unparsed.
            self.buffer.copy_within(self.parsed..self.filled, 0);
            self.filled -= self.parsed;
            self.parsed = 0;
        }
        if self.filled == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        &mut self.buffer[self.filled..]
    }

    /// Takes `length` bytes that were read into [`Response::spare`] at `now_ns`.
    pub fn received(&mut self, length: usize, now_ns: u64) -> Result<Progress, Malformed> {
        self.filled += length;
        if self.started_ns.is_none() {
            self.started_ns = Some(now_ns);
        }
        loop {
            match self.state {
                State::Head => match self.parse_head(now_ns)? {
                    Progress::More => return Ok(Progress::More),
                    Progress::Done => {}
                },
                State::Length { left } => {
                    let left = left - self.take_body(left);
                    self.state = if left == 0 {
                        State::Done
                    } else {
                        State::Length { left }
                    };
                    if left > 0 {
                        return Ok(Progress::More);
                    }
                }
                State::UntilClose => {
                    self.take_body(usize::MAX);
                    self.check_size(self.body_bytes())?;
                    return Ok(Progress::More);
                }
                State::Done => return Ok(Progress::Done),
                _ => match self.parse_chunks()? {
                    Progress::More => return Ok(Progress::More),
                    Progress::Done => {}
                },
            }
        }
    }

    /// The peer has closed: is the response complete with that?
    pub fn closed(&mut self) -> Progress {
        if self.state == State::UntilClose {
            self.state = State::Done;
            self.ended_by_close = true;
        }
        if self.state == State::Done {
            Progress::Done
        } else {
            Progress::More
        }
    }

    /// When the first byte of the response came; an interim (1xx) response does not count.
    pub fn started_ns(&self) -> Option<u64> {
        self.started_ns
    }

    /// The final response's head, as soon as it is here.
    pub fn head(&self) -> Option<&Head> {
        self.head.as_ref()
    }

    /// Did the peer send more than its response?
    pub fn has_leftover(&self) -> bool {
        self.parsed < self.filled
    }

    pub fn body_bytes(&self) -> usize {
        self.body_bytes
    }

    /// What has been found out about a body that is compared.
    pub fn verifier(&self) -> Option<&Verifier> {
        self.verifier.as_ref()
    }

    /// Is the body compared and not kept? An error's is kept.
    fn compares(&self) -> bool {
        let is_object = |head: &Head| (200..300).contains(&head.status);
        self.verifier.is_some() && self.head.as_ref().is_some_and(is_object)
    }

    /// The body's bytes, part by part; none of a body that is compared.
    pub fn body_parts(&self) -> impl Iterator<Item = &[u8]> {
        self.body.iter().map(|part| &self.buffer[part.clone()])
    }

    /// Does the body end where the connection does? Then nothing can follow on it.
    pub fn is_ended_by_close(&self) -> bool {
        self.ended_by_close
    }

    /// The body in one piece, at most its first `limit` bytes.
    pub fn body_text(&self, limit: usize) -> String {
        let mut bytes = Vec::new();
        for part in self.body_parts() {
            bytes.extend_from_slice(&part[..part.len().min(limit - bytes.len())]);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Parses the head when it is whole. Done means: go on in the new state.
    fn parse_head(&mut self, now_ns: u64) -> Result<Progress, Malformed> {
        let unparsed = &self.buffer[self.parsed..self.filled];
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut parsed = httparse::Response::new(&mut headers);
        let length = match parsed.parse(unparsed) {
            Ok(Status::Complete(length)) => length,
            Ok(Status::Partial) if unparsed.len() > HEAD_BYTES => {
                return Err(Malformed("the head of the response does not end".into()));
            }
            Ok(Status::Partial) => return Ok(Progress::More),
            Err(error) => return Err(Malformed(format!("not an HTTP response: {error}"))),
        };
        let status = parsed.code.unwrap_or_default();
        if (100..200).contains(&status) {
            if status == 101 {
                return Err(Malformed(
                    "101 Switching Protocols, which nobody asked for".into(),
                ));
            }
            // An interim response: the real one is still to come, or already behind it.
            self.parsed += length;
            self.started_ns = (self.parsed < self.filled).then_some(now_ns);
            let more = self.started_ns.is_none();
            return Ok(if more { Progress::More } else { Progress::Done });
        }
        let head = Head::from(&parsed)?;
        self.parsed += length;
        self.state = self.body_state(&head)?;
        self.head = Some(head);
        Ok(Progress::Done)
    }

    /// How the body's end is told: RFC 9112, section 6.3.
    fn body_state(&self, head: &Head) -> Result<State, Malformed> {
        if self.to_head_request || matches!(head.status, 204 | 304) {
            return Ok(State::Done);
        }
        if head.chunked {
            return Ok(State::ChunkSize);
        }
        match head.content_length {
            _ if head.until_close => Ok(State::UntilClose),
            Some(length) => {
                let left = usize::try_from(length).unwrap_or(usize::MAX);
                self.check_size(left)?;
                Ok(State::Length { left })
            }
            None => Ok(State::UntilClose),
        }
    }

    fn parse_chunks(&mut self) -> Result<Progress, Malformed> {
        let unparsed = &self.buffer[self.parsed..self.filled];
        match self.state {
            State::ChunkSize => match httparse::parse_chunk_size(unparsed) {
                Ok(Status::Complete((length, size))) => {
                    self.parsed += length;
                    let left = usize::try_from(size).unwrap_or(usize::MAX);
                    self.check_size(self.body_bytes().saturating_add(left))?;
                    self.state = if left == 0 {
                        State::Trailers
                    } else {
                        State::ChunkData { left }
                    };
                }
                Ok(Status::Partial) => return Ok(Progress::More),
                Err(_) => return Err(Malformed("the size of a chunk is not a number".into())),
            },
            State::ChunkData { left } => {
                let left = left - self.take_body(left);
                if left > 0 {
                    self.state = State::ChunkData { left };
                    return Ok(Progress::More);
                }
                self.state = State::ChunkEnd;
            }
            State::ChunkEnd => {
                let Some(end) = unparsed.get(..2) else {
                    return Ok(Progress::More);
                };
                if end != b"\r\n" {
                    return Err(Malformed("a chunk is longer than its size".into()));
                }
                self.parsed += 2;
                self.state = State::ChunkSize;
            }
            _ => {
                // Trailers: lines up to an empty one. Nobody here wants what they say.
                let Some(end) = unparsed.windows(2).position(|pair| pair == b"\r\n") else {
                    if unparsed.len() > HEAD_BYTES {
                        return Err(Malformed("the trailers do not end".into()));
                    }
                    return Ok(Progress::More);
                };
                self.parsed += end + 2;
                if end == 0 {
                    self.state = State::Done;
                }
            }
        }
        Ok(Progress::Done)
    }

    /// Makes up to `wanted` of the unparsed bytes part of the body; says how many.
    fn take_body(&mut self, wanted: usize) -> usize {
        let taken = wanted.min(self.filled - self.parsed);
        let part = self.parsed..self.parsed + taken;
        if taken > 0 {
            let compares = self.compares();
            match (&mut self.verifier, self.body.last_mut()) {
                (Some(verifier), _) if compares => verifier.take(&self.buffer[part.clone()]),
                (_, Some(last)) if last.end == part.start => last.end = part.end,
                _ => self.body.push(part.clone()),
            }
            self.parsed = part.end;
            self.body_bytes += taken;
        }
        taken
    }

    fn check_size(&self, bytes: usize) -> Result<(), Malformed> {
        if bytes > self.body_limit {
            return Err(Malformed(format!(
                "a body of {bytes} bytes, which nobody expected"
            )));
        }
        Ok(())
    }
}

impl Head {
    fn from(parsed: &httparse::Response<'_, '_>) -> Result<Self, Malformed> {
        let mut head = Head {
            status: parsed.code.unwrap_or_default(),
            location: None,
            content_length: None,
            keep_alive: parsed.version == Some(1),
            chunked: false,
            until_close: false,
        };
        for header in parsed.headers.iter() {
            let value = String::from_utf8_lossy(header.value);
            let value = value.trim();
            if header.name.eq_ignore_ascii_case("content-length") {
                let length = value
                    .parse()
                    .map_err(|_| Malformed(format!("Content-Length is not a number: {value:?}")))?;
                if head.content_length.is_some_and(|other| other != length) {
                    return Err(Malformed("two different Content-Lengths".into()));
                }
                head.content_length = Some(length);
            } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
                head.chunked = last_token_is(value, "chunked");
                head.until_close = !head.chunked;
            } else if header.name.eq_ignore_ascii_case("connection") {
                let says = |word: &str| {
                    value
                        .split(',')
                        .any(|token| token.trim().eq_ignore_ascii_case(word))
                };
                // HTTP/1.0 closes unless it says otherwise, HTTP/1.1 the other way round.
                head.keep_alive = !says("close") && (head.keep_alive || says("keep-alive"));
            } else if header.name.eq_ignore_ascii_case("location") {
                head.location = Some(value.to_owned());
            }
        }
        if head.chunked && head.content_length.is_some() {
            // RFC 9112, 6.3: Transfer-Encoding wins, and the connection is not to be trusted.
            head.keep_alive = false;
        }
        Ok(head)
    }

    /// Is the length that it announces the object's, where that is known?
    pub fn check_length(&self, expected: Option<u64>) -> Verdict {
        match (self.content_length, expected) {
            (Some(announced), Some(expected)) if announced != expected => Verdict::fail(format!(
                "length mismatch: {announced} bytes, not {expected}"
            )),
            (None, Some(expected)) => {
                Verdict::fail(format!("length mismatch: none given, not {expected}"))
            }
            _ => Verdict::ok(),
        }
    }
}

fn last_token_is(list: &str, word: &str) -> bool {
    list.rsplit(',')
        .next()
        .is_some_and(|token| token.trim().eq_ignore_ascii_case(word))
}
