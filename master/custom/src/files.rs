//! Custom file server backends (`_fileserver`): copies their files below `cachedir`, from where minions receive them.
//!
//! Each backend is queried every minute for its lists of files, and for a file whose hash differs from that of the
//! copy. If a backend fails, the existing copies are kept.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use brine_config::MasterConfig;
use brine_digest::{Digest, hex};
use brine_fileserver::Mirror;
use brine_function::{Args, CallError};
use brine_runtime::executors::Executor;
use brine_system::{files, user_files};
use brine_value::{FromValue, Value, map};
use tokio_util::sync::CancellationToken;

use crate::modules::CustomModules;

/// The maximum number of environments of a backend, and of files in an environment.
const MAX_FILES: usize = 100_000;
/// The maximum size of a file, in bytes.
const MAX_FILE_SIZE: u64 = 4 << 30;
/// The temporary file for a copy in progress, in the directory of the backend. It is not a valid name of an
/// environment.
const PARTIAL_COPY: &str = ".part";
/// The timeout of a call to a backend.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);
/// The default polling interval in seconds. `NAME_update_interval` overrides it, as in Salt.
const INTERVAL: u64 = 60;

/// Updates the copies of a backend every `NAME_update_interval` seconds, until `shutdown`.
pub async fn run(
    custom: Arc<CustomModules>,
    config: Arc<MasterConfig>,
    render: Executor,
    mirror: Mirror,
    shutdown: CancellationToken,
) {
    let option = format!("{}_update_interval", mirror.name());
    let interval = config.opts.get(option.as_str()).and_then(Value::as_i64);
    let interval = interval.and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(INTERVAL).max(1);
    let mut ticks = tokio::time::interval(Duration::from_secs(interval));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut failed = String::new();
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = shutdown.cancelled() => return,
        }
        let (modules, copied) = (Arc::clone(&custom), mirror.clone());
        let result = render.run(move |_| update(&modules, &copied)).await;
        let error = match result {
            Ok(Ok(changed)) => {
                if changed > 0 {
                    tracing::info!(
                        backend = mirror.name(),
                        changed,
                        "files of a custom file server backend have changed"
                    );
                }
                String::new()
            }
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        // The same error is not logged again at each poll.
        if error != failed && !error.is_empty() {
            tracing::error!(
                backend = mirror.name(),
                error,
                "updating the files of a custom file server backend failed"
            );
        }
        failed = error;
    }
}

/// Why the files of a backend are not copied.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError {
    /// There is no such backend, or its file cannot be loaded.
    #[error("there is no function '{backend}.{function}' in '_fileserver'")]
    NoFunction {
        /// The name of the backend.
        backend: String,
        /// The name of the function.
        function: &'static str,
    },
    /// A function of the backend failed.
    #[error("{}", .0.clone().message())]
    Call(#[from] CallError),
    /// The disk failed.
    #[error("{action} failed: {source}")]
    Disk {
        /// What was done.
        action: &'static str,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A single file is not copied.
    #[error("copying {path} failed: {source}")]
    Copy {
        /// Its path in the environment.
        path: String,
        /// The cause.
        source: Box<UpdateError>,
    },
    /// A file has more than [`MAX_FILE_SIZE`] bytes.
    #[error("it has more than {MAX_FILE_SIZE} bytes")]
    TooLarge,
}

impl UpdateError {
    fn disk<E: std::error::Error + Send + Sync + 'static>(action: &'static str) -> impl FnOnce(E) -> Self {
        move |source| UpdateError::Disk { action, source: source.into() }
    }
}

/// Copies the changed files of a backend, and removes those that it no longer lists. Returns the number of changes.
/// Blocks.
///
/// # Errors
/// The backend is missing, or one of its functions fails. The first error of a single file is returned after all others
/// are copied.
pub fn update(custom: &CustomModules, mirror: &Mirror) -> Result<usize, UpdateError> {
    let backend = Backend { custom, name: mirror.name() };
    // `fileserver.update` may run at the same time.
    let _updating = custom.updating_files.lock();
    files::create_private_dir(mirror.directory()).map_err(UpdateError::disk("creating the directory of copies"))?;
    backend.optional("update", Args::default())?;
    let environments = list(&backend.call("envs", Args::default())?);
    let environments: BTreeSet<String> = environments.into_iter().filter(|name| mirror.root(name).is_some()).collect();
    let (mut changed, mut first_error) = (0, None);
    for gone in mirror.envs().iter().filter(|name| !environments.contains(*name)) {
        if let Some(root) = mirror.root(gone) {
            fs::remove_dir_all(root).map_err(UpdateError::disk("removing an environment"))?;
            changed += 1;
        }
    }
    for saltenv in &environments {
        let Some(root) = mirror.root(saltenv) else { continue };
        files::create_private_dir(&root).map_err(UpdateError::disk("creating the directory of an environment"))?;
        let load = Args::positional([map! {"saltenv" => saltenv.as_str()}.into()]);
        let listed = list(&backend.call("file_list", load)?);
        let is_safe = |path: &String| {
            let is_safe = files::relative_path(path).is_some_and(|clean| clean == Path::new(path));
            if !is_safe {
                tracing::warn!(backend = backend.name, path, "file not served: its path leads out of the environment");
            }
            is_safe
        };
        let listed: BTreeSet<String> = listed.into_iter().filter(is_safe).collect();
        changed += remove_unlisted(&root, "", &listed).map_err(UpdateError::disk("removing a copy"))?;
        for path in &listed {
            match backend.copy(mirror, &root, path, saltenv) {
                Ok(is_changed) => changed += usize::from(is_changed),
                Err(error) => {
                    first_error.get_or_insert(UpdateError::Copy { path: path.clone(), source: Box::new(error) });
                }
            }
        }
    }
    first_error.map_or(Ok(changed), Err)
}

/// A custom file server backend.
struct Backend<'a> {
    custom: &'a CustomModules,
    name: &'a str,
}

impl Backend<'_> {
    fn optional(&self, function: &str, args: Args) -> Result<Option<Value>, CallError> {
        self.custom.call_other("fileserver", &format!("{}.{function}", self.name), args, CALL_TIMEOUT).transpose()
    }

    fn call(&self, function: &'static str, args: Args) -> Result<Value, UpdateError> {
        let missing = || UpdateError::NoFunction { backend: self.name.to_owned(), function };
        self.optional(function, args)?.ok_or_else(missing)
    }

    /// Copies a file, if it differs from its copy. Returns whether it did.
    fn copy(&self, mirror: &Mirror, root: &Path, path: &str, saltenv: &str) -> Result<bool, UpdateError> {
        let by_name = map! {"path" => path, "saltenv" => saltenv};
        let entry = self.call("find_file", Args { keyword: by_name.clone(), ..Args::default() })?;
        if !entry.get("path").is_some_and(Value::is_truthy) {
            return Ok(false);
        }
        let hash = self.optional("file_hash", Args::positional([by_name.clone().into(), entry.clone()]))?;
        let target = root.join(path);
        if is_same(hash.as_ref(), &target) {
            return Ok(false);
        }
        let failed = || UpdateError::disk("writing its copy");
        let part = mirror.directory().join(PARTIAL_COPY);
        _ = fs::remove_file(&part);
        let mut file = user_files::create_new(&part, 0o666).map_err(failed())?;
        let mut loc = 0u64;
        loop {
            let mut load = by_name.clone();
            load.extend(map! {"loc" => loc, "gzip" => Value::Nil});
            let served = self.call("serve_file", Args::positional([load.into(), entry.clone()]))?;
            let data = match served.get("data") {
                Some(Value::Bytes(data)) => data.as_slice(),
                Some(Value::Str(data)) => data.as_bytes(),
                _ => &[],
            };
            if data.is_empty() {
                break;
            }
            loc += data.len() as u64;
            if loc > MAX_FILE_SIZE {
                return Err(UpdateError::TooLarge);
            }
            file.write_all(data).map_err(failed())?;
        }
        drop(file);
        // If the backend provides no hash, each file is fetched again, and replaced if it differs.
        if Digest::Sha256.of_file(&target).is_ok_and(|old| Digest::Sha256.of_file(&part).is_ok_and(|new| old == new)) {
            return Ok(false);
        }
        if let Some(above) = target.parent() {
            fs::create_dir_all(above).map_err(failed())?;
        }
        fs::rename(&part, &target).map_err(failed())?;
        Ok(true)
    }
}

/// Whether the hash provided by a backend matches that of a copy.
fn is_same(hash: Option<&Value>, copy: &Path) -> bool {
    let field = |name: &str| hash.and_then(|hash| hash.get(name)).and_then(Value::as_str);
    let (Some(kind), Some(sum)) = (field("hash_type").and_then(Digest::named), field("hsum")) else { return false };
    kind.of_file(copy).is_ok_and(|own| hex(own) == sum)
}

fn list(value: &Value) -> Vec<String> {
    let mut names: Vec<String> = Vec::from_value(value).unwrap_or_default();
    names.truncate(MAX_FILES);
    names
}

/// Removes files of a directory that are not listed, and then empty directories. Returns the number of removed files.
fn remove_unlisted(directory: &Path, relative: &str, listed: &BTreeSet<String>) -> io::Result<usize> {
    let mut removed = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let path = entry.path();
        let name = entry.file_name();
        let below = if relative.is_empty() {
            name.to_string_lossy().into_owned()
        } else {
            format!("{relative}/{}", name.to_string_lossy())
        };
        if entry.file_type()?.is_dir() {
            removed += remove_unlisted(&path, &below, listed)?;
            // Fails if the directory still contains files.
            _ = fs::remove_dir(&path);
        } else if !listed.contains(&below) {
            fs::remove_file(&path)?;
            removed += 1;
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use brine_value::Map;

    use super::*;

    #[test]
    fn copies_that_are_not_listed_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        for path in ["a", "sub/b", "sub/c", "old/deep/d"] {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        let listed = ["a", "sub/c"].map(str::to_owned).into();
        assert_eq!(remove_unlisted(directory.path(), "", &listed).unwrap(), 2);
        let left = |path: &str| directory.path().join(path).exists();
        assert_eq!(["a", "sub/b", "sub/c", "old"].map(left), [true, false, true, false]);
    }

    #[test]
    fn a_hash_counts_only_with_a_known_kind() {
        let directory = tempfile::tempdir().unwrap();
        let copy = directory.path().join("x");
        fs::write(&copy, "text").unwrap();
        let sum = hex(Digest::Md5.of("text"));
        for (hash, expected) in [
            (map! {"hash_type" => "md5", "hsum" => sum.as_str()}, true),
            (map! {"hash_type" => "sha256", "hsum" => sum.as_str()}, false),
            (map! {"hash_type" => "crc", "hsum" => sum.as_str()}, false),
            (map! {"hsum" => sum.as_str()}, false),
            (Map::new(), false),
        ] {
            assert_eq!(is_same(Some(&hash.clone().into()), &copy), expected, "{hash:?}");
        }
        assert!(!is_same(None, &copy));
    }
}
