//! Listeners: states that run `mod_watch` once at the end if others have changed.

use brine_function::CallError;
use brine_sls::compile::{Chunk, Reference};
use brine_value::{Map, Value, map};
use indexmap::IndexMap;

use super::{Run, acting};
use crate::parallel;

impl<'scope, 'a: 'scope> Run<'scope, 'a> {
    /// Runs the listeners of changed states, once each, and reports listeners without a target.
    pub(super) fn listeners(&mut self) -> Result<(), CallError> {
        let mut errors = Map::new();
        let mut acting_chunks: IndexMap<String, Chunk> = IndexMap::new();
        for listener in &self.low.listeners {
            let heard = self.exactly(&listener.to);
            if heard.is_empty() {
                // As in Salt, a bare word without a match is ignored.
                if !listener.to.module.is_empty() {
                    errors.extend([listen_error(&listener.to)]);
                }
                continue;
            }
            let changed = |index: &usize| {
                self.done.get(index).and_then(|result| result.get("changes")).is_some_and(Value::is_truthy)
            };
            if !heard.iter().any(changed) {
                continue;
            }
            let who = self.exactly(&listener.listener);
            if who.is_empty() {
                errors.extend([listen_error(&listener.listener)]);
            }
            for index in who {
                let mut chunk = acting(&self.low.chunks[index]);
                chunk.id = format!("listener_{}", chunk.id);
                acting_chunks.entry(chunk.tag()).or_insert(chunk);
            }
        }
        for (tag, chunk) in &acting_chunks {
            let result = parallel::call(&mut self.caller, chunk)?;
            self.fire(chunk, &result);
            let ends = self.ends_run(chunk, &result);
            self.more.insert(tag.into(), result.into());
            if ends {
                break;
            }
        }
        for (tag, mut error) in errors {
            if let Some(error) = error.as_map_mut() {
                error.insert("__run_num__".into(), self.caller.next_number().into());
            }
            self.more.insert(tag, error);
        }
        Ok(())
    }

    /// Returns the chunks of this id or name; globs are not supported. A bare word refers to the first state of that id
    /// or name, and those of its module that share its id.
    fn exactly(&self, reference: &Reference) -> Vec<usize> {
        let called = |chunk: &Chunk, name: &str| chunk.id == name || chunk.name == name;
        let (module, name) = match &reference.module[..] {
            "" => match self.low.in_order().find(|chunk| called(chunk, &reference.name)) {
                Some(first) => (&first.state, &first.id),
                None => return Vec::new(),
            },
            _ => (&reference.module, &reference.name),
        };
        let meant = |place: &usize| self.low.chunks[*place].state == *module && called(&self.low.chunks[*place], name);
        (0..self.low.chunks.len()).filter(meant).collect()
    }
}

/// Returns the entry of a listener without a target.
fn listen_error(reference: &Reference) -> (Value, Value) {
    let Reference { module, name } = reference;
    let module = if module.is_empty() { "id" } else { module };
    let tag = format!("Listen_Error_|-listen_{name}_|-listen_{module}_|-Listen_Error");
    let entry = map! {
        "comment" => format!("Referenced state {module}: {name} does not exist"),
        "name" => format!("listen_{module}:{name}"),
        "result" => false,
        "changes" => map! {},
    };
    (tag.into(), entry.into())
}
