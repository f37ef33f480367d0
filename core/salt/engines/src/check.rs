//! Checks the option `engines` before any engine runs.

use brine_value::Value;

use crate::{BuiltIn, Engine};

impl Engine {
    /// Returns the errors of the option `engines`: invalid entries, invalid arguments of built-in engines, and engines
    /// that do not exist. `is_custom` returns whether a custom module has the name of an engine; with `python_fallback`,
    /// the package `salt` may have all others.
    pub fn check(option: &Value, python_fallback: bool, is_custom: impl Fn(&str) -> bool) -> Vec<String> {
        let (engines, mut errors) = Engine::read(option);
        for engine in engines {
            let Engine { name, module, .. } = &engine;
            match BuiltIn::preferred(&engine, python_fallback, || is_custom(module)) {
                Some(Err(error)) => errors.push(format!("'{name}': {error}")),
                None if !python_fallback && !is_custom(module) => errors
                    .push(format!("'{name}': there is no engine '{module}': add a module of this name in '_engines'")),
                Some(Ok(_)) | None => {}
            }
        }
        errors
    }
}
