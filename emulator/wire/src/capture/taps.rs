//! Where the watcher looks: one packet socket a router, which sees a packet when it comes in from
//! a node and when it goes out to the link.

use std::collections::HashMap;
use std::io;
use std::net::Ipv4Addr;

use serde::Deserialize;

use super::matcher::Sighting;
use super::offset::Offset;
use crate::frame::OFFLOAD_HEADER_BYTES;
use crate::sys::{Instruction, PacketRing};

// linux/bpf_common.h
const LOAD_WORD: u16 = 0x20;
const LOAD_HALF: u16 = 0x28;
const AND: u16 = 0x54;
const JUMP: u16 = 0x05;
const JUMP_IF_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;
// linux/filter.h
const ANCILLARY: u32 = -0x1000i32 as u32;
const PACKET_KIND: u32 = ANCILLARY + 4;
const INTERFACE_INDEX: u32 = ANCILLARY + 8;

const OUTGOING: u32 = 4;
const LOOPBACK: u32 = 1;
const ETHERTYPE_IPV4: u32 = 0x0800;
const TARGET_OFFSET: usize = 14 + 16;

/// A router, as the request describes it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Router {
    /// A packet socket in its network namespace, unbound, which the process has inherited.
    pub fd: i32,
    /// Its own subnet: what goes there crosses no link.
    pub subnet: Subnet,
    /// Its links.
    pub links: Vec<Uplink>,
}

/// A link, from the router that sends into it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Uplink {
    /// Index of the interface that leads into it.
    pub interface_index: u32,
    /// Which interface of the record this direction is.
    pub interface: u32,
    /// What is routed there.
    pub subnet: Subnet,
}

/// An IPv4 subnet: `10.1.0.0/16`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct Subnet {
    address: u32,
    mask: u32,
}

impl TryFrom<String> for Subnet {
    type Error = String;

    fn try_from(text: String) -> Result<Subnet, String> {
        let read = || {
            let (address, length) = text.split_once('/')?;
            let address: Ipv4Addr = address.parse().ok()?;
            let length: u32 = length.parse().ok().filter(|length| *length <= 32)?;
            let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
            let address = u32::from(address) & mask;
            Some(Subnet { address, mask })
        };
        read().ok_or_else(|| format!("{text:?} is no IPv4 subnet such as 10.1.0.0/16"))
    }
}

impl Subnet {
    fn has(self, address: u32) -> bool {
        address & self.mask == self.address
    }
}

/// A watched router.
pub struct Tap {
    ring: PacketRing,
    departures: HashMap<u32, u32>,
    routes: Vec<(Subnet, u32)>,
}

/// What a tap saw.
pub enum Seen<'a> {
    /// A packet that goes to a link.
    Entry(Sighting<'a>),
    /// A packet that leaves a link's queue.
    Departure(Sighting<'a>),
}

impl Tap {
    /// Begins to watch a router. `slots` packets may wait.
    pub fn open(router: &Router, slots: usize, snap_bytes: u32) -> io::Result<Tap> {
        let filter = filter(router);
        Ok(Tap {
            ring: PacketRing::open(router.fd, &filter, slots, snap_bytes as usize)?,
            departures: router
                .links
                .iter()
                .map(|link| (link.interface_index, link.interface))
                .collect(),
            routes: router
                .links
                .iter()
                .map(|link| (link.subnet, link.interface))
                .collect(),
        })
    }

    /// Hands on up to `most` of the packets that were seen, at instants of `CLOCK_MONOTONIC` that
    /// `offset` makes of their stamps. Returns whether there were so many.
    pub fn drain(&mut self, most: usize, offset: &Offset, look: &mut impl FnMut(Seen<'_>)) -> bool {
        for _ in 0..most {
            let (departures, routes) = (&self.departures, &self.routes);
            let taken = self.ring.take(|frame| {
                let sighting = |interface| Sighting {
                    interface,
                    at_ns: offset.monotonic_ns(frame.stamp_realtime_ns),
                    frame_bytes: frame.frame_bytes,
                    message: frame.message,
                };
                if frame.outgoing {
                    if let Some(&interface) = departures.get(&frame.interface_index) {
                        look(Seen::Departure(sighting(interface)));
                    }
                } else if let Some(interface) = route(routes, frame.message) {
                    look(Seen::Entry(sighting(interface)));
                }
            });
            if !taken {
                return false;
            }
        }
        true
    }

    /// Sightings that found no room since the last call.
    pub fn take_drops(&self) -> u64 {
        self.ring.take_drops()
    }

    /// The directions that leave this router.
    pub fn interfaces(&self) -> impl Iterator<Item = u32> {
        self.departures.values().copied()
    }
}

/// Which link a packet that came in will take; `None` if it takes none, or if the router will
/// throw it away: it is no IPv4 packet, its header is damaged or its time is over.
fn route(routes: &[(Subnet, u32)], message: &[u8]) -> Option<u32> {
    let frame = message.get(OFFLOAD_HEADER_BYTES..)?;
    let target = frame.get(TARGET_OFFSET..TARGET_OFFSET + 4)?;
    let target = u32::from_be_bytes(target.try_into().ok()?);
    let (_, interface) = routes.iter().find(|(subnet, _)| subnet.has(target))?;
    let packet = &frame[14..];
    let header_bytes = usize::from(packet[0] & 15) * 4;
    let header = packet.get(..header_bytes)?;
    let is_forwarded =
        packet[0] >> 4 == 4 && header_bytes >= 20 && packet[8] > 1 && checksum_holds(header);
    is_forwarded.then_some(*interface)
}

/// RFC 1071.
fn checksum_holds(header: &[u8]) -> bool {
    let mut sum: u32 = header
        .chunks_exact(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum == 0xffff
}

/// Lets through what leaves by a link, and what comes in otherwise and goes to another site.
fn filter(router: &Router) -> Vec<Instruction> {
    const ALL: u32 = u32::MAX;
    let links = router.links.iter().map(|link| link.interface_index);
    let mut incoming: Vec<Instruction> = vec![(LOAD_WORD, 0, 0, INTERFACE_INDEX)];
    for index in links.clone().chain([LOOPBACK]) {
        incoming.push((JUMP_IF_EQUAL, 0, 1, index));
        incoming.push((RETURN, 0, 0, 0));
    }
    incoming.extend([
        (LOAD_HALF, 0, 0, 12),
        (JUMP_IF_EQUAL, 1, 0, ETHERTYPE_IPV4),
        (RETURN, 0, 0, 0),
        (LOAD_WORD, 0, 0, TARGET_OFFSET as u32),
        (AND, 0, 0, router.subnet.mask),
        (JUMP_IF_EQUAL, 0, 1, router.subnet.address),
        (RETURN, 0, 0, 0),
        (RETURN, 0, 0, ALL),
    ]);
    let mut program = vec![
        (LOAD_WORD, 0, 0, PACKET_KIND),
        (JUMP_IF_EQUAL, 1, 0, OUTGOING),
        (JUMP, 0, 0, 0),
        (LOAD_WORD, 0, 0, INTERFACE_INDEX),
    ];
    for index in links {
        program.push((JUMP_IF_EQUAL, 0, 1, index));
        program.push((RETURN, 0, 0, ALL));
    }
    program.push((RETURN, 0, 0, 0));
    program[2].3 = (program.len() - 3) as u32;
    program.extend(incoming);
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subnet(text: &str) -> Subnet {
        Subnet::try_from(text.to_string()).unwrap()
    }

    fn message(target: [u8; 4], ttl: u8) -> Vec<u8> {
        let mut message = vec![0; OFFLOAD_HEADER_BYTES + 14 + 20];
        let header = &mut message[OFFLOAD_HEADER_BYTES + 14..];
        header[0] = 0x45;
        header[8] = ttl;
        header[16..20].copy_from_slice(&target);
        let sum: u32 = header
            .chunks_exact(2)
            .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
            .sum();
        let folded = (sum & 0xffff) + (sum >> 16);
        header[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
        message
    }

    #[test]
    fn packets_take_the_link_of_their_targets_subnet() {
        let routes = [(subnet("10.2.0.0/16"), 5), (subnet("10.3.0.0/16"), 7)];
        assert_eq!(route(&routes, &message([10, 2, 0, 1], 64)), Some(5));
        assert_eq!(route(&routes, &message([10, 3, 255, 1], 64)), Some(7));
        assert_eq!(route(&routes, &message([10, 4, 0, 1], 64)), None);
    }

    #[test]
    fn what_a_router_throws_away_enters_no_link() {
        let routes = [(subnet("10.2.0.0/16"), 5)];
        assert_eq!(route(&routes, &message([10, 2, 0, 1], 1)), None);
        let mut damaged = message([10, 2, 0, 1], 64);
        damaged[OFFLOAD_HEADER_BYTES + 14 + 10] ^= 1;
        assert_eq!(route(&routes, &damaged), None);
        for length in 0..damaged.len() {
            route(&routes, &damaged[..length]);
        }
    }

    #[test]
    fn subnets_are_read_or_refused() {
        assert!(subnet("0.0.0.0/0").has(u32::MAX));
        assert!(subnet("10.1.2.3/32").has(0x0a01_0203));
        for wrong in ["10.1.0.0", "10.1.0.0/33", "x/8", ""] {
            assert!(Subnet::try_from(wrong.to_string()).is_err());
        }
    }
}
