//! `state.pkg`: a state run prepared elsewhere, as sent by salt-ssh. The archive has the low chunks, the pillar,
//! the relevant grains, and the files of each environment in a directory of its name.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use brine_context::{Context, masterless};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_sls::compile::Chunk;
use brine_state::StateRun;
use brine_system::processes;
use brine_system::user_files;
use brine_value::{Map, Value, json};
use indexmap::IndexMap;

use super::options::options;
use super::{ran, with};
use brine_modules_files::archive::{self, Contents, LimitError};
use brine_modules_files::cmd::Scratch;
use brine_modules_files::file::hex_digest;

/// Execution functions of `state`.
pub static FUNCTIONS: Functions<Context> = registry!("state", [pkg]);

/// Run a prepared package of states, if its hash matches.
///
/// CLI Example:
///
///     salt '*' state.pkg /tmp/salt_state.tgz 760a9353810e36f6d81416366fc426dc md5
#[function(out = "highstate")]
pub fn pkg(
    context: &Context,
    /// Path of the package.
    pkg_path: PathBuf,
    /// Checksum of the package.
    pkg_sum: String,
    /// Type of the checksum.
    hash_type: String,
    /// Whether the states only predict their changes.
    #[default]
    test: Value,
    /// Options of the run: `pillar`, `pillarenv`, `saltenv`, `exclude`, `test`, `queue`, `concurrent`, `state_events`,
    /// `mock` and `localconfig`, where they are not listed here.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let Ok(bytes) = fs::read(&pkg_path) else {
        return rejected(context, &pkg_path, "it cannot be read");
    };
    if hex_digest(&bytes, &hash_type)? != pkg_sum {
        return rejected(context, &pkg_path, "it has another hash");
    }
    // What was hashed is what is unpacked: others may exchange the file.
    let package = Scratch::new(&bytes, None)?;
    let contents = contents(package.path())?;
    contents.check_all(context.config(), false).map_err(unpackable)?;
    if [&contents.dirs, &contents.files, &contents.links]
        .into_iter()
        .flatten()
        .any(|name| brine_system::files::leads_out(name))
    {
        return rejected(context, &pkg_path, "it contains files outside of its directory");
    }
    let unpacked = UnpackedArchive::of(package.path())?;
    run(context, &unpacked.0, with(kwargs, [("test", test)]))
}

/// Returns the error of a package beyond the limits of archives. No argument of `state.pkg` permits special files.
fn unpackable(error: LimitError) -> CallError {
    match error {
        LimitError::Devices(file) | LimitError::SetId(file) => CallError::Execution(format!(
            "the package contains a device, a FIFO or a set-uid or set-gid file, {file}: prepare it without special files"
        )),
        other => CallError::execution(other),
    }
}

/// Returns Salt's result for a rejected package. The reason is logged.
fn rejected(context: &Context, path: &Path, why: &str) -> Result<Value, CallError> {
    tracing::error!(package = %path.display(), "package of states rejected: {why}");
    context.set_retcode(1);
    Ok(Value::map())
}

fn run(context: &Context, directory: &Path, kwargs: Map) -> Result<Value, CallError> {
    let mut options = options(context, kwargs)?;
    let turn = match brine_state::only_run(context, &options) {
        Ok(turn) => turn,
        Err(refusal) => return brine_state::errors(context, refusal),
    };
    let low = read(directory, "lowstate.json")?
        .ok_or_else(|| CallError::Execution("the package has no lowstate.json".into()))?;
    let pillar = mapping(directory, "pillar.json")?.unwrap_or_default();
    let own_grains = mapping(directory, "roster_grains.json")?.map(Arc::new);
    let minion = masterless::with_roots(&context.minion, environments(directory)?).map_err(CallError::execution)?;
    let context = &Context { minion, own_grains: own_grains.or_else(|| context.own_grains.clone()), ..context.clone() };
    options.pillar = Map::new();
    let run = StateRun::with_pillar(context, options, Arc::new(pillar)).with_turn(turn);
    let Some(items) = low.as_list() else {
        return Err(CallError::Execution(format!(
            "lowstate.json is a list of chunks, this is of type {}",
            low.type_name()
        )));
    };
    let chunks = items.iter().map(|item| item.as_map().and_then(Chunk::from_value)).collect::<Option<Vec<Chunk>>>();
    match chunks {
        Some(chunks) => ran(context, &run, run.low(chunks)),
        // The compilation failed at the sender, whose errors are returned.
        None if items.iter().all(|item| item.as_str().is_some()) => Ok(low),
        None => Err(CallError::Execution("lowstate.json has a chunk without state, function or id".into())),
    }
}

fn read(directory: &Path, name: &str) -> Result<Option<Value>, CallError> {
    let Some(text) = brine_system::files::read_if_exists(directory.join(name)).map_err(CallError::execution)? else {
        return Ok(None);
    };
    json::from_json(&text).map(Some).map_err(|error| CallError::Execution(format!("{name} of the package: {error}")))
}

fn mapping(directory: &Path, name: &str) -> Result<Option<Map>, CallError> {
    match read(directory, name)? {
        None | Some(Value::Nil) => Ok(None),
        Some(Value::Map(map)) => Ok(Some(map)),
        Some(other) => {
            Err(CallError::Execution(format!("{name} of the package is a {}, not a mapping", other.type_name())))
        }
    }
}

/// Returns the directories of the package: each is an environment.
fn environments(directory: &Path) -> Result<IndexMap<String, Vec<PathBuf>>, CallError> {
    let mut environments = IndexMap::new();
    for entry in fs::read_dir(directory).map_err(CallError::execution)? {
        let entry = entry.map_err(CallError::execution)?;
        // Links to directories are not part of the package.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            environments.insert(entry.file_name().to_string_lossy().into_owned(), vec![entry.path()]);
        }
    }
    Ok(environments)
}

/// Lists an archive.
fn contents(path: &Path) -> Result<Contents, CallError> {
    let list = [&["--list", "--gzip", "--absolute-names"][..], &archive::TAR_LISTING].concat();
    Ok(archive::tar_listing(&tar(&list, path, None)?))
}

/// The timeout of unpacking or listing a package.
const TAR_TIMEOUT: Duration = Duration::from_secs(3600);

fn tar(words: &[&str], path: &Path, into: Option<&Path>) -> Result<String, CallError> {
    let mut command = Command::new("tar");
    command.args(words).arg("--file").arg(path).stdin(Stdio::null()).env("LC_ALL", "C");
    if let Some(directory) = into {
        command.arg("--directory").arg(directory);
    }
    let output = processes::output(&mut command, TAR_TIMEOUT)
        .map_err(|error| CallError::Execution(format!("running tar failed: {error}")))?;
    if !output.status.success() {
        let report = String::from_utf8_lossy(&output.stderr);
        return Err(CallError::Execution(format!("unpacking {} failed: {}", path.display(), report.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Directory of an unpacked archive, removed at the end of the run.
struct UnpackedArchive(PathBuf);

impl UnpackedArchive {
    fn of(archive: &Path) -> Result<Self, CallError> {
        let directory = std::env::temp_dir().join(format!("__brine.{:016x}", rand::random::<u64>()));
        brine_system::files::create_private_dir(&directory).map_err(CallError::execution)?;
        let unpacked = UnpackedArchive(directory);
        tar(&["--extract", "--gzip", "--no-same-owner"], archive, Some(&unpacked.0))?;
        Ok(unpacked)
    }
}

impl Drop for UnpackedArchive {
    fn drop(&mut self) {
        _ = user_files::remove_dir_all(&self.0);
    }
}
