//! The timed part: one message out, one message and a status in, under one deadline.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;

use bytes::Bytes;
use h2::client::{self, SendRequest};
use http::{HeaderMap, Request, StatusCode};
use rustix::io::Errno;

use crate::clock;
use crate::connection::Connection;
use crate::failure::{Cause, Failure, Stage};
use crate::grpc::blob::{self, BlobReader};
use crate::grpc::drive::Driver;
use crate::grpc::window::Window;
use crate::grpc::wire::{Facts, Tap, Wire};
use crate::outgoing::Outgoing;
use crate::timing::Timing;

/// One HTTP/2 connection: made for one request, or kept for many.
pub struct Session {
    wire: Rc<Wire>,
    driver: Driver,
    http2: Option<Http2>,
    max_message_bytes: u64,
    window: Window,
}

struct Http2 {
    requests: SendRequest<Outgoing>,
    connection: client::Connection<Tap, Outgoing>,
}

/// What came of a call.
pub struct Done {
    pub facts: Facts,
    pub answer: Answer,
    pub end: End,
}

/// What has come of the answer.
#[derive(Debug, Default)]
pub struct Answer {
    pub head: Option<(StatusCode, HeaderMap)>,
    /// The body in the pieces that it came in, where it is kept.
    pub data: Vec<Bytes>,
    /// The body, where it is large and was compared as it came.
    pub blob: Option<BlobReader>,
    /// How many bytes have come of it.
    pub received: u64,
    pub trailers: HeaderMap,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The answer is there, to its end.
    Complete,
    /// It announces a message of so many bytes, which is more than is taken.
    TooLong(u64),
    /// The server reset the stream, with this error code of HTTP/2's.
    StreamReset(Stage, u32),
    /// The server is closing the connection, and says that it has not looked at this stream.
    NotTaken,
    Broken(Failure),
}

enum Broken {
    TooLong(u64),
    Http2(h2::Error),
}

impl From<h2::Error> for Broken {
    fn from(error: h2::Error) -> Self {
        Broken::Http2(error)
    }
}

impl Answer {
    /// The next piece of the body, which should hold the object of `seed`, where that is known.
    fn take(&mut self, piece: Bytes, seed: Option<u64>) {
        self.received += piece.len() as u64;
        if let Some(blob) = &mut self.blob {
            blob.take(&piece);
            return;
        }
        self.data.push(piece);
        let is_large = self.announced_bytes() > Some(blob::HELD_BYTES);
        if let Some(seed) = seed
            && is_large
            && self.received <= blob::BEGIN_BYTES
        {
            self.blob = BlobReader::begin(seed, &self.data.concat());
            if self.blob.is_some() {
                self.data.clear();
            }
        }
    }

    /// The body is a message of gRPC's, not a proxy's page.
    pub fn is_grpc(&self) -> bool {
        self.head.as_ref().is_some_and(|(status, headers)| {
            let content_type = headers.get(http::header::CONTENT_TYPE);
            *status == StatusCode::OK
                && content_type.is_some_and(|it| it.as_bytes().starts_with(b"application/grpc"))
        })
    }

    /// The length that the body's first bytes announce.
    fn announced_bytes(&self) -> Option<u64> {
        // Compared as it comes, it was announced before, and its length found to be allowed.
        let mut prefix = self.data.iter().flatten().skip(1).take(4);
        let mut next = || prefix.next().copied();
        let length = [next()?, next()?, next()?, next()?];
        self.is_grpc()
            .then(|| u64::from(u32::from_be_bytes(length)))
    }
}

impl Session {
    /// A session on a socket that is not connected yet. No packet is sent.
    pub fn new(address: SocketAddr, max_message_bytes: u64, window: Window) -> Result<Self, Errno> {
        Ok(Session {
            wire: Wire::new(Connection::new(address)?),
            driver: Driver::default(),
            http2: None,
            max_message_bytes,
            window,
        })
    }

    pub fn socket(&self) -> &Connection {
        &self.wire.connection
    }

    /// Deals with what the server has sent unasked (PING, SETTINGS, the end), and sends what is due
    /// to it. False when the connection can carry no more requests.
    pub fn settle(&mut self) -> bool {
        let Some(http2) = &mut self.http2 else {
            return false;
        };
        let polled = self.driver.run_for_now(&self.wire, |context| {
            Pin::new(&mut http2.connection).poll(context)
        });
        let facts = self.wire.facts();
        polled.is_pending() && facts.ended.is_none() && facts.goaway.is_none()
    }

    /// Sends `message`, which has its prefix, and reads the answer. `address` is given where the
    /// connection is yet to be made. Where the answer should be a blob that holds the object of
    /// `seed`, a large one is compared as it comes, and not kept.
    pub fn call(
        &mut self,
        seed: Option<u64>,
        address: Option<SocketAddr>,
        request: Request<()>,
        message: Outgoing,
        allowed_ns: u64,
    ) -> (Timing, Done) {
        self.wire.expect_request();
        let mut answer = Answer::default();
        let start_ns = clock::now_ns();
        let deadline_ns = start_ns.saturating_add(allowed_ns);
        let mut connect_ns = Some(0);
        let mut result = Ok(());
        if let Some(address) = address {
            connect_ns = None;
            result = self.connect(address, deadline_ns).map(|()| {
                connect_ns = Some(clock::now_ns() - start_ns);
            });
        }
        let end = match result {
            Ok(()) => self.converse(request, message, deadline_ns, seed, &mut answer),
            Err(failure) => End::Broken(failure),
        };
        let stopped_ns = clock::now_ns();

        let facts = self.wire.facts();
        let since_start = |instant: Option<u64>| instant.map(|instant| instant - start_ns);
        let complete_ns = facts.complete_ns.filter(|_| end == End::Complete);
        let timing = Timing {
            start_ns,
            connect_ns,
            sent_ns: since_start(facts.sent_ns),
            first_byte_ns: since_start(facts.first_byte_ns),
            total_ns: since_start(complete_ns),
            elapsed_ns: complete_ns.unwrap_or(stopped_ns) - start_ns,
            longest_gap_ns: facts.longest_gap_ns,
            reads: facts.reads,
        };
        let done = Done { facts, answer, end };
        (timing, done)
    }

    fn connect(&self, address: SocketAddr, deadline_ns: u64) -> Result<(), Failure> {
        self.wire
            .connection
            .connect(address, deadline_ns)
            .map_err(|error| Failure::from_errno(Stage::Connect, error))
    }

    fn converse(
        &mut self,
        request: Request<()>,
        message: Outgoing,
        deadline_ns: u64,
        seed: Option<u64>,
        answer: &mut Answer,
    ) -> End {
        if let Err(end) = self.open(deadline_ns) {
            return end;
        }
        let Http2 {
            requests,
            connection,
        } = self.http2.as_mut().expect("it is open");
        let receiving = Receiving {
            limit: self.max_message_bytes,
            window: self.window,
            seed,
        };
        let mut exchange = pin!(exchange(requests, request, message, receiving, answer));
        let mut connection = Some(connection);
        let result = self.driver.run(&self.wire, deadline_ns, |context| {
            if let Poll::Ready(done) = exchange.as_mut().poll(context) {
                return Poll::Ready(Some(done));
            }
            let Some(alive) = &mut connection else {
                return Poll::Ready(None);
            };
            if Pin::new(alive).poll(context).is_ready() {
                connection = None;
                context.waker().wake_by_ref(); // the exchange will have heard of it
            }
            Poll::Pending
        });
        match result {
            Ok(Some(Ok(()))) => End::Complete,
            Ok(Some(Err(Broken::TooLong(bytes)))) => End::TooLong(bytes),
            Ok(Some(Err(Broken::Http2(error)))) => {
                end(&self.wire, Cause::Malformed(error.to_string()))
            }
            Ok(None) => end(&self.wire, Cause::Closed),
            Err(cause) => broken(&self.wire, cause),
        }
    }

    /// Makes the client's side of HTTP/2, which sends its preface and waits for nothing.
    fn open(&mut self, deadline_ns: u64) -> Result<(), End> {
        if self.http2.is_some() {
            return Ok(());
        }
        let mut builder = client::Builder::new();
        builder
            .enable_push(false)
            .initial_window_size(self.window.stream_bytes(self.max_message_bytes))
            .initial_connection_window_size(self.window.connection_bytes(self.max_message_bytes));
        let mut made = pin!(builder.handshake::<_, Outgoing>(Tap(self.wire.clone())));
        let made = self.driver.run(&self.wire, deadline_ns, |context| {
            made.as_mut().poll(context)
        });
        match made {
            Ok(Ok((requests, connection))) => {
                self.http2 = Some(Http2 {
                    requests,
                    connection,
                });
                Ok(())
            }
            Ok(Err(error)) => Err(end(&self.wire, Cause::Malformed(error.to_string()))),
            Err(cause) => Err(broken(&self.wire, cause)),
        }
    }
}

/// What the wire saw tells more than h2's error does.
fn end(wire: &Wire, otherwise: Cause) -> End {
    let facts = wire.facts();
    match (facts.reset, facts.goaway) {
        (Some(code), _) => End::StreamReset(facts.stage(), code),
        (None, Some((last, _))) if last < facts.stream => End::NotTaken,
        _ => broken(wire, facts.ended.unwrap_or(otherwise)),
    }
}

fn broken(wire: &Wire, cause: Cause) -> End {
    let stage = wire.facts().stage();
    End::Broken(Failure { stage, cause })
}

struct Receiving {
    limit: u64,
    window: Window,
    seed: Option<u64>,
}

async fn exchange(
    requests: &mut SendRequest<Outgoing>,
    request: Request<()>,
    message: Outgoing,
    receiving: Receiving,
    answer: &mut Answer,
) -> Result<(), Broken> {
    poll_fn(|context| requests.poll_ready(context)).await?;
    let (response, mut sending) = requests.send_request(request, false)?;
    // All of it at once: h2 cuts it into frames as the server's windows allow, without a copy.
    sending.send_data(message, true)?;
    let (head, mut body) = response.await?.into_parts();
    answer.head = Some((head.status, head.headers));
    while let Some(piece) = body.data().await {
        let piece = piece?;
        if receiving.window.opens_as_read() {
            let _ = body.flow_control().release_capacity(piece.len());
        }
        answer.take(piece, receiving.seed);
        let announced = answer.announced_bytes().unwrap_or(answer.received);
        if announced > receiving.limit {
            return Err(Broken::TooLong(announced));
        }
    }
    answer.trailers = body.trailers().await?.unwrap_or_default();
    if !receiving.window.opens_as_read() {
        // Not before: a WINDOW_UPDATE would be sent in between.
        let _ = body
            .flow_control()
            .release_capacity(answer.received as usize);
    }
    Ok(())
}
