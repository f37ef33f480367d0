//! Suggestions for misspelt names, among the functions of all modules.

use std::sync::Arc;

use brine_context::suggest::{no_single_state, no_state, not_available};
use brine_testing::Alone;

#[test]
fn similar_names_are_suggested() {
    let minion = brine_testing::minion(&brine_modules::MODULES, &[], Arc::new(Alone::default()));
    for (name, message) in [
        ("test.pingg", "'test.pingg' is not available. Did you mean 'test.ping'?"),
        ("pkg.instal", "'pkg.instal' is not available. Did you mean 'pkg.install'?"),
        ("no.such", "'no.such' is not available."),
        ("ping", "'ping' is not available."),
        ("", "'' is not available."),
        (
            "file.managed",
            "'file.managed' is not available. It is a state: call state.single with file.managed and its arguments",
        ),
    ] {
        assert_eq!(not_available(&minion, name), message);
    }
    for (name, message) in [
        ("file.managd", "'file.managd' is not available. Did you mean 'file.managed'?"),
        ("file.nosuch", "'file.nosuch' is not available."),
        ("nosuch.thing", "'nosuch.thing' is not available."),
    ] {
        assert_eq!(no_state(&minion.states, name), message);
    }
    let single = |name| no_single_state(&minion.states, name);
    assert_eq!(single("file.managd"), "Specified state 'file.managd' was not found: did you mean 'file.managed'?");
    assert_eq!(single("no.such"), "Specified state 'no.such' was not found");
}
