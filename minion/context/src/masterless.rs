//! Minions without a session: those that work without a master, and variants of a running one for a state run.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};

use brine_config::{MinionConfig, template_opts};
use brine_fileserver::Roots;
use brine_function::Args;
use brine_host::grains;
use brine_ids::{Jid, MinionId};
use brine_jinja::Host;
use brine_sls::master_tops;
use brine_sls::pillar::{PillarRequest, PillarSource};
use brine_value::Map;
use indexmap::IndexMap;

use crate::files::LocalFiles;
use crate::template_host::MinionHost;
use crate::{Context, Grains, Job, MasterEvent, Minion, Modules, SetupError, Upstream, UpstreamError, minion_id};

/// The maximum number of pillars that are rendered one within the other.
const MAX_DEPTH: usize = 8;

/// Creates a minion that works without a master: `salt-call --local`.
pub fn masterless(config: MinionConfig, modules: Modules) -> Result<Arc<Minion>, SetupError> {
    let minion = without_pillar(config, modules)?;
    let pillar = minion.upstream.pillar(None, minion.config.pillarenv.as_deref(), &Map::new());
    *minion.pillar.write() = Arc::new(pillar.unwrap_or_default());
    Ok(minion)
}

/// Creates a minion like [`masterless`], with an empty pillar: for callers that render one on demand.
pub fn without_pillar(config: MinionConfig, modules: Modules) -> Result<Arc<Minion>, SetupError> {
    let id = minion_id(&config)?;
    let mut config = config;
    config.make_local();
    let config = Arc::new(config);
    let uncollected = {
        let config = Arc::clone(&config);
        Grains::uncollected(move || grains::collect(&config, id.as_str()))
    };
    let minion = with_grains(config, modules, Arc::new(uncollected))?;
    minion.add_custom_grains();
    Ok(minion)
}

/// Returns the minion with its options overridden by a file (`localconfig`), for one state run. It shares the grains.
pub fn with_file(minion: &Minion, path: &Path) -> Result<Arc<Minion>, SetupError> {
    let config = minion.config.with_file(path)?;
    let grains = Arc::clone(&minion.grains);
    if config.file_client == "local" {
        return with_grains(Arc::new(config), minion.modules, grains);
    }
    let (id, files, upstream) = (minion_id(&config)?, Arc::clone(&minion.files), Arc::clone(&minion.upstream));
    Ok(Minion::new(&id, &Arc::new(config), minion.modules, grains, files, upstream, None))
}

/// Returns the minion with only the files of these directories, for one state run.
pub fn with_roots(minion: &Minion, file_roots: IndexMap<String, Vec<PathBuf>>) -> Result<Arc<Minion>, SetupError> {
    let mut config = (*minion.config).clone();
    config.file_client = "local".into();
    config.file_roots = file_roots;
    for (name, value) in [("file_client", "local".into()), ("file_roots", config.file_roots.clone().into())] {
        config.opts.insert(name.into(), value);
    }
    let options = brine_fileserver::Options { follow_symlinks: false, ..brine_fileserver::Options::default() };
    let files = LocalFiles::new(Roots::new(config.file_roots.clone(), &options), config.opts.clone());
    let (grains, upstream) = (Arc::clone(&minion.grains), Arc::clone(&minion.upstream));
    let id = minion_id(&config)?;
    Ok(Minion::new(&id, &Arc::new(config), minion.modules, grains, Arc::new(files), upstream, None))
}

fn with_grains(config: Arc<MinionConfig>, modules: Modules, grains: Arc<Grains>) -> Result<Arc<Minion>, SetupError> {
    let id = minion_id(&config)?;
    let Local { files, upstream } = Local::open(&config, &id, &grains)?;
    let shared = Arc::clone(&upstream) as Arc<dyn Upstream>;
    let minion = Minion::new(&id, &config, modules, grains, files, shared, None);
    upstream.set_minion(&minion);
    Ok(minion)
}

/// Files and pillar of this host (`file_client: local`).
pub struct Local {
    /// The files of `file_roots`.
    pub files: Arc<LocalFiles>,
    /// The pillar of `pillar_roots`. Requires a call of [`LocalUpstream::set_minion`].
    pub upstream: Arc<LocalUpstream>,
}

impl Local {
    /// Opens the file server of a minion. Blocks: gitfs fetches its repositories.
    ///
    /// # Errors
    /// File server backends that cannot be used.
    pub fn open(config: &Arc<MinionConfig>, id: &MinionId, grains: &Arc<Grains>) -> Result<Self, SetupError> {
        let pillar = PillarSource::new(Arc::new(template_opts(config)));
        let options = brine_fileserver::Options {
            ignore_globs: config.file_ignore_glob.clone(),
            ignore_regexes: config.file_ignore_regex.clone(),
            follow_symlinks: config.fileserver_followsymlinks,
            ignore_symlinks: config.fileserver_ignoresymlinks,
        };
        let roots = brine_fileserver::configured(config.file_roots.clone(), &options, &config.opts, &config.cachedir)?;
        roots.update();
        let files = Arc::new(LocalFiles::new(roots, config.opts.clone()));
        let upstream = LocalUpstream { id: id.clone(), pillar, grains: Arc::clone(grains), minion: OnceLock::new() };
        Ok(Local { files, upstream: Arc::new(upstream) })
    }
}

/// Events and pillar of a minion without a master.
pub struct LocalUpstream {
    id: MinionId,
    pillar: PillarSource,
    grains: Arc<Grains>,
    /// The minion whose functions pillar files can call.
    minion: OnceLock<Weak<Minion>>,
}

impl LocalUpstream {
    /// Sets the minion whose functions pillar files can call, once.
    pub fn set_minion(&self, minion: &Arc<Minion>) {
        _ = self.minion.set(Arc::downgrade(minion));
    }
}

impl LocalUpstream {
    fn render(
        &self,
        (saltenv, pillarenv): (Option<&str>, Option<&str>),
        over: &Map,
        on_demand: Option<&Map>,
    ) -> Result<Map, UpstreamError> {
        if over.is_empty() && on_demand.is_none() && !self.pillar.has_sources() {
            return Ok(Map::new());
        }
        let _nested = Nested::begin()?;
        let grains = self.grains.get();
        let minion = self.minion.get().and_then(Weak::upgrade);
        let functions = minion.map(|minion| host(&minion, "pillar.items"));
        let id = &self.id;
        Ok(self.pillar.render(&PillarRequest {
            id,
            grains: &grains,
            saltenv,
            pillarenv,
            pillar_override: over,
            on_demand,
            extra_minion_data: &Map::new(),
            functions,
        }))
    }
}

thread_local! {
    /// The number of pillars that are being rendered on this thread, each for a template of the one before.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// A pillar that is being rendered. Its templates can ask for a pillar again, by `pillar.items`, also for their own.
struct Nested;

impl Nested {
    fn begin() -> Result<Self, UpstreamError> {
        let depth = DEPTH.get();
        if depth >= MAX_DEPTH {
            return Err(UpstreamError::PillarDepth(MAX_DEPTH));
        }
        DEPTH.set(depth + 1);
        Ok(Nested)
    }
}

impl Drop for Nested {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

impl Upstream for LocalUpstream {
    fn has_master(&self) -> bool {
        false
    }

    fn fire_master(&self, event: MasterEvent) -> Result<(), UpstreamError> {
        Err(UpstreamError::LocalMode { tag: event.tag })
    }

    fn master_tops(&self, opts: Map) -> Result<Map, UpstreamError> {
        let minion = self.minion.get().and_then(Weak::upgrade).ok_or(UpstreamError::MinionGone)?;
        let host = host(&minion, "state.show_top");
        Ok(master_tops::assigned(&minion.config.opts, &opts, &host))
    }

    fn pillar(&self, saltenv: Option<&str>, pillarenv: Option<&str>, over: &Map) -> Result<Map, UpstreamError> {
        self.render((saltenv, pillarenv), over, None)
    }

    fn pillar_with(&self, external: &Map, over: &Map) -> Result<Map, UpstreamError> {
        self.render((None, None), over, Some(external))
    }
}

/// Returns the functions for pillar files and `master_tops`. The pillar is empty while it is being rendered.
fn host(minion: &Arc<Minion>, function: &str) -> Host {
    let job = Arc::new(Job::local(&Jid::new(), function, &Args::default()));
    let context = Context::new(Arc::clone(minion), job).for_template();
    MinionHost::new(Context { run_pillar: Some(Arc::default()), ..context }).host()
}
