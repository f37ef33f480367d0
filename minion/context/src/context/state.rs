//! The context of state functions.

use std::sync::Arc;

use brine_function::{Args, CallResult, Function};
use brine_value::Map;

use super::Context;

/// The context of state functions.
#[derive(Clone)]
pub struct StateContext {
    /// The context for execution functions.
    pub call: Context,
    /// Whether the state only reports what it would change.
    pub test: bool,
    /// The environment of the state's SLS.
    pub saltenv: String,
    /// The state's SLS.
    pub sls: String,
    /// The id of the state.
    pub id: String,
    /// The arguments of the low chunk, for functions that read arguments other than their own. For `mod_watch`,
    /// `__reqs__` contains the triggering states by kind of requisite: `state`, `__id__`, `name` and `changes` of each.
    pub chunk: Arc<Map>,
    /// The states that this one requires, by module and name: `clean` preserves their files.
    pub required: Vec<(String, String)>,
}

impl StateContext {
    /// Calls a state function for this state. It sees its own arguments only: an argument of this state that has the
    /// name of one of its arguments is not passed on.
    ///
    /// # Errors
    /// The function does not exist, its arguments are invalid, or it fails.
    pub fn call_state(&self, function: &str, args: Args) -> CallResult {
        let params = self.call.minion.states.get(function).map(Function::params).unwrap_or_default();
        let mut chunk = args.keyword.clone();
        for (param, value) in params.iter().zip(&args.positional) {
            chunk.insert(param.name.into(), value.clone());
        }
        let context = StateContext { chunk: Arc::new(chunk), ..self.clone() };
        self.call.minion.states.call(&context, function, args)
    }
}
