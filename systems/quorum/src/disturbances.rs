//! Planted disturbances: what is known to fool a measurement of round trips without being one, on
//! purpose and only when told to. No promise is broken by them.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::log::announce;

#[derive(clap::Args, Clone, Copy, Debug, Default, PartialEq)]
#[command(next_help_heading = "Planted disturbances, which must not move a count of round trips")]
pub struct Flags {
    /// Write every Nth response in two parts, and without TCP_NODELAY: the second one waits for the
    /// client's delayed acknowledgement, 40 ms
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub delayed_ack: Option<u32>,
    /// Write every message to a peer in two parts, and without TCP_NODELAY: the second one waits for
    /// the peer's acknowledgement, a round trip and 40 ms
    #[arg(long)]
    pub nagle: bool,
    /// Send every peer a message that it answers, this often
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..))]
    pub heartbeat_ms: Option<u64>,
}

impl Flags {
    pub fn announce(self) {
        let planted = [
            (self.delayed_ack.is_some(), "--delayed-ack"),
            (self.nagle, "--nagle"),
            (self.heartbeat_ms.is_some(), "--heartbeat-ms"),
        ];
        announce("DISTURBANCE", &planted);
    }

    /// How often every peer hears of this node where nothing else is said.
    pub fn heartbeat_or(self, otherwise: Duration) -> Duration {
        self.heartbeat_ms.map_or(otherwise, Duration::from_millis)
    }

    /// A client's connection, with what is planted on it.
    pub fn on(self, socket: TcpStream) -> io::Result<Client> {
        // Nagle's algorithm (RFC 896) is what keeps a second small segment back until the first is
        // acknowledged, which the client's kernel puts off (RFC 1122, 4.2.3.2).
        socket.set_nodelay(self.delayed_ack.is_none())?;
        Ok(Client {
            socket,
            every: self.delayed_ack,
            responses: 0,
            begun: true,
        })
    }
}

/// A client's connection. What is first written after something was read is a response.
pub struct Client {
    socket: TcpStream,
    /// Of so many responses one is written in two parts.
    every: Option<u32>,
    responses: u32,
    begun: bool,
}

impl Client {
    /// How much of this to write at once: all of it, unless it begins a response that is cut in two.
    fn part(&mut self, length: usize) -> usize {
        let Some(every) = self.every else {
            return length;
        };
        if self.begun {
            return length;
        }
        self.begun = true;
        self.responses += 1;
        match self.responses.is_multiple_of(every) {
            true => length.div_ceil(2),
            false => length,
        }
    }
}

impl AsyncRead for Client {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.socket).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.begun = false;
        }
        read
    }
}

impl AsyncWrite for Client {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        let part = self.part(buffer.len());
        Pin::new(&mut self.socket).poll_write(context, &buffer[..part])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length = buffers.iter().map(|buffer| buffer.len()).sum();
        if self.part(length) == length {
            return Pin::new(&mut self.socket).poll_write_vectored(context, buffers);
        }
        let first = buffers.iter().find(|buffer| !buffer.is_empty());
        let first: &[u8] = first.map_or(&[], |buffer| buffer);
        Pin::new(&mut self.socket).poll_write(context, &first[..first.len().div_ceil(2)])
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}
