//! `event`: firing events on the master's bus.

use brine_function::{CallError, functions};
use brine_value::{Map, Value};

use super::RunnerContext;

functions! {
    module "event", context RunnerContext;

    /// Fires an event on the master's bus. Gives true when the journal has it on disk.
    ///
    /// CLI Example:
    ///
    ///     salt-run event.send my/custom/event '{"foo": "bar"}'
    fn send(context, tag: String, data: Map = Map::new()) {
        let mut data = data;
        context.caller.mark(&mut data);
        context.wait(context.master.bus.fire_durably(&tag, &data)).map_err(CallError::execution)?;
        Ok(Value::Bool(true))
    }
}
