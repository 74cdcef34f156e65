//! What the kernel knows of a connection (`TCP_INFO`), read outside of the timed span.

use std::mem;
use std::os::fd::{AsFd, AsRawFd};

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
    // SAFETY: plain integers all. The kernel fills as many as it has; what an older one lacks stays
    // zero.
    let mut raw: libc::tcp_info = unsafe { mem::zeroed() };
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `raw`.
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
        rtt_us: raw.tcpi_rtt,
        total_retransmits: raw.tcpi_total_retrans,
        bare_segments_sent: raw.tcpi_segs_out.saturating_sub(raw.tcpi_data_segs_out),
        out_of_order: raw.tcpi_rcv_ooopack,
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
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_fresh_connection_has_sent_its_handshake_and_nothing_else() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let info = read(&stream);
        assert_eq!(info.since(None), Delta::default());
        assert!(info.rtt_us > 0, "the handshake gave an estimate");
    }
}
