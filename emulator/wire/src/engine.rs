//! The links of a lab: frames in, frames held, frames out.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::thread;

use crate::arrival::ClockPair;
use crate::buffers::{self, BufferPool};
use crate::capture::{self, Outcome, Recorder};
use crate::control::{Change, LinkRequest, LinkStats};
use crate::direction::{Direction, Fate};
use crate::draws::Draws;
use crate::due_queue::{DueQueue, HeldFrame, Origin};
use crate::frame::OFFLOAD_HEADER_BYTES;
use crate::impairment::{Impairment, Tables};
use crate::lateness::{LateBin, Lateness};
use crate::sys::{self, BATCH, PacketSocket, ReceiveBatch};
use crate::way::Way;

/// A frame that the kernel does not take at once is tried again this often, and waited for this
/// long each time. All links wait meanwhile, so it is little.
const SEND_RETRIES: u32 = 4;
const SEND_RETRY_NS: u64 = 50_000;

/// After this many frames the sockets are looked at again, or their buffers would overflow while
/// we do nothing but send.
const MOST_SENT_IN_A_ROW: usize = 2 * BATCH;

/// However long sending takes, frames leave no earlier than this before they are due.
const LONGEST_LEAD_NS: u64 = 5_000;

const NO_RECORD: &str = "no packets are being recorded";

/// How many threads close sockets at the end, at most, and what each needs for that.
const CLOSERS: usize = 512;
const CLOSER_STACK_BYTES: usize = 64 << 10;

/// The running links.
///
/// Direction `2 × link` goes from `a` to `b`, direction `2 × link + 1` back. Socket `d` is the
/// one that direction `d` receives from; it sends to socket `d ^ 1`.
pub struct Engine {
    directions: Vec<Direction>,
    sockets: Sockets,
    tables: Tables,
    held: DueQueue,
    pool: BufferPool,
    received: ReceiveBatch,
    /// How long sending a single frame takes: a moving average.
    send_call_ns: u64,
    /// Frames of one direction on their way out; kept for its memory only.
    outgoing: Vec<HeldFrame>,
    /// The record of packets, while there is one.
    recorder: Option<Recorder>,
    lateness: Lateness,
}

/// All sockets, which close together.
struct Sockets(Vec<Socket>);

struct Socket {
    socket: PacketSocket,
    /// When it was last known to have nothing to receive.
    empty_ns: u64,
}

/// The kernel waits for a grace period of RCU for each socket that is closed (`packet_release` in
/// `net/packet/af_packet.c`), 10–30 ms; side by side they share it, and thousands close in less
/// than a second instead of half a minute.
impl Drop for Sockets {
    fn drop(&mut self) {
        let each = self.0.len().div_ceil(CLOSERS).max(1);
        thread::scope(|scope| {
            while self.0.len() > each {
                let part = self.0.split_off(self.0.len() - each);
                // Without a thread this one closes them.
                let _ = thread::Builder::new()
                    .stack_size(CLOSER_STACK_BYTES)
                    .spawn_scoped(scope, move || drop(part));
            }
            self.0.clear();
        });
    }
}

impl Engine {
    /// Checks the links, opens their interfaces, and receives from then on. At most
    /// `memory_bytes` are held at a time. The error says which link is wrong and why.
    pub fn start(
        seed: u64,
        tables: HashMap<String, Vec<f64>>,
        links: Vec<LinkRequest>,
        memory_bytes: u64,
    ) -> Result<Engine, String> {
        let tables = Tables::default().extended(tables)?;
        check_interfaces(&links)?;
        let mut sockets = Sockets(Vec::with_capacity(2 * links.len()));
        let mut impairments = Vec::with_capacity(2 * links.len());
        let count = links.len();
        for (index, link) in links.into_iter().enumerate() {
            impairments.push(resolved(index, Way::Ab, link.ab, &tables)?);
            impairments.push(resolved(index, Way::Ba, link.ba, &tables)?);
            for interface in [&link.a, &link.b] {
                let socket = PacketSocket::open(interface).map_err(|error| {
                    let way_out = way_out(&error, count);
                    format!("link {index}: interface {interface:?}: {error}{way_out}")
                })?;
                let empty_ns = sys::monotonic_ns();
                sockets.0.push(Socket { socket, empty_ns });
            }
        }
        let draws = Draws::for_directions(seed, sockets.0.len());
        let lateness = Lateness::new(sockets.0.len());
        let directions = impairments
            .into_iter()
            .zip(draws)
            .map(|(impairment, draws)| Direction::new(impairment, draws))
            .collect();
        Ok(Engine {
            directions,
            sockets,
            tables,
            held: DueQueue::default(),
            pool: BufferPool::new(memory_bytes),
            received: ReceiveBatch::new(buffers::LARGEST_BYTES),
            send_call_ns: 0,
            outgoing: Vec::with_capacity(BATCH),
            recorder: None,
            lateness,
        })
    }

    /// The sockets to watch; [`Engine::receive`] takes their position.
    pub fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.sockets.0.iter().map(|socket| socket.socket.as_fd())
    }

    /// The smallest receive buffer of all sockets.
    pub fn smallest_receive_buffer_bytes(&self) -> Option<usize> {
        self.sockets
            .0
            .iter()
            .filter_map(|socket| socket.socket.receive_buffer_bytes().ok())
            .min()
    }

    /// Makes all changes, or none if one of them is wrong. Frames that are held stay due when
    /// they were. Returns the instant from which arriving frames meet the new impairments.
    pub fn change(
        &mut self,
        tables: HashMap<String, Vec<f64>>,
        changes: Vec<Change>,
    ) -> Result<u64, String> {
        let tables = self.tables.extended(tables)?;
        let links = self.directions.len() / 2;
        let mut impairments = Vec::with_capacity(changes.len());
        for change in changes {
            let (link, way) = (change.link, change.direction);
            if link >= links {
                return Err(format!("there is no link {link}; there are {links}"));
            }
            let impairment = resolved(link, way, change.impairment, &tables)?;
            impairments.push((way.of_link(link), impairment));
        }
        self.tables = tables;
        let now_ns = sys::monotonic_ns();
        for (direction, impairment) in impairments {
            self.directions[direction].change(impairment, now_ns);
        }
        Ok(now_ns)
    }

    /// The counters of all links.
    pub fn stats(&mut self) -> Vec<LinkStats> {
        for (direction, socket) in self.directions.iter_mut().zip(&self.sockets.0) {
            // An interface that is gone has no more drops to tell.
            direction.counters.rx_drops += socket.socket.take_receive_drops().unwrap_or(0);
        }
        self.directions
            .chunks_exact(2)
            .map(|link| LinkStats {
                ab: link[0].counters.clone(),
                ba: link[1].counters.clone(),
            })
            .collect()
    }

    /// The bins of lateness from number `since` on, and the number of the next.
    pub fn lateness(&mut self, since: u64) -> (Vec<LateBin>, u64) {
        self.lateness.since(since)
    }

    /// Holds frames of one direction so much longer than they are due, from now on for a while.
    /// For tests: it counts as lateness and not as an impairment.
    pub fn plant_lateness(
        &mut self,
        link: usize,
        way: Way,
        late_ns: u64,
        for_ns: u64,
    ) -> Result<u64, String> {
        let direction = self.directions.get_mut(way.of_link(link));
        let direction = direction.ok_or_else(|| format!("there is no link {link}"))?;
        let now_ns = sys::monotonic_ns();
        direction.plant_lateness(late_ns, now_ns.saturating_add(for_ns));
        Ok(now_ns)
    }

    /// The loop woke up at `now_ns`, so much later than it was to.
    pub fn woke(&mut self, late_ns: u64, now_ns: u64) {
        self.lateness.woke(late_ns, now_ns);
    }

    /// Begins a record of packets. The error says why not.
    pub fn start_capture(
        &mut self,
        settings: &capture::Settings,
    ) -> Result<capture::Status, String> {
        if self.recorder.is_some() {
            return Err("packets are being recorded already".into());
        }
        let recorder = Recorder::start(settings, self.directions.len())?;
        Ok(self.recorder.insert(recorder).status())
    }

    /// How the record stands.
    pub fn capture_status(&self) -> Result<capture::Status, String> {
        let recorder = self.recorder.as_ref().ok_or(NO_RECORD)?;
        Ok(recorder.status())
    }

    /// Ends the record: what is on its way is in it as such. Everything waits while the files are
    /// completed.
    pub fn stop_capture(&mut self) -> Result<capture::Status, String> {
        let mut recorder = self.recorder.take().ok_or(NO_RECORD)?;
        for frame in self.held.iter() {
            recorder.record(frame.origin, frame.message(), Outcome::Held, 0);
        }
        Ok(recorder.finish())
    }

    /// When the next held frame is to be sent.
    pub fn next_send_ns(&self) -> Option<u64> {
        let due_ns = self.held.peek()?.due_ns;
        Some(due_ns.saturating_sub(self.lead_ns()))
    }

    /// How long before its due instant a frame is handed to the kernel. It appears on the other
    /// side about halfway through the call that sends it; the rest is what the receiver does.
    fn lead_ns(&self) -> u64 {
        (self.send_call_ns / 2).min(LONGEST_LEAD_NS)
    }

    /// Receives one batch from the socket at position `index` and decides over its frames.
    pub fn receive(&mut self, index: usize) {
        let Socket { socket, empty_ns } = &mut self.sockets.0[index];
        let empty_before_ns = *empty_ns;
        let asked_ns = sys::monotonic_ns();
        let count = match socket.receive(&mut self.received) {
            Ok(count) => count,
            Err(error) => {
                if error.kind() == io::ErrorKind::WouldBlock {
                    *empty_ns = asked_ns;
                } else if error.raw_os_error() == Some(libc::EINVAL) {
                    // The frame is of a kind of offload that the offload header cannot say
                    // (a tunnel, say); the kernel has thrown it away.
                    self.directions[index].counters.received += 1;
                    self.directions[index].counters.receive_errors += 1;
                }
                // Anything else (the interface went down or away) concerns no frame, and having
                // been told clears it.
                return;
            }
        };
        if count < BATCH {
            *empty_ns = asked_ns;
        }
        let clocks = ClockPair::now();
        for message in 0..count {
            let stamp_ns = self.received.stamp_realtime_ns(message);
            self.admit(index, message, clocks.arrival_ns(stamp_ns, empty_before_ns));
        }
    }

    /// Decides over one received message, and holds it if it is to leave.
    fn admit(&mut self, index: usize, message: usize, arrival_ns: u64) {
        let direction = &mut self.directions[index];
        let own = Origin {
            direction: index,
            arrival_ns,
            duplicate: false,
            planted_ns: 0,
        };
        direction.counters.received += 1;
        if self.received.is_truncated(message) {
            direction.counters.receive_errors += 1;
            return self.record_received(own, message, Outcome::Dropped);
        }
        let Some(fates) = direction.decide(self.received.bytes(message), arrival_ns) else {
            direction.counters.lost += 1;
            return self.record_received(own, message, Outcome::Lost);
        };
        let length = self.received.length(message);
        // Before the frame itself, which may take the buffer that it was received in with it.
        let second = fates.copy.and_then(|fate| {
            let copy = Origin {
                duplicate: true,
                ..own
            };
            self.directions[index].counters.duplicated += 1;
            Some((copy, self.accept(copy, fate, message)?))
        });
        let first = self.accept(own, fates.own, message);
        let both = first
            .map(|accepted| (own, accepted))
            .into_iter()
            .chain(second);
        for (mut origin, (due_ns, buffer)) in both {
            let direction = &mut self.directions[index];
            direction.counters.held += 1;
            origin.planted_ns = direction.planted_ns(arrival_ns, due_ns);
            let send_ns = due_ns + origin.planted_ns;
            self.held.push(send_ns, origin, buffer, length);
        }
    }

    /// Puts one copy of a received message into a buffer, and says when it is due; `None` if its
    /// fate is another, or if there is no memory for it.
    fn accept(&mut self, origin: Origin, fate: Fate, message: usize) -> Option<(u64, Box<[u8]>)> {
        let counters = &mut self.directions[origin.direction].counters;
        let Fate::Leaves { due_ns, overtakes } = fate else {
            counters.queue_drops += 1;
            self.record_received(origin, message, Outcome::QueueFull);
            return None;
        };
        let length = self.received.length(message);
        let Some(mut buffer) = self.pool.take(length) else {
            counters.memory_drops += 1;
            self.record_received(origin, message, Outcome::Dropped);
            return None;
        };
        counters.overtaken += u64::from(overtakes);
        if BufferPool::is_large(length) && !origin.duplicate {
            buffer = self.received.swap_buffer(message, buffer);
        } else {
            buffer[..length].copy_from_slice(self.received.bytes(message));
        }
        Some((due_ns, buffer))
    }

    /// Records a received message that goes no further.
    fn record_received(&mut self, origin: Origin, message: usize, outcome: Outcome) {
        if let Some(recorder) = &mut self.recorder {
            recorder.record(origin, self.received.bytes(message), outcome, 0);
        }
    }

    /// Sends what is due, up to a bound. What is left is still [`Engine::next_send_ns`].
    pub fn send_due(&mut self) {
        let mut sent = 0;
        while sent < MOST_SENT_IN_A_ROW {
            let now_ns = sys::monotonic_ns();
            let until_ns = now_ns + self.lead_ns();
            let Some(first) = self.held.pop_due(until_ns) else {
                return;
            };
            let direction = first.origin.direction;
            self.outgoing.push(first);
            // Frames of one direction leave together, with one system call.
            while self.outgoing.len() < BATCH
                && self
                    .held
                    .peek()
                    .is_some_and(|next| next.origin.direction == direction)
                && let Some(next) = self.held.pop_due(until_ns)
            {
                self.outgoing.push(next);
            }
            sent += self.outgoing.len();
            self.transmit(direction, now_ns);
        }
    }

    /// Sends the outgoing frames, all of one direction, and gives their buffers back. Sending
    /// began at `started_ns`.
    fn transmit(&mut self, direction: usize, mut started_ns: u64) {
        let socket = &self.sockets.0[direction ^ 1].socket;
        let counters = &mut self.directions[direction].counters;
        let mut done = 0;
        let mut retries = 0;
        while done < self.outgoing.len() {
            let waiting = &self.outgoing[done..];
            match socket.send(waiting.iter().map(HeldFrame::message)) {
                Ok(sent) => {
                    // What arrives is answered within the call that sends it, so an answer may
                    // enter before the call returns: a packet departs when the call begins.
                    let handed_over_ns = started_ns;
                    let left_ns = sys::monotonic_ns();
                    if sent == 1 {
                        let took_ns = left_ns.saturating_sub(started_ns);
                        self.send_call_ns = (self.send_call_ns * 15 + took_ns) / 16;
                    }
                    started_ns = left_ns;
                    for frame in &waiting[..sent] {
                        counters.sent(frame.length - OFFLOAD_HEADER_BYTES);
                        let late_ns = left_ns.saturating_sub(frame.due_ns);
                        let late_ns = late_ns + frame.origin.planted_ns;
                        self.lateness.left(direction, late_ns, left_ns);
                        if let Some(recorder) = &mut self.recorder {
                            let message = frame.message();
                            recorder.record(frame.origin, message, Outcome::Sent, handed_over_ns);
                        }
                    }
                    done += sent;
                    retries = 0;
                }
                Err(error) if is_passing(&error) && retries < SEND_RETRIES => {
                    retries += 1;
                    sys::wait_writable(socket.as_fd(), SEND_RETRY_NS);
                }
                Err(_) => {
                    counters.send_errors += 1;
                    if let Some(recorder) = &mut self.recorder {
                        let frame = &waiting[0];
                        recorder.record(frame.origin, frame.message(), Outcome::Dropped, 0);
                    }
                    done += 1;
                    retries = 0;
                }
            }
        }
        counters.held -= self.outgoing.len() as u64;
        for frame in self.outgoing.drain(..) {
            self.pool.give_back(frame.buffer);
        }
    }
}

/// Whether a send error says "not now" instead of "never".
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM | libc::EINTR)
    )
}

/// What to do about an error of opening a socket, where that is known.
fn way_out(error: &io::Error, links: usize) -> String {
    if error.raw_os_error() != Some(libc::EMFILE) {
        return String::new();
    }
    format!(
        "; {links} links need {} descriptors and a few more, and RLIMIT_NOFILE allows {}: raise \
         it (ulimit -Hn, LimitNOFILE)",
        2 * links,
        sys::descriptor_limit()
    )
}

fn check_interfaces(links: &[LinkRequest]) -> Result<(), String> {
    let mut seen = HashMap::new();
    for (index, link) in links.iter().enumerate() {
        for interface in [&link.a, &link.b] {
            if let Some(other) = seen.insert(interface, index) {
                return Err(format!(
                    "link {index}: interface {interface:?} is an end of link {other} already"
                ));
            }
        }
    }
    Ok(())
}

/// An impairment with its table, or what is wrong with it and where.
fn resolved(
    link: usize,
    way: Way,
    requested: Impairment,
    tables: &Tables,
) -> Result<Impairment, String> {
    let impairment = requested.resolved(tables);
    impairment.map_err(|error| format!("link {link} {way}: {error}"))
}
