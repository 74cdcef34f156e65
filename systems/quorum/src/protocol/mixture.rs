//! Requests of one endpoint that cost one number of rounds or another, in known shares: what stores do
//! that sometimes have what is asked for near and sometimes have to fetch it, or that take a lock twice
//! now and then.

use std::collections::HashMap;
use std::mem::{Discriminant, discriminant};
use std::sync::Mutex;

use async_trait::async_trait;
use bytes::Bytes;

use super::rounds::run_in;
use super::{Members, Protocol};
use crate::op::{Failure, Op, Response, Rounds};

/// The golden ratio's fractional part: its multiples, modulo 1, are spread as evenly as can be from
/// the first one on, so that any few requests have the shares that were asked for.
const STEP: f64 = 0.618_033_988_749_895;

/// `percent` of the requests of each kind cost `rounds`, the others `otherwise`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    pub percent: u32,
    pub rounds: u32,
    pub otherwise: u32,
}

impl Shares {
    fn of_request(self, number: u64) -> u32 {
        let place = (number as f64 * STEP).fract();
        match place < f64::from(self.percent) / 100.0 {
            true => self.rounds,
            false => self.otherwise,
        }
    }
}

pub struct Mixture {
    members: Members,
    shares: Shares,
    /// How many requests of each kind this node was asked for.
    asked: Mutex<HashMap<Discriminant<Op>, u64>>,
}

impl Mixture {
    pub fn new(members: Members, shares: Shares) -> Self {
        Self {
            members,
            shares,
            asked: Mutex::default(),
        }
    }

    fn rounds_of(&self, op: &Op) -> u32 {
        let mut asked = self.asked.lock().expect("no holder panics");
        let number = asked.entry(discriminant(op)).or_default();
        *number += 1;
        self.shares.of_request(*number)
    }
}

#[async_trait]
impl Protocol for Mixture {
    async fn run(&self, op: Op, body: Bytes, rounds: &Rounds) -> Result<Response, Failure> {
        let count = self.rounds_of(&op);
        run_in(count, &self.members, op, body, rounds).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_fifty_requests_in_a_row_have_the_shares_within_three_points() {
        let shares = Shares {
            percent: 30,
            rounds: 1,
            otherwise: 3,
        };
        let requests: Vec<u32> = (1..2000).map(|number| shares.of_request(number)).collect();
        assert!(requests.iter().all(|rounds| [1, 3].contains(rounds)));
        for some in requests.windows(50) {
            let cheap = some.iter().filter(|&&rounds| rounds == 1).count();
            assert!((14..=16).contains(&cheap), "{cheap} of 50");
        }
    }
}
