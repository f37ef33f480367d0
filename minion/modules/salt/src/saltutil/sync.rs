//! `saltutil.sync_*`: copies custom modules from `_modules`, `_states`, ... of the file server to `extension_modules`.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

use brine_config::opts::modules;
use brine_context::Context;
use brine_context::custom::{self, extension_modules};
use brine_function::arguments::names;
use brine_function::{Args, Arguments, CallError, CallResult, Functions, function, registry};
use brine_modules_files::file::{digest, hash_kind};
use brine_system::user_files;
use brine_system::{files, processes};
use brine_value::{Map, Value};

use super::refresh::refresh_pillar;

/// The types that `sync_all` syncs.
const KINDS: &[&str] = &[
    "clouds",
    "beacons",
    "modules",
    "states",
    "sdb",
    "grains",
    "renderers",
    "returners",
    "output",
    "utils",
    "log_handlers",
    "executors",
    "proxymodules",
    "engines",
    "thorium",
    "serializers",
    "matchers",
    "resources",
];
/// The extensions of files that are copied.
const EXTENSIONS: [&str; 4] = ["py", "pyx", "so", "zip"];
/// The first bytes of files without an extension that are copied: scripts, and ELF binaries.
const PROGRAMS: [&[u8]; 2] = [b"#!", b"\x7fELF"];
/// The maximum number of files of one type, and the maximum size of one file in bytes.
const MAX_FILES: usize = 10_000;
const MAX_FILE_BYTES: usize = 64 << 20;

/// The types that only masterless minions sync, as others have them from their master.
const MASTERLESS_KINDS: [(&str, &str); 3] =
    [("pillar", "Pillar modules"), ("tops", "Master top modules"), ("wrapper", "Wrapper modules")];

/// The arguments of `sync_*`.
#[derive(Args)]
pub struct SyncArgs {
    /// The environments, as a list or separated by commas; by default those of the top file.
    #[default]
    saltenv: Value,
    /// Whether the functions that also refresh the pillar do so, and the grains are collected again if grains modules were
    /// synced. Unlike in Salt, `False` does not keep the old modules loaded: new and changed ones are always reloaded.
    #[default(true)]
    refresh: bool,
    /// The names of the only modules to sync, as a list, separated by commas, or as a mapping by type.
    #[default]
    extmod_whitelist: Value,
    /// The names of modules not to sync, as for `extmod_whitelist`.
    #[default]
    extmod_blacklist: Value,
}

/// The arguments of the functions that also refresh the pillar.
#[derive(Args)]
pub struct SyncPillarArgs {
    #[args]
    sync: SyncArgs,
    /// Whether the master renders the pillar again instead of returning a cached one.
    #[default(false)]
    clean_pillar_cache: bool,
}

macro_rules! sync_functions {
    ($($(#[$doc:meta])* $name:ident $kind:literal;)*) => {
        $(
            $(#[$doc])*
            #[function]
            pub fn $name(context: &Context, #[args] args: SyncArgs) -> CallResult {
                sync_kind(context, $kind, &args)
            }
        )*

        /// Execution functions that sync modules.
        pub static FUNCTIONS: Functions<Context> =
            registry!("saltutil", [sync_all, sync_grains, sync_pillar, $($name),*]);
    };
}

sync_functions! {
    /// Sync `_beacons` from the file server.
    ///
    /// CLI Example:
    ///
    ///     salt '*' saltutil.sync_beacons
    sync_beacons "beacons";
    /// Sync `_clouds` from the file server.
    ///
    /// CLI Example:
    ///
    ///     salt '*' saltutil.sync_clouds
    sync_clouds "clouds";
    /// Sync `_engines` from the file server.
    ///
    /// CLI Example:
    ///
    ///     salt '*' saltutil.sync_engines
    sync_engines "engines";
    /// Sync `_executors` from the file server.
    ///
    /// CLI Example:
    ///
    ///     salt '*' saltutil.sync_executors
    sync_executors "executors";
    /// Sync `_log_handlers` from the file server; Brine does not use them.
    ///
    /// CLI Example:
    ///
    ///     salt '*' saltutil.sync_log_handlers
    sync_log_handlers "log_handlers";
    /// Sync `_matchers` from the file server.
    ///
    /// CLI Example:
    ///
    ///     salt '*' saltutil.sync_matchers
    sync_matchers "matchers";
    /// Sync `_modules` from the file server.
    ///
    /// CLI Example:
    ///
    ///     salt '*' saltutil.sync_modules
    sync_modules "modules";
    /// Sync `_output` from the file server.
    ///
    /// CLI Example:
    ///
    ///     salt '*' saltutil.sync_output
    sync_output "output";
    /// Sync `_output` from the file server.
    ///
    /// CLI Example:
    ///
    ///     salt '*' saltutil.sync_outputters
    sync_outputters "output";
    /// Sync `_proxy` from the file server; Brine does not use them.
    ///
    /// CLI Example:
    ///
    ///     salt '*' saltutil.sync_proxymodules
    sync_proxymodules "proxymodules";
    /// Sync `_renderers` from the file server.
    ///
    /// CLI Example:
    ///
    ///     salt '*' saltutil.sync_renderers
    sync_renderers "renderers";
    /// Sync `_resources` from the file server; Brine does not use them.
    ///
    /// CLI Example:
    ///
    ///     salt '*' saltutil.sync_resources
    sync_resources "resources";
    /// Sync `_returners` from the file server.
    ///
    /// CLI Example:
    ///
    ///     salt '*' saltutil.sync_returners
    sync_returners "returners";
    /// Sync `_sdb` from the file server.
    ///
    /// CLI Example:
    ///
    ///     salt '*' saltutil.sync_sdb
    sync_sdb "sdb";
    /// Sync `_serializers` from the file server.
    ///
    /// CLI Example:
    ///
    ///     salt '*' saltutil.sync_serializers
    sync_serializers "serializers";
    /// Sync `_states` from the file server.
    ///
    /// CLI Example:
    ///
    ///     salt '*' saltutil.sync_states
    sync_states "states";
    /// Sync `_thorium` from the file server; Brine does not use them.
    ///
    /// CLI Example:
    ///
    ///     salt '*' saltutil.sync_thorium
    sync_thorium "thorium";
    /// Sync `_tops` from the file server, on a masterless minion.
    ///
    /// CLI Example:
    ///
    ///     salt '*' saltutil.sync_tops
    sync_tops "tops";
    /// Sync `_utils` from the file server.
    ///
    /// CLI Example:
    ///
    ///     salt '*' saltutil.sync_utils
    sync_utils "utils";
    /// Sync `_wrapper` from the file server, on a masterless minion; Brine does not use them.
    ///
    /// CLI Example:
    ///
    ///     salt '*' saltutil.sync_wrapper
    sync_wrapper "wrapper";
}

/// Sync `_grains` from the file server, collect the grains again, and refresh the pillar.
///
/// CLI Example:
///
///     salt '*' saltutil.sync_grains
#[function]
pub fn sync_grains(context: &Context, #[args] args: SyncPillarArgs) -> CallResult {
    sync_and_refresh(context, "grains", args)
}

/// Sync `_pillar` from the file server and refresh the pillar, on a masterless minion.
///
/// CLI Example:
///
///     salt-call --local saltutil.sync_pillar
#[function]
pub fn sync_pillar(context: &Context, #[args] args: SyncPillarArgs) -> CallResult {
    sync_and_refresh(context, "pillar", args)
}

/// Sync all types of custom modules from the file server. Returns the new and changed modules by type.
///
/// CLI Example:
///
///     salt '*' saltutil.sync_all
///     salt '*' saltutil.sync_all extmod_whitelist="{modules: [web]}"
#[function]
pub fn sync_all(context: &Context, #[args] args: SyncPillarArgs) -> CallResult {
    let SyncPillarArgs { sync, clean_pillar_cache } = args;
    let mut source = Source::new(context, &sync)?;
    let mut all = Map::new();
    let is_masterless = context.config().file_client == "local";
    let more: (&[&str], &[&str]) = if is_masterless { (&["tops"], &["pillar", "wrapper"]) } else { (&[], &[]) };
    for kind in more.0.iter().chain(KINDS).chain(more.1) {
        all.insert((*kind).into(), source.sync(kind)?);
    }
    let has_grains = all.get("grains").is_some_and(Value::is_truthy);
    source.finish(sync.refresh && has_grains);
    if sync.refresh {
        refresh_pillar(context, false, 0.0, clean_pillar_cache)?;
    }
    Ok(Value::Map(all))
}

/// Syncs modules of these types as `sync_all` does, for the master, whose types differ. Returns the new and changed
/// modules by type.
///
/// # Errors
/// Invalid arguments, or files that cannot be listed.
pub fn sync_types(context: &Context, kinds: &[&'static str], args: Args) -> Result<Map, CallError> {
    let args = SyncArgs::of_call("saltutil", "sync_all", args)?;
    let mut source = Source::new(context, &args)?;
    let mut synced = Map::new();
    for kind in kinds {
        synced.insert((*kind).into(), source.sync(kind)?);
    }
    source.finish(false);
    Ok(synced)
}

fn sync_and_refresh(context: &Context, kind: &str, args: SyncPillarArgs) -> CallResult {
    let synced = sync_kind(context, kind, &args.sync)?;
    if args.sync.refresh {
        refresh_pillar(context, false, 0.0, args.clean_pillar_cache)?;
    }
    Ok(synced)
}

fn sync_kind(context: &Context, kind: &str, args: &SyncArgs) -> CallResult {
    let masterless = MASTERLESS_KINDS.iter().find(|(name, _)| *name == kind);
    if let Some((_, modules)) = masterless.filter(|_| context.config().file_client != "local") {
        return Err(CallError::Execution(format!("{modules} can only be synced to masterless minions")));
    }
    let mut source = Source::new(context, args)?;
    let synced = source.sync(kind)?;
    source.finish(args.refresh && kind == "grains");
    Ok(synced)
}

/// The files of the environments that are synced.
struct Source<'a> {
    context: &'a Context,
    args: &'a SyncArgs,
    /// All files below directories of modules, with their environment.
    files: Vec<(String, String)>,
    is_changed: bool,
}

impl<'a> Source<'a> {
    fn new(context: &'a Context, args: &'a SyncArgs) -> Result<Self, CallError> {
        let mut files = Vec::new();
        for saltenv in environments(context, &args.saltenv)? {
            let listed = context.minion.files.list(&saltenv).map_err(CallError::execution)?;
            files.extend(listed.into_iter().filter(|path| path.starts_with('_')).map(|path| (saltenv.clone(), path)));
        }
        Ok(Source { context, args, files, is_changed: false })
    }

    /// Copies the files of one type, and removes files that the server no longer has. Returns the new and changed modules.
    fn sync(&mut self, kind: &str) -> CallResult {
        let directory = extension_modules(self.context.config()).join(kind);
        let prefix = format!("_{kind}/");
        let (mut paths, mut synced) = (BTreeSet::new(), Vec::new());
        for (saltenv, path) in &self.files {
            let Some(below) = path.strip_prefix(&prefix).map(PathBuf::from) else { continue };
            let module = below.with_extension("").to_string_lossy().replace('/', ".");
            if !is_module(&below) || !self.is_allowed(kind, &module) {
                continue;
            }
            if paths.len() >= MAX_FILES {
                let message = format!("'_{kind}' of the file server has more than {MAX_FILES} files");
                return Err(CallError::Execution(message));
            }
            // As in Salt, a failure does not stop the other files from being copied.
            let is_copied = self.copy(saltenv, path, &directory.join(&below)).unwrap_or_else(|error| {
                tracing::error!("syncing 'salt://{path}' failed: {error}");
                false
            });
            let name = Value::from(format!("{kind}.{module}"));
            if is_copied && !synced.contains(&name) {
                synced.push(name);
            }
            paths.insert(below);
        }
        self.is_changed |= !synced.is_empty();
        if !synced.is_empty() {
            custom::warn_if_unused(kind);
        }
        if self.context.config().clean_dynamic_modules {
            self.is_changed |= clean(&directory, Path::new(""), &paths);
        }
        Ok(synced.into())
    }

    /// Copies a file unless it is unchanged; returns whether it was copied.
    fn copy(&self, saltenv: &str, path: &str, to: &Path) -> Result<bool, String> {
        let client = &self.context.minion.files;
        let hash = client.hash(path, saltenv).map_err(|error| error.to_string())?.unwrap_or_default();
        if hash_kind(&hash).is_some_and(|kind| digest(to, kind).is_ok_and(|have| have == hash)) {
            return Ok(false);
        }
        let mut content = BoundedBuffer(Vec::new());
        if !client.fetch(path, saltenv, &mut content).map_err(|error| error.to_string())? {
            return Err("the file is gone".into());
        }
        if std::fs::read(to).is_ok_and(|have| have == content.0) {
            return Ok(false);
        }
        let is_program = to.extension().is_none();
        if is_program && !PROGRAMS.iter().any(|start| content.0.starts_with(start)) {
            return Ok(false);
        }
        let parent = to.parent().unwrap_or(to);
        files::create_private_dir(parent).map_err(|error| format!("creating {} failed: {error}", parent.display()))?;
        let written = if is_program {
            processes::write_program(|| files::write_atomic(to, &content.0, 0o700))
        } else {
            files::write_atomic(to, &content.0, 0o600)
        };
        written.map_err(|error| format!("writing {} failed: {error}", to.display()))?;
        Ok(true)
    }

    /// Whether the whitelist and blacklist of the call, or else of the configuration, allow a module to be synced.
    fn is_allowed(&self, kind: &str, module: &str) -> bool {
        let opts = &self.context.config().opts;
        let list =
            |argument: &Value, of_opts: Map| match if argument.is_nil() { of_opts.into() } else { argument.clone() } {
                Value::Map(by_type) => by_type.get(kind).map(names),
                Value::Nil => None,
                Value::List(all) if all.is_empty() => None,
                all => Some(names(&all)),
            };
        let has = |list: Vec<String>| list.iter().any(|one| one == module);
        // An empty list of a type allows none of its modules.
        let only = list(&self.args.extmod_whitelist, modules::extmod_whitelist(opts));
        only.is_none_or(has) && !list(&self.args.extmod_blacklist, modules::extmod_blacklist(opts)).is_some_and(has)
    }

    /// Reloads the modules if a file has changed; with `grains`, collects the grains again.
    fn finish(self, grains: bool) {
        if self.is_changed {
            self.context.minion.custom.refresh();
        }
        if grains {
            self.context.minion.grains.set(self.context.minion.collect_grains());
            super::refresh::notify_daemon(self.context, "grains_refresh");
        } else if self.is_changed {
            super::refresh::notify_daemon(self.context, "module_refresh");
        }
    }
}

/// Returns the environments to sync: the given ones, or those of the top file.
fn environments(context: &Context, argument: &Value) -> Result<Vec<String>, CallError> {
    if argument.is_truthy() {
        return Ok(names(argument));
    }
    let all = context.minion.files.environments().map_err(CallError::execution)?;
    if all.iter().all(|saltenv| saltenv == "base") {
        return Ok(all);
    }
    let top = context.call("state.show_top", Args::default())?;
    let of_top: Vec<String> = top.as_map().into_iter().flatten().map(|(saltenv, _)| saltenv.to_string()).collect();
    Ok(if of_top.is_empty() { vec!["base".into()] } else { of_top })
}

/// Whether a path below the directory of a type is a file to copy. The path comes from the master, so `..` and other
/// special components are rejected.
fn is_module(below: &Path) -> bool {
    let is_plain = below.components().all(|component| matches!(component, Component::Normal(_)));
    let is_program = || below.components().count() == 1 && below.extension().is_none();
    is_plain && below.extension().map_or_else(is_program, |have| EXTENSIONS.iter().any(|extension| have == *extension))
}

/// Removes files that are not wanted, and directories without files. Returns whether anything was removed.
fn clean(directory: &Path, below: &Path, paths: &BTreeSet<PathBuf>) -> bool {
    let Ok(entries) = std::fs::read_dir(directory.join(below)) else { return false };
    let mut is_changed = false;
    for entry in entries.flatten() {
        let path = below.join(entry.file_name());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            is_changed |= clean(directory, &path, paths);
            // Fails for a directory with content.
            is_changed |= user_files::remove_dir(directory.join(&path)).is_ok();
        } else if !paths.contains(&path) {
            match user_files::remove_file(directory.join(&path)) {
                Ok(()) => is_changed = true,
                Err(error) => tracing::error!(%error, path = %path.display(), "removing a custom module failed"),
            }
        }
    }
    is_changed
}

/// The content of a file of at most [`MAX_FILE_BYTES`]; larger ones are an error.
struct BoundedBuffer(Vec<u8>);

impl Write for BoundedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_FILE_BYTES {
            return Err(io::Error::other(format!("the file has more than {MAX_FILE_BYTES} bytes")));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
