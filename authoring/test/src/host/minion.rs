//! The minion of a test: its configuration, files, grains and pillar.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use brine_bus::SocketNames;
use brine_config::MinionConfig;
use brine_context::custom::CustomModules;
use brine_context::files::LocalFiles;
use brine_context::local_bus::LocalBus;
use brine_context::template_host::MinionHost;
use brine_context::{Context, Grains, MasterEvent, Minion, Upstream, UpstreamError};
use brine_function::Registry;
use brine_host::process::{Children, Output, ProcessError, Program};
use brine_host::programs::Programs;
use brine_ids::MinionId;
use brine_mask::Mask;
use brine_schedule::Schedule;
use brine_sls::pillar::{PillarRequest, PillarSource};
use brine_value::{Map, Value, map};
use indexmap::IndexMap;
use parking_lot::{Mutex, RwLock};
use tokio_util::sync::CancellationToken;

use super::WorldError;
use super::functions::Library;
use super::root::Root;
use crate::format::Given;

/// Directories by environment.
pub type Roots = IndexMap<String, Vec<PathBuf>>;

/// The id of a minion without one.
const ID: &str = "minion";

/// Creates the minion of a test.
pub(super) fn create(
    library: &Arc<Library>,
    given: &Given,
    roots: &Roots,
    root: &Root,
) -> Result<Arc<Minion>, WorldError> {
    let id = given.id.clone().unwrap_or_else(|| ID.to_owned());
    let mut opts = given.opts.clone();
    opts.insert("id".into(), id.as_str().into());
    opts.insert("file_roots".into(), roots.clone().into());
    opts.insert("cachedir".into(), root.cache().into());
    if let Some(saltenv) = &given.saltenv {
        opts.insert("saltenv".into(), saltenv.as_str().into());
    }
    if let Some(pillar_roots) = &given.pillar_roots {
        opts.insert("pillar_roots".into(), pillar_roots.clone().into());
    }
    let mut config = MinionConfig::load(Path::new("/nonexistent"), &opts)?.config;
    config.set_id(&id);
    let config = Arc::new(config);
    let files = brine_fileserver::Roots::new(roots.clone(), &brine_fileserver::Options::default());
    let mut grains =
        map! {"id" => id.as_str(), "host" => id.split('.').next().unwrap_or_default(), "nodename" => id.as_str()};
    grains.extend(given.grains.iter().map(|(name, value)| (name.clone(), value.clone())));
    let mocked = given.mocks.keys().cloned().collect();
    Ok(Arc::new(Minion {
        custom: CustomModules::without_minion(&config),
        grains: Arc::new(Grains::from(grains)),
        pillar: RwLock::new(Arc::new(given.pillar.clone())),
        files: Arc::new(LocalFiles::new(files, given.opts.clone())),
        upstream: Arc::new(NoMaster),
        programs: Arc::new(NoPrograms),
        local: LocalBus::Sockets { directory: "/nonexistent".into(), names: SocketNames::minion(&id) },
        beacons: Arc::default(),
        schedule: Arc::new(Mutex::new(Schedule::new(Map::new()))),
        jobs: Arc::default(),
        mask: Mask::default(),
        functions: Registry::new(&library.modules.functions()).with_overlay(library.overlay(mocked)),
        inner_functions: None,
        states: Registry::new(&library.modules.states()).with_overlay(library.state_overlay()),
        modules: library.modules,
        config,
        id,
    }))
}

/// Renders the pillar of a test.
///
/// # Errors
/// The errors of its files.
pub fn pillar(context: &Context, given: &Given) -> Result<Arc<Map>, Vec<String>> {
    let Some(pillar_roots) = &given.pillar_roots else { return Ok(Arc::new(given.pillar.clone())) };
    let mut opts = given.opts.clone();
    opts.insert("pillar_roots".into(), pillar_roots.clone().into());
    let invalid = |error: &dyn std::fmt::Display| vec![error.to_string()];
    let id: MinionId = context.minion.id.parse().map_err(|error| invalid(&error))?;
    let host = MinionHost::new(Context { run_pillar: Some(Arc::default()), ..context.for_template() }).host();
    let mut pillar = PillarSource::new(Arc::new(opts)).render(&PillarRequest {
        id: &id,
        grains: &context.grains(),
        saltenv: given.saltenv.as_deref(),
        pillarenv: None,
        pillar_override: &given.pillar,
        on_demand: None,
        extra_minion_data: &Map::new(),
        functions: Some(host),
    });
    match pillar.shift_remove("_errors") {
        Some(Value::List(errors)) => Err(errors.iter().map(ToString::to_string).collect()),
        _ => Ok(Arc::new(pillar)),
    }
}

/// The master of a test: it drops events.
struct NoMaster;

impl Upstream for NoMaster {
    fn has_master(&self) -> bool {
        false
    }

    fn masks_pillar(&self) -> bool {
        false
    }

    fn fire_master(&self, _event: MasterEvent) -> Result<(), UpstreamError> {
        Ok(())
    }

    fn pillar(&self, _saltenv: Option<&str>, _pillarenv: Option<&str>, over: &Map) -> Result<Map, UpstreamError> {
        Ok(over.clone())
    }

    fn pillar_with(&self, external: &Map, over: &Map) -> Result<Map, UpstreamError> {
        Ok(external.iter().chain(over).map(|(name, value)| (name.clone(), value.clone())).collect())
    }
}

/// The programs of a test: none.
struct NoPrograms;

impl Programs for NoPrograms {
    fn find(&self, _name: &str) -> Option<PathBuf> {
        None
    }

    fn run(&self, program: &Program, _: &Children, _: &CancellationToken) -> Result<Output, ProcessError> {
        let command = program.command.clone();
        let source = std::io::Error::new(std::io::ErrorKind::PermissionDenied, "tests run no programs");
        Err(ProcessError::Start { program: command.clone(), command, context: "{}".to_owned(), source })
    }
}
