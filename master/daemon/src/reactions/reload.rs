//! Reloads the reactor's configuration when its files change: they are polled each second, on a thread that may block.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use brine_config::MasterConfig;
use brine_config::opts::master as opts;
use brine_master_calls::Services;
use brine_reactor::{Entries, Reactor};
use brine_value::{Map, Value, map};
use tokio_util::sync::CancellationToken;

const INTERVAL: Duration = Duration::from_secs(1);
/// The options that are reloaded.
const OPTIONS: &[&str] = &["reactor", "reactor_rate_limit", "reactor_cooldown", "reactor_debounce", "reactor_rules"];

/// The versions of the configuration's files, from their metadata.
type Stamps = BTreeMap<PathBuf, (i64, i64, u64, u64)>;

/// The result of a poll.
enum Change {
    Unchanged,
    /// The files are invalid.
    Invalid(String),
    /// Only rule files have changed.
    Rules(Vec<String>),
    Options {
        opts: Map,
        entries: Entries,
    },
}

/// The watched files and their last version.
struct Watched {
    directory: PathBuf,
    /// The options that the master was started with.
    started: Map,
    stamps: Stamps,
    known: Option<Map>,
}

impl Watched {
    fn new(directory: PathBuf, started: Map) -> Self {
        let stamps = stamps(&directory, &started);
        match read(&directory) {
            // Changed since the master read them: the first poll reports the change. Options that the files do not set
            // have default values here, although they may come from elsewhere.
            Ok(opts) if opts.iter().any(|(name, value)| value.is_truthy() && started.get(name) != Some(value)) => {
                Watched { directory, started, stamps: Stamps::default(), known: None }
            }
            opts => Watched { directory, started, stamps, known: opts.ok() },
        }
    }

    fn poll(&mut self) -> Change {
        let now = stamps(&self.directory, self.known.as_ref().unwrap_or(&self.started));
        if now == self.stamps {
            return Change::Unchanged;
        }
        self.stamps = now;
        let options = read(&self.directory).and_then(|opts| {
            let entries = Entries::from_opts(&opts).map_err(|error| error.to_string())?;
            Ok((opts, entries))
        });
        match options {
            // Options from elsewhere stay while these files do not set them.
            Ok((opts, _)) if self.known.as_ref() == Some(&opts) && !is_path(&opts::reactor(&opts)) => {
                Change::Rules(opts::reactor_rules(&opts))
            }
            Ok((opts, entries)) => {
                self.known = Some(opts.clone());
                Change::Options { opts, entries }
            }
            Err(error) => Change::Invalid(error),
        }
    }
}

/// Polls the files until `shutdown`.
pub(crate) async fn watch(services: Arc<Services>, reactor: Arc<Reactor>, shutdown: CancellationToken) {
    let (directory, started) = (services.config.config_dir.clone(), services.config.opts.clone());
    // Fails only at the end of the runtime, as the polls below do.
    let watched = services.executors.disk.run(move |_| Watched::new(directory, started)).await;
    let Ok(mut watched) = watched else { return };
    loop {
        tokio::select! {
            () = tokio::time::sleep(INTERVAL) => {}
            () = shutdown.cancelled() => return,
        }
        let poll = services.executors.disk.run(move |_| {
            let change = watched.poll();
            (watched, change)
        });
        let change = tokio::select! {
            // A hanging file system must not delay the stop.
            polled = poll => match polled {
                Ok((back, change)) => {
                    watched = back;
                    change
                }
                Err(_) => return,
            },
            () = shutdown.cancelled() => return,
        };
        match change {
            Change::Unchanged => {}
            Change::Rules(files) => reload_rules(&services, &reactor, files).await,
            Change::Options { opts, entries } => {
                tracing::info!(entries = entries.all().len(), "reactor configuration reloaded");
                reload_rules(&services, &reactor, opts::reactor_rules(&opts)).await;
                reactor.configure(entries);
                let (entries, config) = (reactor.entries(), Arc::clone(&services.config));
                _ = services.executors.disk.run(move |_| report_files(&entries, &config)).await;
                services
                    .events
                    .fire("salt/reactor/configured", &map! {"reactors" => Value::from(&*reactor.entries())})
                    .await;
            }
            Change::Invalid(error) => {
                tracing::error!("reloading the reactor configuration failed: {error}; the previous one stays");
                services.events.fire("salt/reactor/error", &map! {"message" => error}).await;
            }
        }
    }
}

/// Logs invalid files of entries, as at startup.
fn report_files(entries: &Entries, config: &MasterConfig) {
    for error in brine_reactor::check_files(entries, &config.renderer, config.reactor_strict_data) {
        tracing::warn!("{error}");
    }
}

/// Reloads rules over time.
async fn reload_rules(services: &Services, reactor: &Arc<Reactor>, files: Vec<String>) {
    let reactor = Arc::clone(reactor);
    let errors = match services.executors.disk.run(move |_| reactor.set_rules(&files)).await {
        Ok(Ok(errors)) => errors,
        Ok(Err(error)) => vec![error.to_string()],
        Err(error) => vec![format!("reading rules over time failed: {error}")],
    };
    for error in errors {
        tracing::error!("a rule over time is skipped: {error}");
        services.events.fire("salt/reactor/error", &map! {"message" => error}).await;
    }
}

fn is_path(option: &Value) -> bool {
    option.as_str().is_some()
}

/// Reads the reactor's options from the files.
fn read(directory: &Path) -> Result<Map, String> {
    let loaded = MasterConfig::load(directory, &Map::new()).map_err(|error| error.to_string())?;
    let opts = loaded.config.opts;
    Ok(OPTIONS.iter().filter_map(|name| Some(((*name).into(), opts.get(*name)?.clone()))).collect())
}

fn stamps(directory: &Path, opts: &Map) -> Stamps {
    let mut paths = vec![directory.join("master"), directory.join("master.d")];
    let drop_ins = std::fs::read_dir(directory.join("master.d"));
    paths.extend(drop_ins.into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path()));
    paths.extend(opts::reactor(opts).as_str().map(PathBuf::from));
    paths.extend(opts::reactor_rules(opts).iter().flat_map(|file| brine_text::glob::paths(Path::new(""), file)));
    let stamp = |path: PathBuf| {
        let status = std::fs::metadata(&path).ok()?;
        Some((path, (status.mtime(), status.mtime_nsec(), status.size(), status.ino())))
    };
    paths.into_iter().filter_map(stamp).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_since_the_master_read_its_files_are_found() {
        let directory = tempfile::tempdir().unwrap();
        let write = |text: &str| std::fs::write(directory.path().join("master"), text).unwrap();
        write("reactor:\n  - 'one': [/one.sls]\n");
        let started = read(directory.path()).unwrap();
        let watched = |started: &Map| Watched::new(directory.path().to_owned(), started.clone());
        assert!(matches!(watched(&started).poll(), Change::Unchanged));
        write("reactor:\n  - 'one': [/one.sls]\n  - 'two': [/two.sls]\n");
        let mut late = watched(&started);
        let change = late.poll();
        assert!(matches!(&change, Change::Options { entries, .. } if entries.all().len() == 2));
        assert!(matches!(late.poll(), Change::Unchanged));
        // Options from elsewhere stay in effect.
        write("id: m\n");
        assert!(matches!(watched(&started).poll(), Change::Unchanged));
    }
}
