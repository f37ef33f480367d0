//! `brine check`: finds what is wrong in a tree of SLS files, without a minion.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::{Context, bail};
use brine_authoring_model::{Catalogue, Functions, OptionMistake, Tree};
use brine_config::Mistake;
use brine_function::Registry;
use brine_lint::report::{Format, report};
use brine_lint::samples::Sample;
use brine_lint::{Finding, Options, Severity, check_with, fixes};
use brine_system::user_files;
use brine_value::Value;
use clap::{ArgAction, CommandFactory, Parser, ValueHint};

use self::minions::Minions;
use super::usage;
use crate::ui::{ColourChoice, Ui};

pub mod minions;

pub const USAGE: &str = "brine check [options] [PATH...]";

/// The time between two looks at the files with `--watch`.
const INTERVAL: Duration = Duration::from_millis(300);

/// Find what is wrong in SLS, pillar, top and reactor files, without a minion
#[derive(Parser, Debug)]
#[command(
    after_help = "The tree is the nearest directory above PATH with brine.toml or .git, or else PATH itself. Nothing is run, no file is changed without --fix. The exit status is 1 if a finding is an error, else 0.\n\nExamples:\n  brine check                              the tree of this directory\n  brine check salt/web                     findings of one directory\n  brine check --select B3 --ignore B305    references alone\n  brine check --format github              in a workflow of GitHub\n  brine check --fix                        mend what is safe to mend"
)]
struct Arguments {
    /// Files or directories (default: this directory)
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Report codes that begin with these, separated by commas
    #[arg(long, value_name = "CODES", value_delimiter = ',', action = ArgAction::Append)]
    select: Vec<String>,
    /// Do not report codes that begin with these, separated by commas
    #[arg(long, value_name = "CODES", value_delimiter = ',', action = ArgAction::Append)]
    ignore: Vec<String>,
    /// The form of the report: text, json, sarif, github or junit
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: String,
    /// Apply safe fixes
    #[arg(long)]
    fix: bool,
    /// Render for the grains in this YAML or JSON file, also as `salt --out json` prints them (default: common systems);
    /// several are allowed
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    grains: Vec<PathBuf>,
    /// Render for the pillar in this YAML or JSON file; several are allowed, and each is used with each of --grains
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pillar: Vec<PathBuf>,
    /// Check again whenever a file changes
    #[arg(long)]
    watch: bool,
    /// The configuration file (default: brine.toml in the tree)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Never use colours
    #[arg(long, alias = "no-colour")]
    no_color: bool,
}

/// Returns the options.
pub fn options() -> clap::Command {
    Arguments::command()
}

/// Runs the command.
pub fn run(words: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let arguments: Arguments = match usage::parse("brine check", USAGE, Arguments::command(), words) {
        Ok(arguments) => arguments,
        Err(status) => return Ok(status),
    };
    let Some(format) = Format::named(&arguments.format) else {
        let message = format!("--format is invalid: expected {}, got '{}'", Format::NAMES.join(", "), arguments.format);
        return Ok(usage::error("brine check", USAGE, &message));
    };
    let mut paths = arguments.paths.clone();
    if paths.is_empty() {
        paths.push(".".into());
    }
    let paths = paths.iter().map(|path| real(path)).collect::<anyhow::Result<Vec<_>>>()?;
    let root = root_of(paths.first().map_or(Path::new("/"), PathBuf::as_path));
    let mut options = configured(&root, arguments.config.as_deref())?;
    options.select.extend(arguments.select.iter().cloned());
    options.ignore.extend(arguments.ignore.iter().cloned());
    options.paths = paths.iter().map(|path| inside(&root, path)).collect::<anyhow::Result<_>>()?;
    let catalogue = catalogue();
    let (grains, pillars) = (data_of(&arguments.grains)?, data_of(&arguments.pillar)?);
    let samples = Sample::of_files(&grains, &pillars)?;
    let mut samples = Minions::new(samples);
    let choice = if arguments.no_color { ColourChoice::Never } else { ColourChoice::Auto };
    let mut ui = Ui::new(choice);
    loop {
        let (tree, mut findings) = examine(&root, &catalogue, &options, &mut samples)?;
        let mut tree = tree;
        if arguments.fix && fix(&tree, &findings)? > 0 {
            (tree, findings) = examine(&root, &catalogue, &options, &mut samples)?;
        }
        let is_coloured = format == Format::Text && !ui.colours().end().is_empty();
        ui.print(report(&tree, &findings, format, is_coloured).trim_end_matches('\n'))?;
        if !arguments.watch {
            let failed = findings.iter().any(|finding| finding.severity == Severity::Error);
            return Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS });
        }
        wait(&tree);
    }
}

/// Returns all functions that Brine has.
pub fn catalogue() -> Catalogue {
    let mut catalogue = Catalogue {
        execution: Functions::of(Registry::new(&brine_modules::MODULES.functions()).iter()),
        states: Functions::of(Registry::new(&brine_modules::MODULES.states()).iter()),
        runners: Functions::of(Registry::new(brine_master_runners::runner::MODULES).iter()),
        wheel: Functions::of(Registry::new(brine_master_runners::wheel::MODULES).iter()),
        ..Catalogue::default()
    };
    catalogue.examine_options = Some(|text, is_master| {
        let mistakes = brine_config::examine(text, is_master).into_iter();
        mistakes.map(|Mistake { option, message, is_error }| OptionMistake { option, message, is_error }).collect()
    });
    catalogue
}

fn real(path: &Path) -> anyhow::Result<PathBuf> {
    path.canonicalize().with_context(|| format!("reading {} failed", path.display()))
}

/// Returns the tree that a path is part of.
pub fn root_of(path: &Path) -> PathBuf {
    let directory = if path.is_dir() { path } else { path.parent().unwrap_or(path) };
    let with = |name: &str| directory.ancestors().find(|above| above.join(name).exists());
    with("brine.toml").or_else(|| with(".git")).unwrap_or(directory).to_owned()
}

fn inside(root: &Path, path: &Path) -> anyhow::Result<String> {
    match path.strip_prefix(root) {
        Ok(inside) => Ok(inside.to_string_lossy().into_owned()),
        Err(_) => {
            bail!("{} is invalid: expected a path in the tree {}; check it separately", path.display(), root.display())
        }
    }
}

/// Returns the options of a configuration file: the named one, or `brine.toml` of a tree.
pub fn configured(root: &Path, named: Option<&Path>) -> anyhow::Result<Options> {
    let path = named.map_or_else(|| root.join("brine.toml"), Path::to_owned);
    if named.is_none() && !path.exists() {
        return Ok(Options::default());
    }
    let failed = || format!("reading {} failed", path.display());
    let text = std::fs::read_to_string(&path).with_context(failed)?;
    Options::parse(&text).with_context(failed)
}

/// Reads files with grains or pillar.
fn data_of(paths: &[PathBuf]) -> anyhow::Result<Vec<(String, Value)>> {
    let read = |path: &PathBuf| {
        let failed = || format!("reading {} failed", path.display());
        let text = std::fs::read_to_string(path).with_context(failed)?;
        let data = brine_yaml::load(&text).with_context(failed)?;
        if data.as_map().is_none() {
            bail!("{} is invalid: expected a mapping of names to values", path.display());
        }
        Ok((path.file_stem().unwrap_or_default().to_string_lossy().into_owned(), data))
    };
    paths.iter().map(read).collect()
}

fn examine(
    root: &Path,
    catalogue: &Catalogue,
    options: &Options,
    samples: &mut Minions,
) -> anyhow::Result<(Tree, Vec<Finding>)> {
    let tree = Tree::load(root, options.layout()).with_context(|| format!("reading {} failed", root.display()))?;
    let samples = samples.of(&tree)?;
    let findings = check_with(&tree, catalogue, options, samples);
    Ok((tree, findings))
}

/// Applies the safe fixes, and returns their number.
fn fix(tree: &Tree, findings: &[Finding]) -> anyhow::Result<usize> {
    let mut by_path: BTreeMap<&str, Vec<Finding>> = BTreeMap::new();
    for finding in findings {
        by_path.entry(&finding.path).or_default().push(finding.clone());
    }
    let mut all = 0;
    for (path, findings) in by_path {
        let Some(file) = tree.file(path) else { continue };
        let (text, applied) = fixes::apply(&file.text, &findings);
        if applied > 0 {
            let path = tree.root.join(path);
            user_files::write(&path, &text).with_context(|| format!("writing {} failed", path.display()))?;
            all += applied;
        }
    }
    Ok(all)
}

/// Waits until a file of the tree changes.
fn wait(tree: &Tree) {
    let times = |tree: &Tree| -> Vec<Option<SystemTime>> {
        let modified =
            |path: &String| std::fs::metadata(tree.root.join(path)).and_then(|status| status.modified()).ok();
        tree.paths().iter().map(modified).collect()
    };
    let before = times(tree);
    loop {
        std::thread::sleep(INTERVAL);
        let paths = Tree::paths_below(&tree.root).unwrap_or_default();
        if paths != *tree.paths() || times(tree) != before {
            return;
        }
    }
}
