//! Lines in, lines out, on standard input and output, without ever making frames wait.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::sys;

/// A longer line is no request: as many tables as are allowed, with 4096 values each, fit.
const LONGEST_LINE_BYTES: usize = 128 << 20;

/// Nothing is read while more than this waits to be written: who asks without reading the
/// answers is made to wait.
const MOST_UNWRITTEN_BYTES: usize = 4 << 20;

/// A pipe that is ready for writing takes at least this much (`PIPE_BUF`) without blocking.
const WRITE_BYTES: usize = 4_096;

/// A line that came in.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// Its bytes, without the end of line.
    Text(Vec<u8>),
    /// It was longer than any request; its bytes were thrown away.
    TooLong,
}

/// Both ends of the conversation.
///
/// The descriptors stay blocking, because others may share them; they are touched only when they
/// are ready.
#[derive(Debug)]
pub struct Console {
    input: File,
    output: File,
    unread: Vec<u8>,
    skipping: bool,
    lines: VecDeque<Line>,
    unwritten: VecDeque<u8>,
}

impl Console {
    /// A conversation over two descriptors.
    pub fn new(input: OwnedFd, output: OwnedFd) -> Console {
        Console {
            input: input.into(),
            output: output.into(),
            unread: Vec::new(),
            skipping: false,
            lines: VecDeque::new(),
            unwritten: VecDeque::new(),
        }
    }

    /// The descriptor that requests come from.
    pub fn input(&self) -> BorrowedFd<'_> {
        self.input.as_fd()
    }

    /// The descriptor that answers go to.
    pub fn output(&self) -> BorrowedFd<'_> {
        self.output.as_fd()
    }

    /// Reads once; call it when the input is ready. Returns whether more may come. A last line
    /// without an end of line counts as a line.
    pub fn read(&mut self) -> io::Result<bool> {
        let mut chunk = [0; 65_536];
        let length = match self.input.read(&mut chunk) {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(true),
            Err(error) => return Err(error),
        };
        if length == 0 {
            if !self.unread.is_empty() || self.skipping {
                self.end_line();
            }
            return Ok(false);
        }
        let mut rest = &chunk[..length];
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            self.extend_line(&rest[..end]);
            self.end_line();
            rest = &rest[end + 1..];
        }
        self.extend_line(rest);
        Ok(true)
    }

    /// The next line that has come in whole.
    pub fn next_line(&mut self) -> Option<Line> {
        self.lines.pop_front()
    }

    /// Takes a line to be written as the reader takes it.
    pub fn say(&mut self, line: &str) {
        self.unwritten.extend(line.as_bytes());
    }

    /// Whether answers are waiting for their reader.
    pub fn has_unwritten(&self) -> bool {
        !self.unwritten.is_empty()
    }

    /// Whether so many answers are waiting that no more requests should be read.
    pub fn is_clogged(&self) -> bool {
        self.unwritten.len() > MOST_UNWRITTEN_BYTES
    }

    /// Writes what the reader takes, waiting for it `patience_ns` at a time at most.
    pub fn write(&mut self, patience_ns: u64) -> io::Result<()> {
        while !self.unwritten.is_empty() {
            if !sys::wait_writable(self.output.as_fd(), patience_ns) {
                return Ok(());
            }
            let (chunk, _) = self.unwritten.as_slices();
            let chunk = &chunk[..chunk.len().min(WRITE_BYTES)];
            match self.output.write(chunk) {
                Ok(written) => drop(self.unwritten.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn extend_line(&mut self, bytes: &[u8]) {
        if self.skipping || self.unread.len() + bytes.len() > LONGEST_LINE_BYTES {
            self.skipping = true;
            self.unread = Vec::new();
        } else {
            self.unread.extend_from_slice(bytes);
        }
    }

    fn end_line(&mut self) {
        let text = std::mem::take(&mut self.unread);
        let too_long = std::mem::take(&mut self.skipping);
        self.lines.push_back(if too_long {
            Line::TooLong
        } else {
            Line::Text(text)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(line: &str) -> Option<Line> {
        Some(Line::Text(line.as_bytes().to_vec()))
    }

    #[test]
    fn lines_come_out_whole_however_they_came_in() {
        let (input, mut requests) = io::pipe().unwrap();
        let (_answers, output) = io::pipe().unwrap();
        let mut console = Console::new(input.into(), output.into());
        requests.write_all(b"one\ntw").unwrap();
        assert!(console.read().unwrap());
        assert_eq!(console.next_line(), text("one"));
        assert_eq!(console.next_line(), None);
        requests.write_all(b"o\n\nthree").unwrap();
        assert!(console.read().unwrap());
        assert_eq!(console.next_line(), text("two"));
        assert_eq!(console.next_line(), text(""));
        drop(requests);
        assert!(!console.read().unwrap());
        assert_eq!(console.next_line(), text("three"));
        assert_eq!(console.next_line(), None);
    }
}
