//! The links of a lab: frames in, frames held, frames out.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::thread;

use crate::arrival::ClockPair;
use crate::buffers::{self, BufferPool};
use crate::capture::{self, Marks, Outcome};
use crate::control::{Change, LinkRequest, LinkStats, Place, Way};
use crate::corruption;
use crate::direction::{Departure, Direction, Fate};
use crate::draws::Draws;
use crate::due_queue::{DueQueue, HeldFrame};
use crate::engine_capture::Capture;
use crate::frame::OFFLOAD_HEADER_BYTES;
use crate::impairment::{Impairment, Tables};
use crate::sys::{self, BATCH, PacketSocket, ReceiveBatch};

/// A frame that the kernel does not take at once is tried again this often, and waited for this
/// long each time. All links wait meanwhile, so it is little.
const SEND_RETRIES: u32 = 4;
const SEND_RETRY_NS: u64 = 50_000;

/// After this many frames the sockets are looked at again, or their buffers would overflow while
/// we do nothing but send.
const MOST_SENT_IN_A_ROW: usize = 2 * BATCH;

/// However long sending takes, frames leave no earlier than this before they are due.
const LONGEST_LEAD_NS: u64 = 5_000;

/// How many sockets one thread closes, one after the other, and what it needs for that.
const CLOSED_AT_A_TIME: usize = 16;
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
    capture: Option<Capture>,
}

/// All sockets, which close together.
struct Sockets(Vec<Socket>);

struct Socket {
    socket: PacketSocket,
    /// When it was last known to have nothing to receive.
    empty_ns: u64,
}

/// The kernel waits for a grace period of RCU for each socket that is closed (`packet_release` in
/// net/packet/af_packet.c), 10–30 ms; side by side they share it, and thousands close in less
/// than a second instead of half a minute.
impl Drop for Sockets {
    fn drop(&mut self) {
        thread::scope(|scope| {
            while self.0.len() > CLOSED_AT_A_TIME {
                let part = self.0.split_off(self.0.len() - CLOSED_AT_A_TIME);
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
        links: &[LinkRequest],
        memory_bytes: u64,
    ) -> Result<Engine, String> {
        let tables = Tables::default().extended(tables)?;
        check_interfaces(links)?;
        let impairments = resolve_links(links, &tables)?;
        let mut sockets = Sockets(Vec::with_capacity(2 * links.len()));
        for (index, link) in links.iter().enumerate() {
            for interface in [&link.a, &link.b] {
                let socket = PacketSocket::open(interface).map_err(|error| {
                    let way_out = way_out(&error, links.len());
                    format!("link {index}: interface {interface:?}: {error}{way_out}")
                })?;
                let empty_ns = sys::monotonic_ns();
                sockets.0.push(Socket { socket, empty_ns });
            }
        }
        let draws = Draws::for_directions(seed, sockets.0.len());
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
            capture: None,
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
        changes: &[Change],
    ) -> Result<u64, String> {
        let tables = self.tables.extended(tables)?;
        let mut impairments = Vec::with_capacity(changes.len());
        for change in changes {
            if change.link >= self.directions.len() / 2 {
                return Err(format!(
                    "there is no link {}; there are {}",
                    change.link,
                    self.directions.len() / 2
                ));
            }
            let resolved = change.impairment.resolve(&tables);
            let way = way_name(change.direction);
            impairments
                .push(resolved.map_err(|error| format!("link {} {way}: {error}", change.link))?);
        }
        self.tables = tables;
        let now_ns = sys::monotonic_ns();
        for (change, impairment) in changes.iter().zip(impairments) {
            let direction = 2 * change.link + usize::from(change.direction == Way::Ba);
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
                ab: (&link[0].counters).into(),
                ba: (&link[1].counters).into(),
            })
            .collect()
    }

    /// Begins a record of what crosses these directions. The error says why not.
    pub fn start_capture(
        &mut self,
        settings: &capture::Settings,
        places: &[Place],
    ) -> Result<capture::Status, String> {
        if self.capture.is_some() {
            return Err("packets are being recorded already".into());
        }
        let capture = Capture::start(settings, places, self.directions.len())?;
        let status = capture.status();
        self.capture = Some(capture);
        Ok(status)
    }

    /// How the record stands.
    pub fn capture_status(&self) -> Result<capture::Status, String> {
        let capture = self.capture.as_ref();
        Ok(capture.ok_or("no packets are being recorded")?.status())
    }

    /// Ends the record: what is on its way is in it as such. Everything waits while the file is
    /// completed.
    pub fn stop_capture(&mut self) -> Result<capture::Status, String> {
        let mut capture = self.capture.take().ok_or("no packets are being recorded")?;
        for frame in self.held.iter() {
            capture.note(frame, Outcome::Held, 0);
        }
        Ok(capture.finish())
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
        direction.counters.received += 1;
        if self.received.is_truncated(message) {
            direction.counters.receive_errors += 1;
            self.note_received(
                index,
                message,
                (arrival_ns, Marks::default()),
                Outcome::Dropped,
            );
            return;
        }
        let Some(fates) = direction.decide(self.received.bytes(message), arrival_ns) else {
            direction.counters.lost += 1;
            self.note_received(
                index,
                message,
                (arrival_ns, Marks::default()),
                Outcome::Lost,
            );
            return;
        };
        let length = self.received.length(message);
        let origin = |duplicate| {
            let marks = Marks {
                duplicate,
                ..Marks::default()
            };
            (arrival_ns, marks)
        };
        // Before the frame itself, which may take the buffer that it was received in with it.
        let copy = fates.copy.map(|fate| {
            direction.counters.duplicated += 1;
            let buffer = match fate {
                Fate::Leaves(_) => self.pool.take(length),
                Fate::QueueFull => None,
            };
            let copied = buffer.map(|mut buffer| {
                buffer[..length].copy_from_slice(self.received.bytes(message));
                buffer
            });
            (fate, copied)
        });
        if let Some((fate, None)) = &copy {
            self.note_received(index, message, origin(true), refusal(fate));
        }
        let buffer = match fates.own {
            Fate::Leaves(_) => self.pool.take(length).map(|mut buffer| {
                if BufferPool::is_large(length) {
                    return self.received.swap_buffer(message, buffer);
                }
                buffer[..length].copy_from_slice(self.received.bytes(message));
                buffer
            }),
            Fate::QueueFull => None,
        };
        if buffer.is_none() {
            self.note_received(index, message, origin(false), refusal(&fates.own));
        }
        self.hold(index, fates.own, origin(false), buffer, length);
        if let Some((fate, buffer)) = copy {
            self.hold(index, fate, origin(true), buffer, length);
        }
    }

    /// Records a received message that goes no further.
    fn note_received(
        &mut self,
        index: usize,
        message: usize,
        origin: (u64, Marks),
        outcome: Outcome,
    ) {
        if let Some(capture) = &mut self.capture {
            let length = self.received.length(message);
            capture.note_refused(index, self.received.bytes(message), length, origin, outcome);
        }
    }

    /// Holds one copy of a frame, in its buffer if there was memory for it, until it is due.
    /// It arrived, and is a duplicate or not, as `origin` says.
    fn hold(
        &mut self,
        index: usize,
        fate: Fate,
        mut origin: (u64, Marks),
        buffer: Option<Box<[u8]>>,
        length: usize,
    ) {
        let counters = &mut self.directions[index].counters;
        let Fate::Leaves(departure) = fate else {
            counters.queue_drops += 1;
            return;
        };
        let Some(mut buffer) = buffer else {
            counters.memory_drops += 1;
            return;
        };
        counters.overtaken += u64::from(departure.overtakes);
        if let Some(&flip) = departure.flips.first() {
            let packets = corruption::cut_and_flip(&buffer[..length], &departure.flips);
            if !packets.is_empty() {
                self.pool.give_back(buffer);
                return self.hold_cut(index, &departure, origin, &packets);
            }
            counters.corrupted += 1;
            origin.1.corrupted = true;
            corruption::flip(&mut buffer[..length], flip);
        }
        counters.held += 1;
        self.held
            .push(departure.due_ns, index, origin, buffer, length);
    }

    /// Holds the packets of an offloaded frame, which leave together.
    fn hold_cut(
        &mut self,
        index: usize,
        departure: &Departure,
        (arrival_ns, marks): (u64, Marks),
        packets: &[Vec<u8>],
    ) {
        let counters = &mut self.directions[index].counters;
        counters.corrupted += departure.flips.len() as u64;
        counters.cut += packets.len() as u64 - 1;
        for (number, packet) in packets.iter().enumerate() {
            let marks = Marks {
                corrupted: departure.flips.iter().any(|flip| flip.packet == number),
                ..marks
            };
            let origin = (arrival_ns, marks);
            match self.pool.take(packet.len()) {
                None => {
                    counters.memory_drops += 1;
                    if let Some(capture) = &mut self.capture {
                        let outcome = Outcome::Dropped;
                        capture.note_refused(index, packet, packet.len(), origin, outcome);
                    }
                }
                Some(mut buffer) => {
                    buffer[..packet.len()].copy_from_slice(packet);
                    counters.held += 1;
                    self.held
                        .push(departure.due_ns, index, origin, buffer, packet.len());
                }
            }
        }
    }

    /// Sends what is due, up to a bound. What is left is still [`Engine::next_due_ns`].
    pub fn send_due(&mut self) {
        let mut sent = 0;
        while sent < MOST_SENT_IN_A_ROW {
            let now_ns = sys::monotonic_ns();
            let until_ns = now_ns + self.lead_ns();
            let Some(first) = self.held.pop_due(until_ns) else {
                return;
            };
            let direction = first.direction;
            self.outgoing.push(first);
            // Frames of one direction leave together, with one system call.
            while self.outgoing.len() < BATCH
                && self
                    .held
                    .peek()
                    .is_some_and(|next| next.direction == direction)
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
                        counters.packets += 1;
                        counters.bytes += (frame.length - OFFLOAD_HEADER_BYTES) as u64;
                        counters.late.record(left_ns.saturating_sub(frame.due_ns));
                        if let Some(capture) = &mut self.capture {
                            capture.note(frame, Outcome::Sent, handed_over_ns);
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
                    if let Some(capture) = &mut self.capture {
                        capture.note(&waiting[0], Outcome::Dropped, 0);
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

/// What becomes of a copy of a frame that got no buffer.
fn refusal(fate: &Fate) -> Outcome {
    match fate {
        Fate::QueueFull => Outcome::QueueFull,
        Fate::Leaves(_) => Outcome::Dropped,
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

/// The impairments of all directions, or which one is wrong and why.
fn resolve_links(links: &[LinkRequest], tables: &Tables) -> Result<Vec<Impairment>, String> {
    let mut impairments = Vec::with_capacity(2 * links.len());
    for (index, link) in links.iter().enumerate() {
        for (way, request) in [(Way::Ab, &link.ab), (Way::Ba, &link.ba)] {
            let resolved = request.resolve(tables);
            impairments.push(
                resolved.map_err(|error| format!("link {index} {}: {error}", way_name(way)))?,
            );
        }
    }
    Ok(impairments)
}

fn way_name(way: Way) -> &'static str {
    match way {
        Way::Ab => "ab",
        Way::Ba => "ba",
    }
}
