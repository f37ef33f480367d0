//! Plans the reactions to an event: finds and renders its SLS files, parses them and sorts the reactions.

use std::sync::Arc;
use std::time::Instant;

use brine_config::opts::{master, shared};
use brine_jinja::{Cancel, Context, Host, Limits};
use brine_sls::render::AllowedRenderers;
use brine_value::{Map, Value};
use brine_yaml::Located;

use crate::Options;
use crate::deadline::Deadline;
use crate::entries::Entry;
use crate::metrics;
use crate::order::{self, ParsedReaction};
use crate::parser;
use crate::reaction::Reaction;
use crate::sls::{SlsCache, Source};

/// The entry or rule that binds SLS files to an event.
#[derive(Debug, Clone)]
pub(crate) enum Binding {
    Entry(Arc<Entry>),
    /// A rule over time that has fired.
    Rule {
        name: Arc<str>,
        files: Vec<String>,
    },
}

impl Binding {
    /// Returns the entry's pattern, or the rule's id.
    pub fn name(&self) -> &Arc<str> {
        match self {
            Binding::Entry(entry) => &entry.pattern,
            Binding::Rule { name, .. } => name,
        }
    }

    pub fn files(&self) -> &[String] {
        match self {
            Binding::Entry(entry) => &entry.files,
            Binding::Rule { files, .. } => files,
        }
    }
}

/// The event that files are rendered for.
pub(crate) struct Subject<'a> {
    pub tag: &'a str,
    pub data: Arc<Map>,
    /// Variables of the rule that fired.
    pub rule_context: Option<&'a Map>,
    /// The deadline of rendering.
    pub deadline: Option<&'a Deadline>,
}

impl Subject<'_> {
    fn is_cancelled(&self) -> bool {
        self.deadline.is_some_and(Deadline::is_over)
    }
}

/// A reaction to dispatch.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PlannedReaction {
    pub entry: Arc<str>,
    pub file: Arc<str>,
    pub line: usize,
    /// Identifies the reaction within its file.
    pub label: String,
    pub reaction: Reaction,
}

/// An invalid file, or an invalid reaction in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub entry: Arc<str>,
    pub file: Arc<str>,
    /// The error, with file and line.
    pub message: String,
}

/// The reactions to an event, in order.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Plan {
    pub steps: Vec<PlannedReaction>,
    pub problems: Vec<Problem>,
    /// Files that rendered to no reaction, each with its entry.
    pub empty: Vec<(Arc<str>, Arc<str>)>,
    /// The rendered text of each file, if requested.
    pub rendered: Vec<(Arc<str>, String)>,
}

struct FileReaction {
    entry: Arc<str>,
    file: Arc<str>,
    parsed: ParsedReaction,
}

/// Creates plans.
pub(crate) struct Planner {
    files: SlsCache,
    opts: Arc<Map>,
    grains: crate::Grains,
    pillar: Arc<Map>,
}

impl Planner {
    pub fn new(options: &Options) -> Self {
        Self::with_host(options, options.host.clone())
    }

    /// Creates a planner whose templates have other functions and files than those of the reactor.
    pub fn with_host(options: &Options, host: Host) -> Self {
        let allowed = AllowedRenderers::of(&options.opts);
        Planner {
            files: SlsCache::new(host, options.renderer.clone(), allowed, options.strict_data),
            opts: Arc::clone(&options.opts),
            grains: Arc::clone(&options.grains),
            pillar: Arc::default(),
        }
    }

    /// Creates a planner without a reactor, with its options as the master's.
    pub fn for_preview(host: Host, opts: &Arc<Map>, grains: &Arc<Map>) -> Self {
        let (renderer, strict) = (shared::renderer(opts), master::reactor_strict_data(opts));
        let grains = Arc::clone(grains);
        Planner {
            files: SlsCache::new(host, renderer, AllowedRenderers::of(opts), strict),
            opts: Arc::clone(opts),
            grains: Arc::new(move || Arc::clone(&grains)),
            pillar: Arc::default(),
        }
    }

    /// Creates a planner for checks without a reactor: templates have neither grains nor functions.
    pub fn for_check(renderer: &str, strict: bool, opts: &Arc<Map>) -> Self {
        Planner {
            files: SlsCache::new(Host::new(), renderer.to_owned(), AllowedRenderers::of(opts), strict),
            opts: Arc::clone(opts),
            grains: Arc::new(Arc::default),
            pillar: Arc::default(),
        }
    }

    /// Checks a file on disk: that it exists, that its template compiles, and that a file without template tags holds
    /// reactions. Returns the errors.
    pub fn check(&self, file: &str) -> Vec<String> {
        let paths = match self.files.named(file) {
            Ok(paths) => paths,
            Err(error) => return vec![error.to_string()],
        };
        let mut errors = Vec::new();
        for path in paths.iter().filter(|path| !path.starts_with("salt://")) {
            let parsed = self.files.get(path).and_then(|source| {
                let Some(text) = source.static_text() else { return Ok(Vec::new()) };
                let located = source.parse(&text)?;
                let read = parser::read_all(&located, &text.placeholders).into_iter();
                Ok(read.filter_map(Result::err).map(|error| format!("{path}:{}: {error}", error.line)).collect())
            });
            match parsed {
                Ok(more) => errors.extend(more),
                Err(error) => errors.push(error.to_string()),
            }
        }
        errors
    }

    /// Plans the reactions to an event. An invalid file does not affect the others. After the deadline the plan is
    /// incomplete and must not be used.
    pub fn plan(&self, subject: &Subject<'_>, bindings: &[Binding], keep_rendered: bool) -> Plan {
        let mut plan = Plan::default();
        let mut read = Vec::new();
        for one in bindings {
            for file in one.files() {
                let problem = |message| Problem { entry: Arc::clone(one.name()), file: file.as_str().into(), message };
                match self.files.named(file) {
                    Ok(paths) => {
                        for path in &*paths {
                            if subject.is_cancelled() {
                                return plan;
                            }
                            self.read(subject, one.name(), path, keep_rendered, &mut read, &mut plan);
                        }
                    }
                    Err(error) => plan.problems.push(problem(error.to_string())),
                }
            }
        }
        loop {
            let all: Vec<&ParsedReaction> = read.iter().map(|one| &one.parsed).collect();
            let (index, message) = match order::sorted(&all) {
                Ok(order) => {
                    let mut read: Vec<_> = read.into_iter().map(Some).collect();
                    plan.steps.extend(order.into_iter().filter_map(|index| read[index].take()).map(step));
                    // An event may fire a rule for several keys, each with its own reactions.
                    if let Some(key) =
                        subject.rule_context.and_then(|context| context.get("key")).filter(|key| key.is_truthy())
                    {
                        for step in &mut plan.steps {
                            step.label += &format!(" [{key}]");
                        }
                    }
                    return plan;
                }
                Err(error) => error,
            };
            // Without the file with the error the others can be sorted.
            let (file, line) = (Arc::clone(&read[index].file), read[index].parsed.line);
            let message = format!("{file}:{line}: {message}");
            plan.problems.push(Problem { entry: Arc::clone(&read[index].entry), file: Arc::clone(&file), message });
            read.retain(|one| one.file != file);
        }
    }

    /// Returns the files of a path or a glob of paths.
    pub fn named(&self, file: &str) -> Result<Arc<[String]>, String> {
        self.files.named(file).map_err(|error| error.to_string())
    }

    /// Returns the source of a file, if it can be read.
    pub fn text(&self, path: &str) -> Option<String> {
        self.files.text(path)
    }

    /// Returns whether a path or glob of paths names no file on disk.
    pub fn is_missing(&self, file: &str) -> bool {
        !file.starts_with("salt://")
            && match self.files.named(file) {
                Ok(paths) => paths.iter().any(|path| !std::path::Path::new(path).is_file()),
                Err(_) => true,
            }
    }

    /// Renders files of rules over time.
    pub fn rules(&self, file: &str) -> Result<Vec<(String, Located)>, String> {
        let mut rendered = Vec::new();
        for path in &*self.files.named(file).map_err(|error| error.to_string())? {
            let source = self.files.get(path).map_err(|error| error.to_string())?;
            let subject = Subject { tag: "", data: Arc::default(), rule_context: None, deadline: None };
            let text = source.render(&self.context(&subject, &source)).map_err(|error| error.to_string())?;
            let mut located = source.parse(&text).map_err(|error| error.to_string())?;
            // Rules are rendered without an event.
            located.value = text.placeholders.resolve(located.value).map_err(|error| error.to_string())?;
            rendered.push((path.clone(), located));
        }
        Ok(rendered)
    }

    fn read(
        &self,
        subject: &Subject<'_>,
        entry: &Arc<str>,
        path: &str,
        keep_rendered: bool,
        read: &mut Vec<FileReaction>,
        plan: &mut Plan,
    ) {
        let problem = |file: Arc<str>, message| Problem { entry: Arc::clone(entry), file, message };
        let source = match self.files.get(path) {
            Ok(source) => source,
            Err(error) => return plan.problems.push(problem(path.into(), error.to_string())),
        };
        let file = Arc::clone(&source.path);
        let started = Instant::now();
        let text = source.render(&self.context(subject, &source));
        metrics::RENDER_SECONDS.observe(started.elapsed().as_secs_f64());
        let rendered = match text {
            Ok(rendered) => rendered,
            Err(error) => return plan.problems.push(problem(Arc::clone(&file), error.to_string())),
        };
        let located = source.parse(&rendered);
        if keep_rendered {
            plan.rendered.push((Arc::clone(&file), rendered.placeholders.reveal(&rendered.text)));
        }
        let located = match located {
            Ok(located) => located,
            Err(error) => return plan.problems.push(problem(Arc::clone(&file), error.to_string())),
        };
        let reactions = parser::read_all(&located, &rendered.placeholders);
        if reactions.is_empty() {
            plan.empty.push((Arc::clone(entry), Arc::clone(&file)));
        }
        for one in reactions {
            match one {
                Ok(mut parsed) => {
                    parsed.line = rendered.template_line(parsed.line);
                    read.push(FileReaction { entry: Arc::clone(entry), file: Arc::clone(&file), parsed });
                }
                Err(error) => {
                    let message = format!("{file}:{}: {error}", rendered.template_line(error.line));
                    plan.problems.push(problem(Arc::clone(&file), message));
                }
            }
        }
    }

    fn context(&self, subject: &Subject<'_>, source: &Source) -> Context {
        let mut context = Context::new(&source.saltenv);
        let mut limits = Limits::of(&self.opts);
        limits.cancel = subject.deadline.map(|deadline| Cancel::shared(deadline.flag(), deadline.at()));
        context.set_limits(limits);
        context.set_shared("data", Arc::clone(&subject.data));
        context.set("tag", &subject.tag.into());
        context.set_shared("opts", Arc::clone(&self.opts));
        context.set_shared("grains", (self.grains)());
        context.set_shared("pillar", Arc::clone(&self.pillar));
        // A reactor SLS is not part of the state tree.
        for (name, value) in [("sls", ""), ("slspath", ""), ("tplfile", &source.tplfile), ("tpldir", ".")] {
            context.set(name, &Value::from(value));
        }
        if let Some(variables) = subject.rule_context {
            context.set_all(variables);
        }
        context
    }
}

fn step(read: FileReaction) -> PlannedReaction {
    let FileReaction { entry, file, parsed } = read;
    PlannedReaction { entry, file, line: parsed.line, label: parsed.label(), reaction: parsed.reaction }
}
