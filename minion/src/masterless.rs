//! Minions without a session of their own: those that work without a master, and those that differ from the one that runs
//! for the length of a state run.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use brine_config::MinionConfig;
use brine_fileserver::Roots;
use brine_sls::pillar::PillarSource;
use brine_value::Map;
use indexmap::IndexMap;
use parking_lot::RwLock;

use crate::context::{Minion, Upstream};
use crate::daemon::{MinionError, build, minion_id};
use crate::fileclient::LocalFiles;
use crate::upstream::LocalUpstream;

/// A minion that works without a master: `salt-call --local`.
pub fn masterless(config: MinionConfig) -> Result<Arc<Minion>, MinionError> {
    let minion = without_pillar(config)?;
    let pillar = minion.upstream.pillar(None, minion.config.pillarenv.as_deref(), &Map::new());
    *minion.pillar.write() = Arc::new(pillar.unwrap_or_default());
    Ok(minion)
}

/// As [`masterless`], with an empty pillar: for who renders one only when it is wanted.
pub fn without_pillar(config: MinionConfig) -> Result<Arc<Minion>, MinionError> {
    let id = minion_id(&config)?;
    let mut config = config;
    config.file_client = "local".into();
    config.opts.insert("file_client".into(), "local".into());
    let grains = crate::grains::collect(&config, id.as_str());
    with_grains(config, Arc::new(RwLock::new(Arc::new(grains))))
}

/// The minion with what a file says over its options (`localconfig`), for one state run. It has the same grains.
pub fn with_file(minion: &Minion, path: &Path) -> Result<Arc<Minion>, MinionError> {
    let config = minion.config.with_file(path)?;
    let grains = Arc::clone(&minion.grains);
    if config.file_client == "local" {
        return with_grains(config, grains);
    }
    let (id, files, upstream) = (minion_id(&config)?, Arc::clone(&minion.files), Arc::clone(&minion.upstream));
    Ok(build(&id, &Arc::new(config), grains, files, upstream, None))
}

/// The minion with the files of these folders alone, for one state run.
pub fn with_roots(minion: &Minion, file_roots: IndexMap<String, Vec<PathBuf>>) -> Result<Arc<Minion>, MinionError> {
    let mut config = (*minion.config).clone();
    config.file_client = "local".into();
    config.file_roots = file_roots;
    for (name, value) in [("file_client", "local".into()), ("file_roots", config.file_roots.clone().into())] {
        config.opts.insert(name.into(), value);
    }
    let options = brine_fileserver::Options { follow_symlinks: false, ..brine_fileserver::Options::default() };
    let files = LocalFiles::new(Roots::new(config.file_roots.clone(), &options), config.opts.clone());
    let (grains, upstream) = (Arc::clone(&minion.grains), Arc::clone(&minion.upstream));
    Ok(build(&minion_id(&config)?, &Arc::new(config), grains, Arc::new(files), upstream, None))
}

fn with_grains(config: MinionConfig, grains: Arc<RwLock<Arc<Map>>>) -> Result<Arc<Minion>, MinionError> {
    let id = minion_id(&config)?;
    let config = Arc::new(config);
    let pillar = PillarSource::new(Arc::new(config.opts.clone()));
    let options = brine_fileserver::Options {
        ignore_globs: config.file_ignore_glob.clone(),
        ignore_regexes: config.file_ignore_regex.clone(),
        follow_symlinks: config.fileserver_followsymlinks,
        ignore_symlinks: config.fileserver_ignoresymlinks,
    };
    let roots = brine_fileserver::configured(config.file_roots.clone(), &options, &config.opts, &config.cachedir)?;
    roots.update();
    let files = LocalFiles::new(roots, config.opts.clone());
    let minion = OnceLock::new();
    let upstream = Arc::new(LocalUpstream { id: id.clone(), pillar, grains: Arc::clone(&grains), minion });
    let minion = build(&id, &config, grains, Arc::new(files), Arc::clone(&upstream) as Arc<dyn Upstream>, None);
    _ = upstream.minion.set(Arc::downgrade(&minion));
    Ok(minion)
}
