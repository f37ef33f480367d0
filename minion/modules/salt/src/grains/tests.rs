//! `filter_by`; the results are those of Salt 3008.5.

use brine_value::list;

use super::*;
use crate::testing;

#[test]
fn filter_by_skips_null_entries_and_tries_the_items_of_lists() {
    let x = Value::from("x");
    let nil = Value::Nil;
    let a = || Value::from(map! {"a" => 1});
    for (lookup, value, expected) in [
        (map! {"x" => nil.clone(), "default" => a()}, &x, a()),
        (map! {"x*" => nil.clone(), "default" => a()}, &x, a()),
        (map! {"x" => nil.clone(), "x*" => 2, "default" => a()}, &x, a()),
        (map! {"*" => nil.clone(), "?" => 2, "default" => a()}, &x, a()),
        (map! {"x" => nil.clone()}, &x, nil.clone()),
        (map! {"x" => nil.clone(), "default" => nil.clone()}, &x, nil.clone()),
        (map! {"x" => "", "default" => a()}, &x, "".into()),
        (map! {"x" => list![], "default" => a()}, &x, list![]),
        (map! {"x" => false, "default" => a()}, &x, false.into()),
        (map! {"x" => 0, "default" => a()}, &x, 0.into()),
        (map! {"b" => 1, "default" => 2}, &list!["a", "b"], 1.into()),
        (map! {"b" => 1, "a*" => 3, "default" => 2}, &list!["a", "b"], 3.into()),
        (map! {"a" => nil.clone(), "b" => 3, "default" => 2}, &list!["a", "b"], 3.into()),
        (map! {"c" => 3, "default" => 2}, &list!["a", "b"], 2.into()),
        (map! {"*" => 1, "default" => 2}, &list![], 2.into()),
        (map! {"3" => 1, "default" => 2}, &3.into(), 1.into()),
        (map! {"None" => 1, "default" => 2}, &nil, 1.into()),
        (map! {"*" => 1, "default" => 2}, &map! {"k" => 1}.into(), 1.into()),
    ] {
        let actual = choose(&lookup, Some(value), Value::Nil, &"default".into(), &Value::Nil);
        assert_eq!(actual, Ok(expected), "{lookup:?} {value}");
    }
}

#[test]
fn filter_by_merges_mappings_alone() {
    let (b, merge) = (|| map! {"b" => 1}, || map! {"m" => 1});
    let of = |x: Value, base: Value| map! {"x" => x, "base" => base, "default" => map! {"a" => 1}};
    for (lookup, base, over, expected) in [
        (of(Value::Nil, b().into()), "base", Value::Nil, Ok(map! {"b" => 1, "a" => 1}.into())),
        (map! {"x" => Value::Nil, "base" => b()}, "base", Value::Nil, Ok(b().into())),
        (map! {"x" => Value::Nil, "base" => "text"}, "base", Value::Nil, Ok("text".into())),
        (of(merge().into(), Value::Nil), "base", Value::Nil, Ok(merge().into())),
        (of(merge().into(), "text".into()), "base", Value::Nil, Ok(merge().into())),
        (of(list![1], Value::Nil), "base", Value::Nil, Ok(list![1])),
        (of(list![1], b().into()), "base", Value::Nil, Err("must both be dictionaries")),
        (of("".into(), b().into()), "base", Value::Nil, Err("must both be dictionaries")),
        (of(false.into(), b().into()), "base", Value::Nil, Err("must both be dictionaries")),
        (of(list![1], b().into()), "nope", Value::Nil, Ok(list![1])),
        (of(Value::Nil, Value::Nil), "", merge().into(), Ok(map! {"a" => 1, "m" => 1}.into())),
        (map! {"x" => Value::Nil}, "", merge().into(), Ok(merge().into())),
        (of(map! {}.into(), Value::Nil), "", merge().into(), Ok(merge().into())),
        (of("text".into(), Value::Nil), "", merge().into(), Err("'text' is not a mapping")),
        (of("".into(), Value::Nil), "", merge().into(), Err("'' is not a mapping")),
        (of(5.into(), Value::Nil), "", Value::map(), Ok(5.into())),
        (of(5.into(), Value::Nil), "", list![1], Err("merge argument must be a dictionary")),
    ] {
        let actual = choose(&lookup, Some(&"x".into()), over, &"default".into(), &base.into());
        match (actual, expected) {
            (Err(error), Err(expected)) => assert!(error.to_string().contains(expected), "{lookup:?}: {error}"),
            (actual, expected) => assert_eq!(actual.map_err(|_| ""), expected, "{lookup:?}"),
        }
    }
}

#[test]
fn the_grains_file_is_data_whose_dates_stay_dates() {
    let directory = tempfile::tempdir().unwrap();
    let mut minion = testing::minion(&[]);
    let config = brine_config::MinionConfig { config_dir: directory.path().to_owned(), ..Default::default() };
    std::sync::Arc::get_mut(&mut minion).unwrap().config = std::sync::Arc::new(config);
    let context = testing::context_of(minion);
    let path = directory.path().join("grains");
    std::fs::write(&path, "mode: 0644\nday: 2020-01-01\nmode: 0600\nover: 2020-01-01\n").unwrap();
    for (key, value) in [("other", "2021-01-01"), ("over", "2022-02-02")] {
        context.call("grains.setval", Args::positional([key.into(), value.into()])).unwrap();
    }
    let expected = "day: 2020-01-01\nmode: 384\nother: '2021-01-01'\nover: '2022-02-02'\n";
    assert_eq!(std::fs::read_to_string(path).unwrap(), expected);
}
