//! `oneshot load`: many workers, each with one request in flight on a connection of its own.
//!
//! A worker is a thread, and asks with the same code that a single request is measured with; the
//! thread that reads this module's code writes down what came of it. `benchmarks/generator` says how
//! far that goes on two cores, and what an event loop would be worth.

use std::io::{self, BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use serde::Serialize;

use crate::clock;
use crate::load::lines::Job;
use crate::load::objects::Object;
use crate::load::record::Writer;
use crate::load::shared::Shared;
use crate::load::stop::Stop;
use crate::load::tally::{Ending, Tally};
use crate::load::work::Own;
use crate::load::worker::Worker;
use crate::plan::{HeaderLine, Plan, Stopped};
use crate::protocol::{Client, Protocol};

pub mod deed;
pub mod lines;
pub mod objects;
pub mod pace;
pub mod record;
pub mod shared;
pub mod stop;
pub mod tally;
pub mod usage;
pub mod work;
pub mod worker;

const TICK_NS: u64 = 50_000_000;
const PROGRESS_NS: u64 = 1_000_000_000;
/// For requests in flight, when told to stop.
const GRACE_NS: u64 = 1_000_000_000;
const STACK_BYTES: usize = 1 << 20;

/// Carries out the job that `input` tells; progress, and how it ended, go to `output`.
pub fn run<P: Protocol>(input: impl BufRead, output: impl Write) -> Result<(), Stopped> {
    let mut plan = Plan::new(input);
    let mut header = plan.header::<P::Header>().map_err(Stopped::Plan)?;
    let job = plan.next_line::<Job>().map_err(Stopped::Plan)?;
    let job = job.ok_or_else(|| Stopped::Plan(plan.error("there is no job")))?;
    let wrong = |what: String| Stopped::Plan(plan.error(&what));
    header.take(job.terms()).map_err(wrong)?;
    // What is wrong with the header, or with a request, is said before anything begins.
    let mut client = Client::<P>::new(&header, true).map_err(Stopped::Plan)?;
    let objects = job.objects();
    let any = Object {
        bucket: 0,
        index: job.first,
    };
    for deed in job.operations.keys() {
        let made = client.build(&objects.request(*deed, any));
        made.map_err(|what| wrong(format!("{}: {what}", objects.name(*deed))))?;
    }
    let names = job.operations.iter();
    let names = names.map(|(deed, each)| (*deed, each.name.as_str()));
    let writer = Writer::create(&job.records, names)
        .map_err(|error| wrong(format!("records {}: {error}", job.records.display())))?;
    let stop = Stop::new().map_err(Stopped::Output)?;
    let shared = Arc::new(Shared::new(&job));
    start::<P>(&shared, &Arc::new(header), job.seed)?;
    Watch {
        tally: Tally::new(shared.begin_ns),
        shared,
        writer,
        stop,
        output,
    }
    .run()
}

/// Starts the workers. Each makes its client in its own thread, which the client never leaves.
fn start<P: Protocol>(
    shared: &Arc<Shared>,
    header: &Arc<P::Header>,
    seed: u64,
) -> Result<(), Stopped> {
    for number in 0..shared.workers {
        let (shared, header) = (shared.clone(), header.clone());
        let work = move || {
            let client = Client::<P>::new(&header, true).expect("one was made before");
            Worker::new(number, &shared, client, Own::new(seed, number)).run();
        };
        thread::Builder::new()
            .name(format!("worker-{number}"))
            .stack_size(STACK_BYTES)
            .spawn(work)
            .map_err(Stopped::Output)?;
    }
    Ok(())
}

/// Writes down what comes of requests, and tells of it, until the workers are done.
struct Watch<W> {
    shared: Arc<Shared>,
    tally: Tally,
    writer: Writer,
    stop: Stop,
    output: W,
}

impl<W: Write> Watch<W> {
    fn run(mut self) -> Result<(), Stopped> {
        let shared = self.shared.clone();
        let mut next_progress_ns = shared.begin_ns + PROGRESS_NS;
        let mut ending: Option<(Ending, u64)> = None;
        loop {
            let is_done = shared.alive.load(Ordering::Acquire) == 0;
            let records = shared.take_records();
            self.tally.take(&records);
            let written = self.writer.write(&records, &shared.names);
            let now_ns = clock::now_ns();
            let noticed = match written {
                Err(error) => Some(Ending::GaveUp(format!(
                    "its records cannot be written: {error}"
                ))),
                Ok(()) => self.silence(now_ns),
            };
            if is_done
                || ending
                    .as_ref()
                    .is_some_and(|(_, at_ns)| now_ns > at_ns + GRACE_NS)
            {
                let ending = ending.map_or(Ending::Complete, |(ending, _)| ending);
                return self.tell_end(ending).map_err(Stopped::Output);
            }
            if now_ns >= next_progress_ns {
                next_progress_ns += PROGRESS_NS * ((now_ns - next_progress_ns) / PROGRESS_NS + 1);
                let line = self.tally.progress(now_ns);
                self.tell(&line).map_err(Stopped::Output)?;
            }
            let told = self.stop.wait(TICK_NS).then_some(Ending::Stopped);
            if let Some(why) = noticed.or(told)
                && ending.is_none()
            {
                shared.stop.store(true, Ordering::Relaxed);
                ending = Some((why, now_ns));
            }
        }
    }

    /// Has nothing been ok for too long?
    fn silence(&self, now_ns: u64) -> Option<Ending> {
        let silent_ns = now_ns.saturating_sub(self.tally.last_ok_ns);
        (silent_ns > self.shared.give_up_ns && self.tally.last_error != 0).then(|| {
            Ending::GaveUp(format!(
                "no request was ok for {} s, the last failed with: {}",
                silent_ns / 1_000_000_000,
                self.shared.names.example(self.tally.last_error)
            ))
        })
    }

    fn tell(&mut self, line: &impl Serialize) -> io::Result<()> {
        let mut text = serde_json::to_vec(line).map_err(io::Error::other)?;
        text.push(b'\n');
        self.output.write_all(&text)?;
        self.output.flush()
    }

    fn tell_end(&mut self, ending: Ending) -> io::Result<()> {
        let shared = self.shared.clone();
        let ending = match shared.gave_up() {
            Some(why) if ending == Ending::Complete => Ending::GaveUp(why),
            _ => ending,
        };
        let end = self.tally.end(&ending, &shared, clock::now_ns());
        self.tell(&end)
    }
}
