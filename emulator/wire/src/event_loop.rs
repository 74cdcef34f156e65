//! The one loop: requests, arriving frames, frames that are due.

use std::io;

use crate::console::{Console, Line};
use crate::control::{self, Request};
use crate::engine::Engine;
use crate::sys::{self, Epoll, Interest};
use crate::waiter::{Wait, Waiter};

/// Tokens of the console; smaller ones are positions of the engine's sockets.
const INPUT: u64 = u64::MAX;
const OUTPUT: u64 = u64::MAX - 1;

/// At the end, a reader of answers is waited for this long at a time.
const LAST_PATIENCE_NS: u64 = 200_000_000;

/// Receive buffers below this overflow easily under load.
const SMALL_RECEIVE_BUFFER_BYTES: usize = 2 << 20;

/// Everything that runs.
pub struct EventLoop {
    console: Console,
    epoll: Epoll,
    waiter: Waiter,
    engine: Option<Engine>,
    memory_bytes: u64,
    input: Watch,
    output: Watch,
}

/// How a descriptor of the console takes part in the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Watch {
    /// Epoll tells when it is ready.
    By(Interest),
    /// Not at all, for now.
    Paused,
    /// It is a regular file or the like, which is always ready and which epoll refuses.
    AlwaysReady,
}

impl EventLoop {
    /// A loop that listens to the console and holds at most `memory_bytes` of frames.
    pub fn new(console: Console, memory_bytes: u64) -> io::Result<EventLoop> {
        let epoll = Epoll::new()?;
        let watch = |fd, token, interest| match epoll.add(fd, token, interest) {
            Ok(()) => Ok(Watch::By(interest)),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(Watch::AlwaysReady),
            Err(error) => Err(error),
        };
        let input = watch(console.input(), INPUT, Interest::Read)?;
        let output = watch(console.output(), OUTPUT, Interest::Nothing)?;
        Ok(EventLoop {
            console,
            epoll,
            waiter: Waiter::new(),
            engine: None,
            memory_bytes,
            input,
            output,
        })
    }

    /// Runs until the input is closed. Fails if nobody reads the answers any more.
    pub fn run(&mut self) -> io::Result<()> {
        loop {
            if let Some(engine) = &mut self.engine {
                engine.send_due();
            }
            let mut ready = self.wait()?;
            if self.input == Watch::AlwaysReady {
                ready.input = true;
            }
            if ready.input && !self.console.is_clogged() && !self.converse()? {
                return self.console.write(LAST_PATIENCE_NS);
            }
            if ready.output && !self.console.has_unwritten() {
                // Watched for nothing, it is only ever ready for having broken.
                return Err(io::Error::new(
                    io::ErrorKind::BrokenPipe,
                    "nobody reads the answers any more",
                ));
            }
            self.console.write(0)?;
            self.update_watches()?;
        }
    }

    /// Waits for what comes first, and receives the frames that have arrived.
    fn wait(&mut self) -> io::Result<Ready> {
        let due_ns = self.engine.as_ref().and_then(Engine::next_send_ns);
        let mut wait = self.waiter.plan(sys::monotonic_ns(), due_ns);
        if self.input == Watch::AlwaysReady {
            wait = Wait::Poll;
        }
        let timeout_ns = match wait {
            Wait::Forever => None,
            Wait::Poll => Some(0),
            Wait::Sleep { timeout_ns } => Some(timeout_ns),
        };
        let count = self.epoll.wait(timeout_ns)?;
        if count == 0 {
            self.waiter.timed_out(sys::monotonic_ns());
        }
        let mut ready = Ready::default();
        for event in 0..count {
            match (self.epoll.token(event), &mut self.engine) {
                (INPUT, _) => ready.input = true,
                (OUTPUT, _) => ready.output = true,
                (socket, Some(engine)) => {
                    engine.receive(socket as usize);
                    // Between the batches of two links, what is due meanwhile goes first.
                    engine.send_due();
                }
                (_, None) => {}
            }
        }
        Ok(ready)
    }

    /// Reads and answers requests. Returns whether more may come.
    fn converse(&mut self) -> io::Result<bool> {
        let open = self.console.read()?;
        while let Some(line) = self.console.next_line() {
            let answer = match line {
                Line::Text(text) if text.trim_ascii().is_empty() => continue,
                Line::Text(text) => self.answer(&text)?,
                Line::TooLong => control::answer_error("the line is too long to be a request"),
            };
            self.console.say(&answer);
        }
        Ok(open)
    }

    fn answer(&mut self, line: &[u8]) -> io::Result<String> {
        let request = match control::parse(line) {
            Ok(request) => request,
            Err(error) => return Ok(control::answer_error(&error)),
        };
        let result = match (request, &mut self.engine) {
            (Request::Start { .. }, Some(_)) => Err("started already".into()),
            (
                Request::Start {
                    seed,
                    tables,
                    links,
                },
                None,
            ) => match Engine::start(seed, tables, &links, self.memory_bytes) {
                Ok(engine) => {
                    self.adopt(engine)?;
                    Ok(control::answer_done(sys::monotonic_ns()))
                }
                Err(error) => Err(error),
            },
            (_, None) => Err("not started yet".into()),
            (Request::Set { tables, changes }, Some(engine)) => {
                engine.change(tables, &changes).map(control::answer_done)
            }
            (Request::Stats {}, Some(engine)) => {
                let links = engine.stats();
                Ok(control::answer_stats(sys::monotonic_ns(), &links))
            }
            (
                Request::Capture {
                    capture,
                    directions,
                },
                Some(engine),
            ) => engine
                .start_capture(&capture, &directions)
                .map(|status| control::answer_capture(sys::monotonic_ns(), &status)),
            (Request::CaptureStatus {}, Some(engine)) => engine
                .capture_status()
                .map(|status| control::answer_capture(sys::monotonic_ns(), &status)),
            (Request::CaptureStop {}, Some(engine)) => engine
                .stop_capture()
                .map(|status| control::answer_capture(sys::monotonic_ns(), &status)),
        };
        Ok(result.unwrap_or_else(|error: String| control::answer_error(&error)))
    }

    fn adopt(&mut self, engine: Engine) -> io::Result<()> {
        for (position, socket) in engine.sockets().enumerate() {
            self.epoll.add(socket, position as u64, Interest::Read)?;
        }
        if let Some(bytes) = engine.smallest_receive_buffer_bytes()
            && bytes < SMALL_RECEIVE_BUFFER_BYTES
        {
            eprintln!(
                "wire: receive buffers are {} KiB, limited by net.core.rmem_max; \
                 watch rx_drops, and raise the limit if there are any",
                bytes / 1024
            );
        }
        self.engine = Some(engine);
        Ok(())
    }

    /// Watches the input unless answers clog, and the output for room while there are answers.
    fn update_watches(&mut self) -> io::Result<()> {
        match (self.input, self.console.is_clogged()) {
            // Watching for nothing would still report a hang-up, again and again.
            (Watch::By(_), true) => {
                self.epoll.remove(self.console.input())?;
                self.input = Watch::Paused;
            }
            (Watch::Paused, false) => {
                self.epoll
                    .add(self.console.input(), INPUT, Interest::Read)?;
                self.input = Watch::By(Interest::Read);
            }
            _ => {}
        }
        let wanted = if self.console.has_unwritten() {
            Interest::Write
        } else {
            Interest::Nothing
        };
        if let Watch::By(current) = self.output
            && current != wanted
        {
            self.epoll.change(self.console.output(), OUTPUT, wanted)?;
            self.output = Watch::By(wanted);
        }
        Ok(())
    }
}

/// What of the console is ready.
#[derive(Debug, Default)]
struct Ready {
    input: bool,
    output: bool,
}
