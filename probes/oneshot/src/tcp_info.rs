//! What the kernel knows of a connection (`TCP_INFO`), read outside of the timed span.

use std::mem;
use std::os::fd::{AsFd, AsRawFd};

/// The beginning of the kernel's `struct tcp_info` (include/uapi/linux/tcp.h), up to the last field
/// used here. The kernel fills as much as it has; what an older one lacks stays zero.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Raw {
    state_to_flags: [u8; 8],
    rto: u32,
    ato: u32,
    snd_mss: u32,
    rcv_mss: u32,
    unacked: u32,
    sacked: u32,
    lost: u32,
    retrans: u32,
    fackets: u32,
    last_data_sent: u32,
    last_ack_sent: u32,
    last_data_recv: u32,
    last_ack_recv: u32,
    pmtu: u32,
    rcv_ssthresh: u32,
    rtt: u32,
    rttvar: u32,
    snd_ssthresh: u32,
    snd_cwnd: u32,
    advmss: u32,
    reordering: u32,
    rcv_rtt: u32,
    rcv_space: u32,
    total_retrans: u32,
    pacing_rate: u64,
    max_pacing_rate: u64,
    bytes_acked: u64,
    bytes_received: u64,
    segs_out: u32,
    segs_in: u32,
    notsent_bytes: u32,
    min_rtt: u32,
    data_segs_in: u32,
    data_segs_out: u32,
    delivery_rate: u64,
    busy_time: u64,
    rwnd_limited: u64,
    sndbuf_limited: u64,
    delivered: u32,
    delivered_ce: u32,
    bytes_sent: u64,
    bytes_retrans: u64,
    dsack_dups: u32,
    reord_seen: u32,
    rcv_ooopack: u32,
    snd_wnd: u32,
}

/// One reading.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Smoothed round-trip time as the kernel estimates it.
    pub rtt_us: u32,
    /// Segments sent again since the connection began, SYNs included.
    pub total_retransmits: u32,
    /// Segments sent without data: acknowledgements, and the two of the handshake.
    pub bare_segments_sent: u32,
    /// Segments that arrived out of order: the other side's losses, seen from here.
    pub out_of_order: u32,
}

/// Reads the connection's TCP_INFO; all zero where the socket has none.
pub fn read(socket: impl AsFd) -> TcpInfo {
    let mut raw = Raw::default();
    let mut length = mem::size_of::<Raw>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes, plain integers all, into `raw`.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut raw).cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return TcpInfo::default();
    }
    TcpInfo {
        rtt_us: raw.rtt,
        total_retransmits: raw.total_retrans,
        bare_segments_sent: raw.segs_out.saturating_sub(raw.data_segs_out),
        out_of_order: raw.rcv_ooopack,
    }
}

/// What happened on the connection between two readings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Delta {
    pub retransmits: u32,
    pub acks_sent: u32,
    pub out_of_order: u32,
}

const HANDSHAKE_SEGMENTS: u32 = 2;

impl TcpInfo {
    /// What happened since `before`; `before` is None for a connection that began since.
    pub fn since(&self, before: Option<TcpInfo>) -> Delta {
        let base = before.unwrap_or(TcpInfo {
            bare_segments_sent: HANDSHAKE_SEGMENTS,
            ..TcpInfo::default()
        });
        Delta {
            retransmits: self
                .total_retransmits
                .saturating_sub(base.total_retransmits),
            acks_sent: self
                .bare_segments_sent
                .saturating_sub(base.bare_segments_sent),
            out_of_order: self.out_of_order.saturating_sub(base.out_of_order),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn fields_lie_where_the_kernels_header_puts_them() {
        // The offsets of `struct tcp_info` on every 64-bit Linux; they never change.
        assert_eq!(offset_of!(Raw, rtt), 68);
        assert_eq!(offset_of!(Raw, total_retrans), 100);
        assert_eq!(offset_of!(Raw, segs_out), 136);
        assert_eq!(offset_of!(Raw, data_segs_out), 156);
        assert_eq!(offset_of!(Raw, rcv_ooopack), 224);
        assert_eq!(size_of::<Raw>(), 232);
    }

    #[test]
    fn a_fresh_connection_has_sent_its_handshake_and_nothing_else() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let info = read(&stream);
        assert_eq!(info.since(None), Delta::default());
        assert!(info.rtt_us > 0, "the handshake gave an estimate");
    }
}
