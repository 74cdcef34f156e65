//! The timed part: one request out, one response in, under one deadline.

use std::io::IoSlice;
use std::net::SocketAddr;

use bytes::Buf;
use rustix::io::Errno;

use crate::clock;
use crate::connection::{Connection, Wake};
use crate::failure::{Cause, Failure, Stage};
use crate::http::response::{Malformed, Progress, Response};
use crate::outgoing::Outgoing;
use crate::timing::Timing;

/// What came of it.
#[derive(Debug)]
pub struct Exchange {
    pub timing: Timing,
    /// How many bytes of the request (head and body) the kernel has taken.
    pub sent_bytes: usize,
    /// All of them were taken.
    pub is_sent: bool,
    /// Ok: the response is complete.
    pub result: Result<(), Failure>,
}

/// The very bytes to send.
#[derive(Debug, Default)]
pub struct Message {
    pub head: Vec<u8>,
    pub body: Outgoing,
}

impl Message {
    /// How many bytes are to be sent, where none were so far.
    pub fn bytes(&self) -> usize {
        self.head.len() + self.body.remaining()
    }

    /// What is left to send, when so many bytes were sent: as one or two slices.
    fn unsent(&self, sent: usize) -> [IoSlice<'_>; 2] {
        let head = sent.min(self.head.len());
        [
            IoSlice::new(&self.head[head..]),
            IoSlice::new(self.body.chunk()),
        ]
    }
}

/// Sends `message`, of whose body nothing is left then, and reads the response to it. `address` is
/// given where the connection is yet to be made. Nothing is ever sent twice.
pub fn run(
    connection: &Connection,
    address: Option<SocketAddr>,
    message: &mut Message,
    response: &mut Response,
    allowed_ns: u64,
) -> Exchange {
    let start_ns = clock::now_ns();
    let mut running = Running {
        connection,
        bytes: message.bytes(),
        message,
        response,
        deadline_ns: start_ns.saturating_add(allowed_ns),
        sent_bytes: 0,
        last_read_ns: None,
        timing: Timing {
            start_ns,
            ..Timing::default()
        },
    };
    let result = running.run(address);
    let stopped_ns = match result {
        Ok(()) => running.last_read_ns.unwrap_or_else(clock::now_ns),
        Err(_) => clock::now_ns(),
    };
    let mut timing = running.timing;
    timing.elapsed_ns = stopped_ns - start_ns;
    timing.first_byte_ns = running
        .response
        .started_ns()
        .map(|instant| instant - start_ns);
    timing.total_ns = result.is_ok().then_some(timing.elapsed_ns);
    Exchange {
        timing,
        sent_bytes: running.sent_bytes,
        is_sent: running.sent_bytes == running.bytes,
        result,
    }
}

struct Running<'a> {
    connection: &'a Connection,
    message: &'a mut Message,
    bytes: usize,
    response: &'a mut Response,
    deadline_ns: u64,
    sent_bytes: usize,
    last_read_ns: Option<u64>,
    timing: Timing,
}

impl Running<'_> {
    fn run(&mut self, address: Option<SocketAddr>) -> Result<(), Failure> {
        let start_ns = self.timing.start_ns;
        if let Some(address) = address {
            self.connection
                .connect(address, self.deadline_ns)
                .map_err(|error| Failure::from_errno(Stage::Connect, error))?;
            self.timing.connect_ns = Some(clock::now_ns() - start_ns);
        } else {
            self.timing.connect_ns = Some(0);
        }
        if self.send()? == Progress::Done {
            return Ok(()); // answered before it was asked out
        }
        self.receive()
    }

    /// Sends the request. Done: the whole response has come before the whole request was sent.
    fn send(&mut self) -> Result<Progress, Failure> {
        while self.sent_bytes < self.bytes {
            match self.connection.send(&self.message.unsent(self.sent_bytes)) {
                Ok(sent) => {
                    let of_head = sent.min(self.message.head.len().saturating_sub(self.sent_bytes));
                    self.sent_bytes += sent;
                    self.message.body.advance(sent - of_head);
                }
                Err(Errno::AGAIN) => {
                    self.wait(Stage::Send, Connection::wait_either)?;
                    if self.read_early()? == Progress::Done {
                        return Ok(Progress::Done);
                    }
                }
                Err(error) => {
                    // A server that refuses a request while it is being sent answers and closes:
                    // its answer may lie in the socket still.
                    let failure = Failure::from_errno(Stage::Send, error);
                    self.receive().map_err(|_| failure)?;
                    return Ok(Progress::Done);
                }
            }
        }
        self.timing.sent_ns = Some(clock::now_ns() - self.timing.start_ns);
        Ok(Progress::More)
    }

    /// Reads what has come while the request is still being sent. A final answer ends the sending:
    /// whatever it says, the rest of the request cannot change it (RFC 9112, 9.5).
    fn read_early(&mut self) -> Result<Progress, Failure> {
        match self.read() {
            Ok(Some(Progress::Done)) => Ok(Progress::Done),
            Ok(_) if self.response.head().is_some() => {
                self.receive()?;
                Ok(Progress::Done)
            }
            Ok(_) => Ok(Progress::More),
            Err(failure) => Err(Failure {
                stage: Stage::Send,
                ..failure
            }),
        }
    }

    fn receive(&mut self) -> Result<(), Failure> {
        loop {
            self.wait(self.receiving(), Connection::wait_readable)?;
            if self.read()? == Some(Progress::Done) {
                return Ok(());
            }
        }
    }

    /// Reads once. None: there was nothing to read.
    fn read(&mut self) -> Result<Option<Progress>, Failure> {
        let stage = self.receiving();
        let length = match self.connection.receive(self.response.spare()) {
            Ok(0) if self.response.closed() == Progress::Done => {
                return Ok(Some(Progress::Done));
            }
            Ok(0) => {
                return Err(Failure {
                    stage,
                    cause: Cause::Closed,
                });
            }
            Ok(length) => length,
            Err(Errno::AGAIN) => return Ok(None),
            Err(error) => return Err(Failure::from_errno(stage, error)),
        };
        let now_ns = clock::now_ns();
        let last_ns = self.last_read_ns.replace(now_ns).unwrap_or(now_ns);
        if stage == Stage::Body {
            self.timing.longest_gap_ns = self.timing.longest_gap_ns.max(now_ns - last_ns);
        }
        self.timing.reads += 1;
        let progress = self
            .response
            .received(length, now_ns)
            .map_err(|Malformed(what)| Failure {
                stage: self.receiving(),
                cause: Cause::Malformed(what),
            })?;
        Ok(Some(progress))
    }

    fn receiving(&self) -> Stage {
        if self.response.started_ns().is_some() {
            Stage::Body
        } else {
            Stage::FirstByte
        }
    }

    fn wait(
        &self,
        stage: Stage,
        wait: impl Fn(&Connection, u64) -> Result<Wake, Errno>,
    ) -> Result<(), Failure> {
        match wait(self.connection, self.deadline_ns) {
            Ok(Wake::Ready) => Ok(()),
            Ok(Wake::Deadline) => Err(Failure {
                stage,
                cause: Cause::Timeout,
            }),
            Err(error) => Err(Failure::from_errno(stage, error)),
        }
    }
}
