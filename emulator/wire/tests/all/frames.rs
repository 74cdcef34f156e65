//! Frames to send, and numbers to find in frames that were received.

/// Length of the UDP frame without payload: Ethernet, IPv4 and UDP header.
pub const UDP_HEADER_BYTES: usize = 14 + 20 + 8;

/// Marks the frames of tests; others may be about.
const MARK: [u8; 4] = *b"WIRE";

/// A station's addresses, told by the last byte of each.
#[derive(Clone, Copy)]
pub struct Address {
    station: u8,
}

pub const LEFT: Address = Address { station: 1 };
pub const RIGHT: Address = Address { station: 2 };

impl Address {
    fn mac(self) -> [u8; 6] {
        [2, 0, 0, 0, 0, self.station]
    }

    fn ip(self) -> [u8; 4] {
        [10, 0, 0, self.station]
    }

    pub fn mac_text(self) -> String {
        self.mac().map(|byte| format!("{byte:02x}")).join(":")
    }

    pub fn ip_text(self) -> String {
        self.ip().map(|byte| byte.to_string()).join(".")
    }
}

/// A UDP frame of `length` bytes from left to right, in the flow `port`, with a number.
pub fn udp(port: u16, number: u32, length: usize) -> Vec<u8> {
    let payload_bytes = length - UDP_HEADER_BYTES;
    let mut datagram = Vec::new();
    datagram.extend(port.to_be_bytes());
    datagram.extend(9u16.to_be_bytes()); // discard
    datagram.extend(((8 + payload_bytes) as u16).to_be_bytes());
    datagram.extend([0, 0]); // no checksum
    datagram.extend(MARK);
    datagram.extend(number.to_be_bytes());
    datagram.resize(8 + payload_bytes, 0x5a);
    ipv4(LEFT, RIGHT, 17, &datagram)
}

/// An ICMP echo request with a number.
pub fn echo_request(from: Address, to: Address, number: u32) -> Vec<u8> {
    let mut echo = vec![8, 0, 0, 0, 0x12, 0x34];
    echo.extend((number as u16).to_be_bytes());
    echo.extend(MARK);
    echo.extend(number.to_be_bytes());
    let checksum = internet_checksum(&echo).to_be_bytes();
    echo[2..4].copy_from_slice(&checksum);
    ipv4(from, to, 1, &echo)
}

/// The number in a frame of one of the kinds above, or in the reply to it.
pub fn number(frame: &[u8]) -> Option<u32> {
    // The headers of UDP and of ICMP echo are equally long.
    let payload = frame.get(UDP_HEADER_BYTES..)?;
    let number = payload.strip_prefix(&MARK)?.first_chunk()?;
    Some(u32::from_be_bytes(*number))
}

fn ipv4(from: Address, to: Address, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut header = [0; 20];
    header[0] = 0x45;
    header[2..4].copy_from_slice(&((20 + payload.len()) as u16).to_be_bytes());
    header[8] = 64;
    header[9] = protocol;
    header[12..16].copy_from_slice(&from.ip());
    header[16..20].copy_from_slice(&to.ip());
    let checksum = internet_checksum(&header).to_be_bytes();
    header[10..12].copy_from_slice(&checksum);
    let mut frame = [to.mac(), from.mac()].concat();
    frame.extend([0x08, 0x00]);
    frame.extend(header);
    frame.extend(payload);
    frame
}

/// RFC 1071.
fn internet_checksum(bytes: &[u8]) -> u16 {
    let mut sum: u32 = bytes
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
