//! The cache of imported and included templates: each is parsed, rewritten and compiled once for all renders that share
//! it, until its text changes.

use std::collections::HashMap;
use std::sync::Arc;

use minijinja::Environment;
use parking_lot::Mutex;

use super::coverage;
use super::environment::{is_global, known_names, syntax_config};
use super::guard::{self, DataFlow, Variables};
use super::syntax::{Document, Emitted, Purpose, SourceMap, emit};

/// The maximum number of templates in a cache, and of bytes of their text.
const MAX_TEMPLATES: u64 = 1024;
const MAX_BYTES: usize = 16 << 20;

/// Imported templates, compiled once for all renders that share the cache, such as those of a state run. A template
/// whose text has changed is compiled again. Clones share the cache.
#[derive(Clone, Default)]
pub struct ImportCache {
    cached: Arc<Mutex<Cached>>,
    blocks: Blocks,
    lenient: bool,
}

/// The removal of whitespace around blocks: `trim_blocks` and `lstrip_blocks` of Jinja.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Blocks {
    /// Whether the newline after a block is removed.
    pub trim: bool,
    /// Whether the spaces before a block are removed.
    pub lstrip: bool,
}

#[derive(Default)]
struct Cached {
    /// The templates by environment, path, and whether they are for guarded renders.
    templates: HashMap<(String, String, bool), Arc<Imported>>,
    /// The engine's environment with the compiled templates.
    environment: Option<Environment<'static>>,
    bytes: usize,
    next: u64,
    /// The number of templates and of import prologues compiled since the cache was emptied.
    held: u64,
    /// The number of times that the cache was emptied.
    generation: u64,
    compiled: u64,
}

/// A parsed and rewritten template.
pub(super) struct Imported {
    /// The id in the cache, never reused for another text.
    pub id: u64,
    pub document: Document,
    pub text: Arc<str>,
    pub map: SourceMap,
    /// Its facts for guarded renders.
    pub facts: Option<Arc<DataFlow>>,
}

impl std::fmt::Debug for ImportCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ImportCache").finish_non_exhaustive()
    }
}

impl ImportCache {
    /// Creates an empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty cache for templates with these options, unless their line `#jinja2:` sets others.
    pub fn with_blocks(blocks: Blocks) -> Self {
        ImportCache { blocks, ..Self::default() }
    }

    /// Creates an empty cache for templates in which undefined values are empty, as by Jinja's default, instead of
    /// errors.
    pub fn lenient() -> Self {
        ImportCache { lenient: true, ..Self::default() }
    }

    /// Returns whether undefined values are empty.
    pub(super) fn is_lenient(&self) -> bool {
        self.lenient
    }

    /// Returns the default options for whitespace around blocks.
    pub(super) fn blocks(&self) -> Blocks {
        self.blocks
    }

    /// Returns the number of templates that were compiled so far.
    pub fn compilations(&self) -> u64 {
        self.cached.lock().compiled
    }

    /// Returns the template with this text, parsed once.
    pub(super) fn template(
        &self,
        saltenv: &str,
        path: &str,
        source: String,
        guarded: Option<Variables>,
    ) -> Result<Arc<Imported>, String> {
        let marked = if guarded.is_none() { coverage::marked(&source) } else { None };
        let source = marked.unwrap_or(source);
        let key = (saltenv.to_owned(), path.to_owned(), guarded.is_some());
        let imported =
            self.cached.lock().templates.get(&key).filter(|imported| imported.document.source() == source).cloned();
        if let Some(imported) = imported {
            return Ok(imported);
        }
        let document = Document::parse(&source, None, &known_names());
        let (emitted, facts) = if let Some(variables) = guarded {
            let (emitted, facts) =
                guard::guard_template(&document, syntax_config(false, false), variables, false, &is_global)?;
            (emitted, Some(facts))
        } else {
            (emit(&document, Purpose::Render), None)
        };
        let Emitted { text, map } = emitted;
        let mut cached = self.cached.lock();
        cached.next += 1;
        cached.bytes = cached.bytes.saturating_add(source.len());
        let imported = Arc::new(Imported { id: cached.next, document, text: text.into(), map, facts });
        cached.templates.insert(key, Arc::clone(&imported));
        Ok(imported)
    }

    /// Counts a template that the engine is about to compile; `is_whole` if it is more than the prologue of an import.
    pub(super) fn count(&self, is_whole: bool) {
        let mut cached = self.cached.lock();
        cached.held += 1;
        cached.compiled += u64::from(is_whole);
    }

    /// Returns the engine's environment with the compiled templates, if there are any.
    pub(super) fn environment(&self) -> Option<Environment<'static>> {
        self.cached.lock().environment.clone()
    }

    /// Returns the number of times that the cache was emptied.
    pub(super) fn generation(&self) -> u64 {
        self.cached.lock().generation
    }

    /// Stores the environment of a render with its compiled templates; `None` if other renders cannot use it. A full
    /// cache is emptied instead.
    pub(super) fn keep(&self, environment: Option<Environment<'static>>) {
        let mut cached = self.cached.lock();
        if cached.held > MAX_TEMPLATES || cached.bytes > MAX_BYTES {
            let (next, compiled, generation) = (cached.next, cached.compiled, cached.generation + 1);
            *cached = Cached { next, generation, compiled, ..Cached::default() };
        } else if environment.is_some() {
            cached.environment = environment;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_parsed_again_when_its_text_changes() {
        let cache = ImportCache::new();
        let id = |path: &str, source: &str, guarded: bool| {
            let guarded = guarded.then(Variables::default);
            cache.template("base", path, source.to_owned(), guarded).map(|imported| imported.id).unwrap()
        };
        let first = id("a", "{{ 1 }}", false);
        assert_eq!(id("a", "{{ 1 }}", false), first);
        assert_ne!(id("a", "{{ 1 }}", true), first);
        assert_ne!(id("b", "{{ 1 }}", false), first);
        let changed = id("a", "{{ 2 }}", false);
        assert_ne!(changed, first);
        assert_ne!(id("a", "{{ 1 }}", false), first, "numbers are not reused");
    }

    #[test]
    fn a_full_cache_is_emptied() {
        let cache = ImportCache::new();
        for n in 0..3 {
            cache.template("base", &format!("f{n}"), "x".repeat(MAX_BYTES / 2), None).unwrap();
        }
        cache.keep(Some(Environment::new()));
        assert_eq!(cache.generation(), 1);
        assert!(cache.environment().is_none() && cache.cached.lock().templates.is_empty());
        cache.keep(Some(Environment::new()));
        assert!(cache.environment().is_some());
        (0..=MAX_TEMPLATES).for_each(|_| cache.count(true));
        cache.keep(Some(Environment::new()));
        assert_eq!((cache.generation(), cache.compilations()), (2, MAX_TEMPLATES + 1));
    }
}
