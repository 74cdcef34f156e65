//! A request as it arrives on a connection.

use std::io::{self, Read};
use std::net::TcpStream;

const READ_BYTES: usize = 256 * 1024;

/// One request, read to its end.
#[derive(Debug)]
pub struct Request {
    pub method: String,
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// Reads requests from one connection.
pub struct Requests {
    stream: TcpStream,
    piece: Vec<u8>,
    /// What came and was not used yet.
    buffer: Vec<u8>,
}

impl Requests {
    pub fn new(stream: TcpStream) -> Self {
        Requests {
            stream,
            piece: vec![0; READ_BYTES],
            buffer: Vec::new(),
        }
    }

    /// The next request's head, and the length of its body; None when the client has closed.
    pub fn head(&mut self) -> io::Result<Option<(Request, usize)>> {
        loop {
            if let Some(found) = self.parse()? {
                return Ok(Some(found));
            }
            if self.more()? == 0 {
                return Ok(None);
            }
        }
    }

    /// The body that belongs to a head; empty where nobody wants to keep it.
    pub fn body(&mut self, mut bytes: usize, keep: bool) -> io::Result<Vec<u8>> {
        loop {
            if !keep {
                let taken = bytes.min(self.buffer.len());
                self.buffer.drain(..taken);
                bytes -= taken;
            }
            if self.buffer.len() >= bytes {
                let rest = self.buffer.split_off(bytes);
                return Ok(std::mem::replace(&mut self.buffer, rest));
            }
            if self.more()? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    fn more(&mut self) -> io::Result<usize> {
        let length = self.stream.read(&mut self.piece)?;
        self.buffer.extend_from_slice(&self.piece[..length]);
        Ok(length)
    }

    fn parse(&mut self) -> io::Result<Option<(Request, usize)>> {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut parsed = httparse::Request::new(&mut headers);
        let result = parsed.parse(&self.buffer).map_err(io::Error::other)?;
        let httparse::Status::Complete(length) = result else {
            return Ok(None);
        };
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        let headers = parsed.headers.iter();
        let request = Request {
            method: parsed.method.unwrap_or_default().to_owned(),
            target: parsed.path.unwrap_or_default().to_owned(),
            headers: headers
                .map(|h| (h.name.to_owned(), text(h.value)))
                .collect(),
            body: Vec::new(),
        };
        let mut headers = request.headers.iter();
        let body_bytes = headers
            .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            .map_or(Ok(0), |(_, value)| value.parse())
            .map_err(io::Error::other)?;
        self.buffer.drain(..length);
        Ok(Some((request, body_bytes)))
    }
}
