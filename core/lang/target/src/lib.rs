//! The targeting language: selects minions. Expressions are parsed once and matched against [`TargetFacts`].
//!
//! The master evaluates targets with its cached grains and pillar, a minion with its own.
//!
//! ```
//! use brine_target::{TargetFacts, Target, TargetKind};
//! use brine_value::{Map, map};
//!
//! struct Minion(&'static str, Map);
//! impl TargetFacts for Minion {
//!     fn id(&self) -> &str { self.0 }
//!     fn grains(&self) -> Option<&Map> { Some(&self.1) }
//!     fn pillar(&self) -> Option<&Map> { None }
//! }
//!
//! let target = Target::parse(TargetKind::Compound, "G@os:Debian and not db*", ":", &Map::new()).unwrap();
//! assert!(target.matches(&Minion("web1", map! {"os" => "Debian"})));
//! assert!(!target.matches(&Minion("db1", map! {"os" => "Debian"})));
//! ```

mod compound;
mod lookup;
mod network;
mod pcre;
mod senseless;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use brine_text::glob::Glob;
use brine_value::{Map, Value};
use indexmap::IndexSet;

pub use compound::without_nodegroups;
use compound::{Expression, Term};
use lookup::{Comparison, Lookup};
use network::Network;
pub use pcre::{Pcre, matches_expression};

macro_rules! kinds {
    ($($(#[$meta:meta])* $kind:ident = $name:literal,)*) => {
        /// The type of a target: Salt's `tgt_type`, formerly `expr_form`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub enum TargetKind {
            $($(#[$meta])* $kind,)*
        }

        impl TargetKind {
            /// All types.
            pub const ALL: &[TargetKind] = &[$(TargetKind::$kind),*];

            /// Returns Salt's name of the type, such as `grain_pcre`.
            pub fn name(self) -> &'static str {
                match self {
                    $(TargetKind::$kind => $name,)*
                }
            }
        }
    };
}

kinds! {
    /// A shell glob on the minion id.
    #[default]
    Glob = "glob",
    /// Minion ids, separated by commas or blanks.
    List = "list",
    /// A regular expression, anchored at the start of the minion id.
    Pcre = "pcre",
    /// `key:sub:glob` in the grains.
    Grain = "grain",
    /// `key:sub:regex` in the grains.
    GrainPcre = "grain_pcre",
    /// `key:sub:glob` in the pillar.
    Pillar = "pillar",
    /// `key:sub:regex` in the pillar.
    PillarPcre = "pillar_pcre",
    /// `key:sub:value` in the pillar, without wildcards.
    PillarExact = "pillar_exact",
    /// An address or network.
    IpCidr = "ipcidr",
    /// The name of a nodegroup in the configuration.
    Nodegroup = "nodegroup",
    /// Terms of the other types with `and`, `or`, `not` and parentheses.
    Compound = "compound",
    /// An expression for a range server, which Brine does not support.
    Range = "range",
}

impl fmt::Display for TargetKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for TargetKind {
    type Err = TargetError;

    fn from_str(name: &str) -> Result<Self, TargetError> {
        let kind = TargetKind::ALL.iter().copied().find(|kind| kind.name() == name);
        kind.ok_or_else(|| TargetError::UnknownKind(name.to_owned()))
    }
}

/// The error of an invalid target expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The target type is unknown.
    #[error("'{0}' is not a target type")]
    UnknownKind(String),
    /// The expression is neither a string nor, where one is allowed, a list of strings.
    #[error("a target of type {kind} cannot be {got}")]
    NotText {
        /// The target type.
        kind: TargetKind,
        /// Python's name of its type.
        got: &'static str,
    },
    /// A glob or regular expression is invalid.
    #[error("the pattern '{pattern}' is invalid: {reason}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// The error.
        reason: String,
    },
    /// Not an address or network, or a network with bits outside of its mask.
    #[error("'{0}' is neither an IP address nor a network")]
    Network(String),
    /// A compound expression is malformed.
    #[error("the target '{expression}' is invalid at word {position} '{word}': {reason}")]
    Compound {
        /// The expression, with nodegroups expanded.
        expression: String,
        /// The position of the word, counted from 1.
        position: usize,
        /// The word, empty at the end.
        word: String,
        /// The error.
        reason: &'static str,
    },
    /// A lookup in grains or pillar without a value, which matches no minion.
    #[error(
        "the target '{text}' is invalid: expected a key and a value with '{delimiter}' between them, as in \
             'os{delimiter}Debian'"
    )]
    NoValue {
        /// The text of the lookup.
        text: String,
        /// The delimiter of its path.
        delimiter: String,
    },
    /// A term of a compound target with an unknown letter, which matches no minion.
    #[error("the term '{0}' is invalid: expected G, P, I, J, E, S, L or N before '@'{1}")]
    UnknownTerm(String, String),
    /// The configuration does not define this nodegroup.
    #[error("node group '{0}' is not defined")]
    UnknownNodegroup(String),
    /// A nodegroup contains itself.
    #[error("node group '{0}' contains itself")]
    NodegroupLoop(String),
    /// The expression exceeds the limits on length or depth.
    #[error("the target '{0}' is too large")]
    TooLarge(String),
    /// A type of target that Brine does not support.
    #[error("targets of type {0} are not supported")]
    Unsupported(String),
}

/// The known facts about a minion.
pub trait TargetFacts {
    /// Returns the minion id.
    fn id(&self) -> &str;
    /// Returns the grains, or `None` if they are unknown.
    fn grains(&self) -> Option<&Map>;
    /// Returns the pillar, or `None` if it is unknown.
    fn pillar(&self) -> Option<&Map>;
    /// Matches a target, or a term of a compound one, by a custom matcher; `None` if there is no custom matcher for the
    /// type, such as `grain`. The result of a matcher that fails is [`Match::Unknown`].
    fn custom_match(&self, _kind: &str, _target: &Value, _delimiter: &str) -> Option<Match> {
        None
    }
}

/// Whether a target selects a minion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Match {
    /// It is selected.
    Yes,
    /// It is not selected.
    No,
    /// It depends on unknown facts.
    Unknown,
}

impl From<bool> for Match {
    fn from(matches: bool) -> Self {
        if matches { Match::Yes } else { Match::No }
    }
}

/// A parsed target.
#[derive(Debug, Clone)]
pub struct Target {
    kind: TargetKind,
    expression: Expression,
}

impl Target {
    /// Parses an expression: a string, or for lists and compounds also a list of words. `delimiter` separates the steps
    /// of grain and pillar paths, [`DEFAULT_DELIMITER`] by default. `nodegroups` maps names to definitions; a minion
    /// has none.
    ///
    /// # Errors
    /// The expression is invalid. Salt does not return an error then, but only reports that no minion matched.
    pub fn parse(
        kind: TargetKind,
        expression: impl Into<Value>,
        delimiter: &str,
        nodegroups: &Map,
    ) -> Result<Self, TargetError> {
        let value = expression.into();
        let not_text = || TargetError::NotText { kind, got: value.type_name() };
        let words: Vec<&str> = match (&value, kind) {
            (Value::Str(text), TargetKind::Compound) => text.split_whitespace().collect(),
            (Value::Str(text), TargetKind::List) => {
                text.split([',', ' ', '\t', '\n']).filter(|w| !w.is_empty()).collect()
            }
            (Value::List(items), TargetKind::Compound | TargetKind::List) => {
                items.iter().map(Value::as_str).collect::<Option<_>>().ok_or_else(not_text)?
            }
            _ => Vec::new(),
        };
        let text = || value.as_str().ok_or_else(not_text);
        let matcher = match kind {
            TargetKind::Compound if !words.is_empty() || value.as_str().is_some() => {
                return Ok(Target { kind, expression: Expression::parse(&words, nodegroups)? });
            }
            TargetKind::Nodegroup => {
                let name = format!("N@{}", text()?);
                return Ok(Target { kind, expression: Expression::parse(&[&name], nodegroups)? });
            }
            TargetKind::List if !matches!(value, Value::Str(_) | Value::List(_)) => return Err(not_text()),
            TargetKind::List => Matcher::list(words.into_iter()),
            TargetKind::Glob => Matcher::glob(text()?)?,
            TargetKind::Pcre => Matcher::pcre(text()?)?,
            TargetKind::Grain => Matcher::grain(text()?, delimiter, Comparison::Glob)?,
            TargetKind::GrainPcre => Matcher::grain(text()?, delimiter, Comparison::Pcre)?,
            TargetKind::Pillar => Matcher::pillar(text()?, delimiter, Comparison::Glob)?,
            TargetKind::PillarPcre => Matcher::pillar(text()?, delimiter, Comparison::Pcre)?,
            TargetKind::PillarExact => Matcher::pillar(text()?, delimiter, Comparison::Exact)?,
            TargetKind::IpCidr => Matcher::network(text()?)?,
            TargetKind::Range => return Err(TargetError::Unsupported(kind.to_string())),
            TargetKind::Compound => return Err(not_text()),
        };
        Ok(Target { kind, expression: Expression::Term(Term { matcher, word: None }) })
    }

    /// Matches pillar exactly, without wildcards. Required for queries from minions, which could otherwise guess
    /// secrets piece by piece.
    #[must_use]
    pub fn with_exact_pillar(mut self) -> Self {
        self.expression.compare_pillar_exactly();
        self
    }

    /// Refuses a target with a term that selects no minion whatever its facts are, such as a grain without a value: a
    /// mistake. Salt parses it, so that nodegroups and top files that contain it go on working.
    ///
    /// # Errors
    /// The first such term.
    pub fn sensible(self, delimiter: &str) -> Result<Self, TargetError> {
        match self.expression.senseless(delimiter) {
            Some(error) => Err(error),
            None => Ok(self),
        }
    }

    /// Returns the type of the target.
    pub fn kind(&self) -> TargetKind {
        self.kind
    }

    /// Matches a minion, as far as its facts are known.
    pub fn check(&self, facts: &impl TargetFacts) -> Match {
        self.expression.check(facts)
    }

    /// Whether the minion is certainly selected. For a minion that matches itself.
    pub fn matches(&self, facts: &impl TargetFacts) -> bool {
        self.check(facts) == Match::Yes
    }

    /// Whether the minion may be selected. For a master: as in Salt, it expects returns of minions whose grains are not
    /// cached.
    pub fn may_match(&self, facts: &impl TargetFacts) -> bool {
        self.check(facts) != Match::No
    }

    /// Returns the ids of a list, in order and without duplicates; `None` for other types. `salt -L` reports ids
    /// without a minion as not returned.
    pub fn listed(&self) -> Option<impl Iterator<Item = &str>> {
        match &self.expression {
            Expression::Term(Term { matcher: Matcher::List(ids), .. }) => Some(ids.iter().map(String::as_str)),
            _ => None,
        }
    }
}

/// The default separator of the steps of a path.
pub const DEFAULT_DELIMITER: &str = ":";

/// A term.
#[derive(Debug, Clone)]
enum Matcher {
    Glob(Glob),
    List(IndexSet<String>),
    Pcre(Pcre),
    Grain(Lookup),
    Pillar(Lookup),
    Network(Network),
}

impl Matcher {
    fn glob(text: &str) -> Result<Self, TargetError> {
        let wrong =
            |error: brine_text::glob::GlobError| TargetError::Pattern { pattern: error.pattern, reason: error.reason };
        Glob::new(text).map(Matcher::Glob).map_err(wrong)
    }

    fn list<'a>(ids: impl Iterator<Item = &'a str>) -> Self {
        Matcher::List(ids.map(str::to_owned).collect())
    }

    fn pcre(text: &str) -> Result<Self, TargetError> {
        Pcre::parse(text).map(Matcher::Pcre)
    }

    fn grain(text: &str, delimiter: &str, comparison: Comparison) -> Result<Self, TargetError> {
        Lookup::parse(text, delimiter, comparison).map(Matcher::Grain)
    }

    fn pillar(text: &str, delimiter: &str, comparison: Comparison) -> Result<Self, TargetError> {
        Lookup::parse(text, delimiter, comparison).map(Matcher::Pillar)
    }

    fn network(text: &str) -> Result<Self, TargetError> {
        Network::parse(text).map(Matcher::Network).ok_or_else(|| TargetError::Network(text.to_owned()))
    }

    fn check(&self, facts: &impl TargetFacts) -> Match {
        let decide =
            |data: Option<&Map>, matches: &dyn Fn(&Map) -> bool| data.map_or(Match::Unknown, |d| matches(d).into());
        match self {
            Matcher::Glob(glob) => glob.is_match(facts.id()).into(),
            Matcher::List(ids) => ids.contains(facts.id()).into(),
            Matcher::Pcre(pcre) => pcre.is_match(facts.id()).into(),
            Matcher::Grain(lookup) => decide(facts.grains(), &|grains| lookup.is_match(grains)),
            Matcher::Pillar(lookup) => decide(facts.pillar(), &|pillar| lookup.is_match(pillar)),
            Matcher::Network(network) => decide(facts.grains(), &|grains| {
                grains.get(network.grain()).is_some_and(|addresses| network.contains(addresses))
            }),
        }
    }
}
