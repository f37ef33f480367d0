//! The names that are known: functions of every kind with their arguments, and grains. The program that has the registries
//! fills it.

use std::collections::{BTreeSet, HashMap, HashSet};

use brine_function::{Function, Others, Param, ParamKind};

/// A function: its parameters and documentation.
#[derive(Clone)]
pub struct Signature {
    /// The full name.
    pub name: String,
    /// The parameters in order; empty for a custom one.
    pub params: &'static [Param],
    /// The documentation; empty if there is none.
    pub doc: &'static str,
    /// Whether it is defined in the tree, with parameters that are not known.
    pub is_custom: bool,
}

impl std::fmt::Debug for Signature {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signature").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Signature {
    /// Describes a function of a registry.
    pub fn of<C>(function: &Function<C>) -> Self {
        Signature { name: function.full_name(), params: function.params(), doc: function.doc, is_custom: false }
    }

    /// Returns the parameter of this name that takes one value.
    pub fn param(&self, name: &str) -> Option<&'static Param> {
        self.params.iter().find(|param| (param.is_named() || param.is_further()) && param.name == name)
    }

    /// Returns what `**kwargs` takes; `None` without them.
    pub fn others(&self) -> Option<Others> {
        self.params.iter().find_map(|param| match param.kind {
            ParamKind::Keywords(others) => Some(others),
            _ => None,
        })
    }
}

/// The functions of one kind.
#[derive(Debug, Clone, Default)]
pub struct Functions {
    by_name: HashMap<String, Signature>,
    modules: HashSet<String>,
    /// Modules with functions that are made when they are loaded.
    open: HashSet<String>,
}

impl Functions {
    /// Describes functions of a registry.
    pub fn of<'f, C: 'static>(functions: impl IntoIterator<Item = &'f Function<C>>) -> Self {
        let mut all = Functions::default();
        functions.into_iter().for_each(|function| all.add(Signature::of(function)));
        all
    }

    /// Adds a function.
    pub fn add(&mut self, signature: Signature) {
        let module = signature.name.split('.').next().unwrap_or_default();
        if !self.modules.contains(module) {
            self.modules.insert(module.to_owned());
        }
        self.by_name.insert(signature.name.clone(), signature);
    }

    /// Adds a module with functions that are made when it is loaded.
    pub fn add_open(&mut self, module: &str) {
        self.modules.insert(module.to_owned());
        self.open.insert(module.to_owned());
    }

    /// Whether there is a function with this full name, or may be one.
    pub fn knows(&self, name: &str) -> bool {
        self.by_name.contains_key(name) || self.open.contains(name.split('.').next().unwrap_or_default())
    }

    /// Returns the function with this full name.
    pub fn get(&self, name: &str) -> Option<&Signature> {
        self.by_name.get(name)
    }

    /// Whether a module has functions.
    pub fn has_module(&self, module: &str) -> bool {
        self.modules.contains(module)
    }

    /// Returns the names of all modules.
    pub fn modules(&self) -> impl Iterator<Item = &str> {
        self.modules.iter().map(String::as_str)
    }

    /// Returns all functions.
    pub fn iter(&self) -> impl Iterator<Item = &Signature> {
        self.by_name.values()
    }

    /// Returns the functions of a module.
    pub fn of_module<'a>(&'a self, module: &'a str) -> impl Iterator<Item = &'a Signature> {
        self.by_name.values().filter(move |one| one.name.split_once('.').is_some_and(|(of, _)| of == module))
    }
}

/// All known names.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    /// Execution functions.
    pub execution: Functions,
    /// State functions.
    pub states: Functions,
    /// Runner functions.
    pub runners: Functions,
    /// Wheel functions.
    pub wheel: Functions,
    /// The names of grains that some system has.
    pub grains: BTreeSet<String>,
    /// Examines the text of a configuration file, of a master or else of a minion; without it, options are not checked.
    pub examine_options: Option<fn(text: &str, is_master: bool) -> Vec<OptionMistake>>,
}

/// A mistake in a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionMistake {
    /// The option.
    pub option: String,
    /// One sentence.
    pub message: String,
    /// Whether the daemon refuses to start.
    pub is_error: bool,
}
