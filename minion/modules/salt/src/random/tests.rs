use brine_function::Args;
use brine_value::{Map, list, map};

use crate::testing;

#[test]
fn seeded_numbers_equal_salts() {
    let context = testing::context(&[]);
    for (fun, keyword, expected) in [
        ("random.seed", map! {"range" => 60, "hash" => "web1"}, 52),
        ("random.seed", map! {"range" => 1000, "hash" => "web1.example.org"}, 301),
        ("random.seed", map! {"range" => 100, "hash" => 12345}, 53),
        ("random.rand_int", map! {"start" => 5, "end" => 500, "seed" => "x"}, 327),
        ("random.rand_int", map! {"start" => 3, "end" => 3}, 3),
    ] {
        let actual = context.call(fun, Args { positional: Vec::new(), keyword: keyword.clone() });
        assert_eq!(actual.map_err(|error| error.to_string()), Ok(expected.into()), "{fun} {keyword:?}");
    }
}

#[test]
fn seeded_and_unseeded_results_equal_salts() {
    let context = testing::context(&[]);
    for (fun, positional, expected) in [
        ("hash", list!["I am a string", "md5"], Ok("1710528bf976601a5d203cbc289e1a76".into())),
        ("hash", list!["x", "nope"], Err("ERROR: You must specify a valid algorithm.".to_owned())),
        ("str_encode", list!["I am a new string"], Ok("SSBhbSBhIG5ldyBzdHJpbmc=".into())),
        ("sample", list![list![1, 2, 3, 4, 5, 6, 7, 8, 9], 3, "static"], Ok(list![7, 8, 3])),
        ("sample", list![list![1], 3], Err("ERROR: Sample larger than population or is negative".to_owned())),
        ("shuffle", list![list!["a", "b", "c", "d", "e", "f"], "static"], Ok(list!["f", "d", "e", "b", "a", "c"])),
        (
            "shadow_hash",
            list!["My5alT", "MyP@asswd"],
            Ok("$6$My5alT$dX70VD1wnFof0Pl8AkakL7hHca8J0fE4V8HSJHtuOPgUuwujI0hwNTlP4iAACE8wwTGiwt/ebo8g53mAAVb7L1"
                .into()),
        ),
    ] {
        let args = Args::positional(positional.as_list().unwrap().iter().cloned());
        let actual = context.call(&format!("random.{fun}"), args).map_err(|error| error.to_string());
        assert_eq!(actual, expected, "{fun} {positional}");
    }
}

#[test]
fn strings_have_the_requested_characters() {
    let context = testing::context(&[]);
    let call = |keyword: Map| context.call("random.get_str", Args { positional: Vec::new(), keyword });
    assert_eq!(call(map! {"length" => 4, "chars" => "a"}).unwrap(), "aaaa".into());
    let kinds = map! {"length" => 64, "punctuation" => false, "uppercase" => false, "digits" => false};
    let text = call(kinds).unwrap().to_string();
    assert!(text.len() == 64 && text.chars().all(|c| c.is_ascii_lowercase()), "{text}");
    assert!(call(map! {"chars" => ""}).is_err());
}
