//! A request as it arrives on a connection.

use std::io::{self, Read};
use std::net::TcpStream;

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
    buffer: Vec<u8>,
}

impl Requests {
    pub fn new(stream: TcpStream) -> Self {
        Requests {
            stream,
            buffer: Vec::with_capacity(64 * 1024),
        }
    }

    /// The next request's head; None when the client has closed.
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

    /// The body that belongs to a head.
    pub fn body(&mut self, bytes: usize) -> io::Result<Vec<u8>> {
        while self.buffer.len() < bytes {
            if self.more()? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let rest = self.buffer.split_off(bytes);
        Ok(std::mem::replace(&mut self.buffer, rest))
    }

    fn more(&mut self) -> io::Result<usize> {
        let mut piece = [0u8; 64 * 1024];
        let length = self.stream.read(&mut piece)?;
        self.buffer.extend_from_slice(&piece[..length]);
        Ok(length)
    }

    fn parse(&mut self) -> io::Result<Option<(Request, usize)>> {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut parsed = httparse::Request::new(&mut headers);
        let httparse::Status::Complete(length) =
            parsed.parse(&self.buffer).map_err(io::Error::other)?
        else {
            return Ok(None);
        };
        let request = Request {
            method: parsed.method.unwrap_or_default().to_owned(),
            target: parsed.path.unwrap_or_default().to_owned(),
            headers: parsed
                .headers
                .iter()
                .map(|h| {
                    (
                        h.name.to_owned(),
                        String::from_utf8_lossy(h.value).into_owned(),
                    )
                })
                .collect(),
            body: Vec::new(),
        };
        let body_bytes = request
            .headers
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            .map_or(Ok(0), |(_, value)| value.parse())
            .map_err(io::Error::other)?;
        self.buffer.drain(..length);
        Ok(Some((request, body_bytes)))
    }
}
