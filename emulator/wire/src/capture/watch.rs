//! `wire watch`: the record of links that the kernel impairs (netem).

use std::io::{self, BufRead, Write};
use std::os::fd::AsFd;

use serde::Deserialize;

use super::matcher::Matcher;
use super::offset::Offset;
use super::taps::{Router, Seen, Tap};
use super::{Recorder, Settings, Status};
use crate::arrival::Reading;
use crate::control;
use crate::sys;

/// The taps are looked at this often; what comes in between waits in the ring.
const PERIOD_NS: u64 = 5_000_000;
const IDLE_PERIOD_NS: u64 = 20_000_000;

/// All rings together; each holds [`FEWEST_SLOTS`] packets at least.
const ALL_RINGS_BYTES: usize = 64 << 20;
const FEWEST_SLOTS: usize = 2_048;
const MOST_SLOTS: usize = 32_768;

/// From one tap at a time, before the others have their turn.
const MOST_AT_A_TIME: usize = 4_096;

#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
enum Request {
    /// Begin. Once, and first.
    Watch {
        capture: Settings,
        routers: Vec<Router>,
        /// No packet is on a link for longer.
        longest_ns: u64,
    },
    /// From now on packets may be on a link for so long.
    Longest { longest_ns: u64 },
    /// Tell how the record stands.
    CaptureStatus {},
    /// End the record.
    CaptureStop {},
}

struct Watcher {
    taps: Vec<Tap>,
    matcher: Matcher,
    recorder: Recorder,
    /// Of all taps, so that their packets keep their order.
    offset: Offset,
}

/// Runs until it is told to stop or standard input is closed. One JSON object a line comes in,
/// one goes out.
pub fn run() -> io::Result<()> {
    sys::prepare_process();
    let mut input = io::stdin().lock();
    let mut watcher: Option<Watcher> = None;
    loop {
        if let Some(watcher) = &mut watcher {
            let mut busy = false;
            // Requests wait until the taps have been looked at.
            while !sys::wait_readable(
                io::stdin().as_fd(),
                if busy { PERIOD_NS } else { IDLE_PERIOD_NS },
            ) {
                busy = watcher.look();
            }
            watcher.look();
        }
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            if let Some(watcher) = watcher {
                watcher.finish();
            }
            return Ok(());
        }
        let request: Result<Request, String> =
            serde_json::from_str(&line).map_err(|error| format!("not a request: {error}"));
        let answer = match (request, &mut watcher) {
            (
                Ok(Request::Watch {
                    capture,
                    routers,
                    longest_ns,
                }),
                None,
            ) => Watcher::start(&capture, &routers, longest_ns).map(|started| {
                let status = started.recorder.status();
                watcher = Some(started);
                status
            }),
            (Ok(Request::Watch { .. }), Some(_)) => Err("watching already".into()),
            (Ok(Request::Longest { longest_ns }), Some(watcher)) => {
                watcher.matcher.set_longest_ns(longest_ns);
                Ok(watcher.recorder.status())
            }
            (Ok(Request::CaptureStatus {}), Some(watcher)) => Ok(watcher.recorder.status()),
            (Ok(Request::CaptureStop {}), Some(_)) => {
                let status = watcher.take().map(Watcher::finish);
                Ok(status.unwrap_or_default())
            }
            (Ok(_), None) => Err("not watching".into()),
            (Err(error), _) => Err(error),
        };
        let answer = match answer {
            Ok(status) => control::answer_capture(sys::monotonic_ns(), &status),
            Err(error) => control::answer_error(&error),
        };
        let mut output = io::stdout().lock();
        output.write_all(answer.as_bytes())?;
        output.flush()?;
    }
}

impl Watcher {
    fn start(settings: &Settings, routers: &[Router], longest_ns: u64) -> Result<Watcher, String> {
        let slot_bytes = settings.snap_bytes as usize + 96;
        let slots = ALL_RINGS_BYTES / slot_bytes / routers.len().max(1);
        let slots = slots.clamp(FEWEST_SLOTS, MOST_SLOTS);
        let recorder = Recorder::start(settings)?;
        let taps = routers
            .iter()
            .map(|router| Tap::open(router, slots, settings.snap_bytes))
            .collect::<io::Result<Vec<Tap>>>()
            .map_err(|error| format!("watching a router: {error}"))?;
        Ok(Watcher {
            taps,
            matcher: Matcher::new(settings.names.len(), longest_ns),
            recorder,
            offset: Offset::default(),
        })
    }

    /// Takes what the taps have seen. Returns whether that was anything.
    fn look(&mut self) -> bool {
        self.offset.learn(Reading::now());
        let (matcher, recorder, offset) = (&mut self.matcher, &mut self.recorder, &self.offset);
        let mut busy = false;
        for tap in &mut self.taps {
            let mut look = |seen: Seen<'_>| {
                busy = true;
                let mut give = |packet: super::Packet<'_>| recorder.record(packet);
                match seen {
                    Seen::Entry(sighting) => matcher.enter(sighting, &mut give),
                    Seen::Departure(sighting) => matcher.depart(sighting, &mut give),
                }
            };
            // Twice the ring at most: who sends without end must not keep us from the others.
            for _ in 0..16 {
                if !tap.drain(MOST_AT_A_TIME, offset, &mut look) {
                    break;
                }
            }
            let drops = tap.take_drops();
            if drops > 0 {
                let now_ns = sys::monotonic_ns();
                for interface in tap.interfaces() {
                    matcher.doubt(interface, now_ns);
                }
                // Which of its links they were for, nobody knows.
                if let Some(interface) = tap.interfaces().min() {
                    recorder.miss(interface, drops);
                }
            }
        }
        matcher.expire(sys::monotonic_ns(), &mut |packet| recorder.record(packet));
        busy
    }

    fn finish(mut self) -> Status {
        self.look();
        let Watcher {
            matcher,
            mut recorder,
            ..
        } = self;
        matcher.finish(sys::monotonic_ns(), &mut |packet| recorder.record(packet));
        recorder.finish()
    }
}
