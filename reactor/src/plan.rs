//! From an event and its files to reactions in order: found, rendered, read, sorted.

use std::sync::Arc;
use std::time::Instant;

use brine_jinja::{Cancel, Context, Limits, NoHost};
use brine_value::{Map, Value};
use brine_yaml::Located;

use crate::Options;
use crate::deadline::Deadline;
use crate::entries::Entry;
use crate::metrics;
use crate::order;
use crate::reaction::{self, Reaction, Written};
use crate::sls::{SlsCache, Source};

/// What binds files to an event.
#[derive(Debug, Clone)]
pub(crate) enum Bound {
    Entry(Arc<Entry>),
    /// A rule over time that has fired.
    Rule {
        name: Arc<str>,
        files: Vec<String>,
    },
}

impl Bound {
    /// The entry's pattern, or the rule's id.
    pub fn name(&self) -> &Arc<str> {
        match self {
            Bound::Entry(entry) => &entry.pattern,
            Bound::Rule { name, .. } => name,
        }
    }

    pub fn files(&self) -> &[String] {
        match self {
            Bound::Entry(entry) => &entry.files,
            Bound::Rule { files, .. } => files,
        }
    }
}

/// What reactions are rendered for.
pub(crate) struct Subject<'a> {
    pub tag: &'a str,
    pub data: Arc<Map>,
    /// More variables for the templates: what a rule says of itself.
    pub more: Option<&'a Map>,
    /// When rendering is cancelled.
    pub deadline: Option<&'a Deadline>,
}

impl Subject<'_> {
    fn is_cancelled(&self) -> bool {
        self.deadline.is_some_and(Deadline::is_over)
    }
}

/// One reaction that is to be done.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Step {
    pub entry: Arc<str>,
    pub file: Arc<str>,
    pub line: usize,
    /// What tells it from the others of its file.
    pub label: String,
    pub reaction: Reaction,
}

/// A file, or a reaction in it, that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub entry: Arc<str>,
    pub file: Arc<str>,
    /// With file and line.
    pub message: String,
}

/// What the files of an event ask for.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Plan {
    pub steps: Vec<Step>,
    pub problems: Vec<Problem>,
    /// Files that rendered to no reaction, each with its entry.
    pub empty: Vec<(Arc<str>, Arc<str>)>,
    /// What each file rendered to, if that is asked for.
    pub rendered: Vec<(Arc<str>, String)>,
}

struct Read {
    entry: Arc<str>,
    file: Arc<str>,
    written: Written,
}

/// Makes plans.
pub(crate) struct Planner {
    files: SlsCache,
    opts: Arc<Map>,
    grains: crate::Grains,
    pillar: Arc<Map>,
}

impl Planner {
    pub fn new(options: &Options) -> Self {
        Planner {
            files: SlsCache::new(Arc::clone(&options.host), options.renderer.clone(), options.strict_data),
            opts: Arc::clone(&options.opts),
            grains: Arc::clone(&options.grains),
            pillar: Arc::default(),
        }
    }

    /// A planner for examining files before there is a reactor: without grains and functions.
    pub fn for_check(renderer: &str, strict: bool, opts: &Arc<Map>) -> Self {
        Planner {
            files: SlsCache::new(Arc::new(NoHost), renderer.to_owned(), strict),
            opts: Arc::clone(opts),
            grains: Arc::new(Arc::default),
            pillar: Arc::default(),
        }
    }

    /// Examines a file that an entry names, if it is on disk: whether it exists, its template compiles, and a file
    /// without tags is one of reactions.
    pub fn examine(&self, file: &str) -> Vec<String> {
        let paths = match self.files.named(file) {
            Ok(paths) => paths,
            Err(error) => return vec![error.to_string()],
        };
        let mut errors = Vec::new();
        for path in paths.iter().filter(|path| !path.starts_with("salt://")) {
            let parsed = self.files.get(path).and_then(|source| {
                let Some(text) = source.static_text() else { return Ok(Vec::new()) };
                let located = source.parse(&text)?;
                let read = reaction::read_all(&located, &text.words).into_iter();
                Ok(read.filter_map(Result::err).map(|error| format!("{path}:{}: {error}", error.line)).collect())
            });
            match parsed {
                Ok(more) => errors.extend(more),
                Err(error) => errors.push(error.to_string()),
            }
        }
        errors
    }

    /// What the files bound to an event ask for. What is wrong with one does not keep the others from
    /// being read. Between files, a deadline that is over ends it: the plan is then not to be used.
    pub fn plan(&self, subject: &Subject<'_>, bound: &[Bound], keep_rendered: bool) -> Plan {
        let mut plan = Plan::default();
        let mut read = Vec::new();
        for one in bound {
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
            let all: Vec<&Written> = read.iter().map(|one| &one.written).collect();
            let (place, message) = match order::sorted(&all) {
                Ok(order) => {
                    let mut read: Vec<_> = read.into_iter().map(Some).collect();
                    plan.steps.extend(order.into_iter().filter_map(|place| read[place].take()).map(step));
                    // A rule may fire for several keys at one event: their reactions are not the same ones.
                    if let Some(key) = subject.more.and_then(|more| more.get("key")).filter(|key| key.is_truthy()) {
                        for step in &mut plan.steps {
                            step.label += &format!(" [{key}]");
                        }
                    }
                    return plan;
                }
                Err(wrong) => wrong,
            };
            // The file that cannot be ordered is left out, the others go on.
            let (file, line) = (Arc::clone(&read[place].file), read[place].written.line);
            let message = format!("{file}:{line}: {message}");
            plan.problems.push(Problem { entry: Arc::clone(&read[place].entry), file: Arc::clone(&file), message });
            read.retain(|one| one.file != file);
        }
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
            let subject = Subject { tag: "", data: Arc::default(), more: None, deadline: None };
            let text = source.render(&self.context(&subject, &source)).map_err(|error| error.to_string())?;
            let mut located = source.parse(&text).map_err(|error| error.to_string())?;
            // There is no event yet.
            located.value = text.words.resolve(located.value)?;
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
        read: &mut Vec<Read>,
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
            plan.rendered.push((Arc::clone(&file), rendered.words.reveal(&rendered.text)));
        }
        let located = match located {
            Ok(located) => located,
            Err(error) => return plan.problems.push(problem(Arc::clone(&file), error.to_string())),
        };
        let reactions = reaction::read_all(&located, &rendered.words);
        if reactions.is_empty() {
            plan.empty.push((Arc::clone(entry), Arc::clone(&file)));
        }
        for one in reactions {
            match one {
                Ok(mut written) => {
                    written.line = rendered.template_line(written.line);
                    read.push(Read { entry: Arc::clone(entry), file: Arc::clone(&file), written });
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
        // A reactor SLS is none of the state tree.
        for (name, value) in [("sls", ""), ("slspath", ""), ("tplfile", &source.tplfile), ("tpldir", ".")] {
            context.set(name, &Value::from(value));
        }
        if let Some(more) = subject.more {
            context.set_all(more);
        }
        context
    }
}

fn step(read: Read) -> Step {
    let Read { entry, file, written } = read;
    Step { entry, file, line: written.line, label: written.label(), reaction: written.reaction }
}
