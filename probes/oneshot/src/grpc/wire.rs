//! The socket under HTTP/2, which notes when the bytes of a request and of its response pass.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use rustix::io::Errno;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::clock;
use crate::connection::Connection;
use crate::failure::{Cause, Stage};
use crate::grpc::frames::{CONTINUATION, DATA, Frame, Frames, GOAWAY, HEADERS, Part, RST_STREAM};

/// What a client sends before its first frame (RFC 9113, section 3.4).
const PREFACE_BYTES: usize = 24;

/// What is read before it is handed on. Without an end to it, h2 would read, and hold, whatever
/// comes for as long as it comes faster than it is read: a large answer whole.
const READ_BYTES: usize = 256 * 1024;

/// A socket, and what has been seen on it.
pub struct Wire {
    pub connection: Connection,
    /// h2 has bytes to send for which the kernel had no room.
    pub wants_to_write: Cell<bool>,
    /// What may be read until whoever drives this has dealt with what was.
    to_read: Cell<usize>,
    seen: RefCell<Seen>,
}

/// What the wire knows of the request that was sent last, and of the connection's end.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The request's stream; 0 before any of its bytes was taken by the kernel.
    pub stream: u32,
    /// How many bytes of its message, and of the five before it, the kernel has taken.
    pub message_bytes_sent: usize,
    /// On CLOCK_MONOTONIC: the kernel took the last byte of the frame that ends the request.
    pub sent_ns: Option<u64>,
    /// A read brought the first byte of the response's HEADERS frame.
    pub first_byte_ns: Option<u64>,
    /// A read brought the last byte of the frame that ends the response.
    pub complete_ns: Option<u64>,
    /// The longest time between two reads that brought bytes of the response.
    pub longest_gap_ns: u64,
    /// How many reads brought bytes of the response.
    pub reads: u32,
    /// RST_STREAM's error code.
    pub reset: Option<u32>,
    /// GOAWAY's last stream and error code.
    pub goaway: Option<(u32, u32)>,
    /// Why no more bytes can come or go.
    pub ended: Option<Cause>,
}

impl Facts {
    /// How far the request has come, on a connection that is established.
    pub fn stage(&self) -> Stage {
        match (self.sent_ns, self.first_byte_ns) {
            (_, Some(_)) => Stage::Body,
            (Some(_), None) => Stage::FirstByte,
            (None, None) => Stage::Send,
        }
    }
}

struct Seen {
    facts: Facts,
    outbound: Frames,
    inbound: Frames,
    last_read_ns: Option<u64>,
    had_data: bool,
    /// The frame that ends the stream has come, but for its CONTINUATIONs.
    ending: bool,
}

impl Wire {
    pub fn new(connection: Connection) -> Rc<Self> {
        Rc::new(Wire {
            connection,
            wants_to_write: Cell::new(false),
            to_read: Cell::new(READ_BYTES),
            seen: RefCell::new(Seen {
                facts: Facts::default(),
                outbound: Frames::after(PREFACE_BYTES),
                inbound: Frames::default(),
                last_read_ns: None,
                had_data: false,
                ending: false,
            }),
        })
    }

    /// Everything is about to be polled.
    pub fn is_polled(&self) {
        self.wants_to_write.set(false);
        self.to_read.set(READ_BYTES);
    }

    /// Forgets the request before, not what was seen of the connection's end.
    pub fn expect_request(&self) {
        let mut seen = self.seen.borrow_mut();
        seen.facts = Facts {
            goaway: seen.facts.goaway,
            ended: seen.facts.ended.clone(),
            ..Facts::default()
        };
        seen.last_read_ns = None;
        seen.had_data = false;
        seen.ending = false;
    }

    pub fn facts(&self) -> Facts {
        self.seen.borrow().facts.clone()
    }
}

impl Seen {
    fn sent(&mut self, bytes: &[u8], now_ns: u64) {
        let facts = &mut self.facts;
        self.outbound.pass(bytes, now_ns, |part| match part {
            Part::Header(frame) if frame.kind == HEADERS => facts.stream = frame.stream,
            Part::Payload(frame, bytes) if frame.kind == DATA => facts.message_bytes_sent += bytes,
            Part::End(frame) if frame.ends_stream() => facts.sent_ns = Some(now_ns),
            _ => {}
        });
    }

    fn received(&mut self, bytes: &[u8], now_ns: u64) {
        let mut frames = std::mem::take(&mut self.inbound);
        let mut of_response = false;
        frames.pass(bytes, now_ns, |part| {
            let (Part::Header(frame) | Part::Payload(frame, _) | Part::End(frame)) = part;
            if frame.stream == self.facts.stream && frame.stream != 0 {
                of_response |= matches!(frame.kind, HEADERS | DATA | CONTINUATION);
                self.part_of_response(part, now_ns);
            } else if let Part::End(frame) = part
                && frame.kind == GOAWAY
            {
                self.facts.goaway = Some((frame.number(0) & 0x7fff_ffff, frame.number(1)));
            }
        });
        self.inbound = frames;
        if of_response {
            self.facts.reads += 1;
            let last_ns = self.last_read_ns.replace(now_ns).unwrap_or(now_ns);
            self.facts.longest_gap_ns = self.facts.longest_gap_ns.max(now_ns - last_ns);
        }
    }

    fn part_of_response(&mut self, part: Part, now_ns: u64) {
        match part {
            Part::Header(frame) if frame.kind == HEADERS => self.headers(frame),
            Part::Header(frame) if frame.kind == DATA => self.had_data = true,
            Part::End(frame) if frame.kind == RST_STREAM => {
                self.facts.reset = Some(frame.number(0));
            }
            Part::End(frame) => {
                self.ending |= frame.ends_stream();
                if self.ending && (frame.kind == DATA || frame.ends_headers()) {
                    self.facts.complete_ns = Some(now_ns);
                }
            }
            _ => {}
        }
    }

    /// HEADERS that come again, before any data and without ending the stream, say that those
    /// before were an interim response, which is not what was waited for.
    fn headers(&mut self, frame: Frame) {
        let again = !frame.ends_stream() && !self.had_data;
        if self.facts.first_byte_ns.is_none() || again {
            self.facts.first_byte_ns = Some(frame.began_ns);
            self.facts.longest_gap_ns = 0;
            self.last_read_ns = None;
        }
    }
}

/// The end of the wire that h2 holds.
pub struct Tap(pub Rc<Wire>);

impl Tap {
    fn ended<T>(&self, error: Errno) -> Poll<io::Result<T>> {
        let mut seen = self.0.seen.borrow_mut();
        seen.facts.ended.get_or_insert(error.into());
        Poll::Ready(Err(error.into()))
    }
}

impl AsyncRead for Tap {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.0.to_read.get() == 0 {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        // Whoever drives this waits on the socket itself, so that nobody has to be woken.
        match self.0.connection.receive(into.initialize_unfilled()) {
            Ok(length) => {
                let now_ns = clock::now_ns();
                let to_read = self.0.to_read.get().saturating_sub(length);
                self.0.to_read.set(to_read);
                let mut seen = self.0.seen.borrow_mut();
                if length == 0 {
                    seen.facts.ended.get_or_insert(Cause::Closed);
                } else {
                    seen.received(&into.initialize_unfilled()[..length], now_ns);
                }
                into.advance(length);
                Poll::Ready(Ok(()))
            }
            Err(Errno::AGAIN) => Poll::Pending,
            Err(error) => self.ended(error),
        }
    }
}

impl AsyncWrite for Tap {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.0.connection.send(parts) {
            Ok(sent) => {
                let now_ns = clock::now_ns();
                let mut seen = self.0.seen.borrow_mut();
                let mut left = sent;
                for part in parts {
                    let taken = left.min(part.len());
                    seen.sent(&part[..taken], now_ns);
                    left -= taken;
                }
                Poll::Ready(Ok(sent))
            }
            Err(Errno::AGAIN) => {
                self.0.wants_to_write.set(true);
                Poll::Pending
            }
            Err(error) => self.ended(error),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(())) // closing the socket does it
    }
}
