//! Functions of `pillar` on a given pillar.

use brine_function::Args;
use brine_value::{list, map};

use super::*;
use crate::testing;

#[test]
fn values_are_masked_outside_of_templates() {
    let context = testing::context(&[]);
    let call = |context: &Context, fun: &str, args: &[&str], keyword: Map| {
        let positional = args.iter().map(|arg| Value::from(*arg)).collect();
        context.call(&format!("pillar.{fun}"), Args { positional, keyword }).map_err(|error| error.to_string())
    };
    let plain: Value = map! {"word" => "xyzzy", "empty" => ""}.into();
    for (fun, args, keyword, outside, inside) in [
        ("get", &["secret:word"][..], Map::new(), Ok(Value::from(MASK)), Ok(Value::from("xyzzy"))),
        ("get", &["secret:empty"], Map::new(), Ok("".into()), Ok("".into())),
        ("get", &["secret:word"], map! {"unmask" => true}, Ok("xyzzy".into()), Ok("xyzzy".into())),
        ("get", &["nope", "default"], Map::new(), Ok(MASK.into()), Ok("default".into())),
        ("raw", &["secret"], Map::new(), Ok(plain.clone()), Ok(plain.clone())),
        (
            "item",
            &["secret:word"],
            Map::new(),
            Ok(map! {"secret:word" => MASK}.into()),
            Ok(map! {"secret:word" => "xyzzy"}.into()),
        ),
        ("ls", &[], map! {"pillar" => map! {"over" => 1}}, Ok(list!["over"]), Ok(list!["over"])),
        (
            "ext",
            &[],
            map! {"external" => map! {"groups" => "a"}, "pillar" => map! {"over" => ""}},
            Ok(map! {"groups" => MASK, "over" => ""}.into()),
            Ok(map! {"groups" => "a", "over" => ""}.into()),
        ),
        ("keys", &["secret"], Map::new(), Ok(list!["word", "empty"]), Ok(list!["word", "empty"])),
        (
            "keys",
            &["nope"],
            Map::new(),
            Err("ERROR: Pillar key not found: nope".to_owned()),
            Err("ERROR: Pillar key not found: nope".to_owned()),
        ),
    ] {
        assert_eq!(call(&context, fun, args, keyword.clone()), outside, "{fun} {args:?}");
        assert_eq!(call(&context.for_template(), fun, args, keyword), inside, "{fun} {args:?} in a template");
    }
}
#[test]
fn masters_before_3008_do_not_mask_values() {
    let shows = testing::Alone { shows_pillar: true, ..Default::default() };
    let context = testing::context_of(testing::minion_with(&[], Arc::new(shows)));
    let secret: Value = map! {"word" => "xyzzy", "empty" => ""}.into();
    for (fun, args, keyword, expected) in [
        ("get", list!["secret:word"], map! {}, Value::from("xyzzy")),
        ("get", list!["nope", "default"], map! {}, "default".into()),
        ("get", list!["secret:word"], map! {"unmask" => false}, MASK.into()),
        ("item", list!["secret"], map! {}, map! {"secret" => secret.clone()}.into()),
        ("items", list![], map! {"pillar" => map! {"n" => 1}}, map! {"n" => 1}.into()),
        ("obfuscate", list![], map! {"pillar" => map! {"n" => 1}}, map! {"n" => "<int>"}.into()),
    ] {
        let positional = args.as_list().unwrap().to_vec();
        let actual = context.call(&format!("pillar.{fun}"), Args { positional, keyword });
        assert_eq!(actual, Ok(expected), "{fun}");
    }
}

#[test]
fn errors_of_a_pillar_are_shown_without_lines_of_its_files() {
    let context = testing::context(&[]);
    let error = "Rendering SLS 'web' failed, render error:\nfound character\n  --> web.sls:3\n 3 | password: @xyzzy\n   | ^\n  \
                 hint: quote it";
    let over = map! {"_errors" => list![error], "password" => "xyzzy"};
    let items = context.call("pillar.items", Args::keyword(map! {"pillar" => over})).unwrap();
    let message = "Rendering SLS 'web' failed, render error:\n  --> web.sls:3\n  hint: quote it";
    assert_eq!(items, map! {"_errors" => list![message], "password" => MASK}.into());
}

#[test]
fn pillar_mask_output_unmasks_items_only() {
    let mut context = testing::context(&[]);
    context.run_opts = Some(Arc::new(map! {"pillar_mask_output" => false}));
    let call = |fun: &str, args: Args| context.call(&format!("pillar.{fun}"), args);
    let keyword = |unmask: Value| Args::keyword(map! {"pillar" => map! {"n" => 1}, "unmask" => unmask});
    for (fun, args, expected) in [
        ("items", keyword(Value::Nil), Value::from(map! {"n" => 1})),
        ("items", keyword(false.into()), map! {"n" => MASK}.into()),
        ("get", Args::positional(["secret:word".into()]), MASK.into()),
        ("obfuscate", keyword(true.into()), map! {"n" => "<int>"}.into()),
        ("obfuscate", keyword(false.into()), map! {"n" => "<str>"}.into()),
    ] {
        assert_eq!(call(fun, args), Ok(expected), "{fun}");
    }
}

#[test]
fn missing_paths_are_errors_with_pillar_raise_on_missing() {
    let sls = "t: {test.succeed_without_changes: [name: \"{{ salt['pillar.get']('nope') }}\"]}\n";
    for raises in [false, true] {
        let mut context = testing::context(&[("t.sls", sls)]);
        let minion = Arc::get_mut(&mut context.minion).unwrap();
        Arc::make_mut(&mut minion.config).pillar_raise_on_missing = raises;
        let get = |keyword: Map| context.call("pillar.get", Args::keyword(keyword)).map_err(|error| error.to_string());
        let missing = get(map! {"key" => "nope"});
        let expected = if raises { Err("ERROR: Pillar key not found: nope".to_owned()) } else { Ok(Value::from("")) };
        assert_eq!(missing, expected);
        assert_eq!(get(map! {"key" => "nope", "default" => ""}), Ok("".into()), "a default is no error");
        assert_eq!(get(map! {"key" => "nope", "default" => Value::Nil}), Ok(Value::Nil));
        let result = context.call("state.show_sls", Args::positional(["t".into()])).unwrap();
        assert_eq!(result.as_list().is_some(), raises, "{result}");
    }
}
