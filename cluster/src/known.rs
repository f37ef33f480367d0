//! What a member remembers of a shared value: the last revision that it has seen in the cluster.

use crate::tables::ValueDigest;

/// The length of a SHA-256 digest.
const DIGEST: usize = 32;
/// The maximum number of values whose answers are awaited: more than one has been sent only if the connection was lost
/// several times in succession.
const MAX_UNANSWERED: usize = 8;

/// The last synchronised revision of a value.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Known {
    pub revision: u64,
    /// The revision that it replaced.
    pub after: u64,
    pub digest: ValueDigest,
    /// Values that were sent to replace this revision, whose answers were lost: the servers may have stored one.
    unanswered: Vec<ValueDigest>,
}

impl Known {
    /// Returns what is known of a stored value.
    pub fn stored(revision: u64, after: u64, digest: ValueDigest) -> Self {
        Known { revision, after, digest, unanswered: Vec::new() }
    }

    /// Notes that a value was sent to replace the revision `after`, and that the answer was lost.
    pub fn add_unanswered(&mut self, after: u64, digest: ValueDigest) {
        if after != self.revision || self.unanswered.contains(&digest) {
            return;
        }
        if self.unanswered.len() == MAX_UNANSWERED {
            self.unanswered.remove(0);
        }
        self.unanswered.push(digest);
    }

    /// Whether a value of the cluster that replaces the revision `after` was sent by this member.
    pub fn is_own(&self, after: u64, digest: &ValueDigest) -> bool {
        after == self.revision && self.unanswered.contains(digest)
    }

    /// Packs it: revision, replaced revision, digest; if answers were lost, all digests with a leading byte that says
    /// whether there is a value.
    pub fn pack(&self) -> Vec<u8> {
        let mut packed = [self.revision.to_be_bytes(), self.after.to_be_bytes()].concat();
        if self.unanswered.is_empty() {
            packed.extend(self.digest.iter().flatten());
            return packed;
        }
        for digest in std::iter::once(&self.digest).chain(&self.unanswered) {
            packed.push(u8::from(digest.is_some()));
            packed.extend(digest.as_deref().unwrap_or(&[0; DIGEST]));
        }
        packed
    }

    /// Unpacks it; `None` if it is malformed.
    pub fn unpack(packed: &[u8]) -> Option<Self> {
        let (revision, rest) = packed.split_first_chunk()?;
        let (after, rest) = rest.split_first_chunk()?;
        let (revision, after) = (u64::from_be_bytes(*revision), u64::from_be_bytes(*after));
        if rest.is_empty() || rest.len() == DIGEST {
            return Some(Known::stored(revision, after, (!rest.is_empty()).then(|| rest.to_vec())));
        }
        let mut digests = rest.chunks(DIGEST + 1).map(|chunk| match chunk {
            [1, digest @ ..] if digest.len() == DIGEST => Some(Some(digest.to_vec())),
            [0, digest @ ..] if digest.len() == DIGEST => Some(None),
            _ => None,
        });
        let mut known = Known::stored(revision, after, digests.next()??);
        known.unanswered = digests.collect::<Option<_>>()?;
        Some(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::digest;

    #[test]
    fn known_revisions_round_trip() {
        let value = |text: &str| digest(Some(text.as_bytes()));
        for unanswered in [vec![], vec![value("y")], vec![None], vec![value("y"), None, value("z")]] {
            for digest in [None, value("x")] {
                let known = Known { revision: 7, after: 5, digest, unanswered: unanswered.clone() };
                assert_eq!(Known::unpack(&known.pack()), Some(known));
            }
        }
        let packed = Known { unanswered: vec![value("y")], ..Known::default() }.pack();
        for malformed in [&b"short"[..], &packed[..packed.len() - 1], &[&packed[..], &[7]].concat()] {
            assert_eq!(Known::unpack(malformed), None);
        }
    }

    #[test]
    fn values_whose_answer_was_lost_are_own() {
        let value = |text: &str| digest(Some(text.as_bytes()));
        let mut known = Known::stored(7, 5, value("x"));
        known.add_unanswered(7, value("y"));
        known.add_unanswered(7, None);
        known.add_unanswered(6, value("z"));
        for (after, digest, expected) in [
            (7, value("y"), true),
            (7, None, true),
            // Another member replaced the own value.
            (8, value("y"), false),
            (7, value("x"), false),
            // It was sent to replace an older revision, which is replaced already.
            (7, value("z"), false),
        ] {
            assert_eq!(known.is_own(after, &digest), expected, "{after} {digest:?}");
        }
        for number in 0..20 {
            known.add_unanswered(7, value(&number.to_string()));
        }
        assert!(known.is_own(7, &value("19")) && !known.is_own(7, &value("y")));
    }
}
