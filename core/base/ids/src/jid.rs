//! Job ids: twenty digits of the creation time, down to microseconds.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::{Timestamp, Zoned, civil::DateTime};

/// A validated job id: safe as a file name and as a part of a tag.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Jid(String);

/// The string is not a job id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a job id: expected 20 digits, such as 20261120235852025555")]
pub struct InvalidJid(String);

impl Jid {
    /// Creates an id for the current local time, as Salt does. Unique within the process.
    pub fn new() -> Self {
        static LAST: AtomicI64 = AtomicI64::new(0);
        let now = Timestamp::now().as_microsecond();
        let next = |last| Some(now.max(last + 1));
        let last = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).unwrap_or(now);
        let unique = Timestamp::from_microsecond(now.max(last + 1)).unwrap_or_default();
        Self::at(&unique.to_zoned(brine_clock::zone()))
    }

    fn at(time: &Zoned) -> Self {
        let micros = time.subsec_nanosecond() / 1000;
        Jid(format!("{}{micros:06}", time.strftime("%Y%m%d%H%M%S")))
    }

    /// Returns the id of a job that an event has led to: the same one for the same time of the event, in microseconds since
    /// 1970, and the same key of the reaction. It has the form of Salt's `unique_jid`.
    pub fn of_event(time: u64, key: u64) -> Self {
        const SUFFIXES: u64 = 10_000_000_000;
        let time = Timestamp::from_microsecond(time.try_into().unwrap_or_default()).unwrap_or_default();
        let Jid(digits) = Self::at(&time.to_zoned(brine_clock::zone()));
        Jid(format!("{digits}_{:010}", key % SUFFIXES))
    }

    /// Returns the digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the creation time of the job, in local time.
    pub fn time(&self) -> Option<DateTime> {
        let number = |range: std::ops::Range<usize>| self.0.get(range)?.parse::<i32>().ok();
        DateTime::new(
            number(0..4)? as i16,
            number(4..6)? as i8,
            number(6..8)? as i8,
            number(8..10)? as i8,
            number(10..12)? as i8,
            number(12..14)? as i8,
            number(14..20)? * 1000,
        )
        .ok()
    }

    /// Returns the creation time in the format of job listings: `2026, Nov 20 23:58:52.025555`.
    pub fn start_time(&self) -> String {
        let micros = &self.0[14..20];
        self.time().map(|time| format!("{}.{micros}", time.strftime("%Y, %b %d %H:%M:%S"))).unwrap_or_default()
    }
}

impl Default for Jid {
    fn default() -> Self {
        Self::new()
    }
}

impl FromStr for Jid {
    type Err = InvalidJid;

    fn from_str(text: &str) -> Result<Self, InvalidJid> {
        // A PID may follow an underscore (`unique_jid`), as in Salt.
        let (digits, rest) = text.split_once('_').unwrap_or((text, "0"));
        let number = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        if digits.len() == 20 && number(digits) && number(rest) && text.len() <= 32 {
            Ok(Jid(text.to_owned()))
        } else {
            Err(InvalidJid(text.chars().take(64).collect()))
        }
    }
}

impl fmt::Display for Jid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&Jid> for brine_value::Value {
    fn from(jid: &Jid) -> Self {
        jid.as_str().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_increase_and_never_repeat() {
        let ids: Vec<_> = (0..1000).map(|_| Jid::new()).collect();
        assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(ids.iter().all(|jid| jid.as_str().len() == 20 && jid.time().is_some()));
    }

    #[test]
    fn the_id_of_an_event_is_the_same_again_and_a_job_id() {
        let jid = |time, key| Jid::of_event(time, key);
        let own = jid(1_795_000_000_123_456, u64::MAX);
        assert_eq!(own, jid(1_795_000_000_123_456, u64::MAX));
        assert!(own != jid(1_795_000_000_123_456, 1) && own != jid(1_795_000_000_123_457, u64::MAX));
        assert_eq!((own.as_str().parse(), own.as_str().len()), (Ok(own.clone()), 31));
        assert!(own.as_str().contains("123456_") && own.time().is_some());
    }

    #[test]
    fn only_job_ids_are_parsed() {
        for good in ["20261120235852025555", "20261120235852025555_1234"] {
            assert_eq!(good.parse::<Jid>().unwrap().as_str(), good);
        }
        for bad in
            ["", "req", "../../etc/passwd", "2026112023585202555", "20261120235852025555_", "20261120235852025555/x"]
        {
            assert!(bad.parse::<Jid>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_start_time_is_printed_as_salt_does() {
        let jid: Jid = "20261120235852025555".parse().unwrap();
        assert_eq!(jid.start_time(), "2026, Nov 20 23:58:52.025555");
    }
}
