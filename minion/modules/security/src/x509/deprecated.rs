//! Warnings about arguments and forms of old releases, where Salt has warnings, too.

use brine_value::{Map, Value};

/// Arguments of old releases that have no effect.
const WITHOUT_EFFECT: [&str; 6] = ["text", "version", "serial_bits", "cipher", "verbose", "asObj"];

/// Warns about an old name or form.
pub fn renamed(old: &str, new: &str) {
    tracing::warn!("x509: {old} is deprecated: use {new}");
}

/// Warns about an argument without effect.
pub fn without_effect(name: &str) {
    tracing::warn!("x509: the argument {name} is deprecated and has no effect: remove it");
}

/// Warns about those of these arguments without effect that are set.
pub fn all_without_effect(arguments: &[(&str, &Value)]) {
    for (name, _) in arguments.iter().filter(|(_, value)| !value.is_nil()) {
        without_effect(name);
    }
}

/// Removes arguments without effect, with a warning about each.
pub fn remove_without_effect(mut kwargs: Map) -> Map {
    kwargs.retain(|name, _| {
        let removed = name.as_str().filter(|name| WITHOUT_EFFECT.contains(name));
        removed.inspect(|name| without_effect(name)).is_none()
    });
    kwargs
}

#[cfg(test)]
mod tests {
    use brine_value::map;

    use super::*;

    #[test]
    fn arguments_without_effect_are_removed() {
        let kwargs = map! {"text" => true, "CN" => "a", "asObj" => false, "version" => 3};
        assert_eq!(remove_without_effect(kwargs), map! {"CN" => "a"});
    }
}
