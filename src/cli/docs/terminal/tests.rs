use super::*;

fn render(text: &str) -> String {
    let drawing = |image: &str| (image == "a.svg").then(|| "+--+\n|  |".to_owned());
    let style = Style { colours: Colours::OFF, width: 40, drawing: &drawing };
    show(text, style, &mut Vec::new())
}

#[test]
fn forms_of_markdown_are_shown_as_plain_text() {
    for (text, expected) in [
        ("# A *title*\nText.", "A title\n=======\nText."),
        ("### `x.y`\n", "x.y"),
        ("one\ntwo **three** `four five`", "one two three `four five`"),
        ("a\\|b \\<c> 2 * 3", "a|b <c> 2 * 3"),
        ("[here](b.md#c), ![what](a.svg)", "here, what\n    +--+\n    |  |"),
        ("see [x](http://y/)", "see x (http://y/)"),
        ("- one\n  two\n- three\n", "  - one two\n  - three"),
        ("1. one\n\n       code\n2. two", "  1. one\n\n         code\n  2. two"),
        ("```yaml title=\"/a\"\nx:\n\n  y\n```\nz", "/a:\n    x:\n\n      y\nz"),
        ("    code\n\ntext", "    code\n\ntext"),
        ("!!! warning\n    Take care.\n\nText", "Warning:\n  Take care.\n\nText"),
        ("| a | b |\n|---|---|\n| `x` | y |", "a    b\n---  -\n`x`  y"),
        (
            "| a | b | c |\n|---|---|---|\n| `x` | 1 | A sentence that does not fit into forty columns. |",
            "`x` (b: 1)\n    A sentence that does not fit into\n    forty columns.",
        ),
    ] {
        assert_eq!(render(text), expected, "{text}");
    }
}

#[test]
fn long_lines_are_wrapped_and_code_is_coloured() {
    assert_eq!(render(&"word ".repeat(10)), format!("{}\n{}", ["word"; 8].join(" "), ["word"; 2].join(" ")));
    let style = Style { colours: Colours::ON, width: 40, drawing: &|_| None };
    assert_eq!(show("a `b`", style, &mut Vec::new()), "a \u{1b}[0;36mb\u{1b}[0;0m");
}
