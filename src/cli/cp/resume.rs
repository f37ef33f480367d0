//! Determines the part of a file that each minion already has, so that `salt-cp --resume` sends only the rest.
//!
//! A minion's file counts if its size and digest match the beginning of the source. Any other file is sent whole.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use brine_digest::hex;
use brine_target::TargetKind;
use brine_value::{FromValue, Value, list};
use sha2::{Digest, Sha256};

use super::{FileCopy, SourceError};

/// The part of a file that some minions lack.
#[derive(Debug, PartialEq)]
pub(super) struct Part {
    /// The byte at which it begins.
    pub(super) start: u64,
    pub(super) tgt: Value,
    pub(super) tgt_type: &'static str,
}

impl Part {
    /// Returns the whole file for all minions of a target.
    pub(super) fn whole((tgt, tgt_type): &(Value, &'static str)) -> Self {
        Part { start: 0, tgt: tgt.clone(), tgt_type }
    }
}

impl FileCopy {
    /// Returns the parts of a file that the minions of the target lack. Minions that have the whole file are done.
    pub(super) async fn parts(&mut self, source: &Path, remote: &str) -> anyhow::Result<Vec<Part>> {
        let unreadable = |error| SourceError::NoFile(format!("{}: {error}", source.display()));
        let length = source.metadata().map_err(unreadable)?.len();
        let mut starts: BTreeMap<u64, Vec<Value>> = BTreeMap::new();
        let mut partial: BTreeMap<u64, Vec<Value>> = BTreeMap::new();
        for (id, status) in self.call("file.stats", list![remote]).await? {
            let is_file = status.get("type").and_then(Value::as_str) == Some("file");
            let size =
                status.get("size").and_then(u64::from_value).filter(|size| is_file && (1..=length).contains(size));
            size.map_or_else(|| starts.entry(0), |size| partial.entry(size)).or_default().push(id);
        }
        if !partial.is_empty() {
            let expected = digests(source, partial.keys()).map_err(unreadable)?;
            let ids: Vec<Value> = partial.values().flatten().cloned().collect();
            (self.tgt, self.tgt_type) = (ids.into(), TargetKind::List.name());
            let hashes = self.call("file.get_hash", list![remote, "sha256"]).await?;
            for (size, ids) in partial {
                for id in ids {
                    let is_same = hashes.get(&id).and_then(Value::as_str) == expected.get(&size).map(String::as_str);
                    starts.entry(if is_same { size } else { 0 }).or_default().push(id);
                }
            }
        }
        if let Some(complete) = starts.remove(&length).filter(|_| length > 0) {
            self.record(remote, complete.into_iter().map(|id| (id, true.into())).collect());
        }
        let part = |(start, ids)| Part { start, tgt: Value::List(ids), tgt_type: TargetKind::List.name() };
        Ok(starts.into_iter().map(part).collect())
    }
}

/// Returns the SHA-256 of the beginnings of a file with these sizes, which are in ascending order.
fn digests<'a>(path: &Path, sizes: impl Iterator<Item = &'a u64>) -> io::Result<BTreeMap<u64, String>> {
    let (mut file, mut hasher, mut read) = (File::open(path)?, Sha256::new(), 0);
    let mut digests = BTreeMap::new();
    for size in sizes {
        io::copy(&mut (&mut file).take(size - read), &mut HashWriter(&mut hasher))?;
        read = *size;
        digests.insert(*size, hex(hasher.clone().finalize()));
    }
    Ok(digests)
}

struct HashWriter<'a>(&'a mut Sha256);

impl io::Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginnings_of_a_file_have_their_own_digests() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, "abcdef").unwrap();
        let expected = |text: &str| hex(Sha256::digest(text));
        let digests = digests(&path, [1, 3, 6].iter()).unwrap();
        assert_eq!(
            digests.into_iter().collect::<Vec<_>>(),
            [(1, expected("a")), (3, expected("abc")), (6, expected("abcdef"))]
        );
    }
}
