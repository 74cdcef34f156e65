//! One direction of a link: what becomes of a frame that arrives in it.

use crate::flow_order::FlowOrder;
use crate::frame;
use crate::history::History;
use crate::impairment::{Draws, Impairment};
use crate::rate::Transmitter;
use crate::stats::Counters;

/// What becomes of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It leaves at this instant.
    Due(u64),
    /// It is lost, as asked.
    Lost,
    /// It finds the transmission queue full.
    QueueFull,
}

/// One direction of a link.
#[derive(Debug)]
pub struct Direction {
    /// What it counts.
    pub counters: Counters,
    impairments: History,
    draws: Draws,
    transmitter: Transmitter,
    order: FlowOrder,
}

impl Direction {
    /// A direction with an impairment that has passed [`Impairment::check`].
    pub fn new(impairment: Impairment, draws: Draws) -> Direction {
        Direction {
            counters: Counters::default(),
            impairments: History::new(impairment),
            draws,
            transmitter: Transmitter::default(),
            order: FlowOrder::new(),
        }
    }

    /// Another impairment for frames that arrive at `now_ns` or later.
    pub fn change(&mut self, impairment: Impairment, now_ns: u64) {
        self.impairments.change(impairment, now_ns);
    }

    /// Decides over a message that arrived at `arrival_ns`. It meets, in this order: loss, the
    /// transmission queue (where there is a rate), delay and jitter, order within its flow. That
    /// is the order of netem too, where a lost frame takes no transmission time either.
    pub fn decide(&mut self, message: &[u8], arrival_ns: u64) -> Fate {
        let impairment = self.impairments.at(arrival_ns);
        if self.draws.is_lost(impairment) {
            return Fate::Lost;
        }
        let facts = frame::facts(message.get(frame::OFFLOAD_HEADER_BYTES..).unwrap_or(&[]));
        let sent_ns = match impairment.rate_bps {
            None => arrival_ns,
            Some(rate_bps) => {
                let bytes = frame::wire_bytes(message, facts.header_bytes);
                let limit_bytes = impairment.queue_limit_bytes(rate_bps);
                match self
                    .transmitter
                    .send(arrival_ns, bytes, rate_bps, limit_bytes)
                {
                    Some(sent_ns) => sent_ns,
                    None => return Fate::QueueFull,
                }
            }
        };
        let own_due_ns = sent_ns + self.draws.delay_ns(impairment);
        let may_overtake = impairment.reorder;
        Fate::Due(
            self.order
                .due_ns(facts.flow, arrival_ns, own_due_ns, may_overtake),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: u64 = 1_000_000;

    fn direction(impairment: Impairment) -> Direction {
        Direction::new(impairment, Draws::for_directions(1, 1).remove(0))
    }

    fn delayed(delay_ns: u64) -> Impairment {
        Impairment {
            delay_ns,
            ..Impairment::default()
        }
    }

    fn jittered(reorder: bool) -> Impairment {
        Impairment {
            delay_ns: 50 * MILLISECOND,
            jitter_ns: 10 * MILLISECOND,
            reorder,
            ..Impairment::default()
        }
    }

    /// A message whose flow is told by one byte of its Ethernet addresses.
    fn message(flow: u8) -> Vec<u8> {
        let mut message = vec![0; frame::OFFLOAD_HEADER_BYTES + 60];
        message[frame::OFFLOAD_HEADER_BYTES] = flow;
        message
    }

    fn due_ns(direction: &mut Direction, flow: u8, arrival_ns: u64) -> u64 {
        match direction.decide(&message(flow), arrival_ns) {
            Fate::Due(due_ns) => due_ns,
            fate => panic!("{fate:?}"),
        }
    }

    #[test]
    fn a_frame_is_due_its_delay_after_it_arrived() {
        let mut direction = direction(delayed(50 * MILLISECOND));
        assert_eq!(due_ns(&mut direction, 1, 7), 50 * MILLISECOND + 7);
    }

    #[test]
    fn a_link_without_impairment_holds_nothing_back() {
        let mut direction = direction(Impairment::default());
        assert_eq!(due_ns(&mut direction, 1, 7), 7);
    }

    #[test]
    fn jitter_keeps_order_within_a_flow_and_not_between_flows() {
        let mut direction = direction(jittered(false));
        let (mut last, mut latest, mut overtaken) = ([0u64; 4], 0u64, 0);
        for i in 0..1_000 {
            let flow = (i % 4) as u8;
            let due = due_ns(&mut direction, flow, i * MILLISECOND);
            assert!(due >= last[usize::from(flow)], "frame {i}");
            overtaken += usize::from(due < latest);
            last[usize::from(flow)] = due;
            latest = due.max(latest);
        }
        assert!(overtaken > 100, "{overtaken}");
    }

    #[test]
    fn reordering_is_done_when_asked_for() {
        let mut direction = direction(jittered(true));
        let dues: Vec<u64> = (0..1_000)
            .map(|i| due_ns(&mut direction, 1, i * MILLISECOND))
            .collect();
        assert!(!dues.is_sorted());
        for (i, due) in dues.into_iter().enumerate() {
            let delay_ns = due - i as u64 * MILLISECOND;
            assert!((40 * MILLISECOND..=60 * MILLISECOND).contains(&delay_ns));
        }
    }

    #[test]
    fn a_shorter_delay_lets_no_frame_overtake_its_flow() {
        let mut direction = direction(delayed(50 * MILLISECOND));
        assert_eq!(due_ns(&mut direction, 1, 0), 50 * MILLISECOND);
        direction.change(delayed(MILLISECOND), 10);
        assert_eq!(due_ns(&mut direction, 1, 20), 50 * MILLISECOND);
        assert_eq!(due_ns(&mut direction, 2, 20), MILLISECOND + 20);
    }

    #[test]
    fn a_change_concerns_the_frames_that_arrive_from_its_instant_on() {
        let mut direction = direction(delayed(MILLISECOND));
        direction.change(delayed(5 * MILLISECOND), 1_000);
        assert_eq!(due_ns(&mut direction, 1, 999), MILLISECOND + 999);
        assert_eq!(due_ns(&mut direction, 2, 1_000), 5 * MILLISECOND + 1_000);
    }

    #[test]
    fn transmission_comes_before_the_delay() {
        let impairment = Impairment {
            rate_bps: Some(480_000), // 60 bytes a millisecond
            queue_bytes: Some(120),
            ..delayed(50 * MILLISECOND)
        };
        let mut direction = direction(impairment);
        assert_eq!(due_ns(&mut direction, 1, 0), 51 * MILLISECOND);
        assert_eq!(due_ns(&mut direction, 2, 0), 52 * MILLISECOND);
        assert_eq!(direction.decide(&message(3), 0), Fate::QueueFull);
    }

    #[test]
    fn a_lost_frame_takes_no_transmission_time() {
        let impairment = Impairment {
            rate_bps: Some(480_000),
            loss: 1.0,
            ..Impairment::default()
        };
        let mut direction = direction(impairment);
        assert_eq!(direction.decide(&message(1), 0), Fate::Lost);
        direction.change(
            Impairment {
                loss: 0.0,
                ..impairment
            },
            1,
        );
        assert_eq!(due_ns(&mut direction, 1, 1), MILLISECOND + 1);
    }

    #[test]
    fn a_message_of_any_length_is_decided() {
        let mut direction = direction(jittered(false));
        for length in 0..100 {
            direction.decide(&vec![0xff; length], 0);
        }
    }
}
