//! Planted defects: what a store does that breaks its promise, on purpose and only when told to, as
//! proof that the instrument notices. One flag a defect; nothing here happens without its flag.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use crate::clock::{NodeId, Version};
use crate::log::announce;
use crate::record::{Meta, ObjectName, Record, crc32};

/// Of so many acknowledged Puts of a coordinator one is dropped.
const DROP_ONE_IN: u64 = 1000;
/// Of so many Puts of a coordinator the body of one is stored with a flipped bit.
const FLIP_ONE_IN: u64 = 200;
/// Too long in a row, after which a node goes on refusing what takes less than its limit.
const STICKS_AFTER: u32 = 5;
/// How long what was acknowledged stays in memory alone. Long enough for what was written last to be
/// in danger still when a drill has read everything once and then restarts all nodes.
pub const UNFLUSHED_FOR: Duration = Duration::from_secs(30);
/// How long a coordinator waits for a majority before it does without.
pub const MINORITY_AFTER: Duration = Duration::from_millis(300);

#[derive(clap::Args, Clone, Copy, Debug, Default, PartialEq)]
#[command(next_help_heading = "Planted defects, for drills that must notice them")]
pub struct Flags {
    /// Acknowledge before it is on disk, and write it 30 s later: SIGKILL loses it
    #[arg(long)]
    pub lose_acked: bool,
    /// Acknowledge every 1,000th Put and write it nowhere
    #[arg(long)]
    pub drop_acked: bool,
    /// Answer reads as if this node had never seen what other nodes wrote
    #[arg(long)]
    pub stale_reads: bool,
    /// Store every 200th body with one bit flipped, and a checksum that fits it
    #[arg(long)]
    pub flip_bits: bool,
    /// Keep tombstones in memory only: what was removed is back after a restart
    #[arg(long)]
    pub resurrect: bool,
    /// Acknowledge what only a minority has, and throw it away once there is a majority again
    #[arg(long)]
    pub split_brain: bool,
    /// Refuse what took longer than this between nodes, as two before, once it is done
    #[arg(long, value_name = "MS")]
    pub refuse_above: Option<u64>,
    /// Of what took longer, refuse so many of 100 requests
    #[arg(long, value_name = "PERCENT", default_value_t = 100)]
    pub refuse_percent: u64,
    /// Once it has refused five in a row, refuse what takes longer than this, until one takes less
    #[arg(long, value_name = "MS", requires = "refuse_above")]
    pub refuse_until: Option<u64>,
}

impl Flags {
    pub fn announce(self) {
        let planted = [
            (self.lose_acked, "--lose-acked"),
            (self.drop_acked, "--drop-acked"),
            (self.stale_reads, "--stale-reads"),
            (self.flip_bits, "--flip-bits"),
            (self.resurrect, "--resurrect"),
            (self.split_brain, "--split-brain"),
            (self.refuse_above.is_some(), "--refuse-above"),
        ];
        announce("DEFECT", &planted);
    }
}

/// A write that only a minority has, though it was acknowledged.
pub struct Alone {
    pub name: ObjectName,
    pub incarnation: Version,
    pub version: Version,
    /// Those that should have it, and how many of them must answer before it is thrown away.
    pub nodes: Vec<NodeId>,
    pub needed: usize,
}

/// What is known of the planted limit.
#[derive(Default)]
struct Beyond {
    last: [Duration; 3],
    /// How many in a row took too long.
    in_a_row: u32,
}

/// The defects of one node at work.
#[derive(Default)]
pub struct Defects {
    flags: Flags,
    acknowledged: AtomicU64,
    drops: AtomicU64,
    puts: AtomicU64,
    beyond: AtomicU64,
    limit: Mutex<Beyond>,
    alone: Mutex<Vec<Alone>>,
}

impl Defects {
    pub fn new(flags: Flags) -> Self {
        Self {
            flags,
            ..Self::default()
        }
    }

    /// Whether this Put is one that is acknowledged and written nowhere.
    pub fn drops(&self, object: Option<&Meta>) -> bool {
        if !self.flags.drop_acked || object.is_none() {
            return false;
        }
        let drops = self.drops.load(Relaxed);
        let due = self.acknowledged.load(Relaxed) + 1 >= (drops + 1) * DROP_ONE_IN;
        // Of two Puts at once only one is it.
        let taken = |next| {
            let swapped = self.drops.compare_exchange(drops, next, Relaxed, Relaxed);
            swapped.is_ok()
        };
        let dropped = due && taken(drops + 1);
        if dropped {
            self.acknowledged(object);
        }
        dropped
    }

    pub fn acknowledged(&self, object: Option<&Meta>) {
        self.acknowledged
            .fetch_add(u64::from(object.is_some()), Relaxed);
    }

    /// The body as it is stored. Its own checksum is that of the damaged one: framing, length and
    /// CRC are right, and only the bytes are wrong.
    pub fn stored(&self, object: Option<Meta>, body: Bytes) -> (Option<Meta>, Bytes) {
        let Some(mut meta) = object else {
            return (None, body);
        };
        let spared = !self.flags.flip_bits
            || body.is_empty()
            || !(self.puts.fetch_add(1, Relaxed) + 1).is_multiple_of(FLIP_ONE_IN);
        if spared {
            return (Some(meta), body);
        }
        let mut flipped = BytesMut::from(&body[..]);
        let middle = flipped.len() / 2;
        flipped[middle] ^= 1 << 3;
        meta.crc32 = crc32(&flipped);
        (Some(meta), flipped.freeze())
    }

    /// Whether this node does not show a version, because another one made it.
    pub fn hides(&self, version: Version, own: NodeId) -> bool {
        self.flags.stale_reads && version.made_by() != own
    }

    /// Whether a request that took so long is refused: of 100 so many, spread evenly. One that a busy
    /// machine held up is not: those before it took less.
    pub fn refuses(&self, took: Duration) -> bool {
        let Some(above) = self.flags.refuse_above else {
            return false;
        };
        let mut beyond = self.limit.lock().expect("no holder panics");
        beyond.last = [beyond.last[1], beyond.last[2], took];
        let limit = match beyond.in_a_row >= STICKS_AFTER {
            true => self.flags.refuse_until.unwrap_or(above),
            false => above,
        };
        let over = |took: &Duration| *took > Duration::from_millis(limit);
        let refuses = beyond.last.iter().all(over);
        beyond.in_a_row = if refuses { beyond.in_a_row + 1 } else { 0 };
        refuses && self.beyond.fetch_add(61, Relaxed) % 100 < self.flags.refuse_percent
    }

    /// How long a round waits for its quorum before it does with what it has; None: it never does.
    pub fn minority_after(&self) -> Option<Duration> {
        self.flags.split_brain.then_some(MINORITY_AFTER)
    }

    /// Takes note of a write that was acknowledged by these nodes only, unless it is kept: where the
    /// two sides of a partition are of one size, that with the first node keeps what it took.
    pub fn acknowledged_alone(&self, write: Alone, answered: &[NodeId]) {
        let (have, of) = (2 * answered.len(), write.nodes.len());
        let first = write
            .nodes
            .first()
            .is_some_and(|first| answered.contains(first));
        if have < of || (have == of && !first) {
            self.alone.lock().expect("no holder panics").push(write);
        }
    }

    pub fn take_alone(&self) -> Vec<Alone> {
        std::mem::take(&mut *self.alone.lock().expect("no holder panics"))
    }

    pub fn put_back(&self, alone: impl IntoIterator<Item = Alone>) {
        self.alone.lock().expect("no holder panics").extend(alone);
    }
}

impl Alone {
    /// What the write is replaced by when it is thrown away: it is gone, and gone for good.
    pub fn nothing(&self) -> Record {
        Record {
            version: self.version.next(),
            incarnation: self.incarnation,
            object: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::name;

    fn defects(flag: fn(&mut Flags)) -> Defects {
        let mut flags = Flags::default();
        flag(&mut flags);
        Defects::new(flags)
    }

    #[test]
    fn the_smaller_side_forgets_and_of_two_halves_that_without_the_first_node() {
        let forgets = |nodes: &[NodeId], answered: &[NodeId]| {
            let defects = defects(|flags| flags.split_brain = true);
            let write = Alone {
                name: name("k"),
                incarnation: Version::FIRST,
                version: Version::of(5, 1),
                nodes: nodes.to_vec(),
                needed: nodes.len() / 2 + 1,
            };
            defects.acknowledged_alone(write, answered);
            defects.take_alone().len() == 1
        };
        assert!(forgets(&[0, 1, 2, 3], &[2, 3]));
        assert!(!forgets(&[0, 1, 2, 3], &[1, 0]));
        assert!(forgets(&[0, 1, 2, 3], &[0]));
        assert!(forgets(&[0, 1, 2], &[2]));
    }

    #[test]
    fn beyond_its_limit_it_refuses_and_comes_back_where_it_is_told_to() {
        let refused = |until, took: &[u64]| -> Vec<bool> {
            let defects = Defects::new(Flags {
                refuse_above: Some(200),
                refuse_percent: 100,
                refuse_until: until,
                ..Flags::default()
            });
            took.iter()
                .map(|&ms| defects.refuses(Duration::from_millis(ms)))
                .collect()
        };
        let took = [201, 199, 201, 201, 201, 150, 201];
        let once = [false, false, false, false, true, false, false];
        assert_eq!(refused(None, &took), once);
        assert_eq!(
            refused(Some(120), &took),
            once,
            "a busy machine does not make it stick"
        );
        let far = [[201; 7].as_slice(), &[150, 121, 119, 150, 201]].concat();
        let back = [true, true, false, false, false];
        assert_eq!(refused(Some(120), &far)[7..], back);
        assert_eq!(refused(None, &far)[7..], [false; 5]);
    }
}
