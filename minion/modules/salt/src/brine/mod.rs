//! `brine`: the program of this minion: its version, its upgrade, and the way back. `brine_upgrade` exchanges the program;
//! this module fetches and checks it.

mod doctor;

use std::path::Path;

use brine_context::programs::run;
use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_system::{files, processes};
use brine_upgrade::{Claim, Counted, Daemon, Phase, Program, Release, UpgradeError, check, sha256_of, version_of};
use brine_value::{Value, map};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `brine`.
pub static FUNCTIONS: Functions<Context> = registry!("brine", [version, upgrade, rollback, doctor::doctor]);

/// The directory of the file server that needs no signature.
const DIRECTORY: &str = "brine/";
/// The environment of that directory.
const ENVIRONMENT: &str = "base";
/// The maximum size of a program.
const MAX_PROGRAM: u64 = 1 << 30;
/// The maximum size of a checksum or a signature.
const MAX_SMALL: u64 = 16 << 10;
/// The programs that name the package of a file, which follows.
const OWNERS: &[&[&str]] =
    &[&["dpkg-query", "-S"], &["rpm", "-qf", "--qf", "%{NAME}\n"], &["apk", "info", "--who-owns"], &["pacman", "-Qqo"]];

/// Return the version of this minion's program, its path, the version to which `brine.rollback` would go, and the last
/// upgrade.
///
/// CLI Example:
///
///     salt '*' brine.version
#[function]
pub fn version(context: &Context) -> CallResult {
    _ = context;
    let path = std::env::current_exe().map_err(CallError::execution)?;
    let state = brine_upgrade::daemon().map(Daemon::state).transpose().map_err(CallError::execution)?.flatten();
    // The file is not run: its version is known from the upgrade that has replaced it.
    let is_known = Program::at(path.clone()).previous_path().is_file();
    let previous = state.as_ref().filter(|state| is_known && state.phase == Phase::Done);
    Ok(map! {
        "version" => brine_config::VERSION,
        "program" => path.display().to_string(),
        "previous" => previous.map(|state| state.from.version.clone()),
        "upgrade" => state.map(|state| state.report()),
    }
    .into())
}

/// Upgrade the program of this minion to one of the master's file server. The minion changes to it when the master has the
/// return of this job, goes back to the old one by itself if the new one does not connect to a master within
/// `upgrade_health_timeout`, and tells the outcome in its start event. docs/upgrade.md has the whole procedure.
///
/// CLI Example:
///
///     salt web1 brine.upgrade
///     salt web1 brine.upgrade source=salt://brine/0.2.0/brine version=0.2.0
#[function]
pub fn upgrade(
    context: &Context,
    /// The new program; by default `salt://brine/ARCHITECTURE-linux-LIBC/brine`, such as
    /// `salt://brine/x86_64-linux-gnu/brine`. Beside it are its checksum (`.sha256`), and with the option
    /// `upgrade_pubkey` the signature of that (`.sha256.sig`).
    source: Option<String>,
    /// The version that the new program must have.
    version: Option<String>,
    /// The environment of the file server.
    #[default("base".into())]
    saltenv: String,
    /// Whether the new program may be an older version.
    #[default(false)]
    allow_downgrade: bool,
    /// Whether the new program may be another build of the running version.
    #[default(false)]
    force: bool,
) -> CallResult {
    let key = public_key(context)?;
    let source = source.unwrap_or_else(default_source);
    let path = source_path(&source, &saltenv, key.is_some()).map_err(CallError::execution)?;
    let claim = claim(context)?;
    let from = claim.from.clone();
    let files = Files { context, saltenv: &saltenv };
    let sums = files.small(&format!("{path}.sha256"))?;
    if let Some(key) = key {
        let signature = files.small(&format!("{path}.sha256.sig"))?;
        check::signature(&key, &sums, &signature).map_err(CallError::execution)?;
    }
    let name = path.rsplit('/').next().unwrap_or(&path);
    let sha256 = check::checksum(&sums, name).map_err(CallError::execution)?;
    if sha256 == from.sha256 {
        return Ok(unchanged(&from));
    }
    claim.program.write_new(|file| files.program(&path, file)).map_err(CallError::execution)?;
    let new = claim.program.new_path();
    let digest = sha256_of(&new).map_err(CallError::execution)?;
    if digest != sha256 {
        return Err(CallError::execution(format!(
            "the new program is damaged or another one: expected SHA-256 {sha256}, got {digest}"
        )));
    }
    check::architecture(&new).map_err(CallError::execution)?;
    let new_version = version_of(&new).map_err(CallError::execution)?;
    if let Some(expected) = version.filter(|expected| *expected != new_version) {
        return Err(CallError::execution(format!("the new program is version {new_version}, expected {expected}")));
    }
    claim.check_order(&new_version, allow_downgrade, force).map_err(CallError::execution)?;
    stage(claim, Release { version: new_version, sha256 })
}

/// Go back to the program before the last upgrade (`brine.previous` beside the program). The change has the same steps as
/// that of `brine.upgrade`: the newer program comes back if the older one does not work any more.
///
/// CLI Example:
///
///     salt web1 brine.rollback
#[function]
pub fn rollback(context: &Context) -> CallResult {
    let claim = claim(context)?;
    claim.program.take_previous().map_err(CallError::execution)?;
    let new = claim.program.new_path();
    let to = Release {
        version: version_of(&new).map_err(CallError::execution)?,
        sha256: sha256_of(&new).map_err(CallError::execution)?,
    };
    stage(claim, to)
}

/// Begins an upgrade of this process.
fn claim(context: &Context) -> Result<Claim<'static>, CallError> {
    let daemon = brine_upgrade::daemon().ok_or_else(|| {
        CallError::execution("only a running minion can change its program: call the function by salt, from the master")
    })?;
    let claim = daemon.claim(&context.job.jid).map_err(CallError::execution)?;
    match package_of(context, claim.program.path())? {
        Some(package) => Err(CallError::execution(format!(
            "{} belongs to the package {package}: upgrade that, by pkg.install {package} refresh=True, and restart the minion",
            claim.program.path().display()
        ))),
        None => Ok(claim),
    }
}

fn stage(claim: Claim<'_>, to: Release) -> CallResult {
    let (from, program) = (claim.from.clone(), claim.program.path().display().to_string());
    claim.stage(to.clone()).map_err(CallError::execution)?;
    Ok(map! {
        "result" => "staged",
        "program" => program,
        "from" => release(&from),
        "to" => release(&to),
        "comment" => "The minion changes to the new program now. Its start event tells the outcome.",
    }
    .into())
}

fn release(release: &Release) -> Value {
    map! {"version" => &release.version, "sha256" => &release.sha256}.into()
}

fn unchanged(from: &Release) -> Value {
    let comment = "The new program runs already.";
    map! {"result" => "unchanged", "from" => release(from), "to" => release(from), "comment" => comment}.into()
}

/// Returns the default source: of the architecture and the C library of this program.
fn default_source() -> String {
    let libc = if cfg!(target_env = "musl") { "musl" } else { "gnu" };
    format!("salt://{DIRECTORY}{}-linux-{libc}/brine", std::env::consts::ARCH)
}

/// Returns the path of a source on the file server. Without a key, which would authenticate any file, only programs of one
/// directory are accepted: who may call `brine.upgrade`, but not `cmd.run`, must not run a file of another part of the file
/// server, such as an uploaded one or one of a branch.
fn source_path(source: &str, saltenv: &str, has_key: bool) -> Result<String, String> {
    let invalid = |expected: &str| format!("source is invalid: expected {expected}, got {source}");
    let path = source.strip_prefix("salt://").ok_or_else(|| invalid("a file of the master, salt://..."))?;
    if files::leads_out(path) || path.ends_with('/') || path.is_empty() || path.contains(['?', '|']) {
        return Err(invalid("the path of a file below salt://"));
    }
    let is_of_master = path.starts_with(DIRECTORY) && saltenv == ENVIRONMENT;
    if !has_key && !is_of_master {
        return Err(invalid(&format!(
            "a file below salt://{DIRECTORY} of the environment {ENVIRONMENT}, as no key is configured (upgrade_pubkey)"
        )));
    }
    Ok(path.to_owned())
}

/// Reads the key of `upgrade_pubkey`. A relative path is below the configuration directory.
fn public_key(context: &Context) -> Result<Option<Vec<u8>>, CallError> {
    let config = context.config();
    let Some(path) = &config.upgrade_pubkey else { return Ok(None) };
    let path = config.config_dir.join(path);
    files::read(&path).map(Some).map_err(|error| CallError::execution(format!("option 'upgrade_pubkey': {error}")))
}

/// Returns the package that a file belongs to.
fn package_of(context: &Context, path: &Path) -> Result<Option<String>, CallError> {
    for words in OWNERS {
        if words.first().is_none_or(|program| processes::find(Path::new(program)).is_none()) {
            continue;
        }
        let mut words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        words.push(path.display().to_string());
        let output = run(context, &words, &[])?;
        if output.retcode == 0 {
            return Ok(Some(package_name(&output.stdout)));
        }
    }
    Ok(None)
}

/// Returns the name of a package from the output of any of [`OWNERS`].
fn package_name(output: &str) -> String {
    let line = output.lines().next().unwrap_or_default().trim();
    let name = match line.rsplit_once(" is owned by ") {
        Some((_, package)) => package,
        // dpkg: `brine: /usr/bin/brine`, or `brine:amd64: ...`.
        None => line.split(':').next().unwrap_or(line),
    };
    name.to_owned()
}

/// The files of the master.
struct Files<'a> {
    context: &'a Context,
    saltenv: &'a str,
}

impl Files<'_> {
    /// Reads a small file.
    fn small(&self, path: &str) -> Result<Vec<u8>, CallError> {
        let mut content = Vec::new();
        self.fetch(path, &mut Counted::new(&mut content, MAX_SMALL)).map_err(CallError::execution)?;
        Ok(content)
    }

    /// Writes a program.
    fn program(&self, path: &str, into: &mut dyn std::io::Write) -> Result<(), UpgradeError> {
        self.fetch(path, &mut Counted::new(into, MAX_PROGRAM))
    }

    fn fetch(&self, path: &str, into: &mut dyn std::io::Write) -> Result<(), UpgradeError> {
        match self.context.minion.files.fetch(path, self.saltenv, into) {
            Ok(true) => Ok(()),
            Ok(false) => Err(UpgradeError::Refused(format!(
                "salt://{path} does not exist in the environment {}: see docs/upgrade.md",
                self.saltenv
            ))),
            Err(error) => Err(UpgradeError::Refused(error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_key_only_one_directory_is_a_source() {
        let accepts = |source: &str, saltenv: &str, has_key: bool| source_path(source, saltenv, has_key).is_ok();
        for (source, saltenv, without, with) in [
            ("salt://brine/x/brine", "base", true, true),
            ("salt://brine/x/brine", "dev", false, true),
            ("salt://other/brine", "base", false, true),
            ("salt://brine/../other/brine", "base", false, false),
            ("salt://brine/x/", "base", false, false),
            ("salt://brine/x?saltenv=dev", "base", false, false),
            ("salt://|brine/x", "base", false, false),
            ("https://example.com/brine", "base", false, false),
            ("file:///tmp/brine", "base", false, false),
            ("/tmp/brine", "base", false, false),
            ("salt://", "base", false, false),
        ] {
            assert_eq!((accepts(source, saltenv, false), accepts(source, saltenv, true)), (without, with), "{source}");
        }
    }

    #[test]
    fn packages_are_named_by_any_package_manager() {
        for (output, name) in [
            ("brine: /usr/bin/brine\n", "brine"),
            ("brine:amd64: /usr/bin/brine\n", "brine"),
            ("brine\n", "brine"),
            ("/usr/bin/brine is owned by brine-0.1.0-r0\n", "brine-0.1.0-r0"),
        ] {
            assert_eq!(package_name(output), name);
        }
    }

    #[test]
    fn a_process_that_is_no_minion_is_not_upgraded() {
        let context = crate::testing::context(&[]);
        let error = rollback(&context).unwrap_err().to_string();
        assert!(error.contains("only a running minion"), "{error}");
    }
}
