//! How long to sleep before the next frame is due.
//!
//! A sleep ends late, by 20–200 µs, and the longer it is the later (deeper idle states). So a
//! sleep is asked to end early by as much as sleeps of its length were late before; what is left
//! is slept in a second, short sleep, whose lateness is smaller; and the last stretch, at most
//! [`LONGEST_SPIN_NS`], is spent asking again and again whether something has arrived. On a
//! machine with few cores that takes time from the stores that are measured: spinning is
//! therefore limited to a share of all time as well, and beyond it frames are late instead.

/// The last stretch before a frame is due, spent polling.
pub const LONGEST_SPIN_NS: u64 = 50_000;

/// One part in this many of all time may be spent spinning.
const SPIN_SHARE: u64 = 5;

/// Spinning that was not used is saved up to this much.
const MOST_SPIN_CREDIT_NS: u64 = 1_000_000;

/// The kernel lets a wait be late by 1/1000 of its timeout on top of the thread's timer slack
/// (`select_estimate_accuracy` in fs/select.c, which epoll uses).
const SLACK_SHARE: u64 = 1_000;

/// What to do until the next frame is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Nothing is due ever: sleep until something arrives.
    Forever,
    /// Look whether something has arrived, and don't sleep.
    Poll,
    /// Sleep this long, or until something arrives.
    Sleep {
        /// What to ask the kernel for.
        timeout_ns: u64,
    },
}

/// Plans waits and learns from how late they end.
#[derive(Debug)]
pub struct Waiter {
    classes: [SleepClass; 3],
    /// Class and end of the sleep that was planned last, if it was one.
    sleeping: Option<(usize, u64)>,
    /// Since when we spin, if the last plan was to spin.
    spinning_since_ns: Option<u64>,
    spin_credit_ns: u64,
    credited_ns: u64,
}

impl Waiter {
    /// What to do now, when the next frame is due at `due_ns`.
    pub fn plan(&mut self, now_ns: u64, due_ns: Option<u64>) -> Wait {
        self.account_for_spinning(now_ns);
        self.sleeping = None;
        let Some(due_ns) = due_ns else {
            return Wait::Forever;
        };
        let left_ns = due_ns.saturating_sub(now_ns);
        if left_ns == 0 {
            return Wait::Poll;
        }
        let may_spin = self.spin_credit_ns > 0;
        if left_ns <= LONGEST_SPIN_NS && may_spin {
            self.spinning_since_ns = Some(now_ns);
            return Wait::Poll;
        }
        let class = self.class_of(left_ns);
        // Without credit the short sleep is the last one: it is aimed at the instant itself.
        let early_ns = if class == 0 && !may_spin {
            0
        } else {
            self.classes[class].lateness_ns
        };
        let asleep_ns = left_ns.saturating_sub(early_ns).max(1);
        self.sleeping = Some((class, now_ns + asleep_ns));
        Wait::Sleep {
            timeout_ns: (asleep_ns - asleep_ns / SLACK_SHARE).max(1),
        }
    }

    /// The planned sleep ended by its timeout, at `now_ns`.
    pub fn timed_out(&mut self, now_ns: u64) {
        if let Some((class, until_ns)) = self.sleeping.take() {
            self.classes[class].learn(now_ns.saturating_sub(until_ns));
        }
    }

    fn class_of(&self, left_ns: u64) -> usize {
        self.classes
            .iter()
            .rposition(|class| left_ns >= class.from_ns)
            .unwrap_or(0)
    }

    fn account_for_spinning(&mut self, now_ns: u64) {
        let passed_ns = now_ns.saturating_sub(self.credited_ns);
        self.credited_ns = now_ns;
        let saved_ns = self.spin_credit_ns + passed_ns / SPIN_SHARE;
        self.spin_credit_ns = saved_ns.min(MOST_SPIN_CREDIT_NS);
        if let Some(since_ns) = self.spinning_since_ns.take() {
            let spun_ns = now_ns.saturating_sub(since_ns);
            self.spin_credit_ns = self.spin_credit_ns.saturating_sub(spun_ns);
        }
    }
}

/// A waiter that has yet to learn.
impl Default for Waiter {
    fn default() -> Waiter {
        Waiter {
            classes: [
                SleepClass::new(0, 40_000, LONGEST_SPIN_NS),
                SleepClass::new(250_000, 80_000, 150_000),
                SleepClass::new(4_000_000, 150_000, 400_000),
            ],
            sleeping: None,
            spinning_since_ns: None,
            spin_credit_ns: MOST_SPIN_CREDIT_NS,
            credited_ns: 0,
        }
    }
}

/// Sleeps of about the same length, and how late they end.
#[derive(Debug)]
struct SleepClass {
    /// Sleeps of this length and more, up to the next class.
    from_ns: u64,
    /// An estimate that about nine in ten sleeps do not exceed.
    lateness_ns: u64,
    /// The estimate does not grow beyond this. It is less than the shortest sleep of the class,
    /// so that some sleep is always left, however busy the machine.
    most_ns: u64,
}

/// The estimate rises by the first when a sleep exceeds it and falls by the second when not: it
/// settles where nine in ten do not.
const RISE_NS: u64 = 2_250;
const FALL_NS: u64 = 250;

impl SleepClass {
    fn new(from_ns: u64, lateness_ns: u64, most_ns: u64) -> SleepClass {
        SleepClass {
            from_ns,
            lateness_ns,
            most_ns,
        }
    }

    fn learn(&mut self, late_ns: u64) {
        self.lateness_ns = if late_ns > self.lateness_ns {
            (self.lateness_ns + RISE_NS).min(self.most_ns)
        } else {
            self.lateness_ns.saturating_sub(FALL_NS)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: u64 = 1_000_000;

    /// Sleeps and spins through `deadlines`, `apart_ns` from each other, on a machine whose
    /// sleeps end `late_ns` late. Returns how late each was met and how long it spun in all.
    fn run(apart_ns: u64, late_ns: u64, deadlines: u64) -> (Vec<u64>, u64) {
        let mut waiter = Waiter::default();
        let (mut now_ns, mut spun_ns) = (1, 0);
        let mut late = Vec::new();
        for deadline in 1..=deadlines {
            let due_ns = deadline * apart_ns;
            while now_ns < due_ns {
                match waiter.plan(now_ns, Some(due_ns)) {
                    Wait::Sleep { timeout_ns } => {
                        now_ns += timeout_ns + timeout_ns / SLACK_SHARE + late_ns;
                        waiter.timed_out(now_ns);
                    }
                    Wait::Poll => {
                        now_ns += 300;
                        spun_ns += 300;
                    }
                    Wait::Forever => panic!("a frame is due"),
                }
            }
            late.push(now_ns - due_ns);
        }
        (late, spun_ns)
    }

    #[test]
    fn with_nothing_due_it_sleeps_until_something_arrives() {
        assert_eq!(Waiter::default().plan(5, None), Wait::Forever);
    }

    #[test]
    fn what_is_due_or_overdue_is_not_slept_for() {
        let mut waiter = Waiter::default();
        assert_eq!(waiter.plan(5, Some(5)), Wait::Poll);
        assert_eq!(waiter.plan(5, Some(4)), Wait::Poll);
    }

    #[test]
    fn it_learns_the_lateness_of_the_machine_and_meets_the_deadlines() {
        for late_ns in [5_000, 45_000] {
            let (late, _) = run(10 * MILLISECOND, late_ns, 1_000);
            assert!(
                late[900..].iter().all(|&late_ns| late_ns <= 1_000),
                "{late_ns}"
            );
        }
    }

    #[test]
    fn sparse_deadlines_cost_one_spin_each_at_most() {
        let (late, spun_ns) = run(10 * MILLISECOND, 40_000, 1_000);
        assert!(spun_ns <= late.len() as u64 * (LONGEST_SPIN_NS + 300));
    }

    #[test]
    fn dense_deadlines_do_not_spin_for_more_than_the_share() {
        let apart_ns = 60_000;
        let (late, spun_ns) = run(apart_ns, 5_000, 100_000);
        let total_ns = apart_ns * late.len() as u64;
        assert!(spun_ns <= total_ns / SPIN_SHARE + MOST_SPIN_CREDIT_NS + total_ns / 100);
    }

    #[test]
    fn a_machine_that_is_always_late_is_not_spun_for() {
        let (_, spun_ns) = run(10 * MILLISECOND, 5 * MILLISECOND, 1_000);
        assert!(spun_ns <= 1_000 * LONGEST_SPIN_NS / 10, "{spun_ns}");
    }
}
