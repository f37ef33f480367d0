use super::*;
use crate::testing::{Scripted, answers, context, context_with};

const SLS: &str = "
web:
  test.configurable_test_state:
    - name: a
    - changes: False
    - result: True
    - comment: a ``` b
    - require:
      - highstate_doc: intro
secret !doc_skip:
  test.succeed_without_changes: []
intro:
  highstate_doc.note:
    - contents: |
        Read this first.
    - source: salt://note.md
";

fn minion() -> Context {
    context(&[
        ("top.sls", "base:\n  '*':\n    - web\n"),
        ("web.sls", SLS),
        ("note.md", "From a *file*.\npassword: abc\n"),
    ])
}

#[test]
fn the_highstate_becomes_a_document() {
    let args = map! {"replace_text_regex" => map! {"(password): .*" => r"\1: $XXX"}};
    let basic = "highstate_doc.markdown_basic_jinja_template";
    let text =
        minion().call("highstate_doc.render", Args { positional: vec![Value::Nil, basic.into()], keyword: args });
    insta::assert_snapshot!(text.unwrap().to_string().trim(), @r#"
    `highstate_doc: intro`
    -----------------------------------------------------------------
     * state: highstate_doc.note
     * name: `intro`



    Read this first.


    From a *file*.
    password: $XXX



    `test: web`
    -----------------------------------------------------------------
     * state: test.configurable_test_state
     * name: `a`

    require:
     * [highstate_doc: intro](#highstate_doc-intro)

    ```
    changes: false
    comment: a ``[`][markdown parse fix] b
    result: true
    ```
    "#);
    let text = minion().call("highstate_doc.render", Args::default()).unwrap().to_string();
    assert!(text.starts_with("\nConfiguration management\n") && text.contains("os: Debian"), "{text}");
}

#[test]
fn states_are_filtered() {
    let ids = |args: Map| {
        let result = minion().call("highstate_doc.process_lowstates", Args::keyword(args));
        match result {
            Ok(states) => {
                let ids = states.as_list().unwrap().iter().map(|one| one.get("id").unwrap().to_string());
                ids.collect::<Vec<_>>().join(",")
            }
            Err(error) => error.message(),
        }
    };
    assert_eq!(ids(map! {}), "intro,web");
    assert_eq!(ids(map! {"filter_id_regex" => list!["in.*"]}), "web,secret !doc_skip");
    assert_eq!(ids(map! {"filter_id_regex" => list!["ntro"]}), "intro,web,secret !doc_skip");
    assert_eq!(ids(map! {"filter_function_regex" => list!["test\\."]}), "intro");
    assert!(ids(map! {"filter_id_regex" => list!["("]}).starts_with("the regular expression ( is invalid"));
    assert_eq!(ids(map! {"processor" => "none.such"}), "'none.such' is not available.");
}

#[test]
fn states_are_described_by_function() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    std::fs::write(path("text"), "a\n```\nb").unwrap();
    std::fs::write(path("binary"), "\0").unwrap();
    let context = context(&[]);
    let details = |function: &str, id: &str, more: Map| {
        let (state, function) = function.split_once('.').unwrap();
        let mut chunk = map! {"state" => state, "fun" => function, "__id__" => id, "name" => "n"};
        chunk.extend(more);
        let args = Args::positional([chunk.into(), map! {"max_render_file_size" => 10}.into()]);
        let document = context.call("highstate_doc.processor_markdown", args).unwrap();
        document.get("markdown").unwrap().get("details").unwrap().to_string()
    };
    for (function, id, more, expected) in [
        ("pkg.installed", "a", map! {"pkgs" => list!["a", "b"]}, "\n```\ninstall: ['a', 'b']\n```\n"),
        ("pkg.installed", "a", map! {}, "\n```\ninstall: n\n```\n"),
        ("service.running", "a", map! {"enable" => true, "order" => 1}, "```\nenable: true\n```\n"),
        ("service.running", "a", map! {}, ""),
        ("highstate_doc.note", "a", map! {"source" => "salt://none"}, "\nERROR: opening salt://none\n"),
        (
            "file.blockreplace",
            "a",
            map! {"content" => "a", "source" => "salt://b"},
            "ensure block of content is in file\n```\na\n```\nensure block of content is in file\n```\n** source: salt://b\n```\n",
        ),
        ("file.managed", "a", map! {"name" => path("none")}, "does not exist\n"),
        ("file.managed", "a", map! {"name" => path("text")}, "```\na\n``[`][markdown parse fix]\nb\n```\n"),
        ("file.managed", "a", map! {"name" => path("binary")}, "```\n[[skipped binary data]]\n```\n"),
        ("file.recurse", "a", map! {"name" => path("")}, "to show them.\n"),
        ("file.recurse", "a !doc_recurse", map! {"name" => path("")}, "```\n[[skipped binary data]]\n```\n"),
    ] {
        let actual = details(function, id, more);
        assert!(actual.contains(expected) && actual.is_empty() == expected.is_empty(), "{function}: {actual}");
    }
    std::fs::write(path("text"), "0123456789a").unwrap();
    let actual = details("file.managed", "a", map! {"name" => path("text")});
    assert!(actual.ends_with(
        "```\nThe file is large: set max_render_file_size of highstate_doc.config to 11 to show it.\n```\n"
    ));
}

#[test]
fn files_are_read_and_notes_change_nothing() {
    let call = context_with(map! {}, Scripted::new(""));
    let transcript = answers(&call, &[("highstate_doc.read_file", list!["/nonexistent"], map! {})]);
    assert_eq!(transcript, "highstate_doc.read_file: null");
    for test in [true, false] {
        let args = map! {"name" => "a", "source" => "salt://b", "contents" => "c", "other" => 1};
        let report = brine_testing::applied(&call, &Scripted::new(""), "highstate_doc.note", args, test);
        assert_eq!((report.result, report.comment.as_str()), (Some(true), "include file: salt://b\nc"));
        assert!(!report.changes.is_truthy());
    }
}
