use super::*;
use brine_value::list;

fn read(line: &[&str]) -> Arguments {
    let words = std::iter::once("salt").chain(line.iter().copied());
    let mut command = <Arguments as clap::CommandFactory>::command().disable_version_flag(true).version("0");
    clap::FromArgMatches::from_arg_matches(&command.try_get_matches_from_mut(words).unwrap()).unwrap()
}

#[test]
fn options_select_the_type_of_the_target() {
    for (line, target, kind) in [
        (&["*", "test.ping"][..], Value::from("*"), "glob"),
        (&["-L", "a, b,c", "test.ping"], list!["a", "b", "c"], "list"),
        (&["-L", "a b  c", "test.ping"], list!["a", "b", "c"], "list"),
        (&["-G", "os:Debian", "test.ping"], "os:Debian".into(), "grain"),
        (&["-C", "a and b", "test.ping"], "a and b".into(), "compound"),
        (&["-S", "10.0.0.0/8", "test.ping"], "10.0.0.0/8".into(), "ipcidr"),
    ] {
        let arguments = read(line);
        assert_eq!(arguments.target.read(&arguments.words[0]), (target, kind.to_owned()));
    }
}

#[test]
fn several_kinds_of_target_are_refused() {
    assert_eq!(read(&["-G", "os:Debian", "test.ping"]).target.check(), Ok(()));
    let message = "The options --pcre/--grain-pcre are mutually exclusive. Please only choose one of them";
    assert_eq!(read(&["-P", "-E", "x", "test.ping"]).target.check(), Err(message.to_owned()));
}

#[test]
fn each_of_several_functions_has_its_own_arguments() {
    let arguments = read(&["*", "test.ping,test.echo", ",", "hi"]);
    assert_eq!(arguments.functions(), Ok((list!["test.ping", "test.echo"], vec![list![], list!["hi"]])));
    for (words, lists) in [
        (&[",x"][..], vec![list![], list!["x"]]),
        (&["a", "b,c"], vec![list!["a", "b"], list!["c"]]),
        (&["a,b", ",", "c"], vec![list!["a,b"], list!["c"]]),
        (&["", ",", "c"], vec![list![""], list!["c"]]),
    ] {
        let arguments = read(&[&["*", "test.arg,test.arg"], words].concat());
        assert_eq!(arguments.functions().unwrap().1, lists, "{words:?}");
    }
    let arguments = read(&["*", "cmd.run", "ls -l", "cwd=/"]);
    let (fun, arg) = arguments.functions().unwrap();
    assert_eq!((fun, arg.len()), ("cmd.run".into(), 2));
    for words in [&["1", ",", "2", ",", "3"][..], &["1"], &[]] {
        let error = read(&[&["*", "a.b,c.d"], words].concat()).functions().unwrap_err();
        assert!(error.starts_with("Cannot execute compound command with"), "{error}");
    }
}

#[test]
fn a_missing_function_is_empty() {
    assert_eq!(read(&["--preview-target", "*"]).functions(), Ok(("".into(), Vec::new())));
}
