//! Fuzz targets for decoders and languages. Each takes any bytes and panics if a property is violated. The harness
//! (`main.rs`) and `libfuzzer/` run them.
#![allow(clippy::expect_used, reason = "a target that cannot start must stop the run")]

pub mod mutate;
pub mod targets;

use std::hash::{DefaultHasher, Hash, Hasher};

/// A fuzz target. Returns a coarse fingerprint of the outcome; inputs with a new fingerprint are kept and mutated.
pub type Target = fn(&[u8]) -> u64;

/// All targets by name, those exposed to unauthenticated peers first.
pub const TARGETS: &[(&str, Target)] = &[
    ("zmtp", targets::zmtp::run),
    ("envelope", targets::wire::envelope),
    ("msgpack", targets::wire::msgpack),
    ("auth", targets::wire::auth),
    ("http_head", targets::http::head),
    ("http_body", targets::http::body),
    ("http_form", targets::http::form),
    ("event", targets::wire::event),
    ("command", targets::wire::command),
    ("yaml", targets::text::yaml),
    ("jinja", targets::text::jinja),
    ("render", targets::render::run),
    ("target", targets::text::target),
    ("tcp", targets::zmtp::salt),
    ("frame", targets::wire::frame),
    ("x509", targets::files::x509),
    ("passwords", targets::files::passwords),
    ("acl", targets::files::acl),
    ("roster", targets::files::roster),
    ("archives", targets::files::archives),
    ("ini", targets::files::ini),
];

/// Returns the target with this name.
pub fn target(name: &str) -> Option<Target> {
    TARGETS.iter().find(|(other, _)| *other == name).map(|(_, target)| *target)
}

/// Returns the fingerprint of an outcome: its kind, and its message without quoted parts of the input.
pub fn fingerprint<T, E: std::fmt::Display>(kind: u8, outcome: Result<T, E>) -> u64 {
    let mut hasher = DefaultHasher::new();
    kind.hash(&mut hasher);
    if let Err(error) = outcome {
        let message = error.to_string();
        // Quoted parts are from the input.
        let own = message.split(['\'', '"', '`']).step_by(2).flat_map(str::chars);
        for c in own.filter(|c| c.is_ascii_alphabetic() || *c == ' ').take(40) {
            c.hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// Silences panics of the YAML parser, which `load` catches and reports as errors.
pub fn silence_the_yaml_parser() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !panic.location().is_some_and(|place| place.file().contains("libyaml-safer")) {
            hook(panic);
        }
    }));
}
