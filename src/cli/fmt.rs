//! `brine fmt`: formats SLS files without a change of their data.

use std::cell::OnceCell;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use brine_authoring_model::{Layout, Tree};
use brine_lint::Options;
use brine_lint::format::format;
use brine_lint::samples::{Renders, Sample};
use brine_system::files::{Attributes, Entry, Flush, Links};
use brine_system::user_files;
use clap::{CommandFactory, Parser, ValueHint};
use similar::TextDiff;

use super::check::{self, minions::Minions};
use super::usage;
use crate::ui::{print_plain, print_plain_error};

pub const USAGE: &str = "brine fmt [options] [PATH...]";

/// The largest file that is formatted, in bytes.
const MAX_SIZE: u64 = 1 << 20;
/// The mode of a file that vanished before it was written.
const MODE: u32 = 0o644;
/// The exit status if a file cannot be read or written.
const FAILED: u8 = 2;

/// Format SLS files without touching Jinja and without changing their data
#[derive(Parser, Debug)]
#[command(
    after_help = "Whitespace alone changes: at the end of lines, empty lines, after dashes and colons. The data of each choice of branches are compared before a file is written; what a template writes only when it is run stays as it is. Links are not followed. The exit status is 2 if a file cannot be read or written.\n\nExamples:\n  brine fmt                format the SLS files of this directory\n  brine fmt --check        name the files that would change; the exit status is 1 if there are any\n  brine fmt --diff web     show what would change below a directory\n  brine fmt - < web.sls    format standard input"
)]
struct Arguments {
    /// Files or directories, or - for standard input (default: this directory)
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    paths: Vec<PathBuf>,
    /// Write nothing; exit with 1 if a file would change
    #[arg(long)]
    check: bool,
    /// Write nothing; show the lines that would change
    #[arg(long)]
    diff: bool,
}

/// Returns the options.
pub fn options() -> clap::Command {
    Arguments::command()
}

/// Runs the command.
pub fn run(words: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let arguments: Arguments = match usage::parse("brine fmt", USAGE, Arguments::command(), words) {
        Ok(arguments) => arguments,
        Err(status) => return Ok(status),
    };
    let mut paths = arguments.paths.clone();
    if paths.is_empty() {
        paths.push(".".into());
    }
    if paths.iter().any(|path| path == Path::new("-")) {
        if paths.len() > 1 {
            return Ok(usage::error("brine fmt", USAGE, "- is invalid: expected no other PATH beside it"));
        }
        return standard_input(&arguments);
    }
    let mut totals = Totals::default();
    let mut minions = Minions::new(Sample::common());
    for path in &paths {
        let result = files(path).and_then(|input| {
            let samples = minions.all()?;
            let (tree, renders) = (OnceCell::new(), OnceCell::new());
            for file in &input.files {
                let outcome = format_file(file, &arguments, |before, after| {
                    let tree = tree.get_or_init(|| Tree::load(&input.root, None).ok()).as_ref();
                    let renders = renders.get_or_init(|| Some(Renders::new(tree?, samples))).as_ref();
                    renders.is_some_and(|renders| is_same_rendered(renders, &input.root, file, before, after))
                });
                totals.count(file, outcome);
            }
            Ok(())
        });
        if let Err(error) = result {
            totals.count(path, Err(error));
        }
    }
    let verb = if arguments.check || arguments.diff { "would change" } else { "changed" };
    let files = if totals.changed == 1 { "file" } else { "files" };
    let mut summary = format!("{} {files} {verb}", totals.changed);
    if totals.left > 0 {
        summary += &format!(", {} left as they are: their data are known only when they are rendered", totals.left);
    }
    print_plain_error(summary);
    Ok(match totals {
        Totals { failed: true, .. } => ExitCode::from(FAILED),
        Totals { changed, .. } if arguments.check && changed > 0 => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    })
}

/// What happened to a file.
enum Outcome {
    Same,
    Changed,
    /// It cannot be read without a render.
    Left,
}

#[derive(Default)]
struct Totals {
    changed: usize,
    left: usize,
    failed: bool,
}

impl Totals {
    fn count(&mut self, path: &Path, outcome: anyhow::Result<Outcome>) {
        match outcome {
            Ok(Outcome::Same) => {}
            Ok(Outcome::Changed) => self.changed += 1,
            Ok(Outcome::Left) => self.left += 1,
            Err(error) => {
                self.failed = true;
                print_plain_error(format_args!("formatting {} failed: {error:#}", path.display()));
            }
        }
    }
}

/// Whether two texts of a file have the same data for each sample.
fn is_same_rendered(renders: &Renders<'_>, root: &Path, path: &Path, before: &str, after: &str) -> bool {
    let Ok(real) = path.canonicalize() else { return false };
    let path = real.strip_prefix(root).unwrap_or(&real).to_string_lossy().into_owned();
    renders.data(&path, before) == renders.data(&path, after)
}

fn format_file(
    path: &Path,
    arguments: &Arguments,
    is_same_rendered: impl FnOnce(&str, &str) -> bool,
) -> anyhow::Result<Outcome> {
    // Replaced as it is, if a link takes its place.
    let entry = Entry::resolve(path, Links::Keep)?;
    if path.metadata()?.len() > MAX_SIZE {
        bail!("it is larger than {MAX_SIZE} bytes");
    }
    let text = user_files::read_to_string(path)?;
    let Some(formatted) = format(&text) else { return Ok(Outcome::Left) };
    if formatted == text {
        return Ok(Outcome::Same);
    }
    if text.contains('{') && !is_same_rendered(&text, &formatted) {
        return Ok(Outcome::Left);
    }
    if arguments.diff {
        print_diff(&path.display().to_string(), &text, &formatted);
    } else {
        print_plain(path.display());
    }
    if !arguments.check && !arguments.diff {
        user_files::write_with(entry, formatted.as_bytes(), Attributes::default(), MODE, Flush::Now)
            .context("writing failed")?;
    }
    Ok(Outcome::Changed)
}

fn standard_input(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut text = String::new();
    let read =
        std::io::stdin().take(MAX_SIZE + 1).read_to_string(&mut text).context("reading standard input failed")?;
    if read as u64 > MAX_SIZE {
        bail!("formatting standard input failed: it is larger than {MAX_SIZE} bytes");
    }
    // Another program puts the output in the place of the input: what cannot be formatted is returned as it is.
    let formatted = format(&text);
    let is_changed = formatted.as_ref().is_some_and(|formatted| *formatted != text);
    let output = formatted.as_deref().unwrap_or(&text);
    if arguments.diff {
        print_diff("-", &text, output);
    } else if !arguments.check {
        // To the byte.
        std::io::stdout().write_all(output.as_bytes()).context("writing to standard output failed")?;
    }
    Ok(if arguments.check && is_changed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn print_diff(name: &str, before: &str, after: &str) {
    let diff = TextDiff::from_lines(before, after).unified_diff().header(name, name).to_string();
    if !diff.is_empty() {
        print_plain(diff.trim_end_matches('\n'));
    }
}

/// Files of a tree.
struct Found {
    root: PathBuf,
    files: Vec<PathBuf>,
}

/// Returns the SLS files at or below a path that the configuration does not exclude, without links.
fn files(path: &Path) -> anyhow::Result<Found> {
    let is_sls = |path: &Path| path.extension().is_some_and(|extension| extension == "sls");
    if path.symlink_metadata()?.is_symlink() && path.is_file() {
        bail!("it is a link: name the file that it points to");
    }
    let real = path.canonicalize()?;
    let root = check::root_of(&real);
    let options: Options = check::configured(&root, None)?;
    let excluded = |file: &Path| {
        let inside = file.strip_prefix(&root).map(|inside| inside.to_string_lossy().into_owned());
        inside.is_ok_and(|inside| !options.includes(&inside))
    };
    if path.is_file() {
        if !is_sls(path) {
            bail!("its name is invalid: expected an SLS file, whose name ends with .sls");
        }
        let files = if excluded(&real) { Vec::new() } else { vec![path.to_owned()] };
        return Ok(Found { root, files });
    }
    let below = Tree::paths_below(path)?;
    let layout = Layout::detect(below.iter().map(String::as_str));
    let is_wanted = |name: &&String| {
        let full = path.join(name);
        let is_plain = full.symlink_metadata().is_ok_and(|status| status.is_file());
        is_sls(Path::new(name)) && layout.kind(name).is_sls() && is_plain && !excluded(&real.join(name))
    };
    let files = below.iter().filter(is_wanted).map(|name| path.join(name)).collect();
    Ok(Found { root, files })
}
