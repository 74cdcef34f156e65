//! `--protocol`: which node coordinates, and how many rounds a request costs.

use std::fmt;
use std::str::FromStr;

/// The golden ratio's fractional part: its multiples, modulo 1, are spread as evenly as can be from
/// the first one on, so that any few requests have the shares that were asked for.
const STEP: f64 = 0.618_033_988_749_895;

/// `--protocol`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Any node coordinates: it asks all at once and answers when a majority has. Any two majorities
    /// share a node, so a read meets the last acknowledged write.
    Leaderless,
    /// One node orders everything: the others pass every operation on to it, it replicates writes to
    /// a majority that it belongs to, and answers reads from its own disk. It is never replaced,
    /// which keeps the number of round trips a matter of where a request enters and of nothing else.
    Leader,
    /// Majority rounds one after the other: all but the last carry no work, the last is that of the
    /// leaderless protocol. A ruler for the instrument, and a stand-in for stores that lock, read or
    /// vote first.
    Rounds(u32),
    /// Of 100 requests of each kind `percent` cost `rounds`, the others `otherwise`: a stand-in for
    /// stores that have some objects near, or take a lock twice now and then.
    Mixture {
        percent: u32,
        rounds: u32,
        otherwise: u32,
    },
}

impl Choice {
    /// What the `number`-th request of a kind costs.
    pub fn rounds(self, number: u64) -> u32 {
        match self {
            Self::Leaderless | Self::Leader => 1,
            Self::Rounds(count) => count,
            Self::Mixture {
                percent,
                rounds,
                otherwise,
            } => match (number as f64 * STEP).fract() < f64::from(percent) / 100.0 {
                true => rounds,
                false => otherwise,
            },
        }
    }
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let within = |text: &str, least, most| {
            let number = text.parse().ok();
            number.filter(|number| (least..=most).contains(number))
        };
        let words: Vec<_> = text.split(':').collect();
        let choice = match words[..] {
            ["leaderless"] => Some(Self::Leaderless),
            ["leader"] => Some(Self::Leader),
            ["rounds", k] => within(k, 1, 16).map(Self::Rounds),
            ["mixture", percent, j, k] => within(percent, 1, 99)
                .zip(within(j, 1, 16).zip(within(k, 1, 16)))
                .map(|(percent, (rounds, otherwise))| Self::Mixture {
                    percent,
                    rounds,
                    otherwise,
                }),
            _ => None,
        };
        choice.ok_or_else(|| {
            "allowed are leaderless, leader, rounds:1 to rounds:16, and mixture:PERCENT:J:K, where \
             PERCENT of 100 requests cost J rounds, the others K"
                .into()
        })
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Leaderless => write!(f, "leaderless"),
            Self::Leader => write!(f, "leader"),
            Self::Rounds(count) => write!(f, "rounds:{count}"),
            Self::Mixture {
                percent,
                rounds,
                otherwise,
            } => write!(f, "mixture:{percent}:{rounds}:{otherwise}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protocol_prints_as_it_is_written_and_others_are_told_what_there_is() {
        for text in ["leaderless", "leader", "rounds:16", "mixture:30:1:3"] {
            assert_eq!(text.parse::<Choice>().unwrap().to_string(), text);
        }
        let wrong = "raft,rounds,rounds:0,rounds:17,rounds:x,leader:1,mixture:30,mixture:0:1:3,\
                     mixture:100:1:3,mixture:30:1:17,";
        for text in wrong.split(',') {
            let error = text.parse::<Choice>().unwrap_err();
            assert!(error.contains("rounds:1 to rounds:16"), "{text}");
        }
    }
}
