use super::*;

fn webhook(more: Map) -> SlackWebhook {
    let mut options = map! {"webhook" => "T0/B0/x"};
    options.extend(more);
    let opts = map! {"slack_webhook" => options, "id" => "web1"};
    SlackWebhook::new(&Options::new(&opts, None)).unwrap()
}

#[test]
fn a_state_run_has_counts_and_tasks() {
    let states = map! {
        "pkg_|-a_|-a_|-installed" => map! {"__id__" => "a", "__sls__" => "web", "result" => false, "duration" => 1500, "__run_num__" => 1},
        "file_|-b_|-b_|-managed" => map! {
            "__id__" => "b", "__sls__" => "web", "result" => true, "changes" => map! {"x" => 1}, "duration" => 10.5, "__run_num__" => 0,
        },
        "file_|-c_|-c_|-managed" => map! {"__id__" => "c", "__sls__" => "web", "result" => true, "changes" => map! {}},
    };
    let fields =
        map! {"fun" => "state.apply", "fun_args" => list!["web"], "jid" => "7", "retcode" => 2, "return" => states};
    let payload = webhook(map! {"show_tasks" => true}).payload(&fields, "web1");
    let expected = map! {"attachments" => list![
        map! {
            "fallback" => "web1 | Failed", "color" => "#272727", "author_name" => "web1", "author_link" => "",
            "author_icon" => "", "title" => "Success: False",
            "text" => "Function: state.apply\nFunction Args: ['web']\nJID: 7\nTotal: 3\nDuration: 1.51 secs",
        },
        map! {"color" => "good", "title" => "Unchanged: 1"},
        map! {"color" => "warning", "title" => "Changed: 1", "fields" => list![map! {"value" => "web.sls | b", "short" => false}]},
        map! {"color" => "danger", "title" => "Failed: 1", "fields" => list![map! {"value" => "web.sls | a", "short" => false}]},
    ]};
    assert_eq!(payload, expected.into());
}

#[test]
fn other_values_are_shown() {
    let fields = map! {"fun" => "test.ping", "jid" => "7", "retcode" => 0, "return" => true};
    let payload = webhook(map! {"success_title" => "[{id}] fine"}).payload(&fields, "web1");
    let attachments = payload.get("attachments").and_then(Value::as_list).unwrap();
    assert_eq!(attachments[0].get("fallback"), Some(&"[web1] fine".into()));
    assert_eq!(attachments[1], map! {"color" => "good", "title" => "Return: True"}.into());
}
