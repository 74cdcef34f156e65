//! A packet socket that only watches: the kernel copies the beginning of each frame into memory
//! that it shares with us (`PACKET_RX_RING`, packet_mmap.rst), however late we come to look.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use super::checked;
use crate::frame::OFFLOAD_HEADER_BYTES;

/// Kernel structures, the link header and our offload header before the bytes of a frame.
const SLOT_HEAD_BYTES: usize = 96;
const SMALLEST_BLOCK_BYTES: usize = 64 << 10;

/// One instruction of the kernel's classic packet filter (linux/filter.h): code, how many to
/// skip when true and when false, operand.
pub type Instruction = (u16, u8, u8, u32);

/// The ring.
#[derive(Debug)]
pub struct PacketRing {
    fd: OwnedFd,
    memory: NonNull<u8>,
    memory_bytes: usize,
    slot_bytes: usize,
    slots: usize,
    next: usize,
}

// SAFETY: the memory is mapped for the whole process and belongs to this value alone.
unsafe impl Send for PacketRing {}

/// A frame in the ring.
#[derive(Debug)]
pub struct RingFrame<'a> {
    /// Index of the interface that it passed.
    pub interface_index: u32,
    /// Whether it left by that interface.
    pub outgoing: bool,
    /// When, in nanoseconds of `CLOCK_REALTIME`.
    pub stamp_realtime_ns: u64,
    /// Length of the whole frame.
    pub frame_bytes: u32,
    /// Offload header and beginning of the frame.
    pub message: &'a [u8],
}

impl PacketRing {
    /// Makes a ring of at least `slots` frames of `snap_bytes` each on an unbound packet socket
    /// that this process has inherited as `fd`, and begins to watch every interface of its
    /// network namespace through `filter`.
    pub fn open(
        fd: RawFd,
        filter: &[Instruction],
        slots: usize,
        snap_bytes: usize,
    ) -> io::Result<PacketRing> {
        // SAFETY: no pointers. A copy of the descriptor is ours alone whoever owns the original.
        let fd = unsafe {
            let copy = checked(libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 3))?;
            OwnedFd::from_raw_fd(copy)
        };
        set(
            &fd,
            libc::PACKET_VERSION,
            &libc::tpacket_versions::TPACKET_V2,
        )?;
        set(&fd, libc::PACKET_VNET_HDR, &1i32)?;
        attach(&fd, filter)?;
        let slot_bytes = (SLOT_HEAD_BYTES + snap_bytes).next_power_of_two();
        let block_bytes = slot_bytes.max(SMALLEST_BLOCK_BYTES);
        let blocks = (slots * slot_bytes).div_ceil(block_bytes);
        let slots = blocks * block_bytes / slot_bytes;
        let request = libc::tpacket_req {
            tp_block_size: block_bytes as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: slot_bytes as u32,
            tp_frame_nr: slots as u32,
        };
        set(&fd, libc::PACKET_RX_RING, &request)?;
        let memory_bytes = blocks * block_bytes;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                memory_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = NonNull::new(memory.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let ring = PacketRing {
            fd,
            memory,
            memory_bytes,
            slot_bytes,
            slots,
            next: 0,
        };
        ring.bind()?;
        Ok(ring)
    }

    /// Hands the next frame to `look`, if there is one. Returns whether there was.
    pub fn take(&mut self, look: impl FnOnce(RingFrame<'_>)) -> bool {
        // SAFETY: `next` is below `slots`, so the slot lies within the mapping. Blocks are
        // multiples of pages and slots powers of two, so it is aligned for its header. While the
        // status says that the slot is ours, the kernel does not write to it.
        unsafe {
            let slot = self.memory.as_ptr().add(self.next * self.slot_bytes);
            let status = AtomicU32::from_ptr(slot.cast());
            if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
                return false;
            }
            let bytes = std::slice::from_raw_parts(slot.cast_const(), self.slot_bytes);
            let header: libc::tpacket2_hdr = std::ptr::read(slot.cast());
            let address: libc::sockaddr_ll =
                std::ptr::read(slot.add(size_of::<libc::tpacket2_hdr>()).cast());
            let start = usize::from(header.tp_mac).saturating_sub(OFFLOAD_HEADER_BYTES);
            let end = usize::from(header.tp_mac) + header.tp_snaplen as usize;
            look(RingFrame {
                interface_index: address.sll_ifindex as u32,
                outgoing: address.sll_pkttype == libc::PACKET_OUTGOING,
                stamp_realtime_ns: u64::from(header.tp_sec) * 1_000_000_000
                    + u64::from(header.tp_nsec),
                frame_bytes: header.tp_len,
                message: bytes.get(start..end.min(self.slot_bytes)).unwrap_or(&[]),
            });
            status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        }
        self.next = (self.next + 1) % self.slots;
        true
    }

    /// Frames that found the ring full since the last call.
    pub fn take_drops(&self) -> u64 {
        let mut statistics = libc::tpacket_stats {
            tp_packets: 0,
            tp_drops: 0,
        };
        let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        // SAFETY: `statistics` is writable for the `length` bytes that are stated.
        let result = checked(unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut statistics).cast(),
                &mut length,
            )
        });
        result.map_or(0, |_| u64::from(statistics.tp_drops))
    }

    fn bind(&self) -> io::Result<()> {
        // SAFETY: all-zero is a valid sockaddr_ll; interface 0 is every interface.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as _;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
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
}

impl Drop for PacketRing {
    fn drop(&mut self) {
        // SAFETY: exactly what was mapped; nothing borrows from it any more.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.memory_bytes) };
    }
}

fn attach(fd: &OwnedFd, filter: &[Instruction]) -> io::Result<()> {
    let mut code: Vec<libc::sock_filter> = filter
        .iter()
        .map(|&(code, jt, jf, k)| libc::sock_filter { code, jt, jf, k })
        .collect();
    let program = libc::sock_fprog {
        len: u16::try_from(code.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
        filter: code.as_mut_ptr(),
    };
    // SAFETY: `program` states the length of `code`, which lives through the call; the kernel
    // copies it.
    checked(unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    })
    .map(drop)
}

fn set<T>(fd: &OwnedFd, name: libc::c_int, value: &T) -> io::Result<()> {
    // SAFETY: `value` is a plain structure of the kernel's interface and its size is stated.
    checked(unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_PACKET,
            name,
            (value as *const T).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    })
    .map(drop)
}
