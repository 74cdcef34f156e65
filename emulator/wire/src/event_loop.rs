//! The one loop: requests, arriving frames, frames that are due.

use std::io;

use crate::console::{Console, Line};
use crate::control::{self, Answer, Request};
use crate::engine::Engine;
use crate::lateness::BIN_NS;
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
    /// Whether the input is watched: not while answers clog.
    listening: bool,
    /// Whether the output is watched for room.
    answering: bool,
}

impl EventLoop {
    /// A loop that listens to the console and holds at most `memory_bytes` of frames.
    pub fn new(console: Console, memory_bytes: u64) -> io::Result<EventLoop> {
        let epoll = Epoll::new()?;
        let watch = |fd, token, interest| {
            epoll.add(fd, token, interest).map_err(|error| {
                let what = "standard input and output must be pipes, sockets or terminals";
                io::Error::new(error.kind(), format!("{what}: {error}"))
            })
        };
        watch(console.input(), INPUT, Interest::Read)?;
        watch(console.output(), OUTPUT, Interest::Nothing)?;
        Ok(EventLoop {
            console,
            epoll,
            waiter: Waiter::default(),
            engine: None,
            memory_bytes,
            listening: true,
            answering: false,
        })
    }

    /// Runs until the input is closed. Fails if nobody reads the answers any more.
    pub fn run(&mut self) -> io::Result<()> {
        loop {
            if let Some(engine) = &mut self.engine {
                engine.send_due();
            }
            let ready = self.wait()?;
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
        let now_ns = sys::monotonic_ns();
        // A frame that is due later than the sentinel's sleep ends is waited for after that.
        let due_soon_ns = due_ns.filter(|&due_ns| due_ns <= now_ns + BIN_NS);
        let timeout_ns = match self.waiter.plan(now_ns, due_soon_ns) {
            Wait::Forever => self.engine.as_ref().map(|_| BIN_NS),
            Wait::Poll => Some(0),
            Wait::Sleep { timeout_ns } => Some(timeout_ns),
        };
        let count = self.epoll.wait(timeout_ns)?;
        let woke_ns = sys::monotonic_ns();
        if count == 0 {
            self.waiter.timed_out(woke_ns);
        }
        if let (Some(engine), Some(timeout_ns)) = (&mut self.engine, timeout_ns) {
            engine.woke(woke_ns.saturating_sub(now_ns + timeout_ns), woke_ns);
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
                Line::TooLong => Answer::refusal("the line is too long to be a request".into()),
            };
            self.console.say(&answer.to_line());
        }
        Ok(open)
    }

    fn answer(&mut self, line: &[u8]) -> io::Result<Answer> {
        let request = match control::parse(line) {
            Ok(request) => request,
            Err(error) => return Ok(Answer::refusal(error)),
        };
        let capture = |status| Answer::capture(sys::monotonic_ns(), status);
        let result = match (request, &mut self.engine) {
            (Request::Start { .. }, Some(_)) => Err("started already".into()),
            (
                Request::Start {
                    seed,
                    tables,
                    links,
                },
                None,
            ) => match Engine::start(seed, tables, links, self.memory_bytes) {
                Ok(engine) => {
                    self.adopt(engine)?;
                    Ok(Answer::done(sys::monotonic_ns()))
                }
                Err(error) => Err(error),
            },
            (_, None) => Err("not started yet".into()),
            (Request::Set { tables, changes }, Some(engine)) => {
                engine.change(tables, changes).map(Answer::done)
            }
            (Request::Stats {}, Some(engine)) => {
                let links = engine.stats();
                Ok(Answer::stats(sys::monotonic_ns(), links))
            }
            (Request::Lateness { since }, Some(engine)) => {
                // Before the bins are: what is late from here on is not promised to be in them.
                let now_ns = sys::monotonic_ns();
                Ok(Answer::lateness(now_ns, engine.lateness(since)))
            }
            (
                Request::PlantLateness {
                    link,
                    direction,
                    late_ns,
                    for_ns,
                },
                Some(engine),
            ) => engine
                .plant_lateness(link, direction, late_ns, for_ns)
                .map(Answer::done),
            (Request::Capture { capture: settings }, Some(engine)) => {
                engine.start_capture(&settings).map(capture)
            }
            (Request::CaptureStatus {}, Some(engine)) => engine.capture_status().map(capture),
            (Request::CaptureStop {}, Some(engine)) => engine.stop_capture().map(capture),
        };
        Ok(result.unwrap_or_else(Answer::refusal))
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
        let (input, output) = (self.console.input(), self.console.output());
        let listening = !self.console.is_clogged();
        if listening != self.listening {
            self.listening = listening;
            if listening {
                self.epoll.add(input, INPUT, Interest::Read)?;
            } else {
                // Watching for nothing would still report a hang-up, again and again.
                self.epoll.remove(input)?;
            }
        }
        let answering = self.console.has_unwritten();
        if answering != self.answering {
            self.answering = answering;
            let interest = if answering {
                Interest::Write
            } else {
                Interest::Nothing
            };
            self.epoll.change(output, OUTPUT, interest)?;
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
