use std::sync::Arc;

use brine_config::MinionConfig;
use brine_function::Args;
use brine_value::{list, map};

use super::*;
use crate::testing;

#[test]
fn stored_values_are_read_back() {
    let directory = tempfile::tempdir().unwrap();
    let config = MinionConfig { cachedir: directory.path().to_owned(), ..MinionConfig::default() };
    let minion = Arc::into_inner(testing::minion(&[])).unwrap();
    let context = testing::context_of(Arc::new(brine_context::Minion { config: Arc::new(config), ..minion }));
    for (fun, args, expected) in [
        ("get", list!["x"], Value::Nil),
        ("update", list!["x", map! {"a" => 1}], true.into()),
        ("update", list!["y", 2], true.into()),
        ("get", list!["x"], map! {"a" => 1}.into()),
        ("get", list![list!["x", "z"]], list![map! {"a" => 1}]),
        ("get", list![list!["x", "z"], 5], list![map! {"a" => 1}, 5]),
        ("keys", list![], list!["x", "y"]),
        ("values", list![], list![map! {"a" => 1}, 2]),
        ("has_key", list!["x"], true.into()),
        ("cas", list!["y", 3, 2], true.into()),
        ("cas", list!["y", 4, 2], false.into()),
        ("cas", list!["q", 4, 2], false.into()),
        ("pop", list!["y"], 3.into()),
        ("pop", list!["y", 9], 9.into()),
        ("dump", list!["[1]"], false.into()),
        ("dump", list!["{'eggs': 'spam'}"], true.into()),
        ("load", list![], map! {"eggs" => "spam"}.into()),
        ("clear", list![], true.into()),
        ("items", list![], Value::map()),
    ] {
        let called = Args::positional(args.as_list().unwrap().iter().cloned());
        assert_eq!(context.call(&format!("data.{fun}"), called), Ok(expected), "{fun} {args}");
    }
}
