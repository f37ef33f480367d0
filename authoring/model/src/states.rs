//! States, their arguments and requisites, with their places in the source.

use std::ops::Range;

use brine_jinja::view::is_dynamic;
use brine_sls::compile::RequisiteKind;
use brine_yaml::SourceNode;

/// A state: one function of one id.
#[derive(Debug, Clone)]
pub struct State {
    /// The id, with placeholders for expressions.
    pub id: String,
    /// The bytes of the id.
    pub id_span: Range<usize>,
    /// The module.
    pub module: String,
    /// The function in the module; empty if it is not known.
    pub function: String,
    /// The bytes of the function, or of the module if the function stands alone.
    pub span: Range<usize>,
    /// The arguments, in all branches.
    pub arguments: Vec<Argument>,
    /// The requisites, in all branches.
    pub requisites: Vec<Requisite>,
    /// Whether it stands below `extend`.
    pub is_extension: bool,
    /// Whether it has arguments that only a render knows.
    pub is_open: bool,
}

/// An argument of a state.
#[derive(Debug, Clone)]
pub struct Argument {
    /// The name.
    pub name: String,
    /// The bytes of the name.
    pub span: Range<usize>,
    /// The value.
    pub value: SourceNode,
}

/// A reference to other states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requisite {
    /// The keyword, such as `require_in`.
    pub keyword: String,
    /// The module, `sls` or `id`; `None` for any.
    pub module: Option<String>,
    /// The id or name; may be a glob or have placeholders.
    pub name: String,
    /// The bytes of the name.
    pub span: Range<usize>,
}

/// An entry of `include`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Include {
    /// The name of the SLS as it is written; may be relative or have placeholders.
    pub name: String,
    /// The environment, if it is named.
    pub saltenv: Option<String>,
    /// The bytes of the name.
    pub span: Range<usize>,
}

impl State {
    /// Returns the full name of the function.
    pub fn full_name(&self) -> String {
        format!("{}.{}", self.module, self.function)
    }

    /// Whether the function is known without a render.
    pub fn is_static(&self) -> bool {
        !self.function.is_empty() && !is_dynamic(&self.module) && !is_dynamic(&self.function)
    }

    /// Returns an argument.
    pub fn argument(&self, name: &str) -> Option<&Argument> {
        self.arguments.iter().find(|argument| argument.name == name)
    }

    /// Returns the names by which requisites refer to the state: its id, `name` and `names`.
    pub fn names(&self) -> Vec<&str> {
        let mut names = vec![self.id.as_str()];
        for argument in &self.arguments {
            match argument.name.as_str() {
                "name" => names.extend(argument.value.text()),
                "names" => {
                    for item in argument.value.list().unwrap_or_default() {
                        names.extend(item.text());
                        names.extend(item.map().unwrap_or_default().iter().filter_map(|(name, _)| name.text()));
                    }
                }
                _ => {}
            }
        }
        names
    }
}

/// Inverse requisites, and others that name states as requisites do.
const INVERSE: [&str; 7] = ["require_in", "watch_in", "onfail_in", "onchanges_in", "prereq_in", "use", "use_in"];
/// Further inverse requisites.
const LISTEN_IN: &str = "listen_in";

/// Whether a function is one of reactor files: a reaction, or a rule over time.
pub fn is_reaction(module: &str, function: &str) -> bool {
    match module {
        "local" | "runner" | "wheel" | "caller" => function.contains('.'),
        "rule" | "register" | "timer" => true,
        _ => false,
    }
}

/// Whether an argument refers to other states.
pub fn is_requisite(name: &str) -> bool {
    RequisiteKind::parse(name).is_some() || INVERSE.contains(&name) || name == LISTEN_IN
}
