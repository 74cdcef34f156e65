//! An AF_PACKET socket on one interface: whole Ethernet frames, both ways.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::checked;
use super::messages::{self, ReceiveBatch};

/// Asked for in each direction of each socket. The kernel grants less where
/// `net.core.rmem_max` is lower; it then doubles the value for its own bookkeeping.
const SOCKET_BUFFER_BYTES: libc::c_int = 16 << 20;

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
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers; the returned descriptor is new and owned by nobody else.
        let fd = unsafe { OwnedFd::from_raw_fd(checked(libc::socket(libc::AF_PACKET, kind, 0))?) };
        let socket = PacketSocket { fd };
        // Offloaded segments (up to 64 KiB, checksum not yet filled in) pass whole.
        socket.set_option(libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1)?;
        // What we send must not come back to us.
        socket.set_option(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)?;
        socket.set_option(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
        socket.grow_buffer(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF)?;
        socket.grow_buffer(libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)?;
        socket.bind(socket.interface_index(interface)?)?;
        Ok(socket)
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
                &mut length,
            )
        })?;
        Ok(u64::from(statistics.tp_drops))
    }

    /// How many bytes the receive buffer holds, as the kernel counts them.
    pub fn receive_buffer_bytes(&self) -> io::Result<usize> {
        self.option(libc::SOL_SOCKET, libc::SO_RCVBUF)
            .map(|bytes| usize::try_from(bytes).unwrap_or(0))
    }

    /// Reads and clears the pending error (an interface that went down, say), so that epoll
    /// reports it no longer.
    pub fn take_error(&self) -> Option<io::Error> {
        match self.option(libc::SOL_SOCKET, libc::SO_ERROR) {
            Ok(0) => None,
            Ok(code) => Some(io::Error::from_raw_os_error(code)),
            Err(error) => Some(error),
        }
    }

    /// Asked with this socket: `if_nametoindex` would open another, and not say why if it cannot.
    fn interface_index(&self, interface: &str) -> io::Result<libc::c_int> {
        // SAFETY: all-zero is a valid ifreq.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        let room = request.ifr_name.len() - 1; // one stays zero
        if interface.len() > room || interface.contains('\0') {
            return Err(io::Error::from_raw_os_error(libc::ENODEV));
        }
        for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
            *to = from as libc::c_char;
        }
        // SAFETY: `request` is an ifreq with a terminated name; the kernel fills in the index,
        // which is then what the union holds.
        unsafe {
            checked(libc::ioctl(
                self.fd.as_raw_fd(),
                libc::SIOCGIFINDEX as _,
                &mut request,
            ))?;
            Ok(request.ifr_ifru.ifru_ifindex)
        }
    }

    fn bind(&self, interface_index: libc::c_int) -> io::Result<()> {
        // SAFETY: all-zero is a valid sockaddr_ll.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as _;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = interface_index;
        // SAFETY: `address` is a sockaddr_ll and its size is stated.
        checked(unsafe {
            libc::bind(
                self.fd.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        })
        .map(drop)
    }

    /// The `force` option ignores the system's limit but wants CAP_NET_ADMIN in the first user
    /// namespace, which a rootless lab has not; the plain option takes what the limit allows.
    fn grow_buffer(&self, force: libc::c_int, plain: libc::c_int) -> io::Result<()> {
        self.set_option(libc::SOL_SOCKET, force, SOCKET_BUFFER_BYTES)
            .or_else(|_| self.set_option(libc::SOL_SOCKET, plain, SOCKET_BUFFER_BYTES))
    }

    fn set_option(
        &self,
        level: libc::c_int,
        name: libc::c_int,
        value: libc::c_int,
    ) -> io::Result<()> {
        // SAFETY: `value` is an int and its size is stated.
        checked(unsafe {
            libc::setsockopt(
                self.fd.as_raw_fd(),
                level,
                name,
                (&raw const value).cast(),
                size_of::<libc::c_int>() as libc::socklen_t,
            )
        })
        .map(drop)
    }

    fn option(&self, level: libc::c_int, name: libc::c_int) -> io::Result<libc::c_int> {
        let mut value: libc::c_int = 0;
        let mut length = size_of::<libc::c_int>() as libc::socklen_t;
        // SAFETY: `value` is writable for the `length` bytes that are stated.
        checked(unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                level,
                name,
                (&raw mut value).cast(),
                &mut length,
            )
        })?;
        Ok(value)
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
