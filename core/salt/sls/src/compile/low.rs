//! Low chunks: one state function call each.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use brine_value::{Map, Value};

use super::graph::Number;
use super::high::{states_of, text};
use super::requisite::{Reference, Requisite, RequisiteKind, listen_references, of_kind};
use super::{Target, is_dunder};

/// One state function call.
#[derive(Debug, Clone, PartialEq)]
pub struct Chunk {
    /// The state module, such as `file`.
    pub state: String,
    /// The function, such as `managed`.
    pub fun: String,
    /// The id of the state in its SLS.
    pub id: String,
    /// The `name` argument; the id by default.
    pub name: String,
    /// The SLS of the state.
    pub sls: String,
    /// The environment of the SLS.
    pub saltenv: String,
    /// The SLS files that include that one, nearest first.
    pub included_from: Vec<String>,
    /// The order number, before requisites; assigned when the chunks are sorted.
    pub order: f64,
    /// All arguments as they were written, including those for the state engine: requisites, conditions, `order`. A
    /// `name` is included only if it is not a string, which is an error of that state.
    pub args: Map,
    /// The requisites of this state.
    pub requisites: Vec<Requisite>,
    /// Whether this state is the target of a `prereq`.
    pub prereq: bool,
    /// Whether this state has a `prereq`.
    pub prerequiring: bool,
    /// The position in `names`, from 1; 0 without.
    pub(super) name_order: usize,
}

impl Chunk {
    /// Returns the key of this chunk's return: `file_|-id_|-name_|-managed`.
    pub fn tag(&self) -> String {
        [self.state.as_str(), &self.id, &self.name, &self.fun].join("_|-")
    }

    /// Returns the SLS name for messages: `None` for inline data, as in Salt.
    pub fn shown_sls(&self) -> &str {
        if self.sls.is_empty() { "None" } else { &self.sls }
    }

    /// Returns the `name` argument in its original type, so that the state can report a name that is not a string.
    pub fn written_name(&self) -> Value {
        self.args.get("name").cloned().unwrap_or_else(|| self.name.as_str().into())
    }

    /// Returns the chunk in the form of `state.show_lowstate`.
    pub fn to_value(&self) -> Value {
        let mut map = Map::with_capacity(self.args.len() + 8);
        map.insert("state".into(), (&self.state).into());
        map.insert("name".into(), self.written_name());
        if !self.sls.is_empty() {
            map.insert("__sls__".into(), (&self.sls).into());
        }
        if !self.saltenv.is_empty() {
            map.insert("__env__".into(), (&self.saltenv).into());
        }
        if !self.included_from.is_empty() {
            map.insert("__sls_included_from__".into(), self.included_from.clone().into());
        }
        map.insert("__id__".into(), (&self.id).into());
        map.extend(
            self.args.iter().filter(|(key, _)| key.as_str() != Some("name")).map(|(k, v)| (k.clone(), v.clone())),
        );
        map.insert("fun".into(), (&self.fun).into());
        if self.prereq {
            map.insert("__prereq__".into(), true.into());
        }
        if self.prerequiring {
            map.insert("__prerequiring__".into(), true.into());
        }
        map.into()
    }

    /// Parses a chunk from low data (`state.low`). Returns `None` without a state or function.
    pub fn from_value(low: &Map) -> Option<Chunk> {
        let text = |key: &str| low.get(key).map(ToString::to_string);
        let (state, fun) = (text("state")?, text("fun")?);
        let id = text("__id__").or_else(|| text("name"))?;
        let own =
            |key: &Value| matches!(key.as_str(), Some("state" | "fun" | "name" | "__id__" | "__sls__" | "__env__"));
        let mut chunk = Chunk::new(&state, &id);
        chunk.name = text("name").unwrap_or_else(|| id.clone());
        chunk.fun = fun;
        chunk.sls = text("__sls__").unwrap_or_default();
        chunk.saltenv = text("__env__").unwrap_or_default();
        chunk.args = low.iter().filter(|(key, _)| !own(key)).map(|(key, value)| (key.clone(), value.clone())).collect();
        if let Some(name) = low.get("name") {
            chunk.set_name(name);
        }
        Some(chunk)
    }

    fn new(state: &str, id: &str) -> Self {
        Chunk {
            state: state.to_owned(),
            fun: String::new(),
            id: id.to_owned(),
            name: id.to_owned(),
            sls: String::new(),
            saltenv: String::new(),
            included_from: Vec::new(),
            order: 0.0,
            args: Map::new(),
            requisites: Vec::new(),
            prereq: false,
            prerequiring: false,
            name_order: 0,
        }
    }

    fn set_name(&mut self, name: &Value) {
        self.name = name.to_string();
        if name.as_str().is_some() {
            self.args.shift_remove("name");
        } else {
            self.args.insert("name".into(), name.clone());
        }
    }

    /// Parses the requisites once, so that lookups need no string comparison.
    pub(super) fn read_requisites(&mut self, disabled: &[String]) -> Result<(), String> {
        let mut requisites = Vec::new();
        let named: Vec<RequisiteKind> =
            self.args.keys().filter_map(|name| RequisiteKind::parse(name.as_str()?)).collect();
        for kind in RequisiteKind::RUNNING.into_iter().filter(|kind| named.contains(kind)) {
            if !disabled.iter().any(|name| name == kind.name()) {
                requisites.append(&mut of_kind(self, kind)?);
            }
        }
        self.requisites = requisites;
        Ok(())
    }

    /// Returns the `listen` and `listen_in` relations of this chunk.
    pub(super) fn listeners(&self) -> Vec<Listener> {
        let me = || Reference { module: self.state.clone(), name: self.id.clone() };
        let listens = listen_references(self.args.get("listen")).into_iter().map(|to| Listener { listener: me(), to });
        let lets =
            listen_references(self.args.get("listen_in")).into_iter().map(|listener| Listener { listener, to: me() });
        listens.chain(lets).collect()
    }
}

/// A listener: it runs `mod_watch` at the end of the run if the state that it listens to has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// The listening state.
    pub listener: Reference,
    /// The state that it listens to.
    pub to: Reference,
}

/// A step of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunStep {
    /// The index of the chunk in [`Low::chunks`].
    pub chunk: usize,
    /// Whether this is a dry run, for a state that has the chunk as `prereq`.
    pub check: bool,
    /// The steps that must have run before.
    pub needs: Vec<Dependency>,
}

/// The dependency of a step on another chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dependency {
    /// The requisite kind.
    pub kind: RequisiteKind,
    /// The index of the chunk in [`Low::chunks`].
    pub chunk: usize,
}

/// The low data: all steps, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Low {
    /// The chunks, in the order of parsing.
    pub chunks: Vec<Chunk>,
    /// The steps, in the order in which they run: the target of a `prereq` comes twice.
    pub steps: Vec<RunStep>,
    /// The listeners.
    pub listeners: Vec<Listener>,
}

impl Low {
    /// Returns the low data in the form of `state.show_lowstate`.
    pub fn to_value(&self) -> Value {
        self.steps.iter().filter_map(|step| self.chunks.get(step.chunk)).map(Chunk::to_value).collect()
    }

    /// Returns the chunks in the order of their steps.
    pub fn in_order(&self) -> impl Iterator<Item = &Chunk> {
        self.steps.iter().filter(|step| !step.check).filter_map(|step| self.chunks.get(step.chunk))
    }
}

impl Low {
    /// Keeps only the chunks for which `is_selected` returns true, and their dependencies.
    #[must_use]
    pub fn only(mut self, is_selected: impl Fn(&Chunk) -> bool) -> Self {
        let mut is_needed: Vec<bool> = self.chunks.iter().map(is_selected).collect();
        // Backwards: the dependencies of a step come before it.
        for step in self.steps.iter().rev().filter(|step| !step.needs.is_empty()) {
            if is_needed[step.chunk] {
                step.needs.iter().for_each(|need| is_needed[need.chunk] = true);
            }
        }
        self.steps.retain(|step| is_needed[step.chunk]);
        self.listeners.clear();
        self
    }
}

/// Creates the chunks of checked high data, in the order of parsing.
pub(super) fn chunks(states: &Map, target: &Target) -> Vec<Chunk> {
    let (mut chunks, mut places) = (Vec::new(), HashMap::new());
    for (id, body) in states.iter().filter(|(id, _)| !is_dunder(id)) {
        let included_from = body.get("__sls_included_from__").and_then(Value::as_list).unwrap_or_default();
        for (state, arguments) in states_of(body) {
            let mut base = Chunk::new(state, &id.to_string());
            base.sls = text(body, "__sls__");
            base.saltenv = text(body, "__env__");
            base.included_from = included_from.iter().map(ToString::to_string).collect();
            for mut chunk in named(base, arguments.as_list().unwrap_or_default()) {
                watch_or_require(&mut chunk, target);
                // Duplicate names are one chunk; the later one wins.
                match places.entry((chunk.id.clone(), chunk.tag())) {
                    Entry::Occupied(place) => chunks[*place.get()] = chunk,
                    Entry::Vacant(entry) => {
                        entry.insert(chunks.len());
                        chunks.push(chunk);
                    }
                }
            }
        }
    }
    chunks
}

/// Creates the chunks of one state: several if it has `names`.
fn named(mut base: Chunk, arguments: &[Value]) -> Vec<Chunk> {
    let mut names: Vec<&Value> = Vec::new();
    for argument in arguments {
        let map = match argument {
            Value::Str(function) => {
                base.fun.clone_from(function);
                continue;
            }
            Value::Map(map) => map,
            _ => continue,
        };
        for (key, value) in map {
            match (key.as_str(), value) {
                (Some("names"), Value::List(list)) => {
                    for name in list {
                        if !names.contains(&name) {
                            names.push(name);
                        }
                    }
                }
                // As in Salt, an argument `state` is ignored, and a name that is not a string is replaced by the id.
                (Some("state"), _) => {}
                (Some("name"), Value::Str(_)) => base.set_name(value),
                (Some("name"), _) => base.name.clone_from(&base.id),
                _ => _ = base.args.insert(key.clone(), value.clone()),
            }
        }
    }
    if base.fun.is_empty() {
        // The state has no function: it was only created by an inverse requisite of another state. It gets no chunk.
        return Vec::new();
    }
    if names.is_empty() {
        return vec![base];
    }
    let each = names.iter().enumerate().map(|(index, name)| {
        let mut chunk = Chunk { name_order: index + 1, ..base.clone() };
        match name.as_map().and_then(Map::first) {
            None => chunk.set_name(name),
            Some((name, more)) => {
                chunk.set_name(name);
                for (key, value) in more.as_list().unwrap_or_default().iter().filter_map(Value::as_map).flatten() {
                    if key.as_str() == Some("name") {
                        chunk.set_name(value);
                    } else {
                        chunk.args.insert(key.clone(), value.clone());
                    }
                }
            }
        }
        chunk
    });
    each.collect()
}

/// Treats `watch` as `require` for a module without `mod_watch`.
fn watch_or_require(chunk: &mut Chunk, target: &Target) {
    for (watch, require) in [("watch", "require"), ("watch_any", "require_any")] {
        if !chunk.args.contains_key(watch) || (target.acts_on_watch)(&chunk.state) {
            continue;
        }
        let Some(Value::List(items)) = chunk.args.shift_remove(watch) else { continue };
        match chunk.args.get_mut(require) {
            Some(Value::List(have)) => have.extend(items),
            _ => _ = chunk.args.insert(require.into(), items.into()),
        }
    }
}

/// Stores the order of a chunk in its arguments.
pub(super) fn set_order(chunk: &mut Chunk, order: Number) {
    chunk.order = order.as_f64();
    chunk.args.insert("order".into(), order.into());
}
