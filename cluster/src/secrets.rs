//! The keys that all members share: the master key pair, by which minions recognise their master, and the publish keys.

use std::path::Path;
use std::time::Duration;

use brine_system::files;
use brine_value::{Map, Value, msgpack};
use tokio::time::Instant;

use crate::Local;
use crate::error::{LinkError, nats};
use crate::link::Link;

const KEY_PAIR: &str = "shared.key_pair";
pub(crate) const PUBLISH_KEYS: &str = "shared.publish_keys";
/// The time that the servers have to answer at the start of a master that has a key pair.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(10);
/// The same for a master without one, which cannot start without them: servers that start, too, elect a leader first.
const FIRST_STARTUP_TIMEOUT: Duration = Duration::from_secs(30);
const RETRY_INTERVAL: Duration = Duration::from_millis(200);

/// The error of a member that cannot use the cluster's key pair.
#[derive(Debug, thiserror::Error)]
pub enum KeyPairError {
    /// The servers do not answer, and this master has no key yet.
    #[error(
        "the key pair of the cluster cannot be fetched: {0}; start a NATS server, or copy master.pem of another member"
    )]
    Unavailable(LinkError),
    /// This master has another key pair.
    #[error(
        "{0} differs from the key pair of the cluster: minions of this master must learn that one; move the file aside to \
         adopt it"
    )]
    Differs(String),
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] files::FileError),
}

/// Adopts the key pair of the cluster as `master.pem` and `master.pub` in `pki_dir`. If the cluster has none, it gets
/// that of this master, which `create` generates if necessary. Waits up to ten seconds for the servers, and up to thirty if
/// this master has no key pair.
///
/// # Errors
/// See [`KeyPairError`].
pub async fn share_key_pair(
    link: &Link,
    pki_dir: &Path,
    create: impl FnOnce() -> Result<(), files::FileError>,
) -> Result<(), KeyPairError> {
    let private = pki_dir.join("master.pem");
    let own = files::read_if_exists(&private)?;
    let timeout = if own.is_some() { STARTUP_TIMEOUT } else { FIRST_STARTUP_TIMEOUT };
    let shared = match fetch_key_pair(link, Instant::now() + timeout).await {
        Ok(shared) => shared,
        Err(error) if own.is_some() => {
            tracing::error!(%error, "the key pair of the cluster cannot be compared: this master starts with its own");
            return Ok(());
        }
        Err(error) => return Err(KeyPairError::Unavailable(error)),
    };
    if let Some(shared) = shared {
        return adopt(pki_dir, own.as_deref(), &shared);
    }
    if own.is_none() {
        create()?;
    }
    let pair = [files::read_to_string(&private)?, files::read_to_string(pki_dir.join("master.pub"))?];
    match store_key_pair(link, &pair).await {
        Ok(None) => Ok(()),
        // Another member has shared its key pair first.
        Ok(Some(shared)) if own.is_none() => {
            for name in ["master.pem", "master.pub"] {
                let path = pki_dir.join(name);
                std::fs::remove_file(&path).map_err(files::FileError::at("remove", &path))?;
            }
            adopt(pki_dir, None, &shared)
        }
        Ok(Some(shared)) => adopt(pki_dir, own.as_deref(), &shared),
        Err(error) => Err(KeyPairError::Unavailable(error)),
    }
}

/// Returns the shared key pair, if there is one. Retries until `deadline`, and then returns the last error.
async fn fetch_key_pair(link: &Link, deadline: Instant) -> Result<Option<[String; 2]>, LinkError> {
    let mut waits = false;
    let mut last = nats("no server answers");
    loop {
        match tokio::time::timeout_at(deadline, link.get(KEY_PAIR)).await {
            Ok(Ok(entry)) => return Ok(entry.and_then(|entry| unpack(&entry.value))),
            Ok(Err(error @ LinkError::Nats(_))) if Instant::now() < deadline => {
                if !waits {
                    tracing::info!(%error, "waiting for the NATS servers of the cluster");
                }
                (waits, last) = (true, error);
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
            Ok(Err(error)) => return Err(error),
            Err(_) => return Err(last),
        }
    }
}

/// Stores a key pair as the shared one. Returns the existing one if another member has already stored its own.
async fn store_key_pair(link: &Link, pair: &[String; 2]) -> Result<Option<[String; 2]>, LinkError> {
    if link.update(KEY_PAIR, &pack(pair), 0).await?.is_some() {
        return Ok(None);
    }
    fetch_key_pair(link, Instant::now() + FIRST_STARTUP_TIMEOUT).await
}

fn adopt(pki_dir: &Path, own: Option<&str>, shared: &[String; 2]) -> Result<(), KeyPairError> {
    let [private, public] = shared;
    let path = pki_dir.join("master.pem");
    match own {
        Some(own) if own.trim() == private.trim() => return Ok(()),
        Some(_) => return Err(KeyPairError::Differs(path.display().to_string())),
        None => {}
    }
    files::write_atomic(path, private.as_bytes(), 0o400)?;
    files::write_atomic(pki_dir.join("master.pub"), public.as_bytes(), 0o644)?;
    tracing::info!("this master uses the key pair of its cluster");
    Ok(())
}

/// Stores the publish keys of this master as those of the cluster.
pub(crate) async fn share_publish_keys(link: &Link, local: &dyn Local) -> Result<(), LinkError> {
    link.put(PUBLISH_KEYS, &pack(&local.publish_keys())).await
}

/// Adopts the publish keys of the cluster.
pub(crate) async fn adopt_publish_keys(local: &dyn Local, packed: &[u8]) {
    if let Some(keys) = unpack(packed) {
        local.adopt_publish_keys(keys).await;
    }
}

/// Adopts the publish keys of the cluster before the master serves, or shares its own if the cluster has none.
pub(crate) async fn begin_publish_keys(link: &Link, local: &dyn Local) -> Result<(), LinkError> {
    if link.update(PUBLISH_KEYS, &pack(&local.publish_keys()), 0).await?.is_some() {
        return Ok(());
    }
    match link.get(PUBLISH_KEYS).await {
        Ok(Some(entry)) => adopt_publish_keys(local, &entry.value).await,
        Ok(None) => share_publish_keys(link, local).await?,
        // The stored keys were written without the secret: replace them.
        Err(error) if error.is_forgery() => share_publish_keys(link, local).await?,
        Err(error) => return Err(error),
    }
    Ok(())
}

/// The field names of strings that are stored together.
const FIELD_NAMES: [&str; 3] = ["first", "second", "third"];

fn pack<const N: usize>(texts: &[String; N]) -> Vec<u8> {
    let fields: Map = FIELD_NAMES.iter().zip(texts).map(|(name, text)| ((*name).into(), text.into())).collect();
    msgpack::pack_map(&fields)
}

fn unpack<const N: usize>(packed: &[u8]) -> Option<[String; N]> {
    let fields = msgpack::unpack_map(packed).ok()?;
    let texts: Option<Vec<String>> =
        FIELD_NAMES.iter().take(N).map(|name| fields.get(*name).and_then(Value::as_str).map(str::to_owned)).collect();
    texts?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_adopts_the_key_pair_of_the_cluster() {
        let directory = tempfile::tempdir().unwrap();
        let shared = ["private".to_owned(), "public".to_owned()];
        adopt(directory.path(), None, &shared).unwrap();
        let read = |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap();
        assert_eq!((read("master.pem"), read("master.pub")), ("private".into(), "public".into()));
        adopt(directory.path(), Some("private\n"), &shared).unwrap();
        let error = adopt(directory.path(), Some("other"), &shared).unwrap_err().to_string();
        assert!(error.contains("master.pem differs from the key pair of the cluster"), "{error}");
        assert_eq!(unpack(&pack(&shared)), Some(shared));
    }
}
