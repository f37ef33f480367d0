//! Properties of host functions that the engine depends on. A host declares them for its functions.

/// A purpose for which the engine itself calls a function of the host. The host returns the function's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The global `ifelse`.
    IfElse,
    /// The filter `http_query`, and requests of `ext_pillar` to a web server.
    HttpQuery,
    /// Runs a command without a shell and returns its output.
    Run,
    /// Runs a command in a shell and returns its output.
    RunInShell,
    /// Looks up a path in the grains.
    LookUpGrains,
    /// Looks up a path in the pillar.
    LookUpPillar,
    /// Decrypts a NaCl box.
    OpenBox,
}

/// The treatment of arguments and result by a function. The default fits most functions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Behaviour {
    /// The arguments that may be undefined.
    pub undefined: MayBeUndefined,
    /// Whether the function changes its first argument, a mapping, and returns it.
    pub changes_first: bool,
    /// Whether the function only reads data, so that the diagnosis of an error may call it once more.
    pub is_lookup: bool,
    /// Whether mappings in its result are Python's `OrderedDict`.
    pub is_ordered: bool,
    /// The origins of mappings in the result. The first origin with a mapping at the same path decides its type, `dict`
    /// or `OrderedDict`.
    pub origins: &'static [Origin],
}

/// The arguments of a function that may be undefined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MayBeUndefined {
    /// None.
    #[default]
    None,
    /// The argument `default`, also at this position: the function returns it unchanged.
    Default(usize),
    /// All arguments: the function only returns them, or passes them on.
    All,
}

/// An origin of mappings in the result of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// An argument, by its position and name.
    Argument(usize, &'static str),
    /// The pillar.
    Pillar,
    /// The value in the pillar at the path that is the first argument, `key`.
    PillarAtKey,
    /// Two origins, if the argument of this position and name is a mapping: the result of the function without it, and
    /// the argument itself.
    Merged(usize, &'static str),
}
