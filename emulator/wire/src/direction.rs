//! One direction of a link: what becomes of a frame that arrives in it.

use crate::draws::{Draws, PassageDraws};
use crate::flow_order::FlowOrder;
use crate::frame::{self, Headers, OFFLOAD_HEADER_BYTES};
use crate::history::History;
use crate::impairment::Impairment;
use crate::rate::Transmitter;
use crate::stats::Counters;

/// What becomes of one copy of a frame that is not lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It leaves.
    Leaves {
        /// When.
        due_ns: u64,
        /// Whether that is at once, ahead of those on their way.
        overtakes: bool,
    },
    /// It finds the transmission queue full.
    QueueFull,
}

/// What becomes of a frame that is not lost: its own fate, and that of its second copy if there
/// is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fates {
    /// The frame's.
    pub own: Fate,
    /// The second copy's.
    pub copy: Option<Fate>,
}

/// One direction of a link.
#[derive(Debug)]
pub struct Direction {
    /// What it counts.
    pub counters: Counters,
    impairments: History,
    draws: Draws,
    path: Path,
    planted: Planted,
}

/// Lateness on purpose.
#[derive(Debug, Default)]
struct Planted {
    late_ns: u64,
    until_ns: u64,
    /// When the last frame that it held leaves: those behind it stay behind it.
    last_ns: u64,
}

/// What frames of one direction share on their way.
#[derive(Debug, Default)]
struct Path {
    transmitter: Transmitter,
    order: FlowOrder,
}

impl Direction {
    /// A direction with an impairment.
    pub fn new(impairment: Impairment, draws: Draws) -> Direction {
        Direction {
            counters: Counters::default(),
            impairments: History::new(impairment),
            draws,
            path: Path::default(),
            planted: Planted::default(),
        }
    }

    /// Frames that arrive until then leave so much later than they are due.
    pub fn plant_lateness(&mut self, late_ns: u64, until_ns: u64) {
        (self.planted.late_ns, self.planted.until_ns) = (late_ns, until_ns);
    }

    /// How late a frame leaves on purpose.
    pub fn planted_ns(&mut self, arrival_ns: u64, due_ns: u64) -> u64 {
        let planted = &mut self.planted;
        if arrival_ns < planted.until_ns {
            planted.last_ns = planted.last_ns.max(due_ns + planted.late_ns);
        }
        planted.last_ns.saturating_sub(due_ns)
    }

    /// Another impairment for frames that arrive at `now_ns` or later.
    pub fn change(&mut self, impairment: Impairment, now_ns: u64) {
        self.impairments.change(impairment, now_ns);
    }

    /// Decides over a message that arrived at `arrival_ns`; `None` means that it is lost.
    ///
    /// First there is loss, then duplication. The frame and, behind it, its copy then go the same
    /// way, each with its own chances: overtaking, which skips the rest; the transmission queue
    /// (where there is a rate); delay and jitter; order within the flow.
    ///
    /// That is what `sch_netem` does, but for one thing: there, the copy meets loss again. Here
    /// loss is decided once, so that duplication does not break up bursts.
    pub fn decide(&mut self, message: &[u8], arrival_ns: u64) -> Option<Fates> {
        let impairment = self.impairments.at(arrival_ns);
        if self.draws.is_lost(impairment) {
            return None;
        }
        let is_duplicated = self.draws.is_duplicated(impairment);
        let frame = Arrival {
            message,
            headers: Headers::of(message.get(OFFLOAD_HEADER_BYTES..).unwrap_or(&[])),
            arrival_ns,
        };
        let own = self.path.pass(&frame, impairment, &mut self.draws.own);
        let copy = is_duplicated.then(|| self.path.pass(&frame, impairment, &mut self.draws.copy));
        Some(Fates { own, copy })
    }
}

/// A message, what its headers say, and when it arrived.
struct Arrival<'a> {
    message: &'a [u8],
    headers: Headers<'a>,
    arrival_ns: u64,
}

impl Path {
    fn pass(
        &mut self,
        frame: &Arrival<'_>,
        impairment: &Impairment,
        draws: &mut PassageDraws,
    ) -> Fate {
        let overtakes = draws.overtakes(impairment);
        let due_ns = if overtakes {
            Some(frame.arrival_ns)
        } else {
            self.due_ns(frame, impairment, draws)
        };
        match due_ns {
            None => Fate::QueueFull,
            Some(due_ns) => Fate::Leaves { due_ns, overtakes },
        }
    }

    /// When a frame that overtakes none leaves; `None` if the transmission queue is full.
    fn due_ns(
        &mut self,
        frame: &Arrival<'_>,
        impairment: &Impairment,
        draws: &mut PassageDraws,
    ) -> Option<u64> {
        let sent_ns = match impairment.rate_bps {
            None => frame.arrival_ns,
            Some(rate_bps) => {
                let frame_bytes = frame.message.len().saturating_sub(OFFLOAD_HEADER_BYTES);
                let header_bytes = frame.headers.header_bytes();
                let (_, bytes) = frame::on_the_wire(frame.message, frame_bytes, header_bytes);
                let limit_bytes = impairment.queue_bytes.unwrap_or(u64::MAX);
                self.transmitter
                    .send(frame.arrival_ns, bytes, rate_bps, limit_bytes)?
            }
        };
        let own_due_ns = sent_ns + draws.delay_ns(impairment);
        Some(self.order.due_ns(
            frame.headers.flow(),
            frame.arrival_ns,
            own_due_ns,
            impairment.reorder,
        ))
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

    fn due_of(fate: Fate) -> u64 {
        match fate {
            Fate::Leaves { due_ns, .. } => due_ns,
            Fate::QueueFull => panic!("no room"),
        }
    }

    fn due_ns(direction: &mut Direction, flow: u8, arrival_ns: u64) -> u64 {
        due_of(direction.decide(&message(flow), arrival_ns).unwrap().own)
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
        let fates = direction.decide(&message(3), 0).unwrap();
        assert_eq!(fates.own, Fate::QueueFull);
    }

    #[test]
    fn a_lost_frame_takes_no_transmission_time() {
        let impairment = Impairment {
            rate_bps: Some(480_000),
            queue_bytes: Some(1_000),
            loss: 1.0,
            ..Impairment::default()
        };
        let mut direction = direction(impairment.clone());
        assert_eq!(direction.decide(&message(1), 0), None);
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
    fn the_second_copy_has_a_delay_of_its_own_but_stays_behind_the_first() {
        for reorder in [false, true] {
            let mut direction = direction(Impairment {
                duplicate: 1.0,
                ..jittered(reorder)
            });
            let (mut behind, mut differ) = (0, 0);
            for i in 0..1_000 {
                let fates = direction
                    .decide(&message(1), i * 100 * MILLISECOND)
                    .unwrap();
                let own_ns = due_of(fates.own);
                let copy_ns = due_of(fates.copy.unwrap());
                behind += u32::from(copy_ns >= own_ns);
                differ += u32::from(copy_ns != own_ns);
            }
            match reorder {
                false => assert!(behind == 1_000 && differ > 400, "{behind} {differ}"),
                true => assert!(behind < 600 && differ > 990, "{behind} {differ}"),
            }
        }
    }

    #[test]
    fn the_second_copy_takes_its_own_time_of_transmission() {
        let mut direction = direction(Impairment {
            rate_bps: Some(480_000),
            queue_bytes: Some(120),
            duplicate: 1.0,
            ..Impairment::default()
        });
        let fates = direction.decide(&message(1), 0).unwrap();
        assert_eq!(due_of(fates.own), MILLISECOND);
        assert_eq!(due_of(fates.copy.unwrap()), 2 * MILLISECOND);
        let fates = direction.decide(&message(1), MILLISECOND).unwrap();
        assert_eq!(due_of(fates.own), 3 * MILLISECOND);
        assert_eq!(fates.copy, Some(Fate::QueueFull));
    }

    #[test]
    fn what_overtakes_leaves_at_once_and_holds_nobody_back() {
        let overtaking = Impairment {
            overtake: 1.0,
            rate_bps: Some(480_000),
            queue_bytes: Some(1_000),
            ..delayed(50 * MILLISECOND)
        };
        let mut direction = direction(delayed(50 * MILLISECOND));
        assert_eq!(due_ns(&mut direction, 1, 0), 50 * MILLISECOND);
        direction.change(overtaking, 5);
        let fates = direction.decide(&message(1), 7).unwrap();
        let at_once = Fate::Leaves {
            due_ns: 7,
            overtakes: true,
        };
        assert_eq!(fates.own, at_once);
        direction.change(delayed(50 * MILLISECOND), 10);
        assert_eq!(due_ns(&mut direction, 1, 10), 50 * MILLISECOND + 10);
    }
}
