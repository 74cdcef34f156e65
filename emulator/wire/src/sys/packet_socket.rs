//! An `AF_PACKET` socket on one interface: whole Ethernet frames, both ways.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with, sockopt};

use super::messages::{self, ReceiveBatch};

/// Asked for in each direction of each socket. The kernel grants less where
/// `net.core.rmem_max` is lower; it then doubles the value for its own bookkeeping.
const SOCKET_BUFFER_BYTES: usize = 16 << 20;

/// A raw packet socket bound to one interface. Every message starts with a
/// `struct virtio_net_hdr` (see [`crate::frame`]), followed by the Ethernet frame.
#[derive(Debug)]
pub struct PacketSocket {
    fd: OwnedFd,
}

impl PacketSocket {
    /// Opens a socket on the interface named `interface` of the caller's network namespace.
    pub fn open(interface: &str) -> io::Result<PacketSocket> {
        // Protocol 0 receives nothing. With any other, frames of all interfaces would queue up
        // between here and bind().
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)?;
        // Offloaded segments (up to 64 KiB, checksum not yet filled in) pass whole.
        enable(&fd, libc::SOL_PACKET, libc::PACKET_VNET_HDR)?;
        // What we send must not come back to us.
        enable(&fd, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING)?;
        enable(&fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS)?;
        // "Force" ignores the system's limit but wants CAP_NET_ADMIN in the first user
        // namespace, which a rootless lab has not; the other takes what the limit allows.
        sockopt::set_socket_recv_buffer_size_force(&fd, SOCKET_BUFFER_BYTES)
            .or_else(|_| sockopt::set_socket_recv_buffer_size(&fd, SOCKET_BUFFER_BYTES))?;
        sockopt::set_socket_send_buffer_size_force(&fd, SOCKET_BUFFER_BYTES)
            .or_else(|_| sockopt::set_socket_send_buffer_size(&fd, SOCKET_BUFFER_BYTES))?;
        bind(&fd, netdevice::name_to_index(&fd, interface)?)?;
        Ok(PacketSocket { fd })
    }

    /// Receives what is there, up to a batch, without waiting. Returns how many messages.
    pub fn receive(&self, batch: &mut ReceiveBatch) -> io::Result<usize> {
        batch.receive(self.fd.as_fd())
    }

    /// Sends the first [`super::BATCH`] messages without waiting. Returns how many the kernel
    /// took; an error concerns the first one.
    pub fn send<'a>(&self, messages: impl Iterator<Item = &'a [u8]>) -> io::Result<usize> {
        messages::send(self.fd.as_fd(), messages)
    }

    /// Frames that the kernel dropped because the receive buffer was full, since the last call.
    pub fn take_receive_drops(&self) -> io::Result<u64> {
        let mut statistics = libc::tpacket_stats {
            tp_packets: 0,
            tp_drops: 0,
        };
        let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        // SAFETY: `statistics` is writable for the `length` bytes that are stated.
        checked(unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut statistics).cast(),
                &raw mut length,
            )
        })?;
        Ok(u64::from(statistics.tp_drops))
    }

    /// How many bytes the receive buffer holds, as the kernel counts them.
    pub fn receive_buffer_bytes(&self) -> io::Result<usize> {
        Ok(sockopt::socket_recv_buffer_size(&self.fd)?)
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn enable(fd: &OwnedFd, level: libc::c_int, name: libc::c_int) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: `on` is an int and its size is stated.
    checked(unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    })
}

fn bind(fd: &OwnedFd, interface_index: u32) -> io::Result<()> {
    // SAFETY: all-zero is a valid sockaddr_ll.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as _;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = interface_index.cast_signed();
    // SAFETY: `address` is a sockaddr_ll and its size is stated.
    checked(unsafe {
        libc::bind(
            fd.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    })
}

/// The result of a libc call that reports failure as -1 and leaves the reason in `errno`.
fn checked(result: libc::c_int) -> io::Result<()> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
