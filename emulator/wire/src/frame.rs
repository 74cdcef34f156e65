//! What can be read off a frame: the flow it belongs to, its length on the wire, its headers.
//!
//! A message of a packet socket is a `struct virtio_net_hdr` (`linux/virtio_net.h`), which tells
//! what of the frame is still to be done by an offload, followed by the Ethernet frame. The
//! bytes come from whoever sits on the link: nothing here trusts them, nothing here fails.

use std::hash::{DefaultHasher, Hasher};

/// Length of `struct virtio_net_hdr`.
pub const OFFLOAD_HEADER_BYTES: usize = 10;

/// The longest message: offload header, Ethernet header, two VLAN tags and the largest IP packet.
pub const LONGEST_MESSAGE_BYTES: usize = OFFLOAD_HEADER_BYTES + ETHERNET_BYTES + 8 + 65_535;

const ETHERNET_BYTES: usize = 14;
const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const ETHERTYPES_VLAN: [u16; 2] = [0x8100, 0x88a8];

const PROTOCOL_ICMP: u8 = 1;
const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;
const PROTOCOL_ICMPV6: u8 = 58;
const PROTOCOL_SCTP: u8 = 132;
const PROTOCOL_UDP_LITE: u8 = 136;

/// IPv6 extension headers in a row that are followed; more are the mark of a malformed packet.
const MOST_EXTENSION_HEADERS: usize = 8;

/// An Ethernet frame (without offload header), or the beginning of one, and what its headers say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Headers<'a> {
    frame: &'a [u8],
    /// Where the header behind Ethernet's and VLAN tags starts; `None` if the frame is shorter.
    network: Option<usize>,
    /// The IP header, where there is one that makes sense.
    pub ip: Option<Ip<'a>>,
}

/// What an IP header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ip<'a> {
    /// 4 or 6.
    pub version: u8,
    /// The source and, behind it and as long, the target.
    pub addresses: &'a [u8],
    /// The protocol behind the IP header and its extensions.
    pub protocol: u8,
    /// Identification of an IPv4 packet.
    pub identification: Option<u16>,
    /// Length of the packet, header included; 0 where it is longer than the field can say.
    packet_bytes: usize,
    /// Length of the header with its extensions.
    header_bytes: usize,
    fragment: Fragment,
}

/// Which part of a packet a packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fragment {
    Whole,
    First,
    Later,
}

/// What a TCP header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tcp {
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgement number.
    pub acknowledgement: u32,
    /// FIN 1, SYN 2, RST 4, PSH 8, ACK 16, and so on.
    pub flags: u16,
}

impl<'a> Headers<'a> {
    /// Reads a frame, of which the end may be missing.
    pub fn of(frame: &'a [u8]) -> Headers<'a> {
        let found = network_header(frame);
        let ip = found.and_then(|(ethertype, network)| {
            let packet = frame.get(network..)?;
            match ethertype {
                ETHERTYPE_IPV4 => parse_ipv4(packet),
                ETHERTYPE_IPV6 => parse_ipv6(packet),
                _ => None,
            }
        });
        Headers {
            frame,
            network: found.map(|(_, network)| network),
            ip,
        }
    }

    /// Equal for frames of one flow. Frames of different flows differ but for chance (2⁻⁶⁴).
    ///
    /// A flow is source, destination and protocol, with the ports (TCP, UDP, UDP-Lite, SCTP) or
    /// the identifier (ICMP echo). Fragments carry no ports but in the first one; all of them count
    /// as one flow per source, destination and protocol. What is not IP is a flow per pair of
    /// Ethernet addresses and `EtherType`.
    pub fn flow(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        match (&self.ip, self.network) {
            (Some(ip), _) => {
                hasher.write_u8(ip.version);
                hasher.write(ip.addresses);
                hasher.write_u8(ip.protocol);
                if ip.fragment == Fragment::Whole {
                    hash_transport(ip.protocol, self.transport().unwrap_or(&[]), &mut hasher);
                }
            }
            (None, Some(network)) => hasher.write(&self.frame[..network]),
            (None, None) => {}
        }
        hasher.finish()
    }

    /// Bytes up to the transport's payload, where they can be told: not of fragments.
    pub fn header_bytes(&self) -> Option<usize> {
        let ip = self.ip?;
        if ip.fragment != Fragment::Whole {
            return None;
        }
        Some(self.network? + ip.header_bytes + self.transport_header_bytes()?)
    }

    /// Source and target port of TCP and UDP.
    pub fn ports(&self) -> Option<(u16, u16)> {
        let transport = match self.ip?.protocol {
            PROTOCOL_TCP | PROTOCOL_UDP => self.transport()?,
            _ => return None,
        };
        Some((be16(transport, 0)?, be16(transport, 2)?))
    }

    /// What the TCP header says.
    pub fn tcp(&self) -> Option<Tcp> {
        let transport = match self.ip?.protocol {
            PROTOCOL_TCP => self.transport()?,
            _ => return None,
        };
        Some(Tcp {
            sequence: be32(transport, 4)?,
            acknowledgement: be32(transport, 8)?,
            flags: be16(transport, 12)? & 0x01ff,
        })
    }

    /// Bytes behind the transport header of a frame that has `frame_bytes` in all: those that the
    /// IP header tells of, so padding is none.
    pub fn payload_bytes(&self, frame_bytes: usize) -> Option<usize> {
        let ip = self.ip?;
        let there = frame_bytes.saturating_sub(self.network?);
        let packet_bytes = match ip.packet_bytes {
            0 => there,
            told => told.min(there),
        };
        packet_bytes.checked_sub(ip.header_bytes + self.transport_header_bytes()?)
    }

    /// The transport header and what is behind it; a later fragment has none.
    fn transport(&self) -> Option<&'a [u8]> {
        let ip = self.ip.filter(|ip| ip.fragment != Fragment::Later)?;
        self.frame.get(self.network? + ip.header_bytes..)
    }

    fn transport_header_bytes(&self) -> Option<usize> {
        let transport = self.transport()?;
        match self.ip?.protocol {
            PROTOCOL_TCP => {
                let length = usize::from(transport.get(12)? >> 4) * 4;
                (length >= 20).then_some(length)
            }
            PROTOCOL_SCTP => Some(12),
            PROTOCOL_UDP | PROTOCOL_UDP_LITE | PROTOCOL_ICMP | PROTOCOL_ICMPV6 => Some(8),
            _ => Some(0),
        }
    }
}

/// The `EtherType` behind VLAN tags, and where its header starts.
fn network_header(frame: &[u8]) -> Option<(u16, usize)> {
    let mut offset = ETHERNET_BYTES;
    let mut ethertype = be16(frame, offset - 2)?;
    for _ in 0..2 {
        if !ETHERTYPES_VLAN.contains(&ethertype) {
            break;
        }
        offset += 4;
        ethertype = be16(frame, offset - 2)?;
    }
    Some((ethertype, offset))
}

fn parse_ipv4(packet: &[u8]) -> Option<Ip<'_>> {
    let first = *packet.first()?;
    let header_bytes = usize::from(first & 0x0f) * 4;
    if first >> 4 != 4 || header_bytes < 20 {
        return None;
    }
    // RFC 791: more-fragments flag and fragment offset; neither is set in a whole packet.
    let fragment = match be16(packet, 6)? & 0x3fff {
        0 => Fragment::Whole,
        0x2000 => Fragment::First,
        _ => Fragment::Later,
    };
    Some(Ip {
        version: 4,
        addresses: packet.get(12..20)?,
        protocol: packet[9],
        identification: be16(packet, 4),
        packet_bytes: usize::from(be16(packet, 2)?),
        header_bytes,
        fragment,
    })
}

fn parse_ipv6(packet: &[u8]) -> Option<Ip<'_>> {
    if packet.first()? >> 4 != 6 {
        return None;
    }
    let addresses = packet.get(8..40)?;
    let mut protocol = packet[6];
    let mut offset = 40;
    let mut fragment = Fragment::Whole;
    for _ in 0..MOST_EXTENSION_HEADERS {
        let length = match protocol {
            // Hop-by-hop, routing, destination options, mobility: length in 8 bytes, less one.
            0 | 43 | 60 | 135 => match packet.get(offset + 1) {
                Some(&units) => (usize::from(units) + 1) * 8,
                None => break,
            },
            // Fragment (RFC 8200): "atomic" ones, which are whole, have offset 0 and no more.
            44 => {
                fragment = match be16(packet, offset + 2).map(|field| field & 0xfff9) {
                    Some(0) => fragment,
                    Some(1) => Fragment::First,
                    _ => Fragment::Later,
                };
                8
            }
            // Authentication (RFC 4302): length in 4 bytes, less two.
            51 => match packet.get(offset + 1) {
                Some(&units) => (usize::from(units) + 2) * 4,
                None => break,
            },
            _ => break,
        };
        let Some(&next) = packet.get(offset) else {
            break;
        };
        protocol = next;
        offset += length;
    }
    let packet_bytes = match be16(packet, 4)? {
        0 => 0,
        length => 40 + usize::from(length),
    };
    Some(Ip {
        version: 6,
        addresses,
        protocol,
        identification: None,
        packet_bytes,
        header_bytes: offset,
        fragment,
    })
}

/// Adds what distinguishes flows of one protocol, as far as it is there.
fn hash_transport(protocol: u8, transport: &[u8], hasher: &mut DefaultHasher) {
    let kind = transport.first().copied().unwrap_or(0);
    let told = match (protocol, kind) {
        (PROTOCOL_TCP | PROTOCOL_UDP | PROTOCOL_SCTP | PROTOCOL_UDP_LITE, _) => transport.get(..4),
        (PROTOCOL_ICMP, 0 | 8) | (PROTOCOL_ICMPV6, 128 | 129) => {
            hasher.write_u8(kind);
            transport.get(4..6)
        }
        (PROTOCOL_ICMP | PROTOCOL_ICMPV6, _) => transport.get(..1),
        _ => None,
    };
    hasher.write(told.unwrap_or(&[]));
}

/// How many packets a frame of `frame_bytes` stands for, and the bytes that those take on the
/// wire: Ethernet header and payload, without preamble, frame check sequence and gap.
///
/// `message` begins with the frame's offload header. An offloaded frame counts as the segments
/// that it stands for, each with its own `header_bytes`, where those are known.
pub fn on_the_wire(message: &[u8], frame_bytes: usize, header_bytes: Option<usize>) -> (u32, u64) {
    match (segment_payload_bytes(message), header_bytes) {
        (Some(segment), Some(header)) if frame_bytes > header => {
            let segments = (frame_bytes - header).div_ceil(segment);
            let bytes = frame_bytes + (segments - 1) * header;
            (segments as u32, bytes as u64)
        }
        _ => (1, frame_bytes as u64),
    }
}

/// Payload of each segment of an offloaded frame (`gso_size`); `None` for an ordinary frame.
fn segment_payload_bytes(message: &[u8]) -> Option<usize> {
    let [_flags, gso_type, _, _, low, high, ..] = *message else {
        return None;
    };
    let gso_size = usize::from(u16::from_ne_bytes([low, high]));
    (gso_type != 0 && gso_size != 0).then_some(gso_size)
}

/// Big-endian, as on the wire.
fn be16(bytes: &[u8], offset: usize) -> Option<u16> {
    let pair = bytes.get(offset..offset + 2)?;
    Some(u16::from_be_bytes([pair[0], pair[1]]))
}

fn be32(bytes: &[u8], offset: usize) -> Option<u32> {
    let word = bytes.get(offset..offset + 4)?;
    Some(u32::from_be_bytes(word.try_into().ok()?))
}
