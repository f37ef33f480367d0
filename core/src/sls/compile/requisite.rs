//! What a state says about other states.

use crate::glob::fnmatch;
use crate::value::{Map, Value};

use super::low::Chunk;

/// What a requisite asks of the states that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RequisiteKind {
    /// They must have succeeded.
    Require,
    /// As require, and changes in them make this state act (`mod_watch`).
    Watch,
    /// This state runs only if they changed something.
    Onchanges,
    /// This state runs only if they failed.
    Onfail,
    /// This state runs before them, and only if they would change something.
    Prereq,
    /// Changes in them make this state act, at the end of the run.
    Listen,
}

/// How many of the named states it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Quantifier {
    /// What the plain requisite means.
    Plain,
    /// One is enough.
    Any,
    /// It takes all.
    All,
}

impl RequisiteKind {
    /// All of them.
    pub const ALL: &[RequisiteKind] = &[
        RequisiteKind::Require,
        RequisiteKind::Watch,
        RequisiteKind::Onchanges,
        RequisiteKind::Onfail,
        RequisiteKind::Prereq,
        RequisiteKind::Listen,
    ];

    /// The word in SLS files.
    pub fn name(self) -> &'static str {
        match self {
            RequisiteKind::Require => "require",
            RequisiteKind::Watch => "watch",
            RequisiteKind::Onchanges => "onchanges",
            RequisiteKind::Onfail => "onfail",
            RequisiteKind::Prereq => "prereq",
            RequisiteKind::Listen => "listen",
        }
    }

    /// Reads an argument's name: `require`, `watch_any`, ...
    pub fn parse(name: &str) -> Option<(Self, Quantifier)> {
        let (base, quantifier) = match name {
            name if name.ends_with("_any") => (&name[..name.len() - 4], Quantifier::Any),
            name if name.ends_with("_all") => (&name[..name.len() - 4], Quantifier::All),
            name => (name, Quantifier::Plain),
        };
        Self::ALL.iter().find(|kind| kind.name() == base).map(|kind| (*kind, quantifier))
    }

    /// Reads the name of a requisite that is given to the other state: `require_in`, ...
    pub fn parse_in(name: &str) -> Option<Self> {
        let base = name.strip_suffix("_in")?;
        Self::ALL.iter().find(|kind| kind.name() == base).copied()
    }
}

/// One state, or several, by name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Reference {
    /// The state module, `sls`, or `id` for any.
    pub module: String,
    /// The id or name, or the name of the SLS; may be a glob.
    pub name: String,
}

impl Reference {
    /// Reads one item of a requisite's list: `{module: name}` or a bare id.
    pub fn from_value(value: &Value) -> Result<Option<Self>, String> {
        match value {
            Value::Map(map) => match map.first() {
                Some((_, Value::Nil)) | None => Ok(None),
                Some((module, name)) if map.len() == 1 => {
                    Ok(Some(Reference { module: module.to_string(), name: name.to_string() }))
                }
                Some(_) => Err(format!("Requisite declaration {value} is not formed as a single key dictionary")),
            },
            Value::Nil => Ok(None),
            Value::List(_) => Err(format!("Illegal requisite \"{value}\", please check your syntax.\n")),
            bare => Ok(Some(Reference { module: "id".into(), name: bare.to_string() })),
        }
    }

    /// Whether this is about an SLS and all its states.
    pub fn is_sls(&self) -> bool {
        self.module == "sls"
    }

    /// Whether a chunk is meant.
    pub fn names(&self, chunk: &Chunk) -> bool {
        if self.is_sls() {
            return fnmatch(&self.name, &chunk.sls) || chunk.included_from.iter().any(|sls| fnmatch(&self.name, sls));
        }
        let module = self.module == "id" || self.module == chunk.state;
        module && (fnmatch(&self.name, &chunk.id) || fnmatch(&self.name, &chunk.name))
    }
}

/// What a state says about other states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requisite {
    /// What is asked of them.
    pub kind: RequisiteKind,
    /// Of how many of them.
    pub quantifier: Quantifier,
    /// Which they are.
    pub reference: Reference,
}

/// Reads all requisites out of a state's arguments.
pub(super) fn take_all(args: &mut Map, id: &str, sls: &str) -> Result<Vec<Requisite>, String> {
    let mut found = Vec::new();
    let names: Vec<Value> = args.keys().cloned().collect();
    for name in names {
        let Some((kind, quantifier)) = name.as_str().and_then(RequisiteKind::parse) else { continue };
        let items = match args.shift_remove(&name) {
            Some(Value::List(items)) => items,
            Some(one @ (Value::Str(_) | Value::Map(_))) => vec![one],
            _ => {
                return Err(format!(
                    "The {name} statement in state '{id}' in SLS '{sls}' needs to be formed as a list"
                ));
            }
        };
        for item in &items {
            if let Some(reference) = Reference::from_value(item)? {
                if reference.module.contains('.') {
                    let module = reference.module.split('.').next().unwrap_or_default();
                    return Err(format!(
                        "Invalid requisite type '{}' in state '{id}', in SLS '{sls}'. Requisite types must not contain dots, did you mean '{module}'?",
                        reference.module
                    ));
                }
                found.push(Requisite { kind, quantifier, reference });
            }
        }
    }
    Ok(found)
}
