//! A server of HTTP/2, frame by frame by hand, which does what a test tells it and nothing else.
//!
//! Frames are RFC 9113's, header blocks RFC 7541's without any compression: 0x88 is ":status: 200",
//! and 0x00 begins a header whose name and value follow, each after its length.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::net::sockopt;

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;

pub const END_STREAM: u8 = 1;
pub const ACK: u8 = 1;
pub const END_HEADERS: u8 = 4;

pub const CANCEL: u32 = 8;
pub const REFUSED_STREAM: u32 = 7;

/// A listener whose connections a thread serves as it is told; what that comes to is `join`'s.
pub struct Script<T> {
    pub port: u16,
    thread: JoinHandle<io::Result<T>>,
}

impl<T: Send + 'static> Script<T> {
    pub fn run(serve: impl FnOnce(&Peers) -> io::Result<T> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let thread = std::thread::spawn(move || serve(&Peers(listener)));
        Script { port, thread }
    }

    pub fn join(self) -> T {
        self.thread
            .join()
            .expect("the script's assertions hold")
            .expect("the script runs to its end")
    }
}

pub struct Peers(TcpListener);

impl Peers {
    /// The next connection; its preface has been read.
    pub fn next(&self) -> io::Result<Peer> {
        let mut peer = self.next_silent()?;
        let mut preface = [0; 24];
        peer.stream.read_exact(&mut preface)?;
        assert_eq!(&preface, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        Ok(peer)
    }

    /// The next connection, nothing read.
    pub fn next_silent(&self) -> io::Result<Peer> {
        let (stream, _) = self.0.accept()?;
        stream.set_nodelay(true)?;
        Ok(Peer {
            stream,
            connection_window: 65_535,
            stream_window: 65_535,
            resets: false,
        })
    }

    /// Is there a connection that nobody has accepted?
    pub fn has_more(&self) -> bool {
        self.0.set_nonblocking(true).unwrap();
        let more = self.0.accept().is_ok();
        self.0.set_nonblocking(false).unwrap();
        more
    }
}

/// A frame: type, flags, stream, payload.
pub type Frame = (u8, u8, u32, Vec<u8>);

/// One client.
pub struct Peer {
    pub stream: TcpStream,
    /// How much the client lets us send, as far as its frames were read.
    pub connection_window: i64,
    pub stream_window: i64,
    resets: bool,
}

/// How long a connection that is over may still bring something.
const LAST_WORDS: Duration = Duration::from_secs(3);

impl Drop for Peer {
    /// Says that nothing more comes, then hears the client out: a socket that is closed with
    /// anything unread sends a reset, which takes with it what the client has not read yet.
    fn drop(&mut self) {
        if !self.resets
            && self.stream.shutdown(Shutdown::Write).is_ok()
            && self.stream.set_read_timeout(Some(LAST_WORDS)).is_ok()
        {
            let mut unread = [0; 4096];
            while matches!(self.stream.read(&mut unread), Ok(1..)) {}
        }
    }
}

/// A request, read to its end.
#[derive(Debug)]
pub struct Request {
    pub stream: u32,
    /// The gRPC message, with its five bytes.
    pub data: Vec<u8>,
}

impl Peer {
    /// Reads frames up to the end of the next request; None when the client is gone.
    pub fn request(&mut self) -> io::Result<Option<Request>> {
        let mut data = Vec::new();
        loop {
            let Some((kind, flags, stream, payload)) = self.frame()? else {
                return Ok(None);
            };
            if kind == DATA {
                data.extend(payload);
            }
            if matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0 {
                return Ok(Some(Request { stream, data }));
            }
        }
    }

    /// The next request, which must come.
    pub fn expect_request(&mut self) -> io::Result<Request> {
        Ok(self.request()?.expect("a request"))
    }

    /// Reads one frame; None at the end of the connection.
    pub fn frame(&mut self) -> io::Result<Option<Frame>> {
        let mut header = [0; 9];
        match self.stream.read_exact(&mut header) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
            result => result?,
        }
        let [a, b, c, kind, flags, stream @ ..] = header;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        self.stream.read_exact(&mut payload)?;
        let stream = u32::from_be_bytes(stream);
        let number = |at: usize| u32::from_be_bytes(payload[at..at + 4].try_into().unwrap());
        match kind {
            SETTINGS if flags & ACK == 0 => {
                for at in (0..payload.len()).step_by(6) {
                    if payload[at..at + 2] == [0, 4] {
                        self.stream_window = number(at + 2).into();
                    }
                }
                // A window counts from here on (RFC 9113, 6.5.3). The client may be gone already.
                let _ = self.send(SETTINGS, ACK, 0, &[]);
            }
            WINDOW_UPDATE if stream == 0 => self.connection_window += i64::from(number(0)),
            _ => {}
        }
        Ok(Some((kind, flags, stream, payload)))
    }

    pub fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> io::Result<()> {
        self.stream.write_all(&frame(kind, flags, stream, payload))
    }

    pub fn settings(&mut self) -> io::Result<()> {
        self.send(SETTINGS, 0, 0, &[])
    }

    /// The response's HEADERS: 200 and gRPC's content type.
    pub fn headers(&mut self, stream: u32) -> io::Result<()> {
        self.send(HEADERS, END_HEADERS, stream, &head())
    }

    /// A message, in frames as large as every client takes.
    pub fn message(&mut self, stream: u32, message: &[u8]) -> io::Result<()> {
        let framed = framed(message);
        self.connection_window -= framed.len() as i64;
        for piece in framed.chunks(16_384) {
            self.send(DATA, 0, stream, piece)?;
        }
        Ok(())
    }

    pub fn trailers(&mut self, stream: u32, status: &str) -> io::Result<()> {
        let block = header("grpc-status", status);
        self.send(HEADERS, END_HEADERS | END_STREAM, stream, &block)
    }

    /// A whole answer in one write.
    pub fn answer(&mut self, stream: u32, message: &[u8]) -> io::Result<()> {
        let bytes = [
            frame(HEADERS, END_HEADERS, stream, &head()),
            frame(DATA, 0, stream, &framed(message)),
            frame(
                HEADERS,
                END_HEADERS | END_STREAM,
                stream,
                &header("grpc-status", "0"),
            ),
        ];
        self.connection_window -= message.len() as i64 + 5;
        self.stream.write_all(&bytes.concat())
    }

    pub fn rst_stream(&mut self, stream: u32, code: u32) -> io::Result<()> {
        self.send(RST_STREAM, 0, stream, &code.to_be_bytes())
    }

    pub fn goaway(&mut self, last: u32, code: u32) -> io::Result<()> {
        let payload = [last.to_be_bytes(), code.to_be_bytes()].concat();
        self.send(GOAWAY, 0, 0, &payload)
    }

    /// Closes with a reset.
    pub fn reset(mut self) -> io::Result<()> {
        self.resets = true;
        Ok(sockopt::set_socket_linger(
            &self.stream,
            Some(Duration::ZERO),
        )?)
    }
}

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

pub fn framed(message: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0];
    bytes.extend((message.len() as u32).to_be_bytes());
    bytes.extend(message);
    bytes
}

pub fn header(name: &str, value: &str) -> Vec<u8> {
    let mut block = vec![0];
    for text in [name, value] {
        block.push(text.len() as u8);
        block.extend(text.bytes());
    }
    block
}

pub fn head() -> Vec<u8> {
    [vec![0x88], header("content-type", "application/grpc")].concat()
}
