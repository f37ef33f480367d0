//! One file: its text, its template, and its data for each choice of branches.

mod states;

use std::ops::Range;
use std::sync::Arc;

use brine_jinja::view::{Lookups, Root, Skeleton, View, is_dynamic};
use brine_yaml::nodes::{Content, offset};
use brine_yaml::{SourceNode, nodes};

use crate::layout::FileKind;
use crate::lines::{Lines, Position};
use crate::states::{Include, State};

/// Functions that look up a path.
const LOOKUPS: Lookups =
    &[("pillar.get", Root::Pillar, true), ("pillar.fetch", Root::Pillar, false), ("grains.get", Root::Grains, true)];

/// What is wrong in one file by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProblemKind {
    /// The template cannot be parsed.
    Jinja,
    /// The text is not YAML.
    Yaml,
    /// A mapping has a key twice.
    RepeatedKey,
    /// The data have not the form of an SLS.
    Structure,
    /// The first line names an unknown renderer.
    Renderer,
}

/// Something that is wrong in one file by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What it is.
    pub kind: ProblemKind,
    /// The bytes of the source.
    pub span: Range<usize>,
    /// One sentence.
    pub message: String,
    /// Another place that belongs to it.
    pub related: Option<Range<usize>>,
}

/// A file of a tree.
#[derive(Debug)]
pub struct File {
    /// The path relative to the tree.
    pub path: String,
    /// The kind.
    pub kind: FileKind,
    /// The text.
    pub text: Arc<str>,
    /// The lines of the text.
    pub lines: Lines,
    /// The template; `None` if the file is none.
    pub view: Option<View>,
    /// The data for each choice of branches, with ranges in the source. Placeholders are in what only a render knows.
    pub documents: Vec<SourceNode>,
    /// The states, in the order of the file; those below `extend`, too.
    pub states: Vec<State>,
    /// The entries of `include`.
    pub includes: Vec<Include>,
    /// What is wrong.
    pub problems: Vec<Problem>,
    /// Whether the file has parts that only a render knows, such as states that a macro writes.
    pub is_open: bool,
    /// Ids without states in some branch, while the file is read.
    pub(crate) without_states: Vec<(String, Range<usize>)>,
    /// The numbers of mappings and of functions below ids, while the file is read.
    pub(crate) forms: (usize, usize),
}

impl File {
    /// Reads the text that the template of a file returned for a sample. Ranges are those of this text.
    pub fn rendered(path: &str, kind: FileKind, text: &str) -> Self {
        let mut file = File::empty(path, kind, text);
        file.data();
        if matches!(kind, FileKind::State | FileKind::Reactor) {
            file.read_states();
        }
        file
    }

    fn empty(path: &str, kind: FileKind, text: &str) -> Self {
        File {
            path: path.to_owned(),
            kind,
            text: text.into(),
            lines: Lines::of(text),
            view: None,
            documents: Vec::new(),
            states: Vec::new(),
            includes: Vec::new(),
            problems: Vec::new(),
            is_open: false,
            without_states: Vec::new(),
            forms: (0, 0),
        }
    }

    /// Reads a file.
    pub fn read(path: &str, kind: FileKind, text: &str) -> Self {
        let mut file = File::empty(path, kind, text);
        match kind {
            FileKind::Python | FileKind::Other => return file,
            FileKind::Template => {
                file.template();
                return file;
            }
            _ => {}
        }
        match pipe(text) {
            Pipe::Static { has_jinja } => {
                if has_jinja {
                    file.template();
                }
                file.data();
            }
            Pipe::Hosted => file.is_open = true,
            Pipe::Unknown(name, span) => {
                let message = format!("the renderer '{name}' is not known");
                file.problem(ProblemKind::Renderer, span, message);
                file.is_open = true;
            }
        }
        if matches!(kind, FileKind::State | FileKind::Reactor) {
            file.read_states();
        }
        file
    }

    /// Returns the range of a line, counted from 1, without its indentation.
    pub fn line(&self, line: usize) -> Range<usize> {
        let start = self.lines.start(line).unwrap_or_default();
        let text = self.text.get(start..).and_then(|rest| rest.lines().next()).unwrap_or_default();
        let indent = text.len() - text.trim_start().len();
        start + indent..start + text.trim_end().len().max(indent)
    }

    /// Reads a configuration file of a master or a minion: its data alone. It is no part of a tree.
    pub fn configuration(path: &str, text: &str) -> Self {
        let mut file = File::read(path, FileKind::Other, text);
        // A text that is not YAML has no data.
        file.documents.extend(nodes(text).ok().flatten());
        file
    }

    /// Forgets the data of a file whose states are read. They are a large part of a file, and needed only while it is
    /// worked on.
    pub(crate) fn shrink(&mut self) {
        let has_exclude = |document: &SourceNode| document.get("exclude").is_some();
        if matches!(self.kind, FileKind::State | FileKind::Reactor) && !self.documents.iter().any(has_exclude) {
            self.documents = Vec::new();
        }
        for state in &mut self.states {
            state.arguments.shrink_to_fit();
            state.requisites.shrink_to_fit();
        }
        self.states.shrink_to_fit();
    }

    /// Returns the position of a byte.
    pub fn position(&self, at: usize) -> Position {
        self.lines.position(&self.text, at)
    }

    /// Whether two bytes are in the same text whenever one of them is.
    pub fn are_together(&self, one: usize, other: usize) -> bool {
        self.view.as_ref().is_none_or(|view| view.are_together(one, other))
    }

    /// Returns the expression in the source for each placeholder in a text of the data.
    pub fn expressions<'f>(&'f self, text: &'f str) -> impl Iterator<Item = &'f str> {
        let view = self.view.as_ref();
        brine_jinja::view::placeholders(text)
            .filter_map(move |index| self.text.get(view?.expressions.get(index)?.inner.clone()))
    }

    /// Returns a text of the data as the source has it, with expressions in braces.
    pub fn shown(&self, text: &str) -> String {
        let mut expressions = self.expressions(text);
        let mut output = String::new();
        for c in text.chars() {
            match is_dynamic(c.encode_utf8(&mut [0; 4])).then(|| expressions.next()).flatten() {
                Some(expression) => {
                    output.push_str("{{ ");
                    output.push_str(expression.trim());
                    output.push_str(" }}");
                }
                None => output.push(c),
            }
        }
        output
    }

    pub(crate) fn problem(&mut self, kind: ProblemKind, span: Range<usize>, message: String) {
        let problem = Problem { kind, span, message, related: None };
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    fn template(&mut self) {
        let view = View::with_lookups(&self.text, LOOKUPS);
        if let Some((message, at)) = view.error() {
            let end = self.text[at..].chars().next().map_or(at, |c| at + c.len_utf8());
            let message = message.trim_end_matches('.').to_owned();
            self.problem(ProblemKind::Jinja, at..end, message);
            self.is_open = true;
        }
        self.is_open |= view.is_open;
        self.view = Some(view);
    }

    fn data(&mut self) {
        let Some(view) = &self.view else {
            match nodes(&self.text) {
                Ok(root) => self.documents.extend(root),
                Err(error) => self.yaml_error(&error, &self.text.clone(), None),
            }
            return self.repeated_keys();
        };
        if view.error().is_some() {
            return;
        }
        let mut texts: Vec<String> = Vec::new();
        let mut errors = Vec::new();
        for variant in 0..view.variants() {
            let mut skeleton = view.skeleton(variant, false);
            if texts.contains(&skeleton.text) {
                continue;
            }
            texts.push(skeleton.text.clone());
            let mut read = nodes(&skeleton.text);
            let is_structural = view.expressions.iter().any(|expression| expression.is_structural);
            if read.is_err() && is_structural {
                skeleton = view.skeleton(variant, true);
                read = nodes(&skeleton.text);
                self.is_open = true;
            }
            match read {
                Ok(root) => self.documents.extend(root.map(|root| in_source(root, &skeleton))),
                Err(error) => {
                    if !is_structural && !view.is_open {
                        errors.push((error, skeleton));
                    }
                    self.is_open = true;
                }
            }
        }
        // What is left out leaves entries without values.
        self.is_open |= view.expressions.iter().any(|expression| {
            expression.is_structural && self.text[expression.inner.clone()].trim_end().ends_with(')')
        });
        for (error, skeleton) in errors {
            self.yaml_error(&error, &skeleton.text, Some(&skeleton));
        }
        self.repeated_keys();
    }

    fn yaml_error(&mut self, error: &brine_yaml::YamlError, text: &str, skeleton: Option<&Skeleton>) {
        // A quote or a bracket that is not closed is missed far below; the place is where it opens.
        let is_below = ["end of stream", "could not find expected ':'", "document separator", "',' or"];
        let context = error.context.as_ref().filter(|_| is_below.iter().any(|part| error.message.contains(part)));
        let (line, column) = context.map_or((error.line, error.column), |context| (context.line, context.column));
        let at = offset(text, line, column);
        let at = skeleton.map_or(at, |skeleton| skeleton.source(at)).min(self.text.len());
        let at = (0..=at).rev().find(|at| self.text.is_char_boundary(*at)).unwrap_or_default();
        let end = self.text[at..].chars().next().filter(|c| *c != '\n').map_or(at, |c| at + c.len_utf8());
        let has_tags = self.view.as_ref().is_some_and(View::has_tags);
        let hint = error.hint(text).filter(|hint| !has_tags || !hint.contains("line "));
        let message = match hint {
            Some(hint) => format!("{}: {hint}", error.message),
            None => error.message.clone(),
        };
        self.problem(ProblemKind::Yaml, at..end, message);
        self.is_open = true;
    }

    fn repeated_keys(&mut self) {
        // Examples show alternatives one below the other.
        if self.path.contains("pillar.example") {
            return;
        }
        let mut duplicates = Vec::new();
        for document in &self.documents {
            self.repeated_in(document, &mut duplicates);
        }
        for (key, span, first) in duplicates {
            let message =
                format!("the key '{key}' stands twice in one mapping: remove one, or merge what is below them");
            let problem = Problem { kind: ProblemKind::RepeatedKey, span, message, related: Some(first) };
            if !self.problems.contains(&problem) {
                self.problems.push(problem);
            }
        }
    }

    fn repeated_in(&self, node: &SourceNode, duplicates: &mut Vec<(String, Range<usize>, Range<usize>)>) {
        if node.is_repeated {
            return;
        }
        match &node.content {
            Content::Scalar { .. } => {}
            Content::List(items) => items.iter().for_each(|item| self.repeated_in(item, duplicates)),
            Content::Map(entries) => {
                for (number, (key, value)) in entries.iter().enumerate() {
                    self.repeated_in(value, duplicates);
                    let Some(text) = key.text().filter(|text| !key.is_repeated && !is_dynamic(text)) else { continue };
                    let before = entries[..number].iter().map(|(before, _)| before);
                    let same = before.filter(|before| !before.is_repeated && before.scalar() == key.scalar());
                    let first = same
                        .filter(|before| before.span != key.span)
                        .find(|before| self.are_together(before.span.start, key.span.start));
                    if let Some(first) = first {
                        duplicates.push((text.to_owned(), key.span.clone(), first.span.clone()));
                    }
                }
            }
        }
    }
}

/// Returns a node with its ranges in the source.
fn in_source(mut node: SourceNode, skeleton: &Skeleton) -> SourceNode {
    node.span = skeleton.range(&node.span);
    node.content = match node.content {
        Content::List(items) => Content::List(items.into_iter().map(|item| in_source(item, skeleton)).collect()),
        Content::Map(entries) => Content::Map(
            entries.into_iter().map(|(key, value)| (in_source(key, skeleton), in_source(value, skeleton))).collect(),
        ),
        scalar @ Content::Scalar { .. } => scalar,
    };
    node
}

/// Whether a file of this text is rendered by Jinja and YAML alone.
///
/// ```
/// use brine_authoring_model::file::is_jinja_and_yaml;
///
/// assert!(is_jinja_and_yaml("a: 1\n") && is_jinja_and_yaml("#!jinja|yaml\na: 1\n"));
/// assert!(!is_jinja_and_yaml("#!py\ndef run():\n    return {}\n"));
/// ```
pub fn is_jinja_and_yaml(text: &str) -> bool {
    matches!(pipe(text), Pipe::Static { .. })
}

/// How a file is rendered.
enum Pipe {
    /// By Jinja, if at all, and YAML.
    Static { has_jinja: bool },
    /// By other renderers, whose result is not known.
    Hosted,
    /// An unknown renderer, and its place.
    Unknown(String, Range<usize>),
}

fn pipe(text: &str) -> Pipe {
    let first = text.lines().next().unwrap_or_default();
    let Some(pipe) = first.strip_prefix("#!").filter(|pipe| !pipe.starts_with('/')) else {
        return Pipe::Static { has_jinja: true };
    };
    let (mut at, mut has_jinja, mut is_static) = (2, false, true);
    for step in pipe.split('|') {
        let name = step.split_whitespace().next().unwrap_or_default();
        let start = at + step.find(name).unwrap_or_default();
        at += step.len() + 1;
        match name {
            "jinja" | "yaml_jinja" => has_jinja = true,
            "yaml" | "gpg" | "nacl" => {}
            _ if brine_sls::render::RENDERERS.iter().any(|(other, ..)| *other == name) => is_static = false,
            _ => return Pipe::Unknown(name.to_owned(), start..start + name.len()),
        }
    }
    if is_static { Pipe::Static { has_jinja } } else { Pipe::Hosted }
}
