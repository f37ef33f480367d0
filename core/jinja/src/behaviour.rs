//! What templates have to know of the functions of their host beside calling them: a host describes its functions here.

/// A use of a function by the engine itself, which does not know its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The global `ifelse`.
    IfElse,
    /// The filter `http_query`, and `ext_pillar` that asks a web server.
    HttpQuery,
    /// Runs a command without a shell and returns its output.
    Run,
    /// Runs a command in a shell and returns its output.
    RunInShell,
    /// Looks up a path in the grains.
    LookUpGrains,
    /// Looks up a path in the pillar.
    LookUpPillar,
}

/// How a function treats its arguments and its result. The default is that of most functions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Behaviour {
    /// The arguments that may be undefined.
    pub undefined: MayBeUndefined,
    /// Whether it changes its first argument, a mapping, and returns it.
    pub changes_first: bool,
    /// Whether it only looks something up, so that the diagnosis of an error may call it once more.
    pub is_lookup: bool,
    /// Whether mappings in its result are Python's `OrderedDict`.
    pub is_ordered: bool,
    /// Where mappings in its result come from; the first that has a mapping in the same place decides its type.
    pub origins: &'static [Origin],
}

/// The arguments of a function that may be undefined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MayBeUndefined {
    /// None.
    #[default]
    None,
    /// `default`, also by this position: it is returned as it is.
    Default(usize),
    /// All: they are only returned, or sent on.
    All,
}

/// Where mappings in the result of a function come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// An argument, by its position and name.
    Argument(usize, &'static str),
    /// The pillar.
    Pillar,
    /// The value in the pillar at the path that is the first argument, `key`.
    PillarAtKey,
    /// The result without the argument of this position and name, and then this argument; nothing unless it is a mapping.
    Merged(usize, &'static str),
}
