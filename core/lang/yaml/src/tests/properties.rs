//! Property tests of reading and writing, with any text and any value.

use proptest::prelude::*;

use super::super::{Style, dump, load};
use brine_value::Value;

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Nil),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (any::<bool>(), "[1-9][0-9]{19,60}")
            .prop_map(|(negative, digits)| { Value::whole_number(negative, &digits, 10).unwrap() }),
        (-1e30..1e30).prop_map(Value::Float),
        text().prop_map(Value::from),
        prop::collection::vec(any::<u8>(), 0..100).prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((text(), inner), 0..6)
                .prop_map(|pairs| Value::Map(pairs.into_iter().map(|(k, v)| (k.into(), v)).collect())),
        ]
    })
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![".*", "[ \\n\\ta:#'\"-]{0,12}", "[0-9:_.+-]{0,8}", "([a-z]{1,9} ){0,40}"]
}

/// Generates texts of pieces that have a meaning in YAML, in any order.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a",
        " ",
        "  ",
        "\n",
        "\n  ",
        ": ",
        "- ",
        "[",
        "]",
        "{",
        "}",
        ",",
        "'",
        "\"",
        "|",
        "|-",
        "|2",
        ">",
        "#",
        " #",
        "&a ",
        "*a",
        "!",
        "!!str ",
        "!!set ",
        "!a",
        "!<",
        "%",
        "%41",
        "%ff",
        "%YAML 1.1",
        "---",
        "...",
        "? ",
        "\t",
        "\\",
        "\\x4",
        "\r\n",
        "\r",
        "\u{85}",
        "\u{2028}",
        "\u{feff}",
        "é",
        "@",
        "<<: ",
        "=",
        "0644",
        "1",
    ]);
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_refused(text in prop_oneof![".*", pieces()]) {
        match load(&text) {
            Ok(_) => {}
            Err(error) => prop_assert!(error.line >= 1 && error.column >= 1, "{error:?}"),
        }
    }

    #[test]
    fn dumped_values_load_unchanged(value in value(), flow: bool, indent in 2..8u8) {
        let text = dump(&value, Style { flow, indent, ..Style::BLOCK });
        prop_assert_eq!(load(&text), Ok(value), "{}", text);
    }
}
