//! Being told to stop: SIGINT, SIGTERM, or a standard input that is closed.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::mem;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;

use rustix::event::{PollFd, PollFlags, poll};

use crate::clock;

pub struct Stop {
    signals: OwnedFd,
    /// A standard input that somebody can close; a file ends, and says nothing by it.
    input: Option<File>,
}

impl Stop {
    /// From now on the signals are taken here, in this thread and those it starts.
    pub fn new() -> io::Result<Self> {
        // SAFETY: a set of signals is plain memory, which sigemptyset makes one.
        let signals = unsafe {
            let mut set: libc::sigset_t = mem::zeroed();
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, libc::SIGINT);
            libc::sigaddset(&raw mut set, libc::SIGTERM);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            match libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC) {
                -1 => return Err(io::Error::last_os_error()),
                fd => OwnedFd::from_raw_fd(fd),
            }
        };
        let input: File = io::stdin().as_fd().try_clone_to_owned()?.into();
        let kind = input.metadata()?.file_type();
        let can_be_closed = kind.is_fifo() || kind.is_socket() || input.is_terminal();
        Ok(Stop {
            signals,
            input: can_be_closed.then_some(input),
        })
    }

    /// Waits so long; true when told to stop meanwhile.
    pub fn wait(&mut self, ns: u64) -> bool {
        let timeout = clock::timespec(ns);
        let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN)];
        fds.extend(
            self.input
                .iter()
                .map(|input| PollFd::new(input, PollFlags::IN)),
        );
        if !matches!(poll(&mut fds, Some(&timeout)), Ok(ready) if ready > 0) {
            return false;
        }
        let is_signalled = !fds[0].revents().is_empty();
        let has_input = fds.get(1).is_some_and(|fd| !fd.revents().is_empty());
        is_signalled || (has_input && self.is_closed())
    }

    /// Nothing is expected on it any more: what comes all the same is passed over.
    fn is_closed(&mut self) -> bool {
        let mut piece = [0; 4096];
        let read = self.input.as_mut().map(|input| input.read(&mut piece));
        matches!(read, Some(Ok(0) | Err(_)))
    }
}
