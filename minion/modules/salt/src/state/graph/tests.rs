use brine_function::Args;
use brine_value::map;

use crate::testing::context;

const SLS: &str = "one:
  test.nop: []
two:
  test.nop:
    - name: 'other \"name\"'
    - require: [test: one]
    - onchanges: [test: one]
three:
  test.succeed_with_changes:
    - prereq: [test: two]
four:
  test.nop:
    - require_any: [test: one, test: two]
";

/// As Salt 3008 draws it, but for the quotation marks, which it does not escape, and the order of states.
const DOT_LINES: [&str; 14] = [
    r#"  "test_|-one_|-one_|-nop" [label="test.nop\none"];"#,
    r#"  "test_|-two_|-other \"name\"_|-nop" [label="test.nop\ntwo\n(other \"name\")"];"#,
    r#"  "test_|-three_|-three_|-succeed_with_changes" [label="test.succeed_with_changes\nthree"];"#,
    r#"  "test_|-four_|-four_|-nop" [label="test.nop\nfour"];"#,
    r#"  "test_|-two_|-other \"name\"_|-nop_|-__prereq_test__" [label="test.nop\ntwo\n(other \"name\")"];"#,
    r#"  "test_|-one_|-one_|-nop" -> "test_|-two_|-other \"name\"_|-nop" [label="require"];"#,
    r#"  "test_|-one_|-one_|-nop" -> "test_|-two_|-other \"name\"_|-nop" [label="onchanges"];"#,
    r#"  "test_|-one_|-one_|-nop" -> "test_|-two_|-other \"name\"_|-nop_|-__prereq_test__" [label="require"];"#,
    r#"  "test_|-one_|-one_|-nop" -> "test_|-two_|-other \"name\"_|-nop_|-__prereq_test__" [label="onchanges"];"#,
    r#"  "test_|-one_|-one_|-nop" -> "test_|-four_|-four_|-nop" [label="require_any"];"#,
    r#"  "test_|-two_|-other \"name\"_|-nop" -> "test_|-four_|-four_|-nop" [label="require_any"];"#,
    r#"  "test_|-three_|-three_|-succeed_with_changes" -> "test_|-two_|-other \"name\"_|-nop" [label="require"];"#,
    r#"  "test_|-two_|-other \"name\"_|-nop_|-__prereq_test__" -> "test_|-three_|-three_|-succeed_with_changes" [label="prereq"];"#,
    "}",
];

#[test]
fn requisites_are_drawn_as_arrows() {
    let context = context(&[("a.sls", SLS), ("top.sls", "base: {'*': [a]}")]);
    for (function, args) in [("state.graph", map! {"mods" => "a"}), ("state.graph_highstate", map! {})] {
        let drawn = context.call(function, Args::keyword(args)).unwrap().to_string();
        let mut lines = drawn.lines().collect::<Vec<_>>();
        assert_eq!(lines.remove(0), "digraph G {");
        let mut expected = DOT_LINES;
        lines.sort_unstable();
        expected.sort_unstable();
        assert_eq!(lines, expected, "{function}");
    }
    let missing = context.call("state.graph", Args::keyword(map! {"mods" => "none"})).unwrap();
    assert!(
        missing.to_string().starts_with("[\"No matching sls found for 'none' in env 'base'\\n  hint: "),
        "{missing}"
    );
}
