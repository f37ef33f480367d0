//! Masks of services.

use brine_context::{StateContext, StateReturn};
use brine_function::CallError;
use brine_value::map;

use super::Services;

/// Ensures that a service is masked or not: permanently, or with `runtime` until the next boot.
pub(super) fn state(
    services: &dyn Services,
    context: &StateContext,
    name: &str,
    masked: bool,
    runtime: bool,
) -> Result<StateReturn, CallError> {
    if !services.can_mask() {
        return Ok(StateReturn::failed(name, "Service masking not available on this minion"));
    }
    let kind = if runtime { "runtime " } else { "" };
    let word = if masked { "masked" } else { "unmasked" };
    if services.is_masked(&context.call, name, runtime)? == masked {
        let already = if masked { "is already" } else { "was already" };
        return Ok(StateReturn::ok(name, format!("Service {name} {already} {kind}{word}")));
    }
    let changes = map! {format!("{kind}masked") => map! {"old" => !masked, "new" => masked}};
    if context.test {
        return Ok(StateReturn::predicted(name, format!("Service {name} would be {kind}{word}")).with_changes(changes));
    }
    services.set_mask(&context.call, name, masked, runtime)?;
    if services.is_masked(&context.call, name, runtime)? != masked {
        let comment = format!("Failed to {} service {name}", if masked { "mask" } else { "unmask" });
        return Ok(StateReturn::ok(name, comment));
    }
    Ok(StateReturn::ok(name, format!("Service {name} was {kind}{word}")).with_changes(changes))
}
