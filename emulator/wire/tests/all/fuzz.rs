//! Millions of malformed frames: the program takes them as they come, loses count of none, and
//! goes on.
//!
//! A million in all, and ten with WANLAT_LONG=1. A part goes through real interfaces into a running
//! `wire`, as fast as two processes pass them on; the rest through what `wire` does with a frame,
//! without the interfaces: `Direction::decide`, and what is read for the record of packets.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde_json::{Value, json};
use wire::direction::{Direction, Fate};
use wire::draws::Draws;
use wire::frame::{Headers, LONGEST_MESSAGE_BYTES, OFFLOAD_HEADER_BYTES, on_the_wire};
use wire::impairment::{Impairment, Tables};
use wire::sys::{self, BATCH};

use crate::effort::portion;
use crate::frames::udp;
use crate::lab::Lab;
use crate::sandbox::inside_alone;
use crate::station::{Arrival, LEAD_NS, MILLISECOND, PATIENCE_NS, QUICKEST_LATE_NS, numbers};

const IN_ALL: u64 = 10_000_000; // with WANLAT_LONG=1

/// So many of them go through interfaces.
const THROUGH_INTERFACES: u64 = 1_000_000;

/// Makes messages (offload header and frame) of which no two are alike and hardly any is sound.
struct Malformed {
    random: Xoshiro256PlusPlus,
    message: Vec<u8>,
}

impl Malformed {
    fn new(seed: u64) -> Malformed {
        Malformed {
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            message: Vec::with_capacity(LONGEST_MESSAGE_BYTES),
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.random.next_u64() % bound as u64) as usize
    }

    /// The next one. What the kernel would not send for us is left out if `sendable`.
    fn next(&mut self, sendable: bool) -> &[u8] {
        self.message.clear();
        self.message.resize(OFFLOAD_HEADER_BYTES, 0);
        if self.below(4) == 0 {
            self.offload_header();
        }
        match self.below(8) {
            0 => self.noise(),
            1 => self.headers(0x0800, 0x45, 17),
            2 => self.headers(0x0800, 0x46, 6),
            3 => self.headers(0x86dd, 0x60, 6),
            4 => self.headers(0x86dd, 0x60, 0),
            5 => self.headers(0x8100, 0x45, 1),
            6 => self.headers(0x0806, 0, 1),
            _ => self.headers(0x88a8, 0x60, 44),
        }
        let least = OFFLOAD_HEADER_BYTES + if sendable { 14 } else { 0 };
        if self.below(2) == 0 {
            let length = self.below(self.message.len() + 1).max(least);
            self.message.truncate(length);
        }
        if !sendable && self.below(50) == 0 {
            let length = self.below(OFFLOAD_HEADER_BYTES + 1);
            self.message.truncate(length);
        }
        for _ in 0..self.below(6) {
            let first = if sendable { OFFLOAD_HEADER_BYTES } else { 0 };
            if self.message.len() > first {
                let position = first + self.below(self.message.len() - first);
                self.message[position] = self.random.next_u32() as u8;
            }
        }
        if self.message.len() < least {
            self.message.resize(least, 0xee);
        }
        &self.message
    }

    /// Flags, kinds, sizes and offsets that fit nothing, or nearly.
    fn offload_header(&mut self) {
        for byte in 0..OFFLOAD_HEADER_BYTES {
            self.message[byte] = match self.below(3) {
                0 => 0,
                1 => self.below(64) as u8,
                _ => self.random.next_u32() as u8,
            };
        }
        let kinds = [0, 1, 3, 4, 5, 0x81, 0xff];
        self.message[1] = kinds[self.below(kinds.len())];
        self.message[0] &= 3;
        if self.below(2) == 0 {
            // A likely place for a checksum.
            let offset = [6, 16][self.below(2)];
            self.message[6..10].copy_from_slice(&[34, 0, offset, 0]);
        }
    }

    fn noise(&mut self) {
        let length = match self.below(100) {
            0 => self.below(60_000),
            _ => self.below(200),
        };
        let start = self.message.len();
        self.message.resize(start + length, 0);
        self.random.fill_bytes(&mut self.message[start..]);
    }

    /// Headers that are nearly right, with lengths that are not, and random bytes behind them.
    fn headers(&mut self, ethertype: u16, first: u8, protocol: u8) {
        self.message.extend([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
        self.message.extend(ethertype.to_be_bytes());
        if ethertype & 0x80 != 0 && ethertype != 0x86dd || ethertype == 0x8100 {
            let inner = [0x0800u16, 0x86dd, 0x8100, 0x88a8][self.below(4)];
            self.message.extend([0, self.random.next_u32() as u8]);
            self.message.extend(inner.to_be_bytes());
        }
        let network = self.message.len();
        self.noise();
        if let Some(header) = self.message.get_mut(network..network + 10) {
            header[0] = first;
            header[if first >> 4 == 6 { 6 } else { 9 }] = protocol;
        }
    }
}

fn everything() -> Value {
    json!({"delay_ns": 2 * MILLISECOND, "jitter_ns": MILLISECOND, "overtake": 0.1,
           "bursts": {"p": 0.01, "r": 0.5}, "duplicate": 0.1, "rate_bps": 5_000_000_000u64, "queue_bytes": 5_000_000})
}

#[test]
fn a_million_malformed_frames_do_not_stop_it() {
    inside_alone(|| {
        through_interfaces(portion(THROUGH_INTERFACES));
        through_functions(portion(IN_ALL - THROUGH_INTERFACES));
    });
}

/// Sends malformed frames through a running `wire`.
fn through_interfaces(count: u64) {
    let mut lab = Lab::idle(&["--memory-mib", "64"]);
    let link = json!({"a": "wa", "b": "wb", "ab": everything(), "ba": everything()});
    lab.wire
        .ask_ok(&json!({"op": "start", "seed": 1, "links": [link]}));
    let (socket, _peer) = lab.packet_sockets();
    let mut malformed = Malformed::new(1);
    let (mut sent, mut refused) = (0u64, 0u64);
    while sent < count {
        let messages: Vec<Vec<u8>> = (0..BATCH).map(|_| malformed.next(true).to_vec()).collect();
        let mut done = 0;
        while done < messages.len() {
            match socket.send(messages[done..].iter().map(Vec::as_slice)) {
                Ok(taken) => {
                    done += taken;
                    sent += taken as u64;
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    sys::wait_writable(std::os::fd::AsFd::as_fd(&socket), MILLISECOND);
                }
                // The kernel looks at offload headers, and refuses what it cannot make sense of.
                Err(_) => {
                    done += 1;
                    refused += 1;
                }
            }
        }
    }
    let stats = lab.wire.settle("ab", 1);
    stats.assert_nothing_unaccounted();
    println!(
        "measured: {sent} malformed frames sent, {refused} more refused by the sending socket; \
         wire received {}, lost {} as asked, duplicated {}; {} send errors, {} receive errors, \
         {} found no room in the receive buffer",
        stats.get("received"),
        stats.get("lost"),
        stats.get("duplicated"),
        stats.get("send_errors"),
        stats.get("receive_errors"),
        stats.get("rx_drops"),
    );
    assert!(
        stats.get("received") > count / 100,
        "hardly any came through"
    );
    ordinary_traffic_passes(&mut lab);
    lab.wire.finish();
}

fn ordinary_traffic_passes(lab: &mut Lab) {
    lab.wire.set("ab", &json!({"delay_ns": 20 * MILLISECOND}));
    let (left, mut right) = lab.stations();
    let received = lab.wire.stats("ab").get("received");
    let (arrivals, sent_ns) = right.receive_while(200, PATIENCE_NS, || {
        left.send_all((0..200).map(|number| udp(1, number, 200)), MILLISECOND)
    });
    assert!(numbers(&arrivals) == (0..200).collect::<Vec<u32>>());
    let stats = lab.wire.settle("ab", received + 200);
    stats.assert_nothing_unaccounted();
    let late_ns = |(arrival, sent_ns): (&Arrival, &u64)| {
        arrival.at_ns as i64 - (sent_ns + 20 * MILLISECOND) as i64
    };
    let quickest_ns = arrivals.iter().zip(&sent_ns).map(late_ns).min().unwrap();
    assert!(quickest_ns >= -(LEAD_NS as i64), "{quickest_ns} ns: early");
    assert!(quickest_ns <= QUICKEST_LATE_NS, "{quickest_ns} ns: late");
}

/// Gives malformed messages to what `wire` does with messages. Nothing may panic.
fn through_functions(count: u64) {
    let mut malformed = Malformed::new(2);
    let impairment: Impairment = serde_json::from_value(everything()).unwrap();
    let impairment = impairment.resolved(&Tables::default()).unwrap();
    let mut direction = Direction::new(impairment, Draws::for_directions(1, 1).remove(0));
    for number in 0..count {
        let message = malformed.next(false);
        read(message);
        let Some(fates) = direction.decide(message, number * 1_000) else {
            continue;
        };
        for fate in [Some(fates.own), fates.copy].into_iter().flatten() {
            if let Fate::Leaves { due_ns, .. } = fate {
                assert!(due_ns >= number * 1_000);
            }
        }
    }
}

/// As the writer of the record does it. What is read must be possible.
fn read(message: &[u8]) {
    let frame = message.get(OFFLOAD_HEADER_BYTES..).unwrap_or(&[]);
    let headers = Headers::of(frame);
    let (segments, bytes) = on_the_wire(message, frame.len(), headers.header_bytes());
    assert!(segments >= 1 && bytes >= frame.len() as u64);
    assert!(headers.payload_bytes(frame.len()) <= Some(frame.len()));
    assert!(headers.ports().is_some() || headers.tcp().is_none());
}
