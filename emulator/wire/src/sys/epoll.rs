//! Waiting for file descriptors with a timeout in nanoseconds.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;

use super::time::to_timespec;

/// At most this many ready descriptors are reported at a time; the rest come with the next wait.
const MAX_EVENTS: usize = 64;

/// What a descriptor is watched for. Errors and hang-ups are always reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// There is something to read.
    Read,
    /// There is room to write.
    Write,
    /// Nothing but errors and hang-ups.
    Nothing,
}

impl Interest {
    fn flags(self) -> EventFlags {
        match self {
            Interest::Read => EventFlags::IN,
            Interest::Write => EventFlags::OUT,
            Interest::Nothing => EventFlags::empty(),
        }
    }
}

/// A level-triggered epoll instance; every descriptor carries a token of the caller's.
pub struct Epoll {
    fd: OwnedFd,
    events: [Event; MAX_EVENTS],
    /// `epoll_pwait2` came with Linux 5.11, and a seccomp filter may not know it.
    has_pwait2: bool,
}

impl Epoll {
    /// A new instance that watches nothing.
    pub fn new() -> io::Result<Epoll> {
        let nothing = Event {
            flags: EventFlags::empty(),
            data: EventData::new_u64(0),
        };
        Ok(Epoll {
            fd: epoll::create(CreateFlags::CLOEXEC)?,
            events: [nothing; MAX_EVENTS],
            has_pwait2: true,
        })
    }

    /// Watches `fd`. Fails with `PermissionDenied` for regular files, which are always ready.
    pub fn add(&self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        let data = EventData::new_u64(token);
        Ok(epoll::add(&self.fd, fd, data, interest.flags())?)
    }

    /// Changes what a watched `fd` is watched for.
    pub fn change(&self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        let data = EventData::new_u64(token);
        Ok(epoll::modify(&self.fd, fd, data, interest.flags())?)
    }

    /// Watches `fd` no longer.
    pub fn remove(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        Ok(epoll::delete(&self.fd, fd)?)
    }

    /// Waits until something is ready or `timeout_ns` has passed (`None`: for ever) and returns
    /// how many descriptors are ready; [`Epoll::token`] tells which. A signal ends the wait.
    pub fn wait(&mut self, timeout_ns: Option<u64>) -> io::Result<usize> {
        let mut ready = if timeout_ns == Some(0) {
            self.look()
        } else if self.has_pwait2 {
            self.pwait2(timeout_ns.map(to_timespec).as_ref())
        } else {
            self.wait_with_ppoll(timeout_ns.map(to_timespec).as_ref())
        };
        if self.has_pwait2 && matches!(ready, Err(Errno::NOSYS | Errno::PERM)) {
            self.has_pwait2 = false;
            ready = self.wait_with_ppoll(timeout_ns.map(to_timespec).as_ref());
        }
        match ready {
            Err(Errno::INTR) => Ok(0),
            ready => Ok(ready?),
        }
    }

    /// Tells what is ready now.
    fn look(&mut self) -> Result<usize, Errno> {
        const AT_ONCE: Timespec = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        epoll::wait(&self.fd, &mut self.events, Some(&AT_ONCE))
    }

    /// `epoll_wait` of rustix rounds to milliseconds, unless it is built for newer kernels only.
    fn pwait2(&mut self, timeout: Option<&Timespec>) -> Result<usize, Errno> {
        let timeout = timeout.map_or(ptr::null(), ptr::from_ref);
        // SAFETY: `events` is writable for MAX_EVENTS entries, which have the layout of the
        // kernel's epoll_event, as `timeout` has that of its timespec; both outlive the call, and a
        // null signal mask leaves the mask alone.
        let ready = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.fd.as_raw_fd(),
                self.events.as_mut_ptr(),
                MAX_EVENTS,
                timeout,
                ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        let failure = |_| Errno::from_io_error(&io::Error::last_os_error());
        usize::try_from(ready).map_err(|error| failure(error).unwrap_or(Errno::IO))
    }

    /// The same with calls that every kernel has: an epoll descriptor can itself be polled.
    fn wait_with_ppoll(&mut self, timeout: Option<&Timespec>) -> Result<usize, Errno> {
        let mut descriptors = [PollFd::from_borrowed_fd(self.fd.as_fd(), PollFlags::IN)];
        match poll(&mut descriptors, timeout)? {
            0 => Ok(0),
            _ => self.look(),
        }
    }

    /// The token of the ready descriptor `index`, counted as the last [`Epoll::wait`] did.
    pub fn token(&self, index: usize) -> u64 {
        self.events[index].data.u64()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn both_ways_of_waiting_report_a_readable_pipe_and_time_out_on_a_silent_one() {
        for has_pwait2 in [true, false] {
            let (reader, mut writer) = io::pipe().unwrap();
            let mut epoll = Epoll::new().unwrap();
            epoll.has_pwait2 = has_pwait2;
            epoll.add(reader.as_fd(), 7, Interest::Read).unwrap();
            assert_eq!(epoll.wait(Some(1_000_000)).unwrap(), 0);
            writer.write_all(b"x").unwrap();
            assert_eq!(epoll.wait(None).unwrap(), 1);
            assert_eq!(epoll.token(0), 7);
        }
    }
}
