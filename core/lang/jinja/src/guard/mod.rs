//! Guarded renders: untrusted values from an event are printed as opaque placeholders ([`Placeholders`]), so that they
//! cannot change the structure of the output.
//!
//! `reader` reads the data flow of a template (`facts`), `solve` decides for each printing tag whether its value may be
//! untrusted, and those tags are rewritten (`syntax`) to go through [`Guard::print`]. Text that the template captures
//! (macros, `set` blocks, filter blocks) is the real text, because templates compare and slice it. If it is printed
//! unchanged, its placeholders are restored.

mod facts;
mod known;
mod reader;
mod solve;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use brine_yaml::GuardedError;
use brine_yaml::untrusted::{Kind, Origin, Placeholders, UntrustedError, too_much};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Object, ObjectRepr, Value as JinjaValue, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State};
use parking_lot::Mutex;

pub(super) use facts::DataFlow;
use facts::Encoder;
pub(super) use solve::Decision;

use super::data::{from_jinja, printed, raise, split_kwargs, to_jinja};
use super::messages::REFUSED;
use super::syntax::{Document, Emitted, Purpose, emit};

/// The variable of the guard.
pub(super) const GUARD: &str = "__guard__";

/// The variables of a render, by trust.
#[derive(Debug, Clone, Copy, Default)]
pub struct Variables {
    /// Variables without untrusted text.
    pub trusted: &'static [&'static str],
    /// Variables with untrusted text.
    pub untrusted: &'static [&'static str],
    /// Modules whose functions return data from minions.
    pub from_minions: &'static [&'static str],
    /// Functions that add their other arguments to the first.
    pub change_first: &'static [&'static str],
}

impl Variables {
    /// Whether a variable is trusted, unless the template assigns it.
    fn is_trusted(&self, name: &str) -> bool {
        name.starts_with("__") || matches!(name, "salt" | "saltenv") || self.trusted.contains(&name)
    }

    /// Returns a variable that is in neither list.
    pub(super) fn unknown<'n>(&self, mut names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
        names.find(|name| !self.trusted.contains(name) && !self.untrusted.contains(name))
    }
}

/// Rewrites a template so that its printing tags go through the guard, and returns its facts. `alone` is true for a
/// template that reads no other template: tags that cannot print untrusted text then print directly. `is_global` returns
/// whether a name is a global of the engine.
///
/// The facts are read from the engine's own syntax tree, not from that of [`Document`]: the guard must see the tree
/// that the engine runs. A template that the engine cannot parse is not changed, so that the compiler reports the
/// error.
pub(super) fn guard_template(
    document: &Document,
    syntax: SyntaxConfig,
    variables: Variables,
    alone: bool,
    is_global: &dyn Fn(&str) -> bool,
) -> Result<(Emitted, Arc<DataFlow>), String> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let plain = emit(document, Purpose::Render);
    let printing = document.printing();
    let facts = match minijinja::machinery::parse(&plain.text, "template", syntax) {
        Ok(tree) => reader::read(&tree, &printing, is_global, variables),
        Err(_) => return Ok((plain, Arc::default())),
    };
    // The document and the engine must list the same tags in the same order.
    if printing.len() != facts.emits.len() || !document.is_understood() {
        return Err(format!("{REFUSED}the template has tags that cannot be tracked"));
    }
    let facts = Arc::new(DataFlow { id: NEXT.fetch_add(1, Ordering::Relaxed), ..facts });
    let only = [Arc::clone(&facts)];
    let solution = solve::solve(&only, variables);
    let is_guarded = |emit| if alone { solution.decide(emit) != Decision::Trusted } else { !emit.of.is_empty() };
    let is_guarded_tag = |n: usize| facts.emits.get(n).is_none_or(is_guarded);
    let emitted = emit(document, Purpose::Guard { id: facts.id, is_guarded: &is_guarded_tag });
    Ok((emitted, Arc::clone(&facts)))
}

/// The templates of one render, and the decision for each of their tags.
#[derive(Debug, Default)]
struct Templates {
    facts: Vec<Arc<DataFlow>>,
    names: Vec<Arc<str>>,
    decisions: Vec<Arc<[Decision]>>,
    /// Captured text: as real text, and with placeholders; `None` if ambiguous.
    captured: HashMap<String, Option<String>>,
    /// The first refusal.
    refused: Option<UntrustedError>,
}

/// The guard of one render.
#[derive(Debug)]
pub(super) struct Guard {
    placeholders: Placeholders,
    variables: Variables,
    templates: Mutex<Templates>,
}

/// Returns the decisions for the tags of a template that reads no other.
pub(super) fn decisions(facts: &Arc<DataFlow>, variables: Variables) -> Result<Arc<[Decision]>, String> {
    let only = [Arc::clone(facts)];
    let solution = solve::solve(&only, variables);
    match solution.refused() {
        Some(refused) => Err(refused),
        None => Ok(facts.emits.iter().map(|emit| solution.decide(emit)).collect()),
    }
}

impl Guard {
    pub(super) fn new(
        name: &str,
        facts: &Arc<DataFlow>,
        decisions: &Arc<[Decision]>,
        variables: Variables,
    ) -> Arc<Self> {
        let templates = Templates {
            facts: vec![Arc::clone(facts)],
            names: vec![name.into()],
            decisions: vec![Arc::clone(decisions)],
            ..Templates::default()
        };
        Arc::new(Guard { placeholders: Placeholders::new(), variables, templates: Mutex::new(templates) })
    }

    /// Returns the variables of the render, by trust.
    pub(super) fn variables(&self) -> Variables {
        self.variables
    }

    /// Returns the placeholders of the rendered text.
    pub(super) fn placeholders(&self) -> Placeholders {
        self.placeholders.clone()
    }

    /// Returns the refusal that ended the render, if any.
    pub(super) fn refused(&self) -> Option<UntrustedError> {
        self.templates.lock().refused.take()
    }

    /// Adds a template that is about to run.
    pub(super) fn add(&self, name: &str, facts: &Arc<DataFlow>) -> Result<(), Error> {
        let mut templates = self.templates.lock();
        if templates.facts.iter().any(|other| other.id == facts.id) {
            return Ok(());
        }
        templates.facts.push(Arc::clone(facts));
        templates.names.push(name.into());
        let solution = solve::solve(&templates.facts, self.variables);
        if let Some(refused) = solution.refused() {
            return Err(raise(refused));
        }
        let decide = |facts: &Arc<DataFlow>| facts.emits.iter().map(|emit| solution.decide(emit)).collect();
        let decisions = templates.facts.iter().map(decide).collect();
        templates.decisions = decisions;
        Ok(())
    }

    /// Returns the output of a printing tag: its value, or a placeholder.
    fn print(&self, value: &JinjaValue, id: u64, tag: usize) -> Result<JinjaValue, Error> {
        let mut templates = self.templates.lock();
        let Some(at) = templates.facts.iter().position(|facts| facts.id == id) else {
            return Err(raise(format!("{REFUSED}a tag of an unknown template")));
        };
        let decision = templates.decisions[at].get(tag).copied().unwrap_or(Decision::Text);
        // Undefined values are refused by the printing itself.
        if decision == Decision::Trusted || value.is_undefined() {
            return Ok(value.clone());
        }
        let text = printed(value)?;
        if decision == Decision::Captured
            && let Some(Some(captured)) = templates.captured.get(&text)
        {
            return Ok(JinjaValue::from(captured.as_str()));
        }
        let kind = match (decision, value.kind()) {
            (Decision::Encoded(Encoder::Yaml), _) => Kind::Yaml,
            (Decision::Encoded(Encoder::Json), _) => Kind::Json,
            (_, ValueKind::Number | ValueKind::Bool | ValueKind::None) => Kind::Typed,
            (_, ValueKind::Map) => Kind::Data,
            _ => Kind::Text,
        };
        let emit = templates.facts[at].emits.get(tag);
        let origin = Origin {
            template: Arc::clone(&templates.names[at]),
            line: emit.map_or(1, |emit| emit.line),
            tag: emit.map_or_else(|| "{{ }}".into(), |emit| Arc::clone(&emit.tag)),
        };
        // Of nested placeholders, only the outer one is used.
        let text: Arc<str> =
            if self.placeholders.touches(&text) { self.placeholders.reveal(&text).into() } else { text.into() };
        let data = (kind == Kind::Data).then(|| self.placeholders.resolve(from_jinja(value)).ok()).flatten();
        let word = match data {
            Some(data) => self.placeholders.add_data(text, data, origin.clone()),
            None => self.placeholders.add(text, kind, origin.clone()),
        };
        match word {
            Some(word) => Ok(JinjaValue::from(word)),
            None => Err(refuse(&mut templates, too_much(&origin))),
        }
    }

    /// Records the captured text of a block, and returns it as real text.
    fn captured(&self, printed: &JinjaValue) -> Result<JinjaValue, Error> {
        let Some(text) = printed.as_str() else { return Ok(printed.clone()) };
        let revealed = self.reveal(text)?;
        let mut templates = self.templates.lock();
        match templates.captured.get_mut(&revealed) {
            Some(previous) if previous.as_deref() != Some(text) => *previous = None,
            Some(_) => {}
            None => {
                if !self.placeholders.spend(text.len() + revealed.len()) {
                    return Err(raise(format!("{REFUSED}the template captures too much text")));
                }
                templates.captured.insert(revealed.clone(), Some(text.to_owned()));
            }
        }
        Ok(if printed.is_safe() { JinjaValue::from_safe_string(revealed) } else { JinjaValue::from(revealed) })
    }

    /// Replaces placeholders by the text that they stand for.
    pub(super) fn reveal(&self, text: &str) -> Result<String, Error> {
        if !self.placeholders.touches(text) {
            return Ok(text.to_owned());
        }
        let revealed = self.placeholders.reveal(text);
        if self.placeholders.spend(revealed.len()) {
            Ok(revealed)
        } else {
            Err(raise(format!("{REFUSED}the template captures too much text")))
        }
    }

    /// Parses captured text; its structure must come from the template.
    pub(super) fn load(&self, text: &str) -> Result<JinjaValue, Error> {
        let located = brine_yaml::load_guarded(text, &self.placeholders).map_err(|error| match error {
            GuardedError::Yaml(error) => {
                Error::new(ErrorKind::SyntaxError, format!("Encountered error loading yaml: {}", error.python_text()))
            }
            GuardedError::Untrusted(error) => refuse(&mut self.templates.lock(), error),
        })?;
        self.placeholders.resolve(located.value).map(|value| to_jinja(&value)).map_err(|error| raise(error.to_string()))
    }

    /// Whether captured text contains placeholders.
    pub(super) fn touches(&self, text: &str) -> bool {
        self.placeholders.touches(text)
    }
}

/// Stores the error, whose location differs from that of the failing tag, and returns an error for the engine.
fn refuse(templates: &mut Templates, error: UntrustedError) -> Error {
    let report = raise(error.message.clone());
    templates.refused.get_or_insert(error);
    report
}

/// The guard as a template value.
#[derive(Debug)]
pub(super) struct GuardValue(pub Arc<Guard>);

impl Object for GuardValue {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn call(self: &Arc<Self>, _: &mut State<'_, '_>, args: &[JinjaValue]) -> Result<JinjaValue, Error> {
        let (value, id, tag): (JinjaValue, u64, usize) = minijinja::value::from_args(args)?;
        self.0.print(&value, id, tag)
    }

    fn call_method(
        self: &Arc<Self>,
        _: &mut State<'_, '_>,
        method: &str,
        args: &[JinjaValue],
    ) -> Result<JinjaValue, Error> {
        let (inner,): (JinjaValue,) = minijinja::value::from_args(args)?;
        match method {
            "macro" => Ok(JinjaValue::from_object(Capturing { guard: Arc::clone(&self.0), inner })),
            // The target of a call block prints directly.
            "block" if inner.is_undefined() || inner.downcast_object_ref::<Capturing>().is_some() => Ok(inner),
            _ => Err(raise(format!("{REFUSED}a call block calls something other than a macro"))),
        }
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(GUARD)
    }
}

/// A macro, or the body of a call block, whose output is captured.
#[derive(Debug)]
struct Capturing {
    guard: Arc<Guard>,
    inner: JinjaValue,
}

impl Object for Capturing {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &JinjaValue) -> Option<JinjaValue> {
        self.inner.get_item(key).ok().filter(|value| !value.is_undefined())
    }

    fn call(self: &Arc<Self>, state: &mut State<'_, '_>, args: &[JinjaValue]) -> Result<JinjaValue, Error> {
        let by_block = args.last().filter(|last| last.is_kwargs()).cloned().map(Kwargs::try_from).transpose()?;
        if by_block.is_none_or(|named| !named.has("caller")) {
            return self.guard.captured(&self.inner.call(state, args)?);
        }
        // A call block prints its output directly.
        let (mut positional, keywords) = split_kwargs(args)?;
        let keywords = keywords.into_iter().map(|(name, value)| {
            let is_caller = name == "caller";
            let caller = || JinjaValue::from_object(Capturing { guard: Arc::clone(&self.guard), inner: value.clone() });
            let value = if is_caller { caller() } else { value.clone() };
            (name, value)
        });
        positional.push(keywords.collect::<Kwargs>().into());
        self.inner.call(state, &positional)
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.inner)
    }
}

/// Adds the filters for captured blocks.
pub(super) fn add_to(environment: &mut Environment<'static>) {
    let held = |guard: &JinjaValue| {
        let held = guard.downcast_object::<GuardValue>();
        held.ok_or_else(|| raise(format!("{REFUSED}the guard of the render is missing")))
    };
    environment.add_filter("__captured__", move |text: JinjaValue, guard: JinjaValue| held(&guard)?.0.captured(&text));
    environment.add_filter("__uncover__", move |text: JinjaValue, guard: JinjaValue| -> Result<JinjaValue, Error> {
        let guard = held(&guard)?;
        text.as_str().map_or_else(|| Ok(text.clone()), |text| guard.0.reveal(text).map(JinjaValue::from))
    });
    environment.add_filter("__cover__", move |value: JinjaValue, guard: JinjaValue, id: u64, tag: usize| {
        held(&guard)?.0.print(&value, id, tag)
    });
}

/// Returns the guard in a filter argument, if the render is guarded.
pub(super) fn of_argument(guard: Option<&JinjaValue>) -> Option<Arc<GuardValue>> {
    guard.and_then(JinjaValue::downcast_object::<GuardValue>)
}
