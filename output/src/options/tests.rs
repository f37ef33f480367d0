use brine_value::{list, map};

use super::*;

#[test]
fn state_output_has_salts_values() {
    for (word, mode, by_id) in [
        ("full", StateMode::Full, false),
        ("Terse_ID", StateMode::Terse, true),
        ("mixed", StateMode::Mixed, false),
        ("changes_id", StateMode::Changes, true),
        ("filter", StateMode::Filter, false),
        ("bogus", StateMode::Full, false),
    ] {
        assert_eq!(StateOutput::parse(word), StateOutput { mode, by_id }, "{word}");
    }
}

#[test]
fn options_have_salts_names() {
    let mut options = OutputOptions::default();
    options.set_all(&map! {
        "output_indent" => 2, "state_output" => "terse", "state_verbose" => false, "state_output_pct" => "yes",
        "exclude" => "True,", "state_output_terse" => list![false, "None"], "color" => true, 5 => 6,
        "state_output_diff" => list![],
    });
    assert_eq!(
        options,
        OutputOptions {
            indent: Indent::Columns(2),
            state_output: StateOutput { mode: StateMode::Terse, by_id: false },
            state_verbose: false,
            state_output_pct: true,
            state_output_exclude: vec!["True".into()],
            state_output_terse: vec!["False".into(), "None".into()],
            ..OutputOptions::default()
        }
    );
    options.set_all(&map! {"output_indent" => "pretty"});
    assert_eq!(options.indent, Indent::Pretty);
}
