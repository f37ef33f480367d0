//! Compares with the recorded behaviour of Salt 3008.

use brine_value::{list, map};

use super::*;

mod properties;

fn bytes(text: &str) -> Value {
    Value::Bytes(text.as_bytes().to_vec())
}

fn message(text: &str) -> String {
    load(text).expect_err(text).to_string()
}

#[test]
fn plain_scalars_resolve_by_yaml_1_1() {
    for (words, value) in [
        ("yes Yes YES on On ON true True TRUE", Value::Bool(true)),
        ("no No NO off Off OFF false False FALSE", Value::Bool(false)),
        ("null Null NULL ~", Value::Nil),
        ("0 00 -0 +0 -00", 0.into()),
        ("0644 0_644 6_44 +644 0644_", 644.into()),
        ("007 7", 7.into()),
        ("-012", (-10).into()),
        ("+012", 10.into()),
        ("0x1F 0x_1f 0b11111 31 +31", 31.into()),
        ("1_000 1__000", 1000.into()),
        ("12:30", 750.into()),
        ("-1:30", (-90).into()),
        ("1:30:15", 5415.into()),
        ("22:22", 1342.into()),
        ("9223372036854775808", Value::UInt(1 << 63)),
        ("1.50 1.5_0", 1.5.into()),
        (".5 .5_ 0.5 00.5", 0.5.into()),
        ("5. 5.0 5._", 5.0.into()),
        ("10.10", 10.1.into()),
        ("1.0e+3 1.E+3 1000.", 1000.0.into()),
        ("190:20:30.15", 685_230.15.into()),
        (".inf .Inf +.INF", f64::INFINITY.into()),
        ("-.INF", f64::NEG_INFINITY.into()),
        (".nan .NaN .NAN", f64::NAN.into()),
    ] {
        for word in words.split(' ') {
            assert_eq!(plain(word), value, "{word}");
            assert_eq!(load(&format!("[{word}]")), Ok(list![value.clone()]), "{word}");
            assert_eq!(load(&format!("a: {word}")), Ok(map! {"a" => value.clone()}.into()), "{word}");
        }
    }
}

#[test]
fn scalars_that_resemble_other_types_are_strings() {
    let words = "y n Y N tRue oN None 08 09 012345678 0o755 00:11:22:33:44:55 1:60 01:05 1e3 1.0e3 1e+3 1.2.3 \
                 -.5 +.5 -.nan ._5 0b 0x 0b12 _1 2024-01-02 2024-1-2T3:04:05.6Z . .. -- + yes! <x a=b";
    for word in words.split_whitespace() {
        assert_eq!(plain(word), word.into());
        assert_eq!(load(&format!("a: {word}")), Ok(map! {"a" => word}.into()), "{word}");
    }
    assert_eq!(load("1,000"), Ok("1,000".into()));
    assert_eq!(load("'0644'"), Ok("0644".into()));
    assert_eq!(load("2024-01-02 03:04:05 +01:00"), Ok("2024-01-02 03:04:05 +01:00".into()));
}

#[test]
fn tags_choose_the_type() {
    for (text, value) in [
        ("!!str 123", "123".into()),
        ("!!str", "".into()),
        ("!!int \"42\"", 42.into()),
        ("!!int '0644'", 644.into()),
        ("!!float 3", 3.0.into()),
        ("!!bool \"yes\"", true.into()),
        ("!!null ''", Value::Nil),
        ("!!timestamp 2024-01-01", "2024-01-01".into()),
        ("!!python/unicode x", "x".into()),
        ("!<tag:yaml.org,2002:str> 12", "12".into()),
        ("! 12", 12.into()),
        ("!!binary aGVsbG8=", bytes("hello")),
        ("!!binary |\n  aGVs\n  bG8", bytes("hello")),
        ("!!map {a: 1}", map! {"a" => 1}.into()),
        ("!!omap {a: 1}", map! {"a" => 1}.into()),
        ("!!set {x, y}", list!["x", "y"]),
        ("!!seq [1]", list![1]),
        ("!!pairs [a: 1]", list![list!["a", 1]]),
    ] {
        assert_eq!(load(text), Ok(value), "{text}");
    }
}

#[test]
fn scalars_begin_and_end_as_in_libyaml() {
    for (text, value) in [
        ("", Value::Nil),
        ("# only a comment\n", Value::Nil),
        ("---\n...\n", Value::Nil),
        ("  ", Value::Nil),
        ("foo #bar", "foo".into()),
        ("foo#bar", "foo#bar".into()),
        ("foo:bar", "foo:bar".into()),
        ("%YAML 1.2\n---\n0644", 644.into()),
        ("a:\tb", map! {"a" => "b"}.into()),
        ("a: b\r\nc: d\r\n", map! {"a" => "b", "c" => "d"}.into()),
        ("a: 'x\ny'", map! {"a" => "x y"}.into()),
        ("a:\n  b: [\n1,\n\t2\n]\n", map! {"a" => map! {"b" => list![1, 2]}}.into()),
        ("{\"a\":1, b, 'c': d}", map! {"a" => 1, "b" => Value::Nil, "c" => "d"}.into()),
        ("=: 1", map! {"=" => 1}.into()),
        ("- a\n- - b\n-", list!["a", list!["b"], Value::Nil]),
    ] {
        assert_eq!(load(text), Ok(value), "{text}");
    }
}

#[test]
fn a_block_scalar_ends_as_the_text_does() {
    for (text, value) in [
        ("|\n a\n b\n", "a\nb\n"),
        ("|\n a\n b", "a\nb"),
        ("|\n a  \n  ", "a  \n"),
        ("|-\n a\n", "a"),
        ("|-\n a", "a"),
        ("|+\n a\n\n", "a\n\n"),
        ("|+\n a", "a"),
        (">\n a\n b\n\n c\n", "a b\nc\n"),
        (">\n a\n b", "a b"),
        ("|2\n    a\n", "  a\n"),
        ("|\n a\n# comment\n", "a\n"),
        ("|\r\n a\r\n b", "a\nb"),
        ("|#c", ""),
    ] {
        assert_eq!(load(text), Ok(value.into()), "{text:?}");
    }
}

#[test]
fn mappings_keep_order_and_types_of_keys() {
    let value = load("z: 1\n1: a\n1.5: b\nno: c\n~: d\na: e\n'1': f\n").unwrap();
    let keys: Vec<_> = value.as_map().unwrap().keys().cloned().collect();
    assert_eq!(
        keys,
        ["z".into(), 1.into(), 1.5.into(), false.into(), Value::Nil, "a".into(), "1".into()] as [Value; 7]
    );
}

#[test]
fn merged_keys_come_first_and_yield_to_explicit_ones() {
    let merged = |text: &str| match load(text).unwrap().get("c").unwrap() {
        Value::Map(map) => map.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" "),
        other => panic!("{other:?}"),
    };
    let base = "a: &a {x: 1, y: 2}\nb: &b {w: 3, <<: *a}\n";
    assert_eq!(merged(&format!("{base}c:\n  z: 4\n  <<: *a\n  y: 5")), "x=1 z=4 y=5");
    assert_eq!(merged(&format!("{base}c: {{<<: *b, x: 9}}")), "y=2 w=3 x=9");
    assert_eq!(merged("a: &a {x: 1}\nb: &b {y: 2}\nc: {<<: [*a, *b]}"), "y=2 x=1");
    assert_eq!(merged("a: &a {x: 1}\nb: &b {y: 2}\nc:\n  <<: *a\n  <<: *b"), "x=1 y=2");
    assert_eq!(merged("c: {'<<': 1}"), "<<=1");
}

#[test]
fn errors_use_salts_messages() {
    for (text, expected) in [
        ("a: 1\na: 2", "line 2, column 1: found conflicting ID 'a'"),
        ("a:\n- {b: 1, b: 1}", "line 2, column 10: found conflicting ID 'b'"),
        ("yes: 1\nTrue: 2", "line 2, column 1: found conflicting ID 'True'"),
        ("1: a\n1.0: b", "line 2, column 1: found conflicting ID '1.0'"),
        ("1: a\ntrue: b", "line 2, column 1: found conflicting ID 'True'"),
        ("a: &a {x: 1}\nb: &b {x: 2}\nc: {<<: [*a, *b]}", "line 1, column 8: found conflicting ID 'x'"),
        ("a: &a {x: 1}\nb:\n  <<: *a\n  <<: *a", "line 1, column 8: found conflicting ID 'x'"),
        (
            "a: {{ x }}",
            "line 1, column 5: found unacceptable key [(ScalarNode(tag='tag:yaml.org,2002:str', value='x'), \
             ScalarNode(tag='tag:yaml.org,2002:null', value=''))]",
        ),
        ("[a]: 1", "line 1, column 1: found unacceptable key [ScalarNode(tag='tag:yaml.org,2002:str', value='a')]"),
        ("a: 1\n---\nb: 2", "line 2, column 1: but found another document"),
        ("a:\n\tb: c", "line 2, column 1: found character that cannot start any token"),
        ("a:\n  b: c\n\td: e", "line 3, column 1: found a tab character that violates indentation"),
        ("a: b: c", "line 1, column 5: mapping values are not allowed in this context"),
        ("a: - b", "line 1, column 4: block sequence entries are not allowed in this context"),
        ("a: @x", "line 1, column 4: found character that cannot start any token"),
        ("a: `x", "line 1, column 4: found character that cannot start any token"),
        ("a: %x", "line 1, column 4: found character that cannot start any token"),
        ("a: [1, 2\nb: 1", "line 2, column 2: did not find expected ',' or ']'"),
        ("a: x\ny", "line 3, column 1: could not find expected ':'"),
        ("a: *x", "line 1, column 4: found undefined alias"),
        ("&x [*x]", "line 1, column 5: found undefined alias"),
        ("a: &x 1\nb: &x 2", "line 2, column 4: second occurrence"),
        ("a: !foo x", "line 1, column 4: could not determine a constructor for the tag '!foo'"),
        ("=", "line 1, column 1: could not determine a constructor for the tag 'tag:yaml.org,2002:value'"),
        (
            "!!python/object:x y",
            "line 1, column 1: could not determine a constructor for the tag 'tag:yaml.org,2002:python/object:x'",
        ),
        ("!!omap [a: 1]", "line 1, column 1: expected a mapping node, but found sequence"),
        ("!!str [a]", "line 1, column 1: expected a scalar node, but found sequence"),
        ("!!int abc", "line 1, column 1: could not read 'abc' as a whole number"),
        ("<<: 1", "line 1, column 5: expected a mapping or list of mappings for merging, but found scalar"),
        ("é: \x07", "line 1, column 4: unacceptable character #x0007: control characters are not allowed"),
        ("[!a,b]", "line 1, column 1: found a tag right before a comma"),
    ] {
        assert_eq!(message(text), expected, "{text}");
    }
}

#[test]
fn error_positions_match_salt() {
    for (text, expected) in [
        ("a: [,]", "while parsing a flow node\ndid not find expected node content\n  @ 1, 5"),
        ("[a\n ", "while parsing a flow sequence\n  @ 1, 1\ndid not find expected ',' or ']'\n  @ 3, 1"),
        ("{\n ", "while parsing a flow node\ndid not find expected node content\n  @ 3, 1"),
        ("c: \"a", "while scanning a quoted scalar\n  @ 1, 4\nfound unexpected end of stream\n  @ 1, 6"),
        ("a: 1\nb 2", "while scanning a simple key\n  @ 2, 1\ncould not find expected ':'\n  @ 3, 1"),
        ("a: 1\nb 2\n ", "while scanning a simple key\n  @ 2, 1\ncould not find expected ':'\n  @ 3, 2"),
        ("a: &x\n  b: &x 1", "found duplicate anchor; first occurrence\n  @ 1, 4\nsecond occurrence\n  @ 2, 6"),
        ("!!pairs a", "while constructing pairs\nexpected a sequence, but found scalar\n  @ 1, 1"),
        ("!!omap a", "while constructing an ordered map\nexpected a sequence, but found scalar\n  @ 1, 1"),
        ("a: 1\na: !x b", "could not determine a constructor for the tag '!x'\n  @ 2, 4"),
        (
            "[a]: b",
            "while constructing a mapping\nfound unacceptable key [ScalarNode(tag='tag:yaml.org,2002:str', value='a')]\n  @ 1, 1",
        ),
        (
            "a: b\n\0",
            "unacceptable character #x0000: control characters are not allowed\n  in \"<unicode string>\", position 5",
        ),
    ] {
        let places = load(text).unwrap_err().python_text();
        assert_eq!(places.replace("in \"<unicode string>\", line ", "@ ").replace(" column", ""), expected, "{text}");
    }
}

#[test]
fn unusual_documents_parse_as_in_salt() {
    assert_eq!(load("\u{feff}a: 1\nb: 2\n"), Ok(map! {"a" => 1, "b" => 2}.into()));
    assert_eq!(load("!!value x: 1"), Ok(map! {"x" => 1}.into()));
    assert!(load("0b_").is_err());
}

#[test]
fn salt_text_shows_positions_as_salt_does() {
    insta::assert_snapshot!(load("a: 1\na: 2").unwrap_err().salt_text(), @r#"
    while constructing a mapping
      in "<unicode string>", line 1, column 1
    found conflicting ID 'a'
      in "<unicode string>", line 2, column 1
    "#);
    insta::assert_snapshot!(load("a: [1, 2\nb: 1\n").unwrap_err().salt_text(), @r#"
    while parsing a flow sequence
      in "<unicode string>", line 1, column 4
    did not find expected ',' or ']'
      in "<unicode string>", line 2, column 2
    "#);
    insta::assert_snapshot!(load("a: b: c").unwrap_err().salt_text(), @"mapping values are not allowed in this context");
}

#[test]
fn the_snippet_points_at_the_position() {
    insta::assert_snapshot!(load("ok: 1\n\tdé: x: y\n").unwrap_err().snippet(), @r"
    	dé: x: y
    ^
    ");
    insta::assert_snapshot!(load("dé: x: y").unwrap_err().snippet(), @r"
    dé: x: y
         ^
    ");
}

#[test]
fn every_key_and_item_has_a_position() {
    let located = load_located("a: &a\n  x: 1\nb:\n  - {c: 2, 3: 4}\n  - <<: *a\n    y: 5\n").unwrap();
    for (path, place) in [
        (&[][..], Some((1, 1))),
        (&["a".into(), "x".into()], Some((2, 3))),
        (&["b".into()], Some((3, 1))),
        (&["b".into(), 0.into(), 3.into()], Some((4, 12))),
        (&["b".into(), 1.into()], Some((5, 5))),
        (&["b".into(), 1.into(), "x".into()], Some((2, 3))),
        (&["b".into(), 1.into(), "y".into()], Some((6, 5))),
        (&["b".into(), 2.into()], None),
        (&["a".into(), "x".into(), "z".into()], None),
    ] {
        let position = located.position(path).map(|position| (position.line, position.column));
        assert_eq!(position, place, "{path:?}");
    }
}

#[test]
fn aliases_and_depth_are_bounded() {
    let list = |i: usize| format!("a{i}: &a{i} [{}]\n", vec![format!("*a{}", i.max(1) - 1); 9].join(", "));
    let laughs = |levels| format!("a0: &a0 [lol]\n{}", (1..levels).map(list).collect::<Vec<_>>().concat());
    assert!(message(&laughs(40)).ends_with("aliases repeat too much of the text"));
    let endless_key = message(&format!("{}? *a4\n: b", laughs(5)));
    assert!(endless_key.contains("found unacceptable key") && endless_key.len() < 3000, "{}", endless_key.len());
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    assert!(message(&deep).ends_with("found more than 200 collections inside each other"));
    assert!(message(&"- ".repeat(5000)).ends_with("found more than 200 collections inside each other"));
    let chain = (1..300).map(|i| format!("- &c{i} [*c{}]\n", i - 1)).collect::<Vec<_>>().concat();
    assert!(message(&format!("- &c0 []\n{chain}")).ends_with("found more than 200 collections inside each other"));
}

/// Texts whose values are large for their size, each of about `size` bytes.
fn dense_texts(size: usize) -> Vec<(&'static str, String)> {
    let repeated = |text: &str| text.repeat(size / text.len());
    let aliases = |anchored: &str| format!("- &a {anchored}\n- [{}]\n", repeated("*a,"));
    vec![
        ("letters", format!("[{}]", repeated("a,"))),
        ("numbers", format!("[{}]", repeated("1,"))),
        ("empty lists", format!("[{}]", repeated("[],"))),
        ("empty mappings", format!("[{}]", repeated("{},"))),
        ("pairs", format!("[{}]", repeated("a: b,"))),
        ("a mapping", format!("{{{}}}", (0..size / 6).map(|n| format!("{n:x}: ,")).collect::<Vec<_>>().concat())),
        ("block items", repeated("- a\n")),
        ("nulls", repeated("- \n")),
        ("tags", format!("[{}]", repeated("! a,"))),
        ("anchors", format!("[{}]", (0..size / 7).map(|n| format!("&{n:x} a,")).collect::<Vec<_>>().concat())),
        ("words", format!("[{}]", repeated("web1.example.org, "))),
        ("aliases of a word", aliases("lol")),
        ("aliases of a list", aliases("[a, b, {c: d}]")),
        ("merges", format!("- &a {{x: 1, y: 2}}\n- [{}]\n", repeated("{<<: *a},"))),
    ]
}

#[test]
fn counted_memory_covers_what_is_allocated() {
    let allocated = |before: i64| usize::try_from(brine_allocator::held() - before).unwrap_or(0);
    for (kind, text) in dense_texts(20_000) {
        let before = brine_allocator::held();
        let mut composer = Composer::new(&text, &text, false, None, usize::MAX);
        let root = composer.document().unwrap().unwrap();
        let cost = composer.cost;
        // The buffers of the parser are in proportion to the text, whatever it contains.
        drop(composer);
        let composed = allocated(before);
        assert!(composed <= cost + 4096, "{kind}: {composed} bytes are allocated, {cost} counted");
        let before = brine_allocator::held();
        let mut constructor = Constructor::new(Source(&text), usize::MAX);
        let value = constructor.value(&root, 0).unwrap();
        let constructed = allocated(before);
        assert!(
            constructed <= constructor.spent + 4096,
            "{kind}: {constructed} allocated, {} counted",
            constructor.spent
        );
        // The count is not far above, either, so that the limits permit what they should.
        let is_close = cost <= 4 * composed + 4096 && constructor.spent <= 4 * constructed;
        assert!(is_close, "{kind}: {composed} and {constructed} allocated, {cost} and {} counted", constructor.spent);
        drop(value);
    }
}

#[test]
fn untrusted_texts_are_limited_in_proportion_to_their_size() {
    let memory = 200_000;
    for (kind, text) in dense_texts(20_000) {
        let mut left = memory;
        let refused = load_untrusted(&text, &mut left).unwrap_err().message;
        let expected = ["the document takes too much memory", "aliases repeat too much of the text"];
        assert!(expected.iter().any(|expected| refused.starts_with(expected)), "{kind}: {refused}");
        // The same text in small is accepted, and the value is charged.
        let (_, small) = dense_texts(40).into_iter().find(|(other, _)| *other == kind).unwrap();
        let mut left = memory;
        load_untrusted(&small, &mut left).unwrap_or_else(|error| panic!("{kind}: {error}"));
        assert!(left < memory, "{kind}");
    }
    // Aliases are limited by the size of the text also where memory is left.
    let list = |i: usize| format!("a{i}: &a{i} [{}]\n", vec![format!("*a{}", i.max(1) - 1); 9].join(", "));
    let laughs = format!("a0: &a0 [lol]\n{}", (1..8).map(list).collect::<String>());
    let refused = load_untrusted(&laughs, &mut (1 << 30)).unwrap_err();
    assert_eq!(refused.message, "aliases repeat too much of the text");
}

#[test]
fn dump_matches_the_golden_yaml_output() {
    let value = map! {"local" => map! {
        "str" => "text", "int" => 42, "float" => 1.5, "none" => Value::Nil, true => true, "empty" => "",
        "elist" => list![], "edict" => map! {}, "list" => list![1, "two", list![3, 4], map! {"k" => "v"}],
        "dict" => map! {"b" => 1, "a" => map! {"c" => list!["x"]}},
    }};
    insta::assert_snapshot!(dump(&value.into(), Style::BLOCK), @r"
    local:
      str: text
      int: 42
      float: 1.5
      none: null
      true: true
      empty: ''
      elist: []
      edict: {}
      list:
      - 1
      - two
      - - 3
        - 4
      - k: v
      dict:
        a:
          c:
          - x
        b: 1
    ");
}

#[test]
fn scalars_are_quoted_only_where_they_would_change() {
    for (value, text) in [
        (Value::from("yes"), "'yes'"),
        ("0644".into(), "'0644'"),
        ("12:30".into(), "'12:30'"),
        ("2024-01-01".into(), "'2024-01-01'"),
        ("null".into(), "'null'"),
        ("".into(), "''"),
        ("a: b".into(), "'a: b'"),
        ("#c".into(), "'#c'"),
        ("<<".into(), "'<<'"),
        ("1e3".into(), "1e3"),
        ("a:b".into(), "a:b"),
        ("é".into(), "é"),
        ("it's".into(), "it's"),
        ("a\nb".into(), "'a\n\n  b'"),
        ("\x1b[0m".into(), r#""\e[0m""#),
        (1e16.into(), "1.0e+16"),
        (1.5e-7.into(), "1.5e-07"),
        (f64::NEG_INFINITY.into(), "-.inf"),
        (f64::NAN.into(), ".nan"),
        (Value::Nil, "null"),
        (bytes("hello"), "!!binary |\n  aGVsbG8="),
        (list![], "[]"),
    ] {
        assert_eq!(dump(&value, Style::BLOCK), format!("{text}\n"));
    }
}

#[test]
fn keys_are_sorted_where_python_can_compare_them() {
    for (map, text) in [
        (map! {"b" => 1, "B" => 2, "a" => 3}, "{B: 2, a: 3, b: 1}\n"),
        (map! {10 => 1, 2.5 => 2, true => 3}, "{true: 3, 2.5: 2, 10: 1}\n"),
        (map! {"b" => 1, true => 2, "a" => 3}, "{b: 1, true: 2, a: 3}\n"),
    ] {
        assert_eq!(dump(&map.into(), Style::FLOW), text);
    }
}

#[test]
fn long_lines_are_folded_near_80_columns() {
    let words = Value::from("word ".repeat(20).trim_end());
    insta::assert_snapshot!(dump(&map! {"k" => words}.into(), Style::BLOCK), @r"
    k: word word word word word word word word word word word word word word word word
      word word word word
    ");
    let numbers: Value = (0..30).map(|n| n * 1000).collect();
    insta::assert_snapshot!(dump(&numbers, Style::FLOW), @r"
    [0, 1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 10000, 11000, 12000, 13000,
      14000, 15000, 16000, 17000, 18000, 19000, 20000, 21000, 22000, 23000, 24000, 25000,
      26000, 27000, 28000, 29000]
    ");
    let wide = Style { indent: 4, ..Style::BLOCK };
    assert_eq!(dump(&map! {"a" => map! {"b" => 1}}.into(), wide), "a:\n    b: 1\n");
}

/// As PyYAML does with `explicit_start`, `sort_keys` and `width`.
#[test]
fn styles_have_a_start_an_order_and_a_width() {
    let value: Value = map! {"b" => "word ".repeat(8).trim_end(), "a" => list![1]}.into();
    for (style, text) in [
        (Style { explicit_start: true, ..Style::BLOCK }, "---\na:\n- 1\nb: word word word word word word word word\n"),
        (Style { explicit_start: true, ..Style::FLOW }, "--- {a: [1], b: word word word word word word word word}\n"),
        (
            Style { keep_order: true, width: 20, ..Style::BLOCK },
            "b: word word word word\n  word word word word\na:\n- 1\n",
        ),
    ] {
        assert_eq!(dump(&value, style), text);
    }
    assert_eq!(dump(&"x".into(), Style { explicit_start: true, ..Style::BLOCK }), "--- x\n");
}

/// The words recorded by `scalars/record`, each with its type and text.
#[test]
fn plain_scalars_resolve_as_in_salt() {
    let recorded: Vec<[String; 3]> = serde_json::from_str(include_str!("../scalars/scalars.json")).unwrap();
    assert!(recorded.len() > 2000);
    for [word, kind, text] in recorded {
        let read = load(&format!("[{word}]")).map(|list| list.as_list().unwrap()[0].clone());
        if kind == "error" {
            // Salt crashes on such a word; here it is an error or a string.
            assert!(read.is_err() || read == Ok(word.as_str().into()), "{word}");
            continue;
        }
        let value = read.unwrap();
        assert_eq!((value.type_name(), value.to_string()), (&*kind, text), "{word}");
    }
}
