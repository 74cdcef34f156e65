//! A program that reads a line and answers with one, each with a deadline.

use std::collections::BTreeMap;
use std::io as std_io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::io::{Errno, ioctl_fionbio, ioctl_fionread, read, write};

use crate::clock;
use crate::connection::{Wake, wait};
use crate::failure::Stage;
use crate::timing::Timing;

/// An answer with an object of [`crate::placeholders::MAX_HELD_BYTES`] in base64 fits.
const MAX_ANSWER_BYTES: usize = 128 << 20;
const READ_BYTES: usize = 64 * 1024;
const LAST_WORDS_BYTES: usize = 4096;
/// For a program that has closed its output to end by itself.
const ENDING: Duration = Duration::from_millis(500);

/// A running one. It is killed, and what it has started with it, when this value is dropped.
pub struct Program {
    child: Child,
    stdin: ChildStdin,
    stdout: ChildStdout,
    /// None: it has closed it.
    stderr: Option<ChildStderr>,
    buffer: Box<[u8]>,
    answer: Vec<u8>,
    /// A whole line was sent to it, and its answer is yet to come.
    owes: bool,
    /// The end of what it has written to its standard error.
    words: Vec<u8>,
}

/// Why there is no answer.
#[derive(Debug, PartialEq, Eq)]
pub enum Silence {
    Deadline(Stage),
    /// It ended, or does not speak in lines.
    Broken(String),
}

/// Of a program whose answer was late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Debt {
    Open,
    /// It has answered, and can be asked again.
    Paid,
    /// It has ended, or said something else.
    Bad,
}

/// What came of a line.
#[derive(Debug)]
pub struct Asked {
    pub timing: Timing,
    pub sent_bytes: usize,
    /// There is no answer, and the program cannot have read any of the line.
    pub is_unread: bool,
    /// The answer, without the end of the line.
    pub result: Result<Vec<u8>, Silence>,
}

impl Program {
    /// # Errors
    /// There is no such program, or it cannot be started.
    pub fn start(
        argv: &[String],
        environment: &BTreeMap<String, String>,
    ) -> Result<Self, std_io::Error> {
        let (file, arguments) = argv.split_first().ok_or(std_io::ErrorKind::NotFound)?;
        let mut command = Command::new(file);
        command
            .args(arguments)
            .envs(environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        // SAFETY: prctl is safe to call between fork and exec. However this process ends, so does
        // the program.
        unsafe {
            command.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            });
        }
        let mut child = command.spawn()?;
        let piped = "it was asked for";
        let program = Program {
            stdin: child.stdin.take().expect(piped),
            stdout: child.stdout.take().expect(piped),
            stderr: child.stderr.take(),
            child,
            buffer: vec![0; READ_BYTES].into(),
            answer: Vec::new(),
            owes: false,
            words: Vec::new(),
        };
        ioctl_fionbio(&program.stdin, true)?;
        ioctl_fionbio(&program.stdout, true)?;
        ioctl_fionbio(program.stderr.as_ref().expect(piped), true)?;
        Ok(program)
    }

    /// Does it run, and has said nothing that it was not asked?
    pub fn is_idle(&mut self) -> bool {
        let mut byte = [0; 1];
        matches!(read(&self.stdout, &mut byte), Err(Errno::AGAIN))
            && matches!(self.child.try_wait(), Ok(None))
    }

    /// Is an answer of it yet to come?
    pub fn owes(&self) -> bool {
        self.owes
    }

    /// Takes what has come of an answer that nobody waits for any more, and forgets it.
    pub fn catch_up(&mut self) -> Debt {
        self.listen();
        while self.owes {
            match self.receive() {
                Ok(Some(length)) => match self.is_whole(length) {
                    Ok(is_whole) => self.owes = !is_whole,
                    Err(_) => return Debt::Bad,
                },
                Ok(None) => return Debt::Open,
                Err(_) => return Debt::Bad,
            }
        }
        self.answer = Vec::new();
        match self.is_idle() {
            true => Debt::Paid,
            false => Debt::Bad,
        }
    }

    /// Hands over a line, which ends with its end, and waits for one; that is timed.
    pub fn ask(&mut self, line: &[u8], allowed_ns: u64) -> Asked {
        self.answer.clear();
        self.owes = false;
        let start_ns = clock::now_ns();
        let mut asking = Asking {
            program: self,
            line,
            deadline_ns: start_ns.saturating_add(allowed_ns),
            sent_bytes: 0,
            is_deaf: false,
            last_read_ns: start_ns,
            timing: Timing {
                start_ns,
                connect_ns: Some(0),
                ..Timing::default()
            },
        };
        let result = asking.run();
        let (mut timing, sent_bytes) = (asking.timing, asking.sent_bytes);
        let stopped_ns = match result {
            Ok(()) => asking.last_read_ns,
            Err(_) => clock::now_ns(),
        };
        timing.elapsed_ns = stopped_ns - start_ns;
        timing.total_ns = result.is_ok().then_some(timing.elapsed_ns);
        self.owes = matches!(result, Err(Silence::Deadline(_))) && sent_bytes == line.len();
        let result = match result {
            Ok(()) => {
                self.answer.pop();
                Ok(std::mem::take(&mut self.answer))
            }
            Err(Silence::Broken(what)) => Err(Silence::Broken(self.last_words(what))),
            Err(silence) => Err(silence),
        };
        let is_unread = result.is_err() && self.read_nothing(sent_bytes);
        Asked {
            timing,
            sent_bytes,
            is_unread,
            result,
        }
    }

    /// Writes a short line, the first, whose answer `hear` awaits.
    pub fn tell(&mut self, line: &[u8]) {
        // An empty pipe takes it whole, and that of a program that has ended none: `hear` says so.
        let _ = write(&self.stdin, line);
    }

    /// Awaits the answer to that line.
    ///
    /// # Errors
    /// There is none.
    pub fn hear(&mut self, allowed_ns: u64) -> Result<Vec<u8>, Silence> {
        self.ask(b"", allowed_ns).result
    }

    /// Reads once what it says, and returns how much that was; None: nothing yet.
    fn receive(&mut self) -> Result<Option<usize>, Silence> {
        match read(&self.stdout, &mut self.buffer[..]) {
            Ok(0) => Err(Silence::Broken("closed its output".into())),
            Ok(length) => {
                self.answer.extend_from_slice(&self.buffer[..length]);
                Ok(Some(length))
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(Silence::Broken(format!("cannot be heard: {error}"))),
        }
    }

    /// Is the answer whole, of which `length` bytes came last?
    fn is_whole(&self, length: usize) -> Result<bool, Silence> {
        let came = &self.answer[self.answer.len() - length..];
        match came.iter().position(|byte| *byte == b'\n') {
            Some(at) if at + 1 == came.len() => Ok(true),
            Some(_) => Err(Silence::Broken("answered with more than one line".into())),
            None if self.answer.len() > MAX_ANSWER_BYTES => {
                let what = format!("answered with a line of more than {MAX_ANSWER_BYTES} bytes");
                Err(Silence::Broken(what))
            }
            None => Ok(false),
        }
    }

    /// How it ended, with the last line that it wrote to its standard error.
    fn last_words(&mut self, what: String) -> String {
        let end_ns = clock::now_ns() + ENDING.as_nanos() as u64;
        let mut ended = self.child.try_wait();
        while matches!(ended, Ok(None)) && clock::now_ns() < end_ns {
            std::thread::sleep(Duration::from_millis(5));
            ended = self.child.try_wait();
        }
        self.listen();
        let how = match ended {
            Ok(Some(status)) => how_it_ended(status),
            _ => what,
        };
        let words = String::from_utf8_lossy(&self.words);
        match words.lines().rfind(|line| !line.trim().is_empty()) {
            Some(line) => format!("the program {how}: {}", line.trim()),
            None => format!("the program {how}"),
        }
    }

    /// Was nothing sent, or has it ended while the pipe still held all `sent_bytes` of its line?
    fn read_nothing(&mut self, sent_bytes: usize) -> bool {
        let unread = ioctl_fionread(&self.stdin).unwrap_or(0);
        let has_ended = matches!(self.child.try_wait(), Ok(Some(_)));
        sent_bytes == 0 || (has_ended && unread >= sent_bytes as u64)
    }

    /// Reads what it has written to its standard error.
    fn listen(&mut self) {
        while let Some(stderr) = &self.stderr {
            match read(stderr, &mut self.buffer[..]) {
                Ok(length @ 1..) => self.words.extend_from_slice(&self.buffer[..length]),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                _ => self.stderr = None,
            }
            let surplus = self.words.len().saturating_sub(LAST_WORDS_BYTES);
            self.words.drain(..surplus);
        }
    }
}

fn how_it_ended(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, signal) => format!("was ended by signal {}", signal.unwrap_or_default()),
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: the group is the program's own, which has not been waited for: no other has its
        // number.
        if matches!(self.child.try_wait(), Ok(None)) {
            unsafe { libc::kill(-(self.child.id() as i32), libc::SIGKILL) };
        }
        let _ = self.child.wait();
    }
}

struct Asking<'a> {
    program: &'a mut Program,
    line: &'a [u8],
    deadline_ns: u64,
    sent_bytes: usize,
    /// It has closed its input.
    is_deaf: bool,
    last_read_ns: u64,
    timing: Timing,
}

impl Asking<'_> {
    fn run(&mut self) -> Result<(), Silence> {
        loop {
            self.send();
            self.wait()?;
            if self.receive()? {
                return Ok(());
            }
        }
    }

    fn send(&mut self) {
        while self.sent_bytes < self.line.len() && !self.is_deaf {
            match write(&self.program.stdin, &self.line[self.sent_bytes..]) {
                Ok(sent) => self.sent_bytes += sent,
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => {}
                Err(_) => self.is_deaf = true, // why is known when its output has ended
            }
            if self.sent_bytes == self.line.len() {
                self.timing.sent_ns = Some(clock::now_ns() - self.timing.start_ns);
            }
        }
    }

    /// Reads once. True: the answer is whole.
    fn receive(&mut self) -> Result<bool, Silence> {
        let Some(length) = self.program.receive()? else {
            return Ok(false);
        };
        let now_ns = clock::now_ns();
        if self.timing.reads == 0 {
            self.timing.first_byte_ns = Some(now_ns - self.timing.start_ns);
        } else {
            let gap_ns = now_ns - self.last_read_ns;
            self.timing.longest_gap_ns = self.timing.longest_gap_ns.max(gap_ns);
        }
        self.timing.reads += 1;
        self.last_read_ns = now_ns;
        self.program.is_whole(length)
    }

    /// Waits until there is something to do, or the deadline.
    fn wait(&mut self) -> Result<(), Silence> {
        let program = &*self.program;
        let mut polled = vec![PollFd::new(&program.stdout, PollFlags::IN)];
        let complains = program.stderr.as_ref();
        polled.extend(complains.map(|stderr| PollFd::new(stderr, PollFlags::IN)));
        if self.sent_bytes < self.line.len() && !self.is_deaf {
            polled.push(PollFd::new(&program.stdin, PollFlags::OUT));
        }
        match wait(&mut polled, self.deadline_ns) {
            Ok(Wake::Ready) => {}
            Ok(Wake::Deadline) => return Err(Silence::Deadline(self.stage())),
            Err(error) => return Err(Silence::Broken(format!("cannot be heard: {error}"))),
        }
        if complains.is_some() && !polled[1].revents().is_empty() {
            drop(polled);
            self.program.listen();
        }
        Ok(())
    }

    fn stage(&self) -> Stage {
        match (self.timing.sent_ns, self.timing.reads) {
            (None, _) => Stage::Send,
            (Some(_), 0) => Stage::FirstByte,
            (Some(_), _) => Stage::Body,
        }
    }
}
