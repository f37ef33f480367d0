//! Taking up changes of the reactor's configuration without a restart: the files are looked at each second.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use brine_core::config::MasterConfig;
use brine_core::value::FromValue;
use brine_core::{Map, Value, map};
use brine_reactor::{Entries, Reactor};
use tokio_util::sync::CancellationToken;

use super::MasterDispatch;
use crate::Shared;

const INTERVAL: Duration = Duration::from_secs(1);
/// The options that are taken up.
const OPTIONS: &[&str] = &["reactor", "reactor_rate_limit", "reactor_cooldown", "reactor_debounce", "reactor_rules"];

/// The files of rules, which are read again when one of them changes.
fn rule_files(opts: &Map) -> Vec<String> {
    opts.get("reactor_rules").and_then(Vec::from_value).unwrap_or_default()
}

/// What tells one state of the configuration's files from another.
type Stamps = BTreeMap<PathBuf, (i64, i64, u64, u64)>;

/// Looks after the files until `shutdown`.
pub(crate) async fn watch(shared: Arc<Shared>, reactor: Arc<Reactor<MasterDispatch>>, shutdown: CancellationToken) {
    let directory = shared.config.config_dir.clone();
    let started = &shared.config.opts;
    let mut stamps = stamps(&directory, started);
    let mut known = read(&directory).ok();
    loop {
        tokio::select! {
            () = tokio::time::sleep(INTERVAL) => {}
            () = shutdown.cancelled() => return,
        }
        let now = self::stamps(&directory, known.as_ref().unwrap_or(started));
        if now == stamps {
            continue;
        }
        stamps = now;
        match read(&directory).and_then(|opts| {
            let entries = Entries::from_opts(&opts).map_err(|error| error.to_string())?;
            Ok((opts, entries))
        }) {
            // What was given in another way than by these files stays while they do not speak of it.
            Ok((opts, _)) if known.as_ref() == Some(&opts) && !opts.get("reactor").is_some_and(is_path) => {
                take_rules(&shared, &reactor, &rule_files(&opts)).await;
            }
            Ok((opts, entries)) => {
                tracing::info!(
                    entries = entries.all().len(),
                    "the reactor's configuration has changed and is taken up"
                );
                take_rules(&shared, &reactor, &rule_files(&opts)).await;
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

/// Reads rules over time anew.
async fn take_rules(shared: &Shared, reactor: &Reactor<MasterDispatch>, files: &[String]) {
    let errors = match reactor.set_rules(files) {
        Ok(errors) => errors,
        Err(error) => vec![error.to_string()],
    };
    for error in errors {
        tracing::error!("a rule over time is left out: {error}");
        shared.fire("salt/reactor/error", &map! {"message" => error}).await;
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

fn stamps(directory: &Path, opts: &Map) -> Stamps {
    let mut paths = vec![directory.join("master"), directory.join("master.d")];
    let drop_ins = std::fs::read_dir(directory.join("master.d"));
    paths.extend(drop_ins.into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path()));
    paths.extend(opts.get("reactor").and_then(Value::as_str).map(PathBuf::from));
    paths.extend(rule_files(opts).iter().flat_map(|file| brine_core::glob::paths(Path::new(""), file)));
    let stamp = |path: PathBuf| {
        let status = std::fs::metadata(&path).ok()?;
        Some((path, (status.mtime(), status.mtime_nsec(), status.size(), status.ino())))
    };
    paths.into_iter().filter_map(stamp).collect()
}
