//! One TCP connection whose every wait ends at a deadline.
//!
//! The socket never blocks: each wait is a `ppoll` with the time that is left, so that the
//! deadline holds whatever the peer does. TCP_NODELAY is on before the connection exists.

use std::io::IoSlice;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType, connect,
    ipproto, recv, sendmsg, socket_with, sockopt,
};

use crate::clock;

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    Ready,
    Deadline,
}

/// A socket, connected or about to be.
pub struct Connection {
    socket: OwnedFd,
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Connection {
    /// A socket for `address`, not connected yet. No packet is sent.
    pub fn new(address: SocketAddr) -> Result<Self, Errno> {
        let family = match address {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
        sockopt::set_tcp_nodelay(&socket, true)?;
        Ok(Connection { socket })
    }

    /// Connects. `Err(TIMEDOUT)` also stands for the deadline.
    pub fn connect(&self, address: SocketAddr, deadline_ns: u64) -> Result<(), Errno> {
        match connect(&self.socket, &address) {
            Ok(()) => return Ok(()),
            Err(Errno::INPROGRESS | Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        match self.wait(PollFlags::OUT, deadline_ns)? {
            Wake::Deadline => Err(Errno::TIMEDOUT),
            Wake::Ready => sockopt::socket_error(&self.socket)?,
        }
    }

    /// Is the connection of no use any more? True when the peer has closed or reset it, and when
    /// bytes lie in it that no request asked for. Asked before a request is sent, never after.
    pub fn is_stale(&self) -> bool {
        let mut byte = [0u8; 1];
        !matches!(
            recv(
                &self.socket,
                &mut byte[..],
                RecvFlags::PEEK | RecvFlags::DONTWAIT
            ),
            Err(Errno::AGAIN)
        )
    }

    /// Hands the parts to the kernel, as many bytes as it takes at once: head and body of a small
    /// request leave in one segment. `Err(AGAIN)` when it takes none.
    pub fn send(&self, parts: &[IoSlice<'_>]) -> Result<usize, Errno> {
        loop {
            let mut nothing = SendAncillaryBuffer::default();
            match sendmsg(&self.socket, parts, &mut nothing, SendFlags::NOSIGNAL) {
                Err(Errno::INTR) => {}
                result => return result,
            }
        }
    }

    /// Reads what there is; 0 is the peer's end. `Err(AGAIN)` when there is nothing yet.
    pub fn receive(&self, into: &mut [u8]) -> Result<usize, Errno> {
        loop {
            match recv(&self.socket, &mut *into, RecvFlags::empty()) {
                Err(Errno::INTR) => {}
                result => return result.map(|(_, length)| length),
            }
        }
    }

    /// Waits until the peer has sent something (or closed), or the deadline.
    pub fn wait_readable(&self, deadline_ns: u64) -> Result<Wake, Errno> {
        self.wait(PollFlags::IN, deadline_ns)
    }

    /// Waits until there is room to send or something to read, or the deadline.
    pub fn wait_either(&self, deadline_ns: u64) -> Result<Wake, Errno> {
        self.wait(PollFlags::IN | PollFlags::OUT, deadline_ns)
    }

    fn wait(&self, events: PollFlags, deadline_ns: u64) -> Result<Wake, Errno> {
        wait(&mut [PollFd::new(&self.socket, events)], deadline_ns)
    }
}

/// Waits until one of them is ready, which `revents` tells, or the deadline.
pub fn wait(polled: &mut [PollFd<'_>], deadline_ns: u64) -> Result<Wake, Errno> {
    loop {
        let left_ns = deadline_ns.saturating_sub(clock::now_ns());
        if left_ns == 0 {
            return Ok(Wake::Deadline);
        }
        let timeout = clock::timespec(left_ns);
        match poll(polled, Some(&timeout)) {
            Ok(0) => {} // the loop finds that no time is left
            Ok(_) => return Ok(Wake::Ready),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;
    use std::time::{Duration, Instant};

    use super::*;

    fn connected() -> (Connection, std::net::TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let connection = Connection::new(address).unwrap();
        connection
            .connect(address, clock::now_ns() + 60_000_000_000)
            .unwrap();
        (connection, listener.accept().unwrap().0)
    }

    fn wait_until(mut condition: impl FnMut() -> bool) {
        let end = Instant::now() + Duration::from_secs(60);
        while !condition() {
            assert!(Instant::now() < end, "it never came");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_connection_is_stale_once_the_peer_has_closed_it_or_said_what_nobody_asked_for() {
        let (closed, peer) = connected();
        assert!(sockopt::tcp_nodelay(&closed).unwrap());
        assert!(!closed.is_stale());
        drop(peer);
        wait_until(|| closed.is_stale());
        let (told, mut peer) = connected();
        peer.write_all(b"HTTP/1.1 408 Request Timeout\r\n\r\n")
            .unwrap();
        wait_until(|| told.is_stale());
    }

    #[test]
    fn a_wait_ends_at_its_deadline() {
        let (connection, _peer) = connected();
        let started = clock::now_ns();
        let wake = connection.wait_readable(started + 30_000_000).unwrap();
        assert_eq!(wake, Wake::Deadline);
        assert!(clock::now_ns() - started >= 30_000_000);
    }
}
