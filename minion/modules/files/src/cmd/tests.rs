//! Tests with commands of this host.

use std::path::Path;
use std::sync::atomic::Ordering;

use brine_function::Args;
use brine_value::list;

use super::*;
use crate::testing;

fn call(context: &Context, fun: &str, positional: &[&str], keyword: Map) -> Value {
    let args = Args { positional: positional.iter().map(|word| Value::from(*word)).collect(), keyword };
    context.call(fun, args).unwrap()
}

fn args(command: &str, kwargs: Map) -> Args {
    Args { positional: vec![command.into()], keyword: kwargs }
}

#[test]
fn written_line_breaks_of_the_input_are_line_breaks_unless_it_is_raw() {
    let context = testing::context(&[]);
    for (kwargs, input) in [
        (map! {"stdin" => "a\\nb"}, "a\nb"),
        (map! {"stdin" => "a\\nb", "stdin_raw_newlines" => false}, "a\nb"),
        (map! {"stdin" => "a\\nb", "stdin_raw_newlines" => true}, "a\\nb"),
        (map! {"stdin" => "a\nb"}, "a\nb"),
    ] {
        assert_eq!(call(&context, "cmd.run_stdout", &["cat"], kwargs.clone()), input.into(), "{kwargs:?}");
    }
}

#[test]
fn exit_statuses_become_the_jobs_retcode_unless_they_are_expected() {
    for (kwargs, retcode, reported) in [
        (Map::new(), 3, 3),
        (map! {"ignore_retcode" => true}, 0, 3),
        (map! {"success_retcodes" => vec![Value::from(3)]}, 0, 0),
        (map! {"success_retcodes" => vec![Value::from(4)]}, 3, 3),
        (map! {"success_stdout" => list!["o su"]}, 0, 0),
        (map! {"success_stderr" => list!["no such"]}, 3, 3),
    ] {
        let context = testing::context(&[]);
        assert_eq!(
            call(&context, "cmd.retcode", &["echo no such file; exit 3"], kwargs.clone()),
            reported.into(),
            "{kwargs:?}"
        );
        assert_eq!(context.job.retcode.load(Ordering::Relaxed), retcode, "{kwargs:?}");
    }
}

#[test]
fn templates_use_no_shell_by_default() {
    let context = testing::context(&[]).for_template();
    assert_eq!(call(&context, "cmd.run", &["echo $HOME | cat"], Map::new()), "$HOME | cat".into());
    let asked = map! {"python_shell" => true, "env" => vec![Value::from(map! {"A" => 1})]};
    assert_eq!(call(&context, "cmd.run", &["echo $A | cat"], asked), "1".into());
    assert_eq!(call(&context, "cmd.shell", &["echo b | cat"], Map::new()), "b".into());
    // A caller that refuses the shell does not trust the command.
    let refused = map! {"python_shell" => false};
    assert_eq!(call(&context, "cmd.shell", &["echo b; rm victim"], refused), "b; rm victim".into());
}

#[test]
fn cmd_safe_gives_nested_commands_a_shell_by_default() {
    for (is_safe, expected) in [(true, "$HOME"), (false, "h")] {
        let mut context = testing::context(&[]);
        let minion = std::sync::Arc::get_mut(&mut context.minion).unwrap();
        std::sync::Arc::make_mut(&mut minion.config).cmd_safe = is_safe;
        let args = args("echo $HOME", map! {"env" => map! {"HOME" => "h"}});
        assert_eq!(context.call_nested("cmd.run", args), Ok(expected.into()), "{is_safe}");
    }
}

#[test]
fn functions_and_states_call_without_a_shell_by_default() {
    let context = testing::context(&[]);
    for (more, reported) in [
        (map! {}, "$HOME; echo b"),
        (map! {"python_shell" => true, "env" => map! {"HOME" => "h"}}, "h\nb"),
        // The arguments of the job itself.
        (map! {"__pub_jid" => "20260101000000000000", "env" => map! {"HOME" => "h"}}, "h\nb"),
    ] {
        let args = Args { positional: vec!["echo $HOME; echo b".into()], keyword: more.clone() };
        assert_eq!(context.call_nested("cmd.run", args), Ok(reported.into()), "{more:?}");
    }
}

#[test]
fn a_command_is_a_string_or_a_list() {
    let context = testing::context(&[]);
    for (cmd, reported) in
        [(list!["printf", "%s;", "a b", "it's", "$HOME", 5], "a b;it's;$HOME;5;"), ("printf %s; 'a b'".into(), "a b;")]
    {
        let cmd: Value = cmd;
        let args = Args::positional([cmd.clone()]);
        assert_eq!(context.for_template().call("cmd.run", args), Ok(reported.into()), "{cmd}");
    }
    // A shell gets the only item of a list as its line.
    for (cmd, python_shell, reported) in [
        (list!["echo a; echo b"], Value::Nil, "a\nb"),
        (list!["echo a; echo b"], true.into(), "a\nb"),
        (list!["echo", "a; echo b"], Value::Nil, "a; echo b"),
    ] {
        let args = Args { positional: vec![cmd.clone()], keyword: map! {"python_shell" => python_shell} };
        assert_eq!(executed(&context, args), Ok(reported.into()), "{cmd:?}");
    }
    let args = Args { positional: vec![list!["echo a; echo b"]], keyword: map! {"python_shell" => false} };
    assert!(executed(&context, args).is_err_and(|error| error.to_string().contains("echo a; echo b")));
}

/// Runs `cmd.run` as a job does.
fn executed(context: &Context, args: Args) -> Result<Value, CallError> {
    context.call("cmd.run", args)
}

#[test]
fn an_empty_command_is_an_error() {
    let context = testing::context(&[]);
    for fun in ["run", "retcode", "run_all", "run_stdout", "run_stderr", "run_bg", "shell"] {
        for command in ["".into(), "  ".into(), Value::List(Vec::new())] {
            let args = Args { positional: vec![command], keyword: map! {"python_shell" => true} };
            let error = context.call(&format!("cmd.{fun}"), args).unwrap_err();
            assert!(matches!(&error, CallError::Exception(_)), "{fun} {error:?}");
        }
    }
}

#[test]
fn environment_is_read_in_every_form() {
    for (env, reported) in [
        (map! {"A" => 1}.into(), "1 yes"),
        (map! {"A" => Value::Nil}.into(), " yes"),
        (list![map! {"A" => 1}], "1 yes"),
        ("{A: 1}".into(), "1 yes"),
        (list!["A"], " yes"),
        ("x".into(), " "),
        ("[{'A':'' ~ x}]".into(), " "),
        (7.into(), " "),
    ] {
        let context = testing::context(&[]);
        let env: Value = env;
        let kwargs = map! {"env" => env.clone()};
        assert_eq!(call(&context, "cmd.run", &["echo \"$A ${A+yes}\""], kwargs), reported.trim_end().into(), "{env}");
    }
}

#[test]
fn outputs_are_merged_or_separate() {
    let context = testing::context(&[]);
    let command = ["echo a; echo b >&2; echo c"];
    assert_eq!(call(&context, "cmd.run", &command, Map::new()), "a\nb\nc".into());
    assert_eq!(call(&context, "cmd.run_stdout", &command, Map::new()), "a\nc".into());
    assert_eq!(call(&context, "cmd.run_stderr", &command, Map::new()), "b".into());
}

#[test]
fn other_template_engines_and_scripts_in_the_background_are_refused() {
    let context = testing::context(&[("s", "echo x\n")]);
    for (fun, arguments, message) in [
        ("cmd.run", map! {"cmd" => "echo x", "template" => "nope"}, "the template engine 'nope' is not available here"),
        ("cmd.run_all", map! {"cmd" => "echo x", "template" => "mako"}, "the template engine 'mako' is not available"),
        ("cmd.script", map! {"source" => "salt://s", "template" => "nope"}, "the template engine 'nope' is not"),
        ("cmd.script", map! {"source" => "salt://s", "bg" => true}, "a script does not run in the background"),
        ("cmd.script_retcode", map! {"source" => "salt://s", "bg" => true}, "a script does not run in the background"),
    ] {
        let error = context.call(fun, Args::keyword(arguments)).unwrap_err().to_string();
        assert!(error.contains(message), "{fun}: {error}");
    }
}

#[test]
fn directories_are_templates_and_the_locale_can_be_kept() {
    let context = testing::context(&[]);
    let arguments = map! {"template" => "jinja", "cwd" => "/{{ 'usr' }}"};
    assert_eq!(call(&context, "cmd.run", &["pwd"], arguments), "/usr".into());
    for (arguments, locale) in [
        (map! {}, "C.UTF-8"),
        (map! {"env" => map! {"LC_ALL" => "de_DE.UTF-8"}}, "de_DE.UTF-8"),
        (map! {"reset_system_locale" => false, "env" => map! {"LC_ALL" => "POSIX"}}, "POSIX"),
    ] {
        assert_eq!(call(&context, "cmd.run", &["echo $LC_ALL"], arguments), locale.into());
    }
}

#[test]
fn scripts_receive_arguments_and_are_removed() {
    let files = [
        ("s.sh", "#!/bin/sh\necho $0 $#:$2\nexit 3\n"),
        ("t", "echo {{ grains.id }} {{ x }}\n"),
        ("p", "echo {{ pillar.get('p', 'none') }}\n"),
    ];
    let context = testing::context(&files);
    let all = call(&context, "cmd.script", &["salt://s.sh", "a 'b c'"], Map::new());
    let stdout = all.get("stdout").unwrap().to_string();
    let (path, rest) = stdout.split_once(' ').unwrap();
    assert_eq!((rest, all.get("retcode")), ("2:b c", Some(&Value::from(3))));
    assert!(!Path::new(path).exists());
    let rendered = map! {"template" => "jinja", "context" => map! {"x" => 5}};
    let all = call(&context.for_template(), "cmd.script", &["salt://t"], rendered);
    assert_eq!(all.get("stdout"), Some(&"test-minion 5".into()));
    for (arguments, stdout) in [
        (map! {"template" => "jinja", "x" => "own"}, "test-minion own"),
        (map! {"template" => "jinja", "x" => "own", "context" => map! {"x" => 7}}, "test-minion 7"),
    ] {
        let all = call(&context.for_template(), "cmd.script", &["salt://t"], arguments);
        assert_eq!(all.get("stdout"), Some(&stdout.into()));
    }
    let own_pillar = map! {"template" => "jinja", "context" => map! {"x" => "y"}, "pillar" => map! {"p" => "meow"}};
    let command = call(&context, "cmd.run", &["echo {{ pillar.get('p', 'none') }}"], own_pillar.clone());
    assert_eq!(command, "meow".into());
    let all = call(&context, "cmd.script", &["salt://p"], own_pillar);
    assert_eq!(all.get("stdout"), Some(&"meow".into()));
    let all = call(&context, "cmd.script", &["salt://p"], map! {"template" => "jinja"});
    assert_eq!(all.get("stdout"), Some(&"none".into()));
    let missing = call(&context, "cmd.script", &["salt://nope"], Map::new());
    assert_eq!(missing.get("cache_error"), Some(&true.into()));
    assert_eq!(
        call(&context, "cmd.exec_code", &["sh", "echo hi $1; echo err >&2"], map! {"args" => "x"}),
        "hi x".into()
    );
}

#[test]
fn arguments_have_salts_order_and_checks() {
    let context = testing::context(&[]);
    assert_eq!(call(&context, "cmd.run", &["pwd; cat", "/", "input"], Map::new()), "/\ninput".into());
    assert_eq!(call(&context, "cmd.exec_code", &["sh", "pwd", "/"], Map::new()), "/".into());
    let failing = [
        (map! {"raise_err" => true}, "out"),
        (map! {"group" => "wheel"}, "a command cannot be run as the group 'wheel': it has the groups of `runas`"),
    ];
    for (kwargs, message) in failing {
        let error = context.call("cmd.run", args("echo out; exit 3", kwargs)).unwrap_err();
        assert_eq!(error, CallError::Execution(message.into()));
    }
    let tolerant = map! {"raise_err" => true, "ignore_retcode" => true};
    assert_eq!(call(&context, "cmd.run", &["echo out; exit 3"], tolerant), "out".into());
}

#[test]
fn scripts_run_while_other_programs_start() {
    let context = testing::context(&[("s.sh", "#!/bin/sh\necho ran\n")]);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..100 {
                    let all = call(&context, "cmd.script", &["salt://s.sh"], Map::new());
                    assert_eq!(all.get("stdout"), Some(&"ran".into()), "{all}");
                }
            });
        }
    });
}

#[test]
fn redirect_stderr_merges_stderr_into_stdout() {
    let context = testing::context(&[]);
    for (redirect, stdout, stderr) in [(true, "out\nerr", ""), (false, "out", "err")] {
        let all = call(&context, "cmd.run_all", &["echo out; echo err >&2"], map! {"redirect_stderr" => redirect});
        assert_eq!((all.get("stdout"), all.get("stderr")), (Some(&stdout.into()), Some(&stderr.into())));
        let run = call(&context, "cmd.run", &["echo out; echo err >&2"], map! {"redirect_stderr" => redirect});
        assert_eq!(run, stdout.into());
    }
    assert_eq!(call(&context, "cmd.run", &["echo out; echo err >&2"], Map::new()), "out\nerr".into());
}

#[test]
fn timeout_message_matches_salt() {
    let context = testing::context(&[]);
    let all = call(&context, "cmd.run_all", &["sleep 600"], map! {"timeout" => 0.05});
    assert_eq!(all.get("stdout"), Some(&"sleep 600 : Timed out after 0.05 seconds".into()));
    assert_eq!(all.get("retcode"), Some(&1.into()));
    assert_eq!(context.job.retcode.load(Ordering::Relaxed), 1);
}

#[test]
fn arguments_with_blanks_are_quoted() {
    for word in ["", "a b", "it's", "$HOME", "plain-1.0", "a\nb", "\\"] {
        assert_eq!(brine_host::process::split(&quote(word)), Some(vec![word.to_owned()]), "{word}");
    }
}

#[test]
fn invalid_arguments_are_rejected() {
    let context = testing::context(&[]);
    for (kwargs, message) in [
        (map! {"umask" => "9"}, "ERROR: Invalid umask: '9'"),
        (map! {"runas" => "nobody_here"}, "ERROR: User 'nobody_here' is not available"),
    ] {
        let error = context.call("cmd.run", args("true", kwargs)).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
}
