//! Decides which names may hold untrusted text, for all templates of a render together. A name is untrusted if any
//! value assigned to it is. The place and order of assignments do not matter, so the result does not depend on scopes.
//! Templates that are read later can only add untrusted names, and are added before they run.

use std::collections::HashSet;
use std::sync::Arc;

use super::Variables;
use super::facts::{ANY, Assigned, DataFlow, Direct, Emit, Encoder, INCLUDED, Names, bare};

/// The form in which a tag prints its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// As a trusted value.
    Trusted,
    /// As untrusted text.
    Text,
    /// As the output of an encoder.
    Encoded(Encoder),
    /// As captured text of a block, which contains untrusted text.
    Captured,
}

/// The untrusted names of some templates.
#[derive(Debug, Default)]
pub(super) struct Solution<'f> {
    untrusted: HashSet<&'f str>,
    templates: Vec<&'f DataFlow>,
    variables: Variables,
}

/// Solves for these templates, the first of which is the rendered one.
pub(super) fn solve(templates: &[Arc<DataFlow>], variables: Variables) -> Solution<'_> {
    let templates: Vec<&DataFlow> = templates.iter().map(|facts| &**facts).collect();
    let assigned: HashSet<&str> =
        templates.iter().flat_map(|facts| &facts.assigned).map(|(name, _)| name.as_str()).collect();
    let mut solution = Solution { untrusted: HashSet::from([ANY]), templates, variables };
    let unassigned = |name: &&str| !assigned.contains(name) && !solution.is_trusted(name);
    let mentioned = solution.templates.iter().flat_map(|facts| facts.mentioned());
    let from_outside =
        |name: &&str| solution.variables.untrusted.contains(&bare(name)) || unassigned(name) && **name != *INCLUDED;
    let begin: Vec<&str> = mentioned.filter(from_outside).collect();
    solution.untrusted.extend(begin);
    solution.propagate();
    solution
}

impl<'f> Solution<'f> {
    /// Whether a name is trusted, unless a template assigns it.
    fn is_trusted(&self, name: &str) -> bool {
        self.variables.is_trusted(bare(name)) || self.templates.iter().any(|facts| facts.globals.contains(bare(name)))
    }

    fn is_untrusted(&self, names: &Names) -> bool {
        names.iter().any(|name| self.untrusted.contains(name.as_str()))
    }

    /// Iterates until no further name becomes untrusted.
    fn propagate(&mut self) {
        // Untrusted text was added to these objects: their other names are untrusted too.
        let mut changed: HashSet<&'f str> = HashSet::new();
        loop {
            let before = (self.untrusted.len(), changed.len());
            let templates = self.templates.clone();
            for (at, facts) in templates.iter().enumerate() {
                for (name, of) in &facts.flows {
                    if self.is_untrusted(of) {
                        self.untrusted.insert(name);
                    }
                    if changed.contains(name.as_str()) {
                        changed.extend(of.iter().map(String::as_str));
                    }
                }
                for (things, of) in &facts.changes {
                    if self.is_untrusted(of) {
                        changed.extend(things.iter().map(String::as_str));
                    }
                }
                if at > 0 && self.is_untrusted(&facts.top) {
                    self.untrusted.insert(INCLUDED);
                }
                for (called, arguments) in &facts.calls {
                    let untrusted = self.is_untrusted(arguments);
                    for (name, parameter) in parameters(&templates) {
                        if called.as_ref().is_some_and(|called| called != name) {
                            continue;
                        }
                        if untrusted {
                            self.untrusted.insert(parameter);
                        }
                        if changed.contains(parameter) {
                            changed.extend(arguments.iter().map(String::as_str));
                        }
                    }
                }
            }
            for (name, parameter) in parameters(&templates) {
                if templates.iter().any(|facts| facts.referenced.contains(name)) {
                    self.untrusted.insert(parameter);
                }
            }
            self.untrusted.extend(&changed);
            if (self.untrusted.len(), changed.len()) == before {
                return;
            }
        }
    }

    /// Whether a name has assignments and all of them are of this kind.
    fn is_only(&self, name: &str, how: Assigned) -> bool {
        let mut all = self.templates.iter().flat_map(|facts| &facts.assigned).filter(|(variable, _)| variable == name);
        let from_outside = self.is_trusted(name) || self.variables.untrusted.contains(&name);
        let first = all.next();
        !from_outside
            && first.into_iter().chain(all).fold(None, |only, (_, kind)| Some(only.unwrap_or(true) && *kind == how))
                == Some(true)
    }

    /// Returns the form in which a tag prints its value.
    pub(super) fn decide(&self, emit: &Emit) -> Decision {
        if !self.is_untrusted(&emit.of) {
            return Decision::Trusted;
        }
        match &emit.direct {
            Direct::Engine => Decision::Trusted,
            Direct::Encoded(encoder) => Decision::Encoded(*encoder),
            Direct::Name(name) if self.is_only(name, Assigned::Encoded(Encoder::Yaml)) => {
                Decision::Encoded(Encoder::Yaml)
            }
            Direct::Name(name) if self.is_only(name, Assigned::Encoded(Encoder::Json)) => {
                Decision::Encoded(Encoder::Json)
            }
            Direct::Name(name) if self.is_only(name, Assigned::Captured) => Decision::Captured,
            Direct::Macro(name) if self.is_only(name, Assigned::Macro) => Decision::Captured,
            Direct::Name(_) | Direct::Macro(_) | Direct::No => Decision::Text,
        }
    }

    /// Returns the error if these templates cannot be rendered guarded.
    pub(super) fn refused(&self) -> Option<String> {
        let refused = self.templates.iter().find_map(|facts| facts.refused.clone());
        let named = || self.templates.iter().any(|facts| facts.imports.iter().any(|names| self.is_untrusted(names)));
        match refused {
            Some(refused) => Some(format!("render failed: with reactor_strict_data a template may not have {refused}")),
            None if named() => Some(
                "render failed: the name of an included or imported template comes from the event: name it in the \
                 template"
                    .to_owned(),
            ),
            None => None,
        }
    }
}

/// Returns the parameters of all macros, each with its macro's name.
fn parameters<'f>(templates: &[&'f DataFlow]) -> impl Iterator<Item = (&'f str, &'f str)> {
    let macros: Vec<&'f (String, Vec<String>)> = templates.iter().flat_map(|facts| &facts.macros).collect();
    macros.into_iter().flat_map(|(name, names)| names.iter().map(move |parameter| (name.as_str(), parameter.as_str())))
}
