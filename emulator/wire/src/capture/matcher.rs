//! Pairs what entered a link with what left it, where nobody but the kernel moves the packets.
//!
//! The same packet is seen twice: before and behind the queueing discipline. In between the
//! router has lowered its TTL, and the discipline may have lost, copied or damaged it.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{DefaultHasher, Hasher};

use super::packet::{Marks, Outcome, Packet};
use crate::frame::OFFLOAD_HEADER_BYTES;

const ETHERNET_BYTES: usize = 14;

/// Bytes of packets that are remembered at a time.
const MOST_REMEMBERED_BYTES: usize = 64 << 20;

/// What a remembered packet takes beside its bytes.
const OVERHEAD_BYTES: usize = 160;

/// A packet that does not look like any that entered is compared with this many of them.
const MOST_COMPARED: usize = 4_096;

/// A packet at one of the two places.
#[derive(Debug, Clone, Copy)]
pub struct Sighting<'a> {
    /// Interface of the record.
    pub interface: u32,
    /// When.
    pub at_ns: u64,
    /// Length of the whole frame.
    pub frame_bytes: u32,
    /// Offload header and beginning of the frame.
    pub message: &'a [u8],
}

/// Takes sightings, gives packets.
#[derive(Debug)]
pub struct Matcher {
    directions: Vec<Direction>,
    remembered_bytes: usize,
    longest_ns: u64,
}

#[derive(Debug, Default)]
struct Direction {
    /// What entered and has not left, by the order of entry.
    inside: BTreeMap<u64, Inside>,
    by_identity: HashMap<u64, VecDeque<u64>>,
    entered: u64,
    /// What has left, for copies that are still to come: entry by identity, and the packets with
    /// their departure.
    left: HashMap<u64, u64>,
    left_in_order: VecDeque<(u64, Inside)>,
    /// Of packets that entered before this instant, the departure may have been missed.
    doubt_ns: u64,
}

#[derive(Debug)]
struct Inside {
    entry_ns: u64,
    identity: u64,
    frame_bytes: u32,
    message: Box<[u8]>,
}

impl Matcher {
    /// A matcher for so many directions, in which packets are at most `longest_ns`.
    pub fn new(directions: usize, longest_ns: u64) -> Matcher {
        Matcher {
            directions: (0..directions).map(|_| Direction::default()).collect(),
            remembered_bytes: 0,
            longest_ns,
        }
    }

    /// Lets packets be inside for longer, or not so long, from now on.
    pub fn set_longest_ns(&mut self, longest_ns: u64) {
        self.longest_ns = longest_ns;
    }

    /// Of what is inside a direction now, departures may have been missed.
    pub fn doubt(&mut self, interface: u32, now_ns: u64) {
        if let Some(direction) = self.directions.get_mut(interface as usize) {
            direction.doubt_ns = now_ns;
        }
    }

    /// A packet enters.
    pub fn enter(&mut self, seen: Sighting<'_>, give: &mut impl FnMut(Packet<'_>)) {
        let Some(direction) = self.directions.get_mut(seen.interface as usize) else {
            return;
        };
        let identity = identity(&seen);
        let number = direction.entered;
        direction.entered += 1;
        self.remembered_bytes += seen.message.len() + OVERHEAD_BYTES;
        direction.inside.insert(
            number,
            Inside {
                entry_ns: seen.at_ns,
                identity,
                frame_bytes: seen.frame_bytes,
                message: seen.message.into(),
            },
        );
        let same = direction.by_identity.entry(identity).or_default();
        same.push_back(number);
        while self.remembered_bytes > MOST_REMEMBERED_BYTES {
            if !self.forget_left(seen.interface) {
                self.forget_first(seen.interface, Outcome::Unknown, give);
            }
        }
    }

    /// A packet leaves.
    pub fn depart(&mut self, seen: Sighting<'_>, give: &mut impl FnMut(Packet<'_>)) {
        let Some(direction) = self.directions.get_mut(seen.interface as usize) else {
            return;
        };
        let identity = identity(&seen);
        let mut marks = Marks::default();
        let mut number = None;
        let mut entry_ns = seen.at_ns;
        if let Some(same) = direction.by_identity.get(&identity) {
            number = same.front().copied();
        } else if let Some(&entered_ns) = direction.left.get(&identity) {
            marks.duplicate = true;
            entry_ns = entered_ns;
        } else if let Some(similar) = direction.similar(&seen) {
            marks.corrupted = true;
            number = Some(similar);
        } else if let Some(entered_ns) = direction.similar_that_left(&seen) {
            marks.corrupted = true;
            marks.duplicate = true;
            entry_ns = entered_ns;
        } else {
            marks.entry_unseen = true;
        }
        if let Some(number) = number
            && let Some(inside) = direction.remove(number)
        {
            entry_ns = inside.entry_ns;
            direction.left.insert(inside.identity, entry_ns);
            direction.left_in_order.push_back((seen.at_ns, inside));
        }
        give(Packet {
            interface: seen.interface,
            outcome: Outcome::Sent,
            marks,
            // Two stamps of the kernel's wall clock, which may be set: never below 0.
            entry_ns: entry_ns.min(seen.at_ns),
            departure_ns: seen.at_ns,
            frame_bytes: seen.frame_bytes,
            message: seen.message,
        });
    }

    /// Gives up on what has been inside for too long.
    pub fn expire(&mut self, now_ns: u64, give: &mut impl FnMut(Packet<'_>)) {
        let before_ns = now_ns.saturating_sub(self.longest_ns);
        for interface in 0..self.directions.len() {
            while let Some(&(left_ns, _)) = self.directions[interface].left_in_order.front()
                && left_ns < before_ns
            {
                self.forget_left(interface as u32);
            }
            while let Some(first) = self.directions[interface].inside.values().next()
                && first.entry_ns < before_ns
            {
                self.forget_first(interface as u32, Outcome::Lost, give);
            }
        }
    }

    /// Gives all that is left: what may still be on its way as held.
    pub fn finish(mut self, now_ns: u64, give: &mut impl FnMut(Packet<'_>)) {
        self.expire(now_ns, give);
        for interface in 0..self.directions.len() {
            while !self.directions[interface].inside.is_empty() {
                self.forget_first(interface as u32, Outcome::Held, give);
            }
        }
    }

    /// Forgets the first packet that left; no copy of it is recognised any more. Returns whether
    /// there was one.
    fn forget_left(&mut self, interface: u32) -> bool {
        let direction = &mut self.directions[interface as usize];
        let Some((_, inside)) = direction.left_in_order.pop_front() else {
            return false;
        };
        if direction.left.get(&inside.identity) == Some(&inside.entry_ns) {
            direction.left.remove(&inside.identity);
        }
        self.remembered_bytes -= inside.message.len() + OVERHEAD_BYTES;
        true
    }

    fn forget_first(
        &mut self,
        interface: u32,
        outcome: Outcome,
        give: &mut impl FnMut(Packet<'_>),
    ) {
        let direction = &mut self.directions[interface as usize];
        let Some((&number, _)) = direction.inside.first_key_value() else {
            return;
        };
        let Some(inside) = direction.remove(number) else {
            return;
        };
        self.remembered_bytes -= inside.message.len() + OVERHEAD_BYTES;
        let doubtful = outcome == Outcome::Lost && inside.entry_ns < direction.doubt_ns;
        give(Packet {
            interface,
            outcome: if doubtful { Outcome::Unknown } else { outcome },
            marks: Marks::default(),
            entry_ns: inside.entry_ns,
            departure_ns: 0,
            frame_bytes: inside.frame_bytes,
            message: &inside.message,
        });
    }
}

impl Direction {
    fn remove(&mut self, number: u64) -> Option<Inside> {
        let inside = self.inside.remove(&number)?;
        if let Some(same) = self.by_identity.get_mut(&inside.identity) {
            same.retain(|&each| each != number);
            if same.is_empty() {
                self.by_identity.remove(&inside.identity);
            }
        }
        Some(inside)
    }

    /// The first packet inside that one damaged bit would have turned into this one.
    fn similar(&self, seen: &Sighting<'_>) -> Option<u64> {
        let mut candidates = self.inside.iter().take(MOST_COMPARED);
        let found = candidates.find(|(_, inside)| inside.may_be(seen));
        found.map(|(&number, _)| number)
    }

    /// The entry of the last packet that left and that may be the other copy of this one.
    fn similar_that_left(&self, seen: &Sighting<'_>) -> Option<u64> {
        let mut candidates = self.left_in_order.iter().rev().take(MOST_COMPARED);
        let found = candidates.find(|(_, inside)| inside.may_be(seen));
        found.map(|(_, inside)| inside.entry_ns)
    }
}

impl Inside {
    fn may_be(&self, seen: &Sighting<'_>) -> bool {
        self.frame_bytes == seen.frame_bytes
            && differ_by_a_bit(packet_of(&self.message), packet_of(seen.message))
    }
}

fn packet_of(message: &[u8]) -> &[u8] {
    message
        .get(OFFLOAD_HEADER_BYTES + ETHERNET_BYTES..)
        .unwrap_or(&[])
}

/// Equal for both sightings of a packet, and for two packets only if they are the same.
fn identity(seen: &Sighting<'_>) -> u64 {
    let packet = packet_of(seen.message);
    let mut hasher = DefaultHasher::new();
    hasher.write_u32(seen.frame_bytes);
    let changing = changed_by_a_router(packet);
    let mut rest = 0;
    for range in changing {
        hasher.write(&packet[rest.min(packet.len())..range.start.min(packet.len())]);
        rest = range.end;
    }
    hasher.write(&packet[rest.min(packet.len())..]);
    hasher.finish()
}

/// What a router changes: type of service (for congestion marks), TTL and header checksum.
fn changed_by_a_router(packet: &[u8]) -> [std::ops::Range<usize>; 3] {
    match packet.first().map(|first| first >> 4) {
        Some(6) => [0..2, 7..8, 8..8],
        _ => [1..2, 8..9, 10..12],
    }
}

/// Whether two packets are the same but for one bit, for what routers change and for the
/// transport's checksum: netem fills that in before it damages a packet (sch_netem.c).
fn differ_by_a_bit(one: &[u8], other: &[u8]) -> bool {
    let mut ignored = changed_by_a_router(one).to_vec();
    if let Some(&first) = one.first()
        && first >> 4 == 4
    {
        let transport = usize::from(first & 15) * 4;
        match one.get(9) {
            Some(6) => ignored.push(transport + 16..transport + 18),
            Some(17) => ignored.push(transport + 6..transport + 8),
            _ => {}
        }
    }
    let mut bits = 0;
    for (at, (a, b)) in one.iter().zip(other).enumerate() {
        if a != b && !ignored.iter().any(|range| range.contains(&at)) {
            bits += (a ^ b).count_ones();
            if bits > 1 {
                return false;
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A UDP packet with a number in its payload, as it is before (64) and behind a router (63).
    fn message(number: u32, ttl: u8) -> Vec<u8> {
        let mut message = vec![0; OFFLOAD_HEADER_BYTES + ETHERNET_BYTES];
        let mut packet = vec![0; 60];
        packet[0] = 0x45;
        packet[8] = ttl;
        packet[9] = 17;
        packet[10] = ttl; // stands for the checksum
        packet[40..44].copy_from_slice(&number.to_be_bytes());
        message.extend(packet);
        message
    }

    fn seen(message: &[u8], at_ns: u64) -> Sighting<'_> {
        Sighting {
            interface: 0,
            at_ns,
            frame_bytes: 74,
            message,
        }
    }

    type Given = (Outcome, Marks, u64, u64);

    struct Link {
        matcher: Matcher,
        given: Vec<Given>,
    }

    impl Link {
        fn new() -> Link {
            Link {
                matcher: Matcher::new(1, 1_000 * MS),
                given: Vec::new(),
            }
        }

        fn with(&mut self, act: impl FnOnce(&mut Matcher, &mut dyn FnMut(Packet<'_>))) {
            let given = &mut self.given;
            act(&mut self.matcher, &mut |packet| {
                given.push((
                    packet.outcome,
                    packet.marks,
                    packet.entry_ns,
                    packet.departure_ns,
                ));
            });
        }

        fn enter(&mut self, number: u32, at_ns: u64) {
            let message = message(number, 64);
            self.with(|matcher, mut give| matcher.enter(seen(&message, at_ns), &mut give));
        }

        fn depart(&mut self, number: u32, at_ns: u64) {
            self.depart_as(&message(number, 63), at_ns);
        }

        fn depart_as(&mut self, message: &[u8], at_ns: u64) {
            self.with(|matcher, mut give| matcher.depart(seen(message, at_ns), &mut give));
        }
    }

    #[test]
    fn a_packet_is_the_same_before_and_behind_the_router() {
        let mut link = Link::new();
        link.enter(1, 0);
        link.enter(2, MS);
        link.depart(1, 50 * MS);
        link.depart(2, 51 * MS);
        let plain = Marks::default();
        assert_eq!(
            link.given,
            [
                (Outcome::Sent, plain, 0, 50 * MS),
                (Outcome::Sent, plain, MS, 51 * MS)
            ]
        );
        link.with(|matcher, mut give| matcher.expire(2_000 * MS, &mut give));
        assert_eq!(link.matcher.remembered_bytes, 0);
    }

    #[test]
    fn packets_that_overtake_keep_their_own_entries() {
        let mut link = Link::new();
        link.enter(1, 0);
        link.enter(2, MS);
        link.depart(2, 2 * MS);
        link.depart(1, 50 * MS);
        assert_eq!(link.given[0].2, MS);
        assert_eq!(link.given[1].2, 0);
    }

    #[test]
    fn packets_that_look_the_same_leave_as_they_came() {
        let mut link = Link::new();
        for at in 0..3 {
            link.enter(1, at * MS);
        }
        for at in 0..3 {
            link.depart(1, (50 + at) * MS);
        }
        let entries: Vec<u64> = link.given.iter().map(|given| given.2).collect();
        assert_eq!(entries, [0, MS, 2 * MS]);
    }

    #[test]
    fn what_never_leaves_is_lost_once_it_could_have() {
        let mut link = Link::new();
        link.enter(1, 0);
        link.enter(2, 900 * MS);
        link.with(|matcher, mut give| matcher.expire(1_001 * MS, &mut give));
        assert_eq!(link.given, [(Outcome::Lost, Marks::default(), 0, 0)]);
        link.depart(2, 1_002 * MS);
        assert_eq!(link.given[1].0, Outcome::Sent);
    }

    #[test]
    fn what_never_leaves_while_something_was_missed_is_unknown() {
        let mut link = Link::new();
        link.enter(1, 0);
        link.matcher.doubt(0, 10 * MS);
        link.enter(2, 20 * MS);
        link.with(|matcher, mut give| matcher.expire(2_000 * MS, &mut give));
        let outcomes: Vec<Outcome> = link.given.iter().map(|given| given.0).collect();
        assert_eq!(outcomes, [Outcome::Unknown, Outcome::Lost]);
    }

    #[test]
    fn a_second_departure_is_a_duplicate_of_the_first() {
        let mut link = Link::new();
        link.enter(1, 0);
        link.depart(1, 50 * MS);
        link.depart(1, 51 * MS);
        assert!(link.given[1].1.duplicate);
        assert_eq!(link.given[1].2, 0);
    }

    #[test]
    fn a_damaged_packet_is_found_by_what_is_left_of_it() {
        let mut link = Link::new();
        for number in 1..10 {
            link.enter(number << 8, u64::from(number) * MS);
        }
        let mut damaged = message(3 << 8, 63);
        *damaged.last_mut().unwrap() ^= 4;
        damaged[OFFLOAD_HEADER_BYTES + ETHERNET_BYTES + 26] = 0xAB; // the checksum, filled in
        link.depart_as(&damaged, 50 * MS);
        assert!(link.given[0].1.corrupted);
        assert_eq!(link.given[0].2, 3 * MS);
    }

    #[test]
    fn a_damaged_copy_of_a_packet_that_has_left_is_recognised() {
        let mut link = Link::new();
        link.enter(1, 0);
        link.depart(1, 50 * MS);
        let mut damaged = message(1, 63);
        *damaged.last_mut().unwrap() ^= 4;
        link.depart_as(&damaged, 51 * MS);
        let marks = link.given[1].1;
        assert!(marks.duplicate && marks.corrupted && !marks.entry_unseen);
    }

    #[test]
    fn what_the_router_itself_sends_is_recorded_without_an_entry() {
        let mut link = Link::new();
        link.depart(1, 50 * MS);
        assert!(link.given[0].1.entry_unseen);
        assert_eq!(link.given[0].2, 50 * MS);
    }

    #[test]
    fn at_the_end_what_is_inside_is_held() {
        let mut link = Link::new();
        link.enter(1, 0);
        let mut given = Vec::new();
        link.matcher
            .finish(10 * MS, &mut |packet| given.push(packet.outcome));
        assert_eq!(given, [Outcome::Held]);
    }

    #[test]
    fn memory_is_bounded_and_what_is_forgotten_is_unknown() {
        let mut link = Link::new();
        let most = MOST_REMEMBERED_BYTES / OVERHEAD_BYTES;
        for number in 0..most as u32 {
            link.enter(number, u64::from(number));
        }
        assert!(link.matcher.remembered_bytes <= MOST_REMEMBERED_BYTES);
        assert!(!link.given.is_empty());
        assert!(link.given.iter().all(|given| given.0 == Outcome::Unknown));
    }
}
