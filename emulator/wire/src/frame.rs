//! What can be read off a frame: the flow it belongs to and its length on the wire.
//!
//! A message of a packet socket is a `struct virtio_net_hdr` (linux/virtio_net.h), which tells
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

/// What one frame is, as far as the link cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameFacts {
    /// Equal for frames of one flow. Frames of different flows differ but for chance (2⁻⁶⁴).
    pub flow: u64,
    /// Bytes up to the transport payload, where they could be told.
    pub header_bytes: Option<usize>,
}

/// Reads the facts off an Ethernet frame (without offload header).
///
/// A flow is source, destination and protocol, with the ports (TCP, UDP, UDP-Lite, SCTP) or the
/// identifier (ICMP echo). Fragments carry no ports but in the first one; all of them count as
/// one flow per source, destination and protocol. What is not IP is a flow per pair of Ethernet
/// addresses and EtherType.
pub fn facts(frame: &[u8]) -> FrameFacts {
    let mut hasher = DefaultHasher::new();
    let header_bytes = hash_flow(frame, &mut hasher);
    FrameFacts {
        flow: hasher.finish(),
        header_bytes,
    }
}

fn hash_flow(frame: &[u8], hasher: &mut DefaultHasher) -> Option<usize> {
    let (ethertype, offset) = network_header(frame)?;
    let packet = frame.get(offset..)?;
    let network = match ethertype {
        ETHERTYPE_IPV4 => parse_ipv4(packet),
        ETHERTYPE_IPV6 => parse_ipv6(packet),
        _ => None,
    };
    let Some(network) = network else {
        hasher.write(&frame[..offset]);
        return None;
    };
    hasher.write_u16(ethertype);
    hasher.write(network.addresses);
    hasher.write_u8(network.protocol);
    if network.is_fragment {
        return None;
    }
    let transport = packet.get(network.header_bytes..)?;
    let transport_bytes = hash_transport(network.protocol, transport, hasher)?;
    Some(offset + network.header_bytes + transport_bytes)
}

/// The EtherType behind VLAN tags, and where its header starts.
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

struct Network<'a> {
    addresses: &'a [u8],
    protocol: u8,
    header_bytes: usize,
    is_fragment: bool,
}

fn parse_ipv4(packet: &[u8]) -> Option<Network<'_>> {
    let first = *packet.first()?;
    let header_bytes = usize::from(first & 0x0f) * 4;
    if first >> 4 != 4 || header_bytes < 20 {
        return None;
    }
    // RFC 791: more-fragments flag and fragment offset; neither is set in a whole packet.
    let is_fragment = be16(packet, 6)? & 0x3fff != 0;
    Some(Network {
        addresses: packet.get(12..20)?,
        protocol: packet[9],
        header_bytes,
        is_fragment,
    })
}

fn parse_ipv6(packet: &[u8]) -> Option<Network<'_>> {
    if packet.first()? >> 4 != 6 {
        return None;
    }
    let addresses = packet.get(8..40)?;
    let mut protocol = packet[6];
    let mut offset = 40;
    let mut is_fragment = false;
    for _ in 0..MOST_EXTENSION_HEADERS {
        let length = match protocol {
            // Hop-by-hop, routing, destination options, mobility: length in 8 bytes, less one.
            0 | 43 | 60 | 135 => match packet.get(offset + 1) {
                Some(&units) => (usize::from(units) + 1) * 8,
                None => break,
            },
            // Fragment (RFC 8200): "atomic" ones, which are whole, have offset 0 and no more.
            44 => {
                is_fragment |= be16(packet, offset + 2).is_none_or(|field| field & 0xfff9 != 0);
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
    Some(Network {
        addresses,
        protocol,
        header_bytes: offset,
        is_fragment,
    })
}

/// Where the parts of a whole, unfragmented TCP or UDP packet lie in its Ethernet frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segmentable {
    /// Start of the IP header.
    pub network: usize,
    /// 4 or 6.
    pub version: u8,
    /// Start of the TCP or UDP header.
    pub transport: usize,
    /// Whether it is TCP.
    pub is_tcp: bool,
    /// Start of the payload; there is some.
    pub payload: usize,
}

/// Reads off a frame what is needed to cut it into segments; `None` if it is of another kind.
pub fn segmentable(frame: &[u8]) -> Option<Segmentable> {
    let (ethertype, network) = network_header(frame)?;
    let packet = frame.get(network..)?;
    let (version, header) = match ethertype {
        ETHERTYPE_IPV4 => (4, parse_ipv4(packet)?),
        ETHERTYPE_IPV6 => (6, parse_ipv6(packet)?),
        _ => return None,
    };
    // Behind extension headers the checksum may be over other addresses (RFC 8200, 8.1).
    if header.is_fragment || version == 6 && header.header_bytes != 40 {
        return None;
    }
    let transport = packet.get(header.header_bytes..)?;
    let transport_bytes = match header.protocol {
        PROTOCOL_TCP => usize::from(transport.get(12)? >> 4) * 4,
        PROTOCOL_UDP => 8,
        _ => return None,
    };
    if header.protocol == PROTOCOL_TCP && transport_bytes < 20 {
        return None;
    }
    let payload = network + header.header_bytes + transport_bytes;
    (payload < frame.len()).then_some(Segmentable {
        network,
        version,
        transport: network + header.header_bytes,
        is_tcp: header.protocol == PROTOCOL_TCP,
        payload,
    })
}

/// Where the IP packet of a frame lies; `None` if the frame is of another kind.
pub fn ip_packet(frame: &[u8]) -> Option<std::ops::Range<usize>> {
    let (ethertype, start) = network_header(frame)?;
    let packet = frame.get(start..)?;
    let length = match ethertype {
        ETHERTYPE_IPV4 => usize::from(be16(packet, 2)?),
        ETHERTYPE_IPV6 => match be16(packet, 4)? {
            0 => packet.len(), // a jumbogram
            length => 40 + usize::from(length),
        },
        _ => return None,
    };
    Some(start..start + length.min(packet.len()))
}

/// Adds what tells flows of one protocol apart; returns the length of the transport header.
fn hash_transport(protocol: u8, transport: &[u8], hasher: &mut DefaultHasher) -> Option<usize> {
    match protocol {
        PROTOCOL_TCP | PROTOCOL_UDP | PROTOCOL_SCTP | PROTOCOL_UDP_LITE => {
            hasher.write(transport.get(..4)?);
            match protocol {
                PROTOCOL_TCP => {
                    let length = usize::from(transport.get(12)? >> 4) * 4;
                    (length >= 20).then_some(length)
                }
                PROTOCOL_SCTP => Some(12),
                _ => Some(8),
            }
        }
        PROTOCOL_ICMP | PROTOCOL_ICMPV6 => {
            let kind = *transport.first()?;
            hasher.write_u8(kind);
            let is_echo = match protocol {
                PROTOCOL_ICMP => matches!(kind, 0 | 8),
                _ => matches!(kind, 128 | 129),
            };
            if is_echo {
                hasher.write(transport.get(4..6)?);
            }
            Some(8)
        }
        _ => Some(0),
    }
}

/// Bytes that a message takes on the wire: Ethernet header and payload, without preamble, frame
/// check sequence and gap. An offloaded frame counts as the segments that it stands for, each
/// with its own headers.
pub fn wire_bytes(message: &[u8], header_bytes: Option<usize>) -> u64 {
    let frame_bytes = message.len().saturating_sub(OFFLOAD_HEADER_BYTES);
    let extra = match (segment_payload_bytes(message), header_bytes) {
        (Some(segment), Some(header)) if frame_bytes > header => {
            let segments = (frame_bytes - header).div_ceil(segment);
            (segments - 1) * header
        }
        _ => 0,
    };
    (frame_bytes + extra) as u64
}

/// Payload of each segment of an offloaded frame (`gso_size`); `None` for an ordinary frame.
pub fn segment_payload_bytes(message: &[u8]) -> Option<usize> {
    let [_flags, gso_type, _, _, low, high, ..] = *message else {
        return None;
    };
    let gso_size = usize::from(u16::from_ne_bytes([low, high]));
    (gso_type != 0 && gso_size != 0).then_some(gso_size)
}

/// Big-endian, as on the wire.
pub(crate) fn be16(bytes: &[u8], offset: usize) -> Option<u16> {
    let pair = bytes.get(offset..offset + 2)?;
    Some(u16::from_be_bytes([pair[0], pair[1]]))
}
