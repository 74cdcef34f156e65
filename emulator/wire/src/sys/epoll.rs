//! Waiting for file descriptors with a timeout in nanoseconds.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::checked;
use super::clock::to_timespec;

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
    fn bits(self) -> u32 {
        match self {
            Interest::Read => libc::EPOLLIN as u32,
            Interest::Write => libc::EPOLLOUT as u32,
            Interest::Nothing => 0,
        }
    }
}

/// A level-triggered epoll instance; every descriptor carries a token of the caller's.
pub struct Epoll {
    fd: OwnedFd,
    events: [libc::epoll_event; MAX_EVENTS],
    /// `epoll_pwait2` came with Linux 5.11, and a seccomp filter may not know it.
    has_pwait2: bool,
}

impl Epoll {
    /// A new instance that watches nothing.
    pub fn new() -> io::Result<Epoll> {
        // SAFETY: no pointers; the returned descriptor is new and owned by nobody else.
        let fd =
            unsafe { OwnedFd::from_raw_fd(checked(libc::epoll_create1(libc::EPOLL_CLOEXEC))?) };
        Ok(Epoll {
            fd,
            events: [libc::epoll_event { events: 0, u64: 0 }; MAX_EVENTS],
            has_pwait2: true,
        })
    }

    /// Watches `fd`. Fails with `PermissionDenied` for regular files, which are always ready.
    pub fn add(&self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, token, interest)
    }

    /// Changes what a watched `fd` is watched for.
    pub fn change(&self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, token, interest)
    }

    /// Watches `fd` no longer.
    pub fn remove(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, fd, 0, Interest::Nothing)
    }

    fn control(
        &self,
        operation: libc::c_int,
        fd: BorrowedFd<'_>,
        token: u64,
        interest: Interest,
    ) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: interest.bits(),
            u64: token,
        };
        // SAFETY: both descriptors are open (owned, borrowed) and `event` is valid for the call.
        checked(unsafe {
            libc::epoll_ctl(self.fd.as_raw_fd(), operation, fd.as_raw_fd(), &mut event)
        })
        .map(drop)
    }

    /// Waits until something is ready or `timeout_ns` has passed (`None`: for ever) and returns
    /// how many descriptors are ready; [`Epoll::token`] tells which. A signal ends the wait.
    pub fn wait(&mut self, timeout_ns: Option<u64>) -> io::Result<usize> {
        let ready = if timeout_ns == Some(0) {
            self.epoll_wait(0)
        } else if self.has_pwait2 {
            match self.epoll_pwait2(timeout_ns) {
                Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => {
                    self.has_pwait2 = false;
                    self.wait_with_ppoll(timeout_ns)
                }
                result => result,
            }
        } else {
            self.wait_with_ppoll(timeout_ns)
        };
        match ready {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            result => result,
        }
    }

    /// The token of the ready descriptor `index`, counted as the last [`Epoll::wait`] did.
    pub fn token(&self, index: usize) -> u64 {
        self.events[index].u64
    }

    fn epoll_wait(&mut self, timeout_ms: libc::c_int) -> io::Result<usize> {
        // SAFETY: `events` is writable for MAX_EVENTS entries.
        checked(unsafe {
            libc::epoll_wait(
                self.fd.as_raw_fd(),
                self.events.as_mut_ptr(),
                MAX_EVENTS as libc::c_int,
                timeout_ms,
            )
        })
        .map(|ready| ready as usize)
    }

    fn epoll_pwait2(&mut self, timeout_ns: Option<u64>) -> io::Result<usize> {
        let timeout = timeout_ns.map(to_timespec);
        let timeout_pointer = timeout
            .as_ref()
            .map_or(std::ptr::null(), |timeout| timeout as *const libc::timespec);
        // SAFETY: `events` is writable for MAX_EVENTS entries, `timeout` outlives the call, and
        // a null signal mask leaves the mask alone. Called by number, because C libraries older
        // than the system call have no function for it.
        let ready = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.fd.as_raw_fd(),
                self.events.as_mut_ptr(),
                MAX_EVENTS as libc::c_int,
                timeout_pointer,
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        checked(ready as libc::c_int).map(|ready| ready as usize)
    }

    /// The same with calls that every kernel has: an epoll descriptor can itself be polled.
    fn wait_with_ppoll(&mut self, timeout_ns: Option<u64>) -> io::Result<usize> {
        let timeout = timeout_ns.map(to_timespec);
        let timeout_pointer = timeout
            .as_ref()
            .map_or(std::ptr::null(), |timeout| timeout as *const libc::timespec);
        let mut poll = libc::pollfd {
            fd: self.fd.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one valid pollfd, a timeout that outlives the call, no signal mask.
        checked(unsafe { libc::ppoll(&mut poll, 1, timeout_pointer, std::ptr::null()) })?;
        self.epoll_wait(0)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;

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
