//! What a member remembers of a shared value: the last revision that it has seen in the cluster.

use crate::tables::ValueDigest;

/// The length of a SHA-256 digest.
const DIGEST: usize = 32;
/// The length of a packed revision.
const REVISION: usize = 8;
/// The maximum number of values whose answers were lost: more than one has been sent only if the connection was lost
/// several times in succession.
const MAX_UNANSWERED: usize = 8;

/// The last synchronised revision of a value.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Known {
    pub revision: u64,
    /// The revision that it replaced.
    pub after: u64,
    pub digest: ValueDigest,
    /// Values that were sent to replace a revision, whose answers were lost: the servers may have stored them, or store
    /// them later.
    unanswered: Vec<(u64, ValueDigest)>,
}

impl Known {
    /// Returns what is known after a value was stored.
    #[must_use]
    pub fn replaced_by(mut self, revision: u64, after: u64, digest: ValueDigest) -> Self {
        // Values that replace an older revision are refused.
        self.unanswered.retain(|(replaced, _)| *replaced >= after);
        Known { revision, after, digest, ..self }
    }

    /// Returns what is known after a value was sent to replace the revision `after` and the answer was lost.
    #[must_use]
    pub fn with_unanswered(mut self, after: u64, digest: ValueDigest) -> Self {
        let sent = (after, digest);
        self.unanswered.retain(|entry| *entry != sent);
        if self.unanswered.len() == MAX_UNANSWERED {
            self.unanswered.remove(0);
        }
        self.unanswered.push(sent);
        self
    }

    /// Whether a value of the cluster that replaces the revision `after` was sent by this member, which may have changed
    /// it again.
    pub fn is_own(&self, after: u64, digest: &ValueDigest) -> bool {
        self.unanswered.iter().any(|(replaced, sent)| *replaced == after && sent == digest)
    }

    /// Packs it: revision, replaced revision, digest. If answers were lost, the digest is preceded by a byte that says
    /// whether there is a value, and followed by the replaced revision and the digest of each unanswered one.
    pub fn pack(&self) -> Vec<u8> {
        let mut packed = [self.revision.to_be_bytes(), self.after.to_be_bytes()].concat();
        if self.unanswered.is_empty() {
            packed.extend(self.digest.iter().flatten());
            return packed;
        }
        pack_digest(&mut packed, &self.digest);
        for (after, digest) in &self.unanswered {
            packed.extend(after.to_be_bytes());
            pack_digest(&mut packed, digest);
        }
        packed
    }

    /// Unpacks it; `None` if it is malformed.
    pub fn unpack(packed: &[u8]) -> Option<Self> {
        let (revision, rest) = unpack_revision(packed)?;
        let (after, rest) = unpack_revision(rest)?;
        if rest.is_empty() || rest.len() == DIGEST {
            let digest = (!rest.is_empty()).then(|| rest.to_vec());
            return Some(Known { revision, after, digest, unanswered: Vec::new() });
        }
        let (digest, rest) = rest.split_at_checked(1 + DIGEST)?;
        let unanswered = rest.chunks(REVISION + 1 + DIGEST).map(|sent| {
            let (after, digest) = unpack_revision(sent)?;
            Some((after, unpack_digest(digest)?))
        });
        Some(Known { revision, after, digest: unpack_digest(digest)?, unanswered: unanswered.collect::<Option<_>>()? })
    }
}

fn pack_digest(packed: &mut Vec<u8>, digest: &ValueDigest) {
    packed.push(u8::from(digest.is_some()));
    packed.extend(digest.as_deref().unwrap_or(&[0; DIGEST]));
}

fn unpack_digest(packed: &[u8]) -> Option<ValueDigest> {
    match packed {
        [1, digest @ ..] if digest.len() == DIGEST => Some(Some(digest.to_vec())),
        [0, digest @ ..] if digest.len() == DIGEST => Some(None),
        _ => None,
    }
}

fn unpack_revision(packed: &[u8]) -> Option<(u64, &[u8])> {
    let (revision, rest) = packed.split_first_chunk::<REVISION>()?;
    Some((u64::from_be_bytes(*revision), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::digest;

    fn value(text: &str) -> ValueDigest {
        digest(Some(text.as_bytes()))
    }

    #[test]
    fn known_revisions_round_trip() {
        for unanswered in [vec![], vec![(7, value("y"))], vec![(7, None)], vec![(5, value("y")), (7, None)]] {
            for digest in [None, value("x")] {
                let record = Known { revision: 7, after: 5, digest, unanswered: unanswered.clone() };
                assert_eq!(Known::unpack(&record.pack()), Some(record));
            }
        }
        let packed = Known::default().with_unanswered(0, value("y")).pack();
        for malformed in [&b"short"[..], &packed[..packed.len() - 1], &[&packed[..], &[7]].concat()] {
            assert_eq!(Known::unpack(malformed), None);
        }
    }

    #[test]
    fn values_whose_answer_was_lost_are_own() {
        let record = Known::default().replaced_by(7, 5, value("x"));
        let record = record.with_unanswered(7, value("y")).with_unanswered(7, None);
        for (after, digest, expected) in [
            (7, value("y"), true),
            (7, None, true),
            (7, value("x"), false),
            // Another member has replaced the own value.
            (8, value("y"), false),
        ] {
            assert_eq!(record.is_own(after, &digest), expected, "{after} {digest:?}");
        }
        // Servers can store it after a later one that replaces the same revision.
        let stored = record.replaced_by(8, 7, value("z"));
        assert!(stored.is_own(7, &value("y")));
        assert!(!stored.replaced_by(9, 8, value("a")).is_own(7, &value("y")));
    }

    #[test]
    fn the_last_unanswered_values_are_kept() {
        let record = (0..20).fold(Known::default(), |record, at: u64| record.with_unanswered(at, value("x")));
        assert!(record.is_own(19, &value("x")) && !record.is_own(0, &value("x")));
        assert_eq!(record.unanswered.len(), MAX_UNANSWERED);
    }
}
