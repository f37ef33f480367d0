use clap::{CommandFactory, Parser};

use super::*;

#[derive(Parser, Debug)]
struct Arguments {
    #[arg(short, long)]
    yes: bool,
    #[arg(short, long, value_parser = integer)]
    timeout: Option<i64>,
    #[arg(short, long)]
    accept: Option<String>,
    words: Vec<String>,
}

fn parsed(line: &str) -> Result<Arguments, String> {
    let words: Vec<_> = line.split_whitespace().map(OsString::from).collect();
    let mut command = like_python(Arguments::command());
    let read = command.try_get_matches_from_mut(&words);
    read.and_then(|matches| Arguments::from_arg_matches(&matches))
        .map_err(|mistake| describe(&mistake, &words, &command))
}

#[test]
fn options_are_parsed_anywhere_abbreviated_and_repeated() {
    let read = parsed("one -t 5 --acc web two -yt7 --yes --acc=-x").unwrap();
    assert_eq!((read.yes, read.timeout, read.accept.as_deref()), (true, Some(7), Some("-x")));
    assert_eq!(read.words, ["one", "two"]);
}

#[test]
fn values_may_begin_with_dashes() {
    assert_eq!(parsed("-a --yes").unwrap().accept.as_deref(), Some("--yes"));
}

#[test]
fn usage_errors_have_pythons_messages() {
    for (line, message) in [
        ("--nope", "no such option: --nope"),
        ("--nope=1", "no such option: --nope"),
        ("--tiemout", "no such option: --tiemout (did you mean '--timeout'?)"),
        ("--ye=1", "--yes option does not take a value"),
        ("-Z", "no such option: -Z"),
        ("--accept", "--accept option requires 1 argument"),
        ("-ya", "-a option requires 1 argument"),
        ("-t abc", "option -t: invalid integer value: 'abc'"),
        ("--timeout=abc", "option --timeout: invalid integer value: 'abc'"),
        ("--yes=1", "--yes option does not take a value"),
    ] {
        assert_eq!(parsed(line).unwrap_err(), message, "{line}");
    }
}
