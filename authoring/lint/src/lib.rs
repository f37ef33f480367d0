//! Findings about a tree of SLS, pillar, top and reactor files.
//!
//! | module | owns |
//! |---|---|
//! | [`rules`] | the table of codes |
//! | [`finding`] | findings and their fixes |
//! | `syntax`, `names`, `references`, `duplicates`, `arguments`, `danger`, `style` | the checks, one file a group of codes |
//! | `calls`, `targets`, `reactor` | arguments of called functions, targets of steps, patterns and fields of events |
//! | `events` | the reference of events |
//! | [`report`] | text with a caret, JSON, SARIF, GitHub, JUnit |
//! | [`options`] | `brine.toml`, selected codes, `# brine: ignore` |
//! | [`fixes`] | applies fixes |
//! | [`format`](mod@format) | formats files |
//! | [`samples`] | renders for sample grains and pillar |
//!
//! [`check`] checks a whole tree, [`check_with`] also with renders; [`check_file`] one file of it, without what
//! [`check_ids`] finds.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]

mod arguments;
mod calls;
mod configuration;
mod danger;
mod duplicates;
mod events;
pub mod finding;
pub mod fixes;
pub mod format;
mod known;
#[cfg(test)]
mod mutations;
mod names;
pub mod options;
mod reactor;
mod references;
pub mod report;
pub mod rules;
pub mod samples;
mod style;
mod syntax;
mod targets;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use brine_authoring_model::{Catalogue, File, Index, Tree};

pub use finding::{Finding, Fix};
pub use options::Options;
pub use rules::Severity;
use samples::Renders;
pub use samples::Samples;

/// What the checks of a file need.
struct Check<'a> {
    tree: &'a Tree,
    index: &'a Index,
    catalogue: &'a Catalogue,
    options: &'a Options,
    file: &'a File,
    found: Vec<Finding>,
    /// What was found: codes, places and messages.
    seen: HashSet<(&'static str, usize, usize, String)>,
}

impl<'a> Check<'a> {
    fn new(tree: &'a Tree, catalogue: &'a Catalogue, options: &'a Options, file: &'a File) -> Self {
        Check { tree, index: tree.index(), catalogue, options, file, found: Vec::new(), seen: HashSet::new() }
    }

    fn add(&mut self, finding: Finding) {
        if self.seen.insert((finding.code, finding.span.start, finding.span.end, finding.message.clone())) {
            self.found.push(finding);
        }
    }

    fn report(&mut self, code: &'static str, span: std::ops::Range<usize>, message: impl Into<String>) {
        let finding = Finding::new(code, &self.file.path, span, message);
        self.add(finding);
    }
}

/// Checks one file of a tree. Its findings are sorted by place.
pub fn check_file(tree: &Tree, catalogue: &Catalogue, options: &Options, file: &File) -> Vec<Finding> {
    let mut check = Check::new(tree, catalogue, options, file);
    check.syntax();
    check.names();
    check.references();
    check.arguments();
    check.calls();
    check.targets();
    check.waits();
    check.fields();
    check.danger();
    check.style();
    let mut findings = check.found;
    options.retain(file, &mut findings);
    findings.sort_by_key(|finding| (finding.span.start, finding.code));
    findings
}

/// The size of the stack of a worker: templates may nest as deep as on a minion.
const STACK: usize = 16 << 20;

/// Checks all files of a tree. Findings are sorted by file and place.
pub fn check(tree: &Tree, catalogue: &Catalogue, options: &Options) -> Vec<Finding> {
    check_with(tree, catalogue, options, None)
}

/// Checks all files of a tree, and renders for samples those that cannot be read without a render.
pub fn check_with(tree: &Tree, catalogue: &Catalogue, options: &Options, samples: Option<&Samples>) -> Vec<Finding> {
    let files: Vec<_> = tree.files().filter(|file| options.includes(&file.path)).collect();
    // It is made once, before several threads need it.
    tree.index();
    let renders = samples.map(|samples| Renders::new(tree, samples));
    let (next, findings) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        let mut own = Vec::new();
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let file_findings = check_file(tree, catalogue, options, file);
            if let Some(renders) = &renders {
                let rendered = samples::findings(renders, catalogue, options, file, &file_findings);
                own.extend(rendered.into_iter().filter(|finding| options.reports(file, finding)));
            }
            own.extend(file_findings);
        }
        findings.lock().unwrap_or_else(PoisonError::into_inner).extend(own);
    };
    let workers = std::thread::available_parallelism().map_or(2, usize::from).min(8);
    std::thread::scope(|scope| {
        for _ in 0..workers.min(files.len().div_ceil(8)) {
            _ = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
        }
    });
    // This thread works, too: alone, if no other could be started.
    work();
    let mut findings = findings.into_inner().unwrap_or_else(PoisonError::into_inner);
    findings.extend(check_ids(tree, options));
    findings.extend(configuration::check(tree, catalogue, options));
    findings
        .sort_by(|one, other| (&one.path, one.span.start, one.code).cmp(&(&other.path, other.span.start, other.code)));
    findings
}

/// Checks what needs all files at once: ids that stand twice in a run.
pub fn check_ids(tree: &Tree, options: &Options) -> Vec<Finding> {
    let mut findings = duplicates::of(tree);
    findings.retain(|finding| {
        options.includes(&finding.path) && tree.file(&finding.path).is_some_and(|file| options.reports(file, finding))
    });
    findings
}
