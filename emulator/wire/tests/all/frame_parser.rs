//! The frame parser against well-formed, mutated, truncated and random frames.

use std::collections::HashSet;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use wire::frame::{Headers, OFFLOAD_HEADER_BYTES, on_the_wire};

const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;

/// What tells a packet's flow, and some things that don't.
#[derive(Clone, Copy)]
struct Packet {
    source: u8,
    destination: u8,
    protocol: u8,
    /// First four bytes of the transport header: both ports, or type, code and checksum.
    ports: [u8; 4],
    /// Bytes 4 to 6 of the transport header: the identifier of an ICMP echo.
    identifier: [u8; 2],
    time_to_live: u8,
    payload_bytes: usize,
}

const PACKET: Packet = Packet {
    source: 1,
    destination: 2,
    protocol: TCP,
    ports: [0x80, 0x01, 0x23, 0x28],
    identifier: [0x11, 0x22],
    time_to_live: 64,
    payload_bytes: 100,
};

impl Packet {
    fn transport(&self) -> Vec<u8> {
        let mut bytes = vec![0; 20];
        bytes[..4].copy_from_slice(&self.ports);
        bytes[4..6].copy_from_slice(&self.identifier);
        bytes[12] = 5 << 4; // TCP: header of 20 bytes
        bytes.extend(std::iter::repeat_n(0x5a, self.payload_bytes));
        bytes
    }

    fn ipv4(&self) -> Vec<u8> {
        let mut frame = ethernet(0x0800);
        let mut header = [0; 20];
        header[0] = 0x45;
        header[8] = self.time_to_live;
        header[9] = self.protocol;
        header[12..16].copy_from_slice(&[10, 0, 0, self.source]);
        header[16..20].copy_from_slice(&[10, 0, 0, self.destination]);
        frame.extend(header);
        frame.extend(self.transport());
        frame
    }

    fn ipv6(&self, extensions: &[(u8, Vec<u8>)]) -> Vec<u8> {
        let mut frame = ethernet(0x86dd);
        let mut header = [0; 40];
        header[0] = 0x60;
        header[6] = extensions.first().map_or(self.protocol, |first| first.0);
        header[7] = self.time_to_live;
        header[23] = self.source;
        header[39] = self.destination;
        frame.extend(header);
        for (position, (_, bytes)) in extensions.iter().enumerate() {
            let next = extensions.get(position + 1);
            frame.push(next.map_or(self.protocol, |next| next.0));
            frame.extend(bytes);
        }
        frame.extend(self.transport());
        frame
    }
}

fn ethernet(ethertype: u16) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    frame.extend(ethertype.to_be_bytes());
    frame
}

fn with_vlan_tag(frame: &[u8]) -> Vec<u8> {
    let mut tagged = frame[..12].to_vec();
    tagged.extend([0x81, 0x00, 0x00, 0x07]);
    tagged.extend(&frame[12..]);
    tagged
}

/// An offload header that says "segments of `gso_size`".
fn message(gso_type: u8, gso_size: u16, frame: &[u8]) -> Vec<u8> {
    let mut message = vec![0; OFFLOAD_HEADER_BYTES];
    message[1] = gso_type;
    message[4..6].copy_from_slice(&gso_size.to_ne_bytes());
    message.extend(frame);
    message
}

fn flow(frame: &[u8]) -> u64 {
    Headers::of(frame).flow()
}

/// The packet with a change, over IPv4 and over IPv6.
fn changed(change: impl Fn(&mut Packet)) -> [Vec<u8>; 2] {
    let mut packet = PACKET;
    change(&mut packet);
    [packet.ipv4(), packet.ipv6(&[])]
}

#[test]
fn a_flow_is_the_same_whatever_its_packets_carry() {
    let other = changed(|it| (it.payload_bytes, it.time_to_live) = (1, 3));
    assert_eq!(flow(&PACKET.ipv4()), flow(&other[0]));
    assert_eq!(flow(&PACKET.ipv6(&[])), flow(&other[1]));
}

#[test]
fn flows_differ_in_each_of_their_parts() {
    let all = [
        changed(|_| ()),
        changed(|it| it.source = 9),
        changed(|it| it.destination = 9),
        changed(|it| (it.source, it.destination) = (it.destination, it.source)),
        changed(|it| it.protocol = UDP),
        changed(|it| it.ports[1] = 2),
        changed(|it| it.ports[3] = 0x29),
    ];
    let flows: HashSet<u64> = all.as_flattened().iter().map(|frame| flow(frame)).collect();
    assert_eq!(flows.len(), 2 * all.len());
}

#[test]
fn an_icmp_echo_belongs_to_its_identifier_and_not_to_its_checksum() {
    for (protocol, request) in [(ICMP, 8), (ICMPV6, 128)] {
        let echo = |checksum: u8, identifier: u8| {
            let [frame, _] = changed(|it| {
                it.protocol = protocol;
                it.ports = [request, 0, 0, checksum];
                it.identifier = [0, identifier];
            });
            flow(&frame)
        };
        assert_eq!(echo(1, 1), echo(2, 1));
        assert_ne!(echo(1, 1), echo(1, 2));
    }
}

#[test]
fn fragments_of_one_packet_are_one_flow_though_only_the_first_has_ports() {
    let fragment = |ports, flags_and_offset: u16| {
        let mut frame = Packet { ports, ..PACKET }.ipv4();
        frame[20..22].copy_from_slice(&flags_and_offset.to_be_bytes());
        frame
    };
    let first = fragment(PACKET.ports, 0x2000);
    let second = fragment([1, 2, 3, 4], 0x2010);
    let last = fragment([5, 6, 7, 8], 0x0020);
    assert_eq!(flow(&first), flow(&second));
    assert_eq!(flow(&first), flow(&last));
    let never_fragment = fragment(PACKET.ports, 0x4000);
    assert_eq!(flow(&never_fragment), flow(&PACKET.ipv4()));

    let ipv6_fragment = |ports, offset_and_flags: u16| {
        let [high, low] = offset_and_flags.to_be_bytes();
        let extension = vec![0, high, low, 0, 0, 0, 1];
        Packet { ports, ..PACKET }.ipv6(&[(44, extension)])
    };
    assert_eq!(
        flow(&ipv6_fragment(PACKET.ports, 0x0001)),
        flow(&ipv6_fragment([1, 2, 3, 4], 0x0100))
    );
    assert_eq!(
        flow(&ipv6_fragment(PACKET.ports, 0)),
        flow(&PACKET.ipv6(&[]))
    );
}

#[test]
fn ports_are_found_behind_vlan_tags_ipv4_options_and_ipv6_extensions() {
    let other = Packet {
        ports: [1, 2, 3, 4],
        ..PACKET
    };
    let tagged = |packet: Packet| with_vlan_tag(&with_vlan_tag(&packet.ipv4()));
    assert_ne!(flow(&tagged(PACKET)), flow(&tagged(other)));

    let with_options = |packet: Packet| {
        let mut frame = packet.ipv4();
        frame[14] = 0x47;
        frame.splice(34..34, [1; 8]);
        frame
    };
    assert_eq!(flow(&with_options(PACKET)), flow(&PACKET.ipv4()));
    assert_eq!(
        Headers::of(&with_options(PACKET)).header_bytes(),
        Some(14 + 28 + 20)
    );

    // Hop-by-hop options of 16 bytes, destination options of 8.
    let extensions = [(0, [vec![1], vec![0; 14]].concat()), (60, vec![0; 7])];
    assert_eq!(flow(&PACKET.ipv6(&extensions)), flow(&PACKET.ipv6(&[])));
    assert_eq!(
        Headers::of(&PACKET.ipv6(&extensions)).header_bytes(),
        Some(14 + 40 + 24 + 20)
    );
}

#[test]
fn what_is_not_ip_is_a_flow_per_pair_of_addresses_and_ethertype() {
    let arp = |payload: u8| [ethernet(0x0806), vec![payload; 28]].concat();
    assert_eq!(flow(&arp(1)), flow(&arp(2)));
    assert_ne!(
        flow(&arp(1)),
        flow(&[ethernet(0x88cc), vec![1; 28]].concat())
    );
    let mut from_elsewhere = arp(1);
    from_elsewhere[11] = 9;
    assert_ne!(flow(&arp(1)), flow(&from_elsewhere));
}

#[test]
fn a_frame_takes_the_wire_of_its_segments() {
    let headers = 14 + 20 + 20;
    // Payload, offload header (kind, size of a segment), segments: the last one whole or not.
    for (payload_bytes, kind, size, segments) in [
        (60_000, 1, 1_448, 42),
        (2_896, 1, 1_448, 2),
        (2_897, 1, 1_448, 3),
        (2_896, 0, 1_448, 1),
        (2_896, 1, 0, 1),
    ] {
        let packet = Packet {
            payload_bytes,
            ..PACKET
        };
        let frame = packet.ipv4();
        let message = message(kind, size, &frame);
        let bytes = (payload_bytes + segments * headers) as u64;
        let told = Headers::of(&frame).header_bytes();
        assert_eq!(told, Some(headers));
        let found = on_the_wire(&message, frame.len(), told);
        assert_eq!(found, (segments as u32, bytes), "{payload_bytes}");
        let whole = (1, frame.len() as u64);
        assert_eq!(on_the_wire(&message, frame.len(), None), whole);
        assert_eq!(on_the_wire(&message[..5], frame.len(), told), whole);
    }
}

#[test]
fn headers_say_ports_numbers_flags_and_payload_but_not_padding() {
    let mut frame = PACKET.ipv4();
    frame[16..18].copy_from_slice(&140u16.to_be_bytes());
    frame[38..46].copy_from_slice(&[0, 0, 0, 7, 0, 0, 0, 9]);
    frame[47] = 0x18;
    frame.extend([0; 6]);
    let headers = Headers::of(&frame);
    assert_eq!(headers.ports(), Some((0x8001, 0x2328)));
    let tcp = headers.tcp().unwrap();
    assert_eq!((tcp.sequence, tcp.acknowledgement, tcp.flags), (7, 9, 0x18));
    assert_eq!(headers.payload_bytes(frame.len()), Some(100));
    // What is offloaded beyond 64 KiB has no length in its header.
    frame[16..18].fill(0);
    let headers = Headers::of(&frame);
    assert_eq!(headers.payload_bytes(70_000), Some(70_000 - 54));
    let mut later_fragment = frame.clone();
    later_fragment[21] = 1;
    let headers = Headers::of(&later_fragment);
    assert_eq!((headers.ports(), headers.tcp()), (None, None));
}

/// Parsing has succeeded if it returns, twice the same; and its numbers must be usable.
fn parse_anything(frame: &[u8], gso_type: u8, gso_size: u16) {
    let headers = Headers::of(frame);
    assert_eq!(headers.flow(), flow(frame));
    let header_bytes = headers.header_bytes();
    let message = message(gso_type, gso_size, frame);
    let (_, wire) = on_the_wire(&message, frame.len(), header_bytes);
    let most_header_bytes = header_bytes.unwrap_or(0) as u64;
    let bytes = frame.len() as u64;
    assert!((bytes..=bytes * (1 + most_header_bytes)).contains(&wire));
}

fn samples() -> Vec<Vec<u8>> {
    let udp = Packet {
        protocol: UDP,
        ..PACKET
    };
    let fragment = vec![0, 0x00, 0x01, 0, 0, 0, 1];
    vec![
        PACKET.ipv4(),
        with_vlan_tag(&udp.ipv4()),
        PACKET.ipv6(&[]),
        udp.ipv6(&[
            (0, vec![0; 7]),
            (43, vec![0; 7]),
            (44, fragment),
            (51, vec![0; 7]),
        ]),
        Packet {
            protocol: ICMP,
            ports: [8, 0, 0, 0],
            ..PACKET
        }
        .ipv4(),
        Packet {
            protocol: 132,
            ..PACKET
        }
        .ipv4(),
        [ethernet(0x0806), vec![0; 28]].concat(),
    ]
}

#[test]
fn frames_cut_off_anywhere_are_parsed() {
    for frame in samples() {
        for length in 0..=frame.len() {
            parse_anything(&frame[..length], 1, 1);
        }
    }
}

#[test]
fn frames_with_any_bytes_changed_are_parsed() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    for frame in samples() {
        for _ in 0..20_000 {
            let mut frame = frame.clone();
            for _ in 0..1 + random.next_u32() % 4 {
                // The headers are where it matters.
                let position = random.next_u32() as usize % frame.len().min(100);
                frame[position] = random.next_u32() as u8;
            }
            frame.truncate(random.next_u32() as usize % (2 * frame.len()));
            parse_anything(&frame, random.next_u32() as u8, random.next_u32() as u16);
        }
    }
}
