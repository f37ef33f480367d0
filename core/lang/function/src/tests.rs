//! Tests of declared functions: binding, messages, documentation.

use brine_value::{list, map};

use super::*;

pub struct Host;

static FUNCTIONS: Functions<Host> = registry!("demo", [echo, yes, find, all, copy, rename, remove]);

/// Gives its argument back.
///
/// Second paragraph.
#[function]
fn echo(_ctx: &Host, text: String, #[default(1)] times: u32) -> CallResult {
    Ok(Value::from(text.repeat(times as usize)))
}

/// Takes nothing.
#[function(name = "true", out = "txt")]
fn yes(_ctx: &Host) -> CallResult {
    Ok(Value::Bool(true))
}

/// Has a parameter whose name Rust has taken.
#[function]
fn find(_ctx: &Host, r#match: String) -> CallResult {
    Ok(Value::from(r#match))
}

/// Takes everything.
#[function]
fn all(_ctx: &Host, #[rest] args: Vec<Value>, #[keywords] kwargs: Map) -> CallResult {
    Ok(Value::from(map! {"args" => args, "kwargs" => kwargs}))
}

/// The arguments of `demo.copy`.
#[derive(Args)]
struct CopyArgs {
    /// Path of the file to copy.
    source: String,
    #[args]
    how: HowArgs,
    #[keywords]
    more: Map,
}

/// Arguments of several functions.
#[derive(Args)]
struct HowArgs {
    /// Type of the copy.
    ///
    /// `hard` makes a hard link.
    r#type: Option<String>,
    #[default(2)]
    tries: u16,
}

/// Moves a file.
#[function]
fn rename(_ctx: &Host, #[args] how: HowArgs, #[default] source: String, #[rest] more: Vec<Value>) -> CallResult {
    Ok(list![how.r#type, how.tries, source, more])
}

/// Removes a file, or all if that is said.
#[function]
fn remove(_ctx: &Host, #[required] source: Option<String>, tries: Option<u16>) -> CallResult {
    Ok(list![source, tries])
}

/// Copies a file.
///
/// CLI Example:
///
///     salt '*' demo.copy /a
#[function]
fn copy(_ctx: &Host, #[args] args: CopyArgs) -> CallResult {
    Ok(list![args.source, args.how.r#type, args.how.tries, args.more])
}

fn call(name: &str, positional: Vec<Value>, keyword: Map) -> Result<Value, String> {
    let args = Args { positional, keyword };
    Registry::new(&[&FUNCTIONS]).call(&Host, name, args).map_err(|error| error.to_string())
}

#[test]
fn arguments_are_bound_by_position_and_name() {
    assert_eq!(call("demo.echo", vec!["a".into()], map! {"times" => 3}), Ok("aaa".into()));
    assert_eq!(call("demo.echo", vec![5.into()], Map::new()), Ok("5".into()));
    for empty in [Value::Nil, "".into(), list![], Value::map()] {
        assert_eq!(call("demo.echo", vec!["a".into()], map! {"times" => empty}), Ok("a".into()));
    }
    assert_eq!(call("demo.true", vec![], map! {"__pub_jid" => "1"}), Ok(true.into()));
    assert_eq!(call("demo.find", vec![], map! {"match" => "web*"}), Ok("web*".into()));
    assert_eq!(
        call("demo.all", vec![1.into()], map! {"b" => 2}),
        Ok(map! {"args" => list![1], "kwargs" => map!{"b" => 2}}.into())
    );
    let copied = call("demo.copy", vec!["/a".into()], map! {"type" => "hard", "x" => 1});
    assert_eq!(copied, Ok(list!["/a", "hard", 2, map! {"x" => 1}]));
    let renamed = call("demo.rename", vec![Value::Nil, 3.into(), "/a".into(), 4.into()], Map::new());
    assert_eq!(renamed, Ok(list![Value::Nil, 3, "/a", list![4]]));
    assert_eq!(call("demo.rename", vec![], map! {"tries" => 3}), Ok(list![Value::Nil, 3, "", list![]]));
    for (args, bound) in
        [(vec!["/a".into()], list!["/a", Value::Nil]), (vec![Value::Nil, 3.into()], list![Value::Nil, 3])]
    {
        assert_eq!(call("demo.remove", args, Map::new()), Ok(bound));
    }
}

#[test]
fn invalid_arguments_have_salts_messages() {
    for (name, positional, keyword, message) in [
        ("demo.no", vec![], Map::new(), "'demo.no' is not available."),
        (
            "demo.echo",
            vec![],
            Map::new(),
            "Passed invalid arguments to demo.echo: echo() missing 1 required positional argument: 'text'",
        ),
        (
            "demo.true",
            vec![1.into(), 2.into(), 3.into()],
            Map::new(),
            "Passed invalid arguments to demo.true: true() takes 0 positional arguments but 3 were given",
        ),
        (
            "demo.echo",
            vec!["x".into()],
            map! {"badkw" => 1},
            "ERROR executing 'demo.echo': The following keyword arguments are not valid: badkw=1",
        ),
        (
            "demo.echo",
            vec![],
            map! {"badkw" => 1},
            "ERROR executing 'demo.echo': The following keyword arguments are not valid: badkw=1",
        ),
        (
            "demo.echo",
            vec!["x".into()],
            map! {"text" => "y"},
            "Passed invalid arguments to demo.echo: echo() got multiple values for argument 'text'",
        ),
        (
            "demo.echo",
            vec!["x".into(), "many".into()],
            Map::new(),
            "Passed invalid arguments to demo.echo: echo() argument 'times': \
             expected a non-negative integer, got str",
        ),
        (
            "demo.remove",
            vec![],
            Map::new(),
            "Passed invalid arguments to demo.remove: remove() missing 1 required positional argument: 'source'",
        ),
        (
            "demo.copy",
            vec![],
            map! {"tries" => 3},
            "Passed invalid arguments to demo.copy: copy() missing 1 required positional argument: 'source'",
        ),
    ] {
        assert_eq!(call(name, positional, keyword), Err(message.to_owned()));
    }
}

#[test]
fn documentation_comes_from_the_declaration() {
    let registry = Registry::new(&[&FUNCTIONS]);
    assert_eq!(registry.get("demo.echo").unwrap().signature(), "demo.echo(text, times=1)");
    assert_eq!(registry.get("demo.all").unwrap().signature(), "demo.all(*args, **kwargs)");
    let echo = registry.get("demo.echo").unwrap();
    assert_eq!(echo.docstring(), "Gives its argument back.\n\nSecond paragraph.");
    assert_eq!(registry.get("demo.true").unwrap().out, Some("txt"));
    let names: Vec<_> = registry.iter().map(|f| f.name).collect();
    assert_eq!(names, ["all", "copy", "echo", "find", "remove", "rename", "true"]);
}

#[test]
fn functions_are_found_by_module_and_name() {
    let registry = Registry::new(&[&FUNCTIONS]);
    for (name, exists) in [
        ("demo.echo", true),
        ("demo.", false),
        ("demo", false),
        ("echo", false),
        ("demo.echo.echo", false),
        ("dem.echo", false),
        ("", false),
    ] {
        assert_eq!(registry.get(name).is_some(), exists, "{name}");
    }
    assert!(registry.has_module("demo"));
    assert!(!registry.has_module("dem") && !registry.has_module(""));
    for (name, nearest) in [("demo.ecoh", Some("demo.echo")), ("demo.echo", None), ("other.thing", None)] {
        assert_eq!(registry.nearest(name).as_deref(), nearest, "{name}");
    }
}

#[test]
fn hidden_modules_have_no_functions() {
    struct Added;

    impl Overlay<Host> for Added {
        fn functions(&self, _: Option<&str>) -> Vec<&'static Function<Host>> {
            vec![&FUNCTIONS.list()[0]]
        }

        fn fallback(&self, _: Option<&str>) -> Vec<&'static Function<Host>> {
            vec![&FUNCTIONS.list()[1]]
        }
    }

    for (hidden, count) in [("demo", 0), ("other", FUNCTIONS.list().len())] {
        let registry = Registry::new(&[&FUNCTIONS]).with_overlay(Added).without(move |module| module == hidden);
        assert_eq!(registry.iter().count(), count, "{hidden}");
        assert_eq!(registry.get("demo.echo").is_some(), count > 0, "{hidden}");
        assert_eq!(registry.get("demo.find").is_some(), count > 0, "{hidden}");
        assert_eq!(registry.has_module("demo"), count > 0, "{hidden}");
        assert_eq!(registry.has_built_in("demo.find"), count > 0, "{hidden}");
    }
}

#[test]
fn documented_fields_are_documented_arguments() {
    let registry = Registry::new(&[&FUNCTIONS]);
    let copy = registry.get("demo.copy").unwrap();
    let arguments =
        "source\n    Path of the file to copy.\n\ntype\n    Type of the copy.\n\n    `hard` makes a hard link.";
    let expected = format!("Copies a file.\n\n{arguments}\n\nCLI Example:\n\n    salt '*' demo.copy /a");
    assert_eq!(copy.docstring(), expected);
    assert_eq!(copy.params().iter().map(|param| param.name).collect::<Vec<_>>(), ["source", "type", "tries", "more"]);
}

#[test]
fn the_wire_form_goes_both_ways() {
    let wire = vec![1.into(), map! {"a" => 2, "__kwarg__" => true}.into(), map! {"b" => 3}.into()];
    let args = Args::from_wire(&wire);
    assert_eq!(args.positional, [1.into(), map! {"b" => 3}.into()]);
    assert_eq!(args.keyword, map! {"a" => 2});
    assert_eq!(Args::from_wire(&args.to_wire()), args);
}

#[test]
fn strings_with_a_name_and_a_value_are_keyword_arguments() {
    let keywords = |map: Map| {
        let mut map = map;
        map.insert("__kwarg__".into(), true.into());
        Value::Map(map)
    };
    for (wire, positional, keyword) in [
        (list!["foo", "bar=off"], list!["foo"], map! {"bar" => false}),
        (list!["f", "test=True"], list!["f"], map! {"test" => true}),
        (list!["echo $X", "env={X: 1}"], list!["echo $X"], map! {"env" => map! {"X" => 1}}),
        (list!["1", "true", "[a]"], list!["1", "true", "[a]"], map! {}),
        (
            list!["a==b", "=b", "1a=b", "a b=c", "$X=1", "/a=b"],
            list!["a==b", "=b", "1a=b", "a b=c", "$X=1", "/a=b"],
            map! {},
        ),
        (list!["a=", "_b-c.d=x=y", "é=1"], list![], map! {"a" => "", "_b-c.d" => "x=y", "é" => 1}),
        (list!["X=1\necho $X", "a=1\n", "b=1\r2"], list!["X=1\necho $X"], map! {"a" => 1, "b" => "1\r2"}),
        (list!["a=1", keywords(map! {"a" => 2})], list![], map! {"a" => 2}),
        (list![keywords(map! {"a" => 2}), "a=1"], list![], map! {"a" => 1}),
        (list![list!["a=1"], map! {"b" => "c=1"}], list![list!["a=1"], map! {"b" => "c=1"}], map! {}),
    ] {
        let args = Args::from_wire(wire.as_list().unwrap());
        assert_eq!(args, Args { positional: positional.as_list().unwrap().to_vec(), keyword }, "{wire}");
    }
}

/// Describes what `demo.mark` knows.
fn known(params: &mut ParamList) {
    params.others(Others::Unused);
    params.further("colour", "a string", "Colour of the mark.");
    for name in ["width", "height"] {
        params.further(name, "an integer", "Size of the mark.");
    }
    params.further_of_except(HowArgs::describe, &["tries"]);
    params.further("source", "a string", "It is declared already.");
}

/// Mark a file.
///
/// SLS Example:
///
///     /a:
///       demo.mark: []
#[function]
fn mark(_ctx: &Host, source: String, #[keywords(known)] kwargs: Map) -> CallResult {
    Ok(list![source, kwargs])
}

static MARKS: Functions<Host> = registry!("marks", [mark]);

#[test]
fn keywords_that_a_function_knows_are_documented_and_not_declared() {
    let mark = &MARKS.list()[0];
    let expected = "Mark a file.\n\ncolour\n    Colour of the mark.\n\nwidth, height\n    Size of the mark.\n\n\
                    type\n    Type of the copy.\n\n    `hard` makes a hard link.\n\nSLS Example:\n\n    /a:\n      demo.mark: []";
    assert_eq!(mark.docstring(), expected);
    assert_eq!(mark.signature(), "marks.mark(source, **kwargs)");
    assert_eq!(mark.others(), Some(Others::Unused));
    let further: Vec<&str> = mark.params().iter().filter(|param| param.is_further()).map(|param| param.name).collect();
    assert_eq!(further, ["colour", "width", "height", "type"]);
    let args = Args { positional: vec!["/a".into()], keyword: map! {"colour" => "red"} };
    assert_eq!(mark.call(&Host, args), Ok(list!["/a", map! {"colour" => "red"}]));
}
