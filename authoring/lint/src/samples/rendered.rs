//! Findings about files as they are rendered for samples, at the lines of their sources.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use brine_authoring_model::file::is_jinja_and_yaml;
use brine_authoring_model::{Catalogue, File, FileKind, Tree};
use brine_jinja::limits::{Cancel, Limits};
use brine_jinja::view::{Kind, Root, View};
use brine_jinja::{Context, ImportCache, JinjaError, SourceLines, Template};
use brine_sls::render::sls_variables;
use brine_value::Value;

use super::served::{Layer, Served};
use super::{Prepared, Samples, Unknown};
use crate::{Check, Finding, Options};

/// The steps of one render: a hundredth of what a minion allows.
const FUEL: u64 = 2_000_000;
/// The memory of one render, in bytes.
const MEMORY: u64 = 32 << 20;
/// The text of one render, in bytes.
const OUTPUT: u64 = 1 << 20;
/// The time of one render.
const TIME: Duration = Duration::from_millis(500);
/// The time of all renders of a run; files after it are not rendered.
const ALL: Duration = Duration::from_secs(10);

/// The failed renders of a file, for which nothing can be said, after which no further common system is tried.
const ENOUGH: usize = 3;

/// The renders of a run.
pub struct Renders<'a> {
    tree: &'a Tree,
    samples: &'a Samples,
    served: Arc<Served>,
    /// Templates that several files import, compiled once.
    imports: ImportCache,
    start: Instant,
}

impl<'a> Renders<'a> {
    /// Prepares the renders of files of a tree.
    pub fn new(tree: &'a Tree, samples: &'a Samples) -> Self {
        Renders {
            tree,
            samples,
            served: Arc::new(Served::of(tree)),
            imports: ImportCache::new(),
            start: Instant::now(),
        }
    }

    /// Returns the data of a text for each sample; `None` where it has none. `path` is that of its file in the tree.
    pub fn data(&self, path: &str, text: &str) -> Vec<Option<Value>> {
        let kind = self.tree.layout().kind(path);
        let (below, name) = names(self.tree, path, kind);
        let template = compile(self, &below, text);
        let of = |prepared| {
            let (text, _) = render(self, prepared, &below, &name, template.as_ref()).text.ok()?;
            brine_yaml::load(&text).ok()
        };
        self.samples.all.iter().map(of).collect()
    }

    fn is_over(&self) -> bool {
        self.start.elapsed() > ALL
    }
}

/// A rendered text.
struct Rendered {
    text: Result<(String, SourceLines), JinjaError>,
    /// Whether a function was called whose result is not known.
    is_vague: bool,
}

/// Compiles a text, for all samples.
fn compile(renders: &Renders<'_>, path: &str, source: &str) -> Result<Template, JinjaError> {
    // The line of the pipe becomes an empty one, so that line numbers stay.
    let body = if source.starts_with("#!") { source.find('\n').map_or("", |end| &source[end..]) } else { source };
    Template::compile_sharing(&renders.imports, path, body)
}

fn render(
    renders: &Renders<'_>,
    prepared: &Prepared,
    path: &str,
    name: &str,
    template: Result<&Template, &JinjaError>,
) -> Rendered {
    let was_called = Arc::new(AtomicBool::new(false));
    let unknown = Unknown { is_pure: renders.samples.is_pure, was_called: Arc::clone(&was_called) };
    let host = prepared.host.clone().with_functions(unknown).with_files(Layer(Arc::clone(&renders.served)));
    let mut context = Context::new("base");
    let cancel = Cancel::at(Instant::now() + TIME);
    context.set_limits(Limits { fuel: FUEL, memory: MEMORY, output: OUTPUT, cancel: Some(cancel) });
    context.set_shared("grains", Arc::new(prepared.sample.grains.clone()));
    context.set_shared("pillar", Arc::new(prepared.sample.pillar.clone().unwrap_or_default()));
    context.set_shared("opts", Arc::clone(&prepared.opts));
    context.set_all(&sls_variables(name, path));
    let text = template.map_err(Clone::clone).and_then(|template| template.render_mapped(&context, &host));
    Rendered { text, is_vague: was_called.load(Ordering::Relaxed) }
}

/// Returns the path of a file below its root, and the name of its SLS.
fn names(tree: &Tree, path: &str, kind: FileKind) -> (String, String) {
    let layout = tree.layout();
    let roots = if kind == FileKind::Pillar { &layout.pillar_roots } else { &layout.state_roots };
    let below = roots.iter().filter_map(|root| brine_authoring_model::layout::below(root, path));
    let below = below.min_by_key(|below| below.len()).unwrap_or(path);
    (below.to_owned(), brine_authoring_model::layout::name(below).unwrap_or_default())
}

/// Whether a file is rendered: it cannot be read without, or the author names samples.
fn is_rendered(file: &File, samples: &Samples) -> bool {
    let is_sls = matches!(file.kind, FileKind::State | FileKind::Pillar);
    let has_tags = file.view.as_ref().is_some_and(|view| view.has_tags() && view.error().is_none());
    let is_named = samples.all.iter().any(|prepared| prepared.sample.is_named);
    is_sls && has_tags && (file.is_open || is_named) && is_jinja_and_yaml(&file.text)
}

/// Returns the findings of a file for the samples, without those that it has at the same line without a render.
pub(crate) fn findings(
    renders: &Renders<'_>,
    catalogue: &Catalogue,
    options: &Options,
    file: &File,
    previous: &[Finding],
) -> Vec<Finding> {
    let tree = renders.tree;
    if !is_rendered(file, renders.samples) {
        return Vec::new();
    }
    let (path, name) = names(tree, &file.path, file.kind);
    let needs_pillar = reads_pillar(tree, &renders.served, file);
    // By place and message: the samples that have it.
    let mut samples_by_finding: BTreeMap<(usize, usize, &'static str, String), Vec<usize>> = BTreeMap::new();
    let template = compile(renders, &path, &file.text);
    let mut failed = 0;
    for (number, prepared) in renders.samples.all.iter().enumerate() {
        if renders.is_over() {
            break;
        }
        // An unknown name fails for the other systems as well.
        if failed >= ENOUGH && !prepared.sample.is_named {
            continue;
        }
        let rendered = render(renders, prepared, &path, &name, template.as_ref());
        let own = match &rendered.text {
            Err(error) => {
                let own = undefined(error, prepared, needs_pillar, rendered.is_vague, file);
                failed += usize::from(own.is_none());
                own.into_iter().collect()
            }
            Ok((text, lines)) => checked((tree, catalogue, options), file, text, lines, rendered.is_vague),
        };
        let is_repeated = |own: &Finding| {
            let line = file.position(own.span.start).line;
            previous.iter().any(|other| other.code == own.code && file.position(other.span.start).line == line)
        };
        for own in own.into_iter().filter(|own| !is_repeated(own)) {
            let samples = samples_by_finding.entry((own.span.start, own.span.end, own.code, own.message)).or_default();
            if samples.last() != Some(&number) {
                samples.push(number);
            }
        }
    }
    let all = renders.samples.all.len();
    let finding = |((start, end, code, message), samples): ((usize, usize, &'static str, String), Vec<usize>)| {
        // A formula need not support every system that Brine knows.
        let is_named = samples.iter().any(|number| renders.samples.all[*number].sample.is_named);
        if code == "B308" && !is_named && samples.len() < all {
            return None;
        }
        let names: Vec<&str> =
            samples.iter().filter_map(|number| Some(renders.samples.all.get(*number)?.sample.name.as_str())).collect();
        let whom = if samples.len() == all { "every sample".to_owned() } else { names.join(", ") };
        Some(Finding::new(code, &file.path, start..end, format!("{message} (rendered for {whom})")))
    };
    samples_by_finding.into_iter().filter_map(finding).collect()
}

/// Returns the finding about a failed render. What is missing may be in a pillar, grains or results that are not known.
fn undefined(
    error: &JinjaError,
    prepared: &Prepared,
    needs_pillar: bool,
    is_vague: bool,
    file: &File,
) -> Option<Finding> {
    let sample = &prepared.sample;
    let is_known = !needs_pillar || sample.pillar.is_some();
    let message = error.message.strip_prefix("Jinja variable ").unwrap_or(&error.message);
    let is_variable = message.ends_with("is undefined") && !message.contains(' ')
        || message.strip_suffix(" is undefined").is_some_and(|name| !name.contains([' ', '.']));
    let is_lookup = message.contains("has no attribute") || message.contains("has no element");
    let is_reported = is_variable || is_lookup && sample.is_named;
    if is_vague || error.imported || error.limit.is_some() || !is_known || !is_reported {
        return None;
    }
    let message = if is_variable {
        let name = message.trim_end_matches(" is undefined").trim_matches('\'');
        format!("the variable '{name}' is not defined")
    } else {
        message.to_owned()
    };
    Some(Finding::new("B308", &file.path, file.line(error.line), message))
}

/// Returns the findings about a rendered text, at the lines of the source.
fn checked(
    (tree, catalogue, options): (&Tree, &Catalogue, &Options),
    file: &File,
    text: &str,
    lines: &SourceLines,
    is_vague: bool,
) -> Vec<Finding> {
    let rendered = File::rendered(&file.path, file.kind, text);
    let mut check = Check::new(tree, catalogue, options, &rendered);
    if !is_vague {
        check.syntax();
    }
    check.names();
    check.arguments();
    let placed = |finding: Finding| {
        // What an empty pillar leaves out is no mistake.
        if finding.code == "B104" || finding.code == "B403" && is_vague {
            return None;
        }
        let line = rendered.position(finding.span.start).line;
        let source = (1..=line).rev().find_map(|line| lines.line(text, line)).unwrap_or(1);
        let whole = file.line(source);
        let written = text.get(finding.span.clone()).filter(|written| !written.is_empty() && !written.contains('\n'));
        let inside = written.and_then(|written| file.text.get(whole.clone())?.find(written).map(|at| (at, written)));
        let span = inside.map_or(whole.clone(), |(at, written)| whole.start + at..whole.start + at + written.len());
        // A hint names a line of the rendered text.
        let message = match finding.message.split_once(": ") {
            Some((message, hint)) if finding.code == "B102" && hint.contains("line ") => message.to_owned(),
            _ => finding.message,
        };
        Some(Finding::new(finding.code, &file.path, span, message))
    };
    check.found.into_iter().filter_map(placed).collect()
}

/// Whether a file, or a template that it reads, looks at the pillar or at data that it cannot be seen to have.
fn reads_pillar(tree: &Tree, served: &Served, file: &File) -> bool {
    let (mut open, mut seen) = (vec![file.path.clone()], BTreeSet::new());
    while let Some(path) = open.pop() {
        if !seen.insert(path.clone()) {
            continue;
        }
        let Some(view) = tree.file(&path).and_then(|file| file.view.as_ref()) else { continue };
        if looks_at_pillar(view) {
            return true;
        }
        for fact in &view.facts {
            if let Kind::Template { path, .. } = &fact.kind {
                match path.as_deref().and_then(|path| served.path(path.trim_start_matches("salt://"))) {
                    Some(path) => open.push(path),
                    None => return true,
                }
            }
        }
    }
    false
}

fn looks_at_pillar(view: &View) -> bool {
    view.facts.iter().any(|fact| match &fact.kind {
        Kind::Use { name, .. } => name == "pillar",
        Kind::Lookup { root, .. } => *root == Root::Pillar,
        Kind::Call { function, .. } => {
            ["pillar.", "config.", "defaults."].iter().any(|module| function.starts_with(module))
        }
        _ => false,
    })
}
