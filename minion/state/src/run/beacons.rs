//! Beacons of states: `mod_beacon` of each state with the argument `beacon` runs once at the end, and configures a beacon
//! for the object of the state.

use brine_function::CallError;

use super::Run;
use crate::parallel;

impl<'scope, 'a: 'scope> Run<'scope, 'a> {
    /// Runs `mod_beacon` of the states that have the argument `beacon`, in their order.
    pub(super) fn beacons(&mut self) -> Result<(), CallError> {
        let low = self.low;
        for state in low.in_order().filter(|chunk| chunk.args.contains_key("beacon")) {
            let mut chunk = state.clone();
            chunk.args.insert("sfun".into(), state.fun.as_str().into());
            "mod_beacon".clone_into(&mut chunk.fun);
            chunk.id = format!("beacon_{}", state.id);
            let result = parallel::call(&mut self.caller, &chunk)?;
            self.fire(&chunk, &result);
            let ends = self.ends_run(&chunk, &result);
            self.more.insert(chunk.tag().into(), result.into());
            if ends {
                break;
            }
        }
        Ok(())
    }
}
