//! Receiving and sending several frames with one system call.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::time::Timespec;

/// Frames moved by one system call at most. Small enough that 16 frames of 64 KiB (about 0.2 ms
/// of copying) do not make the frames of another link late by more than that.
pub const BATCH: usize = 16;

/// Room for the control message that carries a timestamp (32 bytes on 64-bit machines), aligned
/// as control messages must be.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct ControlSpace([u8; 64]);

/// The buffers that one receive call fills.
pub struct ReceiveBatch {
    buffers: Vec<Box<[u8]>>,
    control: [ControlSpace; BATCH],
    headers: [libc::mmsghdr; BATCH],
    received: usize,
}

impl ReceiveBatch {
    /// [`BATCH`] buffers of `buffer_bytes` each.
    pub fn new(buffer_bytes: usize) -> ReceiveBatch {
        ReceiveBatch {
            buffers: (0..BATCH)
                .map(|_| vec![0; buffer_bytes].into_boxed_slice())
                .collect(),
            control: [ControlSpace([0; 64]); BATCH],
            headers: [empty_header(); BATCH],
            received: 0,
        }
    }

    /// Receives what is there, up to [`BATCH`] messages, without waiting. Returns how many.
    pub(super) fn receive(&mut self, fd: BorrowedFd<'_>) -> io::Result<usize> {
        self.received = 0;
        let mut iovecs = [EMPTY_IOVEC; BATCH];
        for (index, iovec) in iovecs.iter_mut().enumerate() {
            let buffer = &mut self.buffers[index];
            iovec.iov_base = buffer.as_mut_ptr().cast();
            iovec.iov_len = buffer.len();
            let header = &mut self.headers[index].msg_hdr;
            header.msg_iov = iovec;
            header.msg_iovlen = 1;
            header.msg_control = self.control[index].0.as_mut_ptr().cast();
            header.msg_controllen = size_of::<ControlSpace>() as _;
            header.msg_flags = 0;
        }
        // SAFETY: each of the BATCH headers points to one iovec on this stack frame, which
        // points to a live buffer of the length it states, and to control space of the length it
        // states. No name is asked for. MSG_DONTWAIT makes a timeout needless.
        let received = unsafe {
            libc::recvmmsg(
                fd.as_raw_fd(),
                self.headers.as_mut_ptr(),
                BATCH as _,
                libc::MSG_DONTWAIT as _,
                std::ptr::null_mut(),
            )
        };
        for header in &mut self.headers {
            // The iovecs go out of scope here.
            header.msg_hdr.msg_iov = std::ptr::null_mut();
        }
        self.received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
        Ok(self.received)
    }

    /// The bytes of message `index` of the last receive call.
    pub fn bytes(&self, index: usize) -> &[u8] {
        let buffer = &self.buffers[index];
        &buffer[..self.length(index).min(buffer.len())]
    }

    /// How many bytes message `index` has.
    pub fn length(&self, index: usize) -> usize {
        assert!(index < self.received);
        self.headers[index].msg_len as usize
    }

    /// Whether message `index` was longer than its buffer, and so lost its end.
    pub fn is_truncated(&self, index: usize) -> bool {
        assert!(index < self.received);
        self.headers[index].msg_hdr.msg_flags & libc::MSG_TRUNC != 0
    }

    /// When the kernel received message `index`, in nanoseconds of `CLOCK_REALTIME`.
    pub fn stamp_realtime_ns(&self, index: usize) -> Option<u64> {
        assert!(index < self.received);
        let header = &self.headers[index].msg_hdr;
        // SAFETY: the kernel filled `msg_control` and set `msg_controllen` to what it filled;
        // the CMSG functions stay within that. `control` lives in self, but self may have moved
        // since the call: so the pointer is set again before it is followed.
        unsafe {
            let mut header = *header;
            header.msg_control = self.control[index].0.as_ptr().cast_mut().cast();
            let mut message = libc::CMSG_FIRSTHDR(&raw const header);
            while !message.is_null() {
                if (*message).cmsg_level == libc::SOL_SOCKET
                    && (*message).cmsg_type == libc::SCM_TIMESTAMPNS
                {
                    let time: libc::timespec =
                        std::ptr::read_unaligned(libc::CMSG_DATA(message).cast());
                    return Some(super::time::to_ns(Timespec {
                        tv_sec: time.tv_sec,
                        tv_nsec: time.tv_nsec,
                    }));
                }
                message = libc::CMSG_NXTHDR(&raw const header, message);
            }
        }
        None
    }

    /// Takes the buffer of message `index` and leaves `replacement`, so that a large frame is
    /// kept without copying it. The next receive call fills the replacement.
    ///
    /// # Panics
    /// If the replacement is not as long as the buffer that it replaces.
    pub fn swap_buffer(&mut self, index: usize, replacement: Box<[u8]>) -> Box<[u8]> {
        assert_eq!(replacement.len(), self.buffers[index].len());
        mem::replace(&mut self.buffers[index], replacement)
    }
}

const EMPTY_IOVEC: libc::iovec = libc::iovec {
    iov_base: std::ptr::null_mut(),
    iov_len: 0,
};

fn empty_header() -> libc::mmsghdr {
    // SAFETY: an mmsghdr is plain integers and pointers; all-zero is a valid, empty one.
    unsafe { mem::zeroed() }
}

/// Sends up to [`BATCH`] messages without waiting. Returns how many the kernel took; an error
/// concerns the first one.
pub(super) fn send<'a>(
    fd: BorrowedFd<'_>,
    messages: impl Iterator<Item = &'a [u8]>,
) -> io::Result<usize> {
    let mut iovecs = [EMPTY_IOVEC; BATCH];
    let mut headers = [empty_header(); BATCH];
    let mut count = 0;
    for (bytes, (iovec, header)) in messages.zip(iovecs.iter_mut().zip(&mut headers)) {
        iovec.iov_base = bytes.as_ptr().cast_mut().cast();
        iovec.iov_len = bytes.len();
        header.msg_hdr.msg_iov = iovec;
        header.msg_hdr.msg_iovlen = 1;
        count += 1;
    }
    if count == 0 {
        return Ok(0);
    }
    // SAFETY: `count` headers point to one iovec each, on this stack frame, which points to
    // bytes that 'a keeps alive; sending only reads them.
    let sent = unsafe {
        libc::sendmmsg(
            fd.as_raw_fd(),
            headers.as_mut_ptr(),
            count,
            libc::MSG_DONTWAIT as _,
        )
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}
