//! Compares with the recorded behaviour of Salt 3008, for each type of target.

use brine_value::{list, map};

use super::*;

/// A minion with its facts, and custom matchers.
struct Minion {
    id: &'static str,
    grains: Option<Map>,
    pillar: Option<Map>,
}

impl TargetFacts for Minion {
    fn id(&self) -> &str {
        self.id
    }
    fn grains(&self) -> Option<&Map> {
        self.grains.as_ref()
    }
    fn pillar(&self) -> Option<&Map> {
        self.pillar.as_ref()
    }
}

fn m1() -> Minion {
    Minion {
        id: "m1",
        grains: Some(map! {
            "os" => "Debian", "n" => 5, "f" => 1.5, "b" => true, "none" => Value::Nil, "empty" => "", "e:f" => "g",
            "l" => list!["web", "db", 3, map! {"k" => "v", "j" => list!["p"]}], "ll" => list![list!["x"]],
            "d" => map! {"e" => "f", "g" => map! {"h" => "i"}, 1 => "one", "x:y" => "z"},
            "roles" => list!["a:b", "c"], "url" => "http://x:80", "ml" => "a\nb", "nothing" => map! {},
            "ipv4" => list!["127.0.0.1", "10.1.2.3"], "ipv6" => list!["::1", "fe80::1"],
        }),
        pillar: Some(map! {"a" => map! {"b" => "c"}, "roles" => list!["web", "db"], "S" => "X"}),
    }
}

fn nodegroups() -> Map {
    map! {
        "both" => "m1 or m2", "ids" => list!["m1", "m2"], "words" => list!["m1", "or", "m2"], "one" => "m1",
        "nested" => "N@both and not m2", "list" => "L@m1,m2", "mixed" => list!["N@both", "and", "m1"],
        "loop" => "N@pool or m1", "pool" => "N@loop", "bad" => "m1 or", "globs" => list!["m*", "x"],
        "missing" => "N@zz or m1", "odd" => 5, "empty" => "", "none" => list![], "blank" => "N@empty",
        "spared" => "N@both and not N@empty and not N@none", "idle" => "N@both and N@empty",
    }
}

fn outcome(kind: TargetKind, expression: impl Into<Value>) -> Result<bool, TargetError> {
    Target::parse(kind, expression, ":", &nodegroups()).map(|target| target.matches(&m1()))
}

#[track_caller]
fn check(kind: TargetKind, expressions: &[&str], matches: bool) {
    for expression in expressions {
        assert_eq!(outcome(kind, *expression), Ok(matches), "{kind} {expression}");
    }
}

#[test]
fn kinds_have_salts_names() {
    for kind in TargetKind::ALL {
        assert_eq!(kind.to_string().parse(), Ok(*kind));
    }
    assert_eq!(TargetKind::default(), TargetKind::Glob);
    insta::assert_snapshot!("grains".parse::<TargetKind>().unwrap_err(), @"'grains' is not a target type");
}

#[test]
fn ids_are_matched_by_glob_list_and_regex() {
    check(TargetKind::Glob, &["m1", "m*", "m?", "[m]1", "*"], true);
    check(TargetKind::Glob, &["M1", "m", "", "m1,m2"], false);
    check(TargetKind::List, &["m1", "m1,m2", "m2 m1", "m2, m1", "m2\tm1"], true);
    check(TargetKind::List, &["m", "*", "", "m2"], false);
    check(TargetKind::Pcre, &["m", "m1$", "^m1", "m.", "", "(?=m1)"], true);
    check(TargetKind::Pcre, &["1", "M1", "m1.", "x|1"], false);
    // Python's syntax: plain text in a class, letters without a meaning are refused.
    check(TargetKind::Pcre, &[r"m1\Z", "(?i)M1", "[m&&y]1"], true);
    check(TargetKind::Pcre, &["[[:alpha:]]", r"\<m", "(?:m1)\n"], false);
    for wrong in [r"\h", r"\pL", r"\z", "a(?i)"] {
        assert!(matches!(outcome(TargetKind::Pcre, wrong), Err(TargetError::Pattern { .. })), "{wrong}");
    }
    assert_eq!(outcome(TargetKind::List, list!["m2", "m1"]), Ok(true));
}

#[test]
fn lists_return_their_ids_in_order() {
    let target = Target::parse(TargetKind::List, "b,a, b c", ":", &Map::new()).unwrap();
    assert_eq!(target.listed().unwrap().collect::<Vec<_>>(), ["b", "a", "c"]);
    assert_eq!(target.kind(), TargetKind::List);
    assert!(Target::parse(TargetKind::Glob, "a", ":", &Map::new()).unwrap().listed().is_none());
}

#[test]
fn grains_are_matched_along_their_paths() {
    let all_kinds = [
        "os:Debian",
        "os:debian",
        "n:5",
        "f:1.5",
        "b:True",
        "b:true",
        "none:None",
        "l:web",
        "l:3",
        "l:k:v",
        "l:k",
        "l:j:p",
        "l:3:k:v",
        "l:0:web",
        "d:e:f",
        "d:e",
        "d:*",
        "d:*:f",
        "d:g:h",
        "d:g:h:i",
        "d:g:*",
        "d:1:one",
        "d:1",
        "d:x:y",
        "*:Debian",
        "empty:",
        "roles:a:b",
        "url:http://x:80",
        "l:*",
        "*:e",
    ];
    check(TargetKind::Grain, &all_kinds, true);
    check(TargetKind::GrainPcre, &all_kinds, true);
    let globs = [
        "os:Deb*",
        "b:*",
        "none:*",
        "l:w*",
        "l:k:*",
        "d:e:*",
        "d:g:h:*",
        "roles:a*",
        "url:http*",
        "url:*",
        "ml:a*",
        "empty:*",
    ];
    check(TargetKind::Grain, &globs, true);
    let nobody =
        ["OS:Debian", "n:5.0", "none", "os", "", "*", "l:0", "ll:x", "e:f:g", "zz:*", "o*:Debian", "nothing:*"];
    check(TargetKind::Grain, &nobody, false);
    check(TargetKind::GrainPcre, &nobody, false);
    check(TargetKind::Grain, &["os:"], false);
    check(
        TargetKind::GrainPcre,
        &["os:", "os:D", "os:[A-Z]", "os:^Debian$", "os:x|deb", "l:w.b", "url:http:(//x:80|y)"],
        true,
    );
    // The pattern is converted to lower case too, as in Salt: `\D` means `\d`.
    check(TargetKind::GrainPcre, &[r"os:\D+", "os:ebian"], false);
}

#[test]
fn pillar_is_matched_by_glob_regex_and_value() {
    check(TargetKind::Pillar, &["a:b:c", "a:b:*", "a:b:C", "roles:web", "roles:w*", "S:x"], true);
    check(TargetKind::PillarExact, &["a:b:c", "a:b:C", "roles:web", "S:x"], true);
    check(TargetKind::PillarExact, &["a:b:*", "roles:w*"], false);
    check(TargetKind::PillarPcre, &["a:b:[cd]", "roles:w"], true);
    check(TargetKind::Pillar, &["os:Debian"], false);
}

#[test]
fn the_path_delimiter_is_configurable() {
    let with = |kind, text: &str, delimiter| {
        Target::parse(kind, text, delimiter, &Map::new()).map(|target| target.matches(&m1()))
    };
    assert_eq!(with(TargetKind::Grain, "d|x:y|z", "|"), Ok(true));
    assert_eq!(with(TargetKind::Grain, "d|x:y|q", "|"), Ok(false));
    assert_eq!(with(TargetKind::Grain, "d:e:f", "|"), Ok(false));
    assert_eq!(with(TargetKind::Grain, "d->e->f", "->"), Ok(true));
    assert_eq!(with(TargetKind::Pillar, "a:b:c", ""), Ok(false));
}

#[test]
fn addresses_are_matched_against_the_grain_of_their_family() {
    check(TargetKind::IpCidr, &["10.1.2.3", "10.0.0.0/8", "10.0.0.0/255.0.0.0", "::1", "fe80::/10", "::/0"], true);
    check(TargetKind::IpCidr, &["10.1.2.4", "192.168.0.0/16", "fd00::/8"], false);
    assert_eq!(outcome(TargetKind::IpCidr, "10.1.2.3/8"), Err(TargetError::Network("10.1.2.3/8".into())));
}

#[test]
fn compounds_match_as_in_salt() {
    let somebody = [
        "m1",
        "m*",
        "m1 or m2",
        "m2 or m1",
        "not m2",
        "m1 not m2",
        "m1 and not m2",
        "( m1 or m2 )",
        "not ( m2 )",
        "m1 and ( m2 or m1 )",
        "( m1 ) not m2",
        "m1 or not m1",
        "m1 or m2 not m2",
        "m2 not m2 or m1",
        "G@os:Debian",
        "G@os:x or m1",
        "X@foo or m1",
        "E@m.",
        "E@.1",
        "L@m1,m2",
        "P@os:(Deb|x)",
        "I@a:b:c",
        "I@a:*",
        "I@roles:web",
        "J@a:b:[cd]",
        "S@10.1.2.3",
        "S@10.0.0.0/8",
        "N@both",
        "N@nested",
        "N@ids",
        "N@words",
        "N@both or x",
        "N@mixed",
        "G|@d|x:y|z",
        "G|@os|Debian",
        "I/@a/b/c",
        "G%@os%Debian",
        "Gx@osxDebian",
        "G@@os@Debian",
        "S@10.1.2.3 and G@os:Debian",
        " m1 ",
        "m1\tor\tm2",
        "m1  or  m2",
        "not G@os:x",
        "foo@bar or m1",
        "m[12]",
        "( ( m1 ) )",
        "not ( not m1 )",
        "( not m2 )",
        "* and not m2",
        "N@list and N@one",
    ];
    check(TargetKind::Compound, &somebody, true);
    let nobody = [
        "m1 and m2",
        "not m1",
        "m1 not m1",
        "X@foo",
        "E@1",
        "e@m1",
        "L@m2,",
        "G|@d|x:y:z",
        "L|@m1",
        "not N@both",
        "@x",
        "m1@x",
        "m1,m2",
        "not ( not m2 )",
        "G@",
        "G@os",
        "L@",
    ];
    check(TargetKind::Compound, &nobody, false);
    assert_eq!(outcome(TargetKind::Compound, list!["m1", "or", "m2"]), Ok(true));
    assert_eq!(outcome(TargetKind::Compound, list!["m2", "and", "m1"]), Ok(false));
}

#[test]
fn malformed_compounds_are_refused_with_a_position_and_reason() {
    let error = |text: &str| outcome(TargetKind::Compound, text).unwrap_err().to_string();
    let read = |index: usize, word: &str, text: &str, reason: &str| {
        assert_eq!(error(text), format!("the target '{text}' is invalid at word {index} '{word}': {reason}"));
    };
    for (text, index, word) in [
        ("or m1", 1, "or"),
        ("and m1", 1, "and"),
        ("not not m2", 2, "not"),
        ("m1 and and m1", 3, "and"),
        ("m1 or and m1", 3, "and"),
        ("m1 or ) ( m2", 3, ")"),
    ] {
        read(index, word, text, "a term is missing before this");
    }
    for (text, index) in [("", 1), ("m1 or", 3), ("not", 2), ("(", 2)] {
        read(index, "", text, "a term is missing at the end");
    }
    for (text, index, word) in [
        ("m1 m2", 2, "m2"),
        ("( m1 ) ( m1 )", 4, "("),
        ("m1 ( m1 )", 2, "("),
        ("m1 AND m1", 2, "AND"),
        ("m1 Or m2", 2, "Or"),
    ] {
        read(index, word, text, "two terms need 'and' or 'or' between them");
    }
    for (text, index, word) in [
        ("(m1)", 1, "(m1)"),
        ("G@os:Debian and not (m1)", 4, "(m1)"),
        ("(m1 or m2) and G@os:Debian", 1, "(m1"),
        ("not(m1)", 1, "not(m1)"),
        ("( m1 or m2)", 4, "m2)"),
        ("(N@web)", 1, "(N@web)"),
        ("( m1 or G@os:Debian)", 4, "G@os:Debian)"),
        ("( m1 or L@m1,m2)", 4, "L@m1,m2)"),
        ("m1 and S@10.0.0.0/8)", 3, "S@10.0.0.0/8)"),
    ] {
        read(index, word, text, "a parenthesis needs a blank before and after it");
    }
    read(2, ")", "m1 )", "there is no '(' for this ')'");
    read(3, "", "( m1", "a '(' is not closed");
    read(5, "", "m1 or ( m2", "a '(' is not closed");
}

#[test]
fn invalid_targets_are_refused_with_a_reason() {
    for (kind, text, error) in [
        (TargetKind::Compound, "S@x", "'x' is neither an IP address nor a network"),
        (TargetKind::Compound, "R@%x or m1", "targets of type R@ are not supported"),
        (TargetKind::Compound, "T@x", "targets of type T@ are not supported"),
        (TargetKind::Compound, "N@zz", "node group 'zz' is not defined"),
        (TargetKind::Compound, "m1 or N@loop", "node group 'loop' contains itself"),
        (TargetKind::Nodegroup, "missing", "node group 'zz' is not defined"),
        (TargetKind::Nodegroup, "odd", "node group 'odd' is not defined"),
        (TargetKind::Nodegroup, "bad", "the target 'm1 or' is invalid at word 3 '': a term is missing at the end"),
        (
            TargetKind::Nodegroup,
            "globs",
            "the target 'm* x' is invalid at word 2 'x': two terms need 'and' or 'or' between them",
        ),
        (TargetKind::Range, "%x", "targets of type range are not supported"),
    ] {
        assert_eq!(outcome(kind, text).unwrap_err().to_string(), error, "{text}");
    }
    for (kind, text) in [(TargetKind::Pcre, "("), (TargetKind::GrainPcre, "os:("), (TargetKind::Compound, "E@(")] {
        assert!(matches!(outcome(kind, text), Err(TargetError::Pattern { .. })), "{text}");
    }
    for (kind, value) in [
        (TargetKind::Glob, list!["m1"]),
        (TargetKind::List, 5.into()),
        (TargetKind::List, list!["m1", 5]),
        (TargetKind::Compound, Value::Nil),
        (TargetKind::Compound, list!["m1", "or", 5]),
    ] {
        assert!(matches!(outcome(kind, value.clone()), Err(TargetError::NotText { .. })), "{kind} {value}");
    }
}

#[test]
fn nodegroups_are_compounds_lists_of_words_or_lists_of_ids() {
    check(TargetKind::Nodegroup, &["both", "ids", "words", "one", "nested", "list", "mixed"], true);
    // An empty group has no members.
    check(TargetKind::Nodegroup, &["empty", "none", "blank", "idle"], false);
    check(TargetKind::Nodegroup, &["spared"], true);
    check(TargetKind::Compound, &["not N@empty", "m1 and not N@none", "N@empty or m1", "m1 and not ( )"], true);
    check(TargetKind::Compound, &["N@empty", "m1 and N@blank", "( )", "m1 and ( )"], false);
    // Without parentheses: `m1 or m2 and m2`.
    check(TargetKind::Compound, &["N@both and m2", "N@words and m2"], true);
    check(TargetKind::Compound, &["N@mixed and m2", "N@nested and m2", "N@ids and m2"], false);
}

#[test]
fn targets_that_depend_on_unknown_facts_are_unknown() {
    let stranger = Minion { id: "m9", grains: None, pillar: None };
    for (text, expected) in [
        ("G@os:Debian", Match::Unknown),
        ("not G@os:Debian", Match::Unknown),
        ("S@10.0.0.0/8", Match::Unknown),
        ("I@a:b", Match::Unknown),
        ("m9 and G@os:x", Match::Unknown),
        ("m1 and G@os:x", Match::No),
        ("G@os:x and m1", Match::No),
        ("G@os:x or m9", Match::Yes),
        ("G@os:x or m1", Match::Unknown),
    ] {
        let target = Target::parse(TargetKind::Compound, text, ":", &Map::new()).unwrap();
        assert_eq!(target.check(&stranger), expected, "{text}");
        assert_eq!(target.may_match(&stranger), expected != Match::No, "{text}");
        assert_eq!(target.matches(&stranger), expected == Match::Yes, "{text}");
    }
}

#[test]
fn size_and_depth_are_bounded() {
    let parens = format!("{}m1{}", "( ".repeat(5000), " )".repeat(5000));
    assert!(matches!(outcome(TargetKind::Compound, parens), Err(TargetError::TooLarge(_))));
    let doubling = |i: usize| (format!("g{i}").into(), format!("N@g{0} N@g{0}", i + 1).into());
    let groups: Map = (0..40).map(doubling).chain([("g40".into(), "m1".into())]).collect();
    let error = Target::parse(TargetKind::Nodegroup, "g0", ":", &groups).unwrap_err();
    assert!(matches!(error, TargetError::TooLarge(_)), "{error}");
    check(TargetKind::Compound, &[&format!("m2{}", " or m1".repeat(5000))], true);
    assert!(matches!(outcome(TargetKind::Grain, "*:".repeat(100)), Err(TargetError::TooLarge(_))));
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    /// Generates an expression with its text and its truth for `m1`, each built without the parser.
    fn expression() -> impl Strategy<Value = (String, bool)> {
        let leaf = prop::sample::select(vec![
            ("m1".to_owned(), true),
            ("m2".to_owned(), false),
            ("G@os:Debian".to_owned(), true),
            ("E@x.*".to_owned(), false),
        ]);
        leaf.prop_recursive(5, 40, 4, |inner| {
            // All but leaves have parentheses around their parts.
            let wrapped = inner.prop_map(|(text, truth)| (format!("( {text} )"), truth));
            prop_oneof![
                wrapped.clone().prop_map(|(text, truth)| (format!("not {text}"), !truth)),
                prop::collection::vec((wrapped, 0..3_usize), 1..5).prop_map(chain),
            ]
        })
    }

    /// Joins terms with `and`, `or` and `not`; the truth is that of a disjunction of conjunctions.
    fn chain(terms: Vec<((String, bool), usize)>) -> (String, bool) {
        let (mut text, mut conjunctions) = (String::new(), vec![true]);
        for (i, ((term, truth), operator)) in terms.into_iter().enumerate() {
            let (word, truth) = match operator {
                _ if i == 0 => ("", truth),
                0 => (" or ", truth),
                1 => (" and ", truth),
                _ => (" not ", !truth),
            };
            if word == " or " {
                conjunctions.push(true);
            }
            text = format!("{text}{word}{term}");
            if let Some(last) = conjunctions.last_mut() {
                *last &= truth;
            }
        }
        (text, conjunctions.into_iter().any(|truth| truth))
    }

    proptest! {
        #[test]
        fn compounds_combine_the_truth_of_their_terms((text, truth) in expression()) {
            prop_assert_eq!(outcome(TargetKind::Compound, text.as_str()), Ok(truth), "{}", text);
        }

        #[test]
        fn any_text_is_parsed_or_refused(
            kind in prop::sample::select(TargetKind::ALL),
            text in prop_oneof![".*", "((m1|and|or|not|\\(|\\)|[GPIJLNSER].?@[a-z*:]{0,4}|N@both) ){0,9}"],
            delimiter in "[:|@]?",
        ) {
            if let Ok(target) = Target::parse(kind, text, &delimiter, &nodegroups()) {
                let _ = target.check(&m1());
            }
        }
    }
}

#[test]
fn custom_matchers_evaluate_terms_of_their_type() {
    struct Own;
    impl TargetFacts for Own {
        fn id(&self) -> &'static str {
            "web1"
        }
        fn grains(&self) -> Option<&Map> {
            None
        }
        fn pillar(&self) -> Option<&Map> {
            None
        }
        fn custom_match(&self, kind: &str, target: &Value, delimiter: &str) -> Option<Match> {
            let is_match = || (*target == "rack=7".into() && delimiter == "=").into();
            (kind == "grain").then(is_match).or((kind == "pcre").then_some(Match::Unknown))
        }
    }
    for (expression, expected) in [
        ("G=@rack=7", true),
        ("web* and G=@rack=7", true),
        ("web* and not G=@rack=7", false),
        ("G@rack=7", false),
        ("G=@rack=8 or web1", true),
        // A matcher that fails selects no minion, nor does its negation.
        ("E@web.", false),
        ("not E@web.", false),
        ("E@web. or web1", true),
    ] {
        let target = Target::parse(TargetKind::Compound, expression, ":", &Map::new()).unwrap();
        assert_eq!(target.matches(&Own), expected, "{expression}");
    }
}
