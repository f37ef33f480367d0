//! Taking up changes of the reactor's configuration without a restart: the files are looked at each second.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use brine_core::config::MasterConfig;
use brine_core::{Map, Value, map};
use brine_reactor::{Entries, Reactor};
use tokio_util::sync::CancellationToken;

use super::MasterDispatch;
use crate::Shared;

const INTERVAL: Duration = Duration::from_secs(1);
/// The options that are taken up.
const OPTIONS: &[&str] = &["reactor", "reactor_rate_limit", "reactor_cooldown", "reactor_debounce"];

/// What tells one state of the configuration's files from another.
type Stamps = BTreeMap<PathBuf, (i64, i64, u64, u64)>;

/// Looks after the files until `shutdown`.
pub(crate) async fn watch(shared: Arc<Shared>, reactor: Arc<Reactor<MasterDispatch>>, shutdown: CancellationToken) {
    let directory = shared.config.config_dir.clone();
    let mut stamps = stamps(&directory, &shared.config.reactor);
    let mut known = read(&directory).ok();
    loop {
        tokio::select! {
            () = tokio::time::sleep(INTERVAL) => {}
            () = shutdown.cancelled() => return,
        }
        let option = known.as_ref().and_then(|opts| opts.get("reactor")).unwrap_or(&shared.config.reactor);
        let now = self::stamps(&directory, option);
        if now == stamps {
            continue;
        }
        stamps = now;
        match read(&directory).and_then(|opts| {
            let entries = Entries::from_opts(&opts).map_err(|error| error.to_string())?;
            Ok((opts, entries))
        }) {
            // What was given in another way than by these files stays while they do not speak of it.
            Ok((opts, _)) if known.as_ref() == Some(&opts) && !opts.get("reactor").is_some_and(is_path) => {}
            Ok((opts, entries)) => {
                tracing::info!(
                    entries = entries.all().len(),
                    "the reactor's configuration has changed and is taken up"
                );
                known = Some(opts);
                reactor.configure(entries);
                shared.fire("salt/reactor/configured", &map! {"reactors" => Value::from(&*reactor.entries())}).await;
            }
            Err(error) => {
                tracing::error!(
                    "the reactor's configuration has changed and cannot be used, the one before stays: {error}"
                );
                shared.fire("salt/reactor/error", &map! {"message" => error}).await;
            }
        }
    }
}

fn is_path(option: &Value) -> bool {
    option.as_str().is_some()
}

/// The reactor's options as the files say them.
fn read(directory: &Path) -> Result<Map, String> {
    let loaded = MasterConfig::load(directory, &Map::new()).map_err(|error| error.to_string())?;
    let opts = loaded.config.opts;
    Ok(OPTIONS.iter().filter_map(|name| Some(((*name).into(), opts.get(*name)?.clone()))).collect())
}

fn stamps(directory: &Path, reactor: &Value) -> Stamps {
    let mut paths = vec![directory.join("master"), directory.join("master.d")];
    let drop_ins = std::fs::read_dir(directory.join("master.d"));
    paths.extend(drop_ins.into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path()));
    paths.extend(reactor.as_str().map(PathBuf::from));
    let stamp = |path: PathBuf| {
        let status = std::fs::metadata(&path).ok()?;
        Some((path, (status.mtime(), status.mtime_nsec(), status.size(), status.ino())))
    };
    paths.into_iter().filter_map(stamp).collect()
}
