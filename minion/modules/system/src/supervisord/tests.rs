use brine_testing::Scripted;
use brine_value::list;

use crate::testing::context_with;

use super::*;

#[test]
fn the_output_of_supervisorctl_is_read() {
    let programs = Scripted::new(
        "$ supervisorctl status\n| web              RUNNING   pid 5, uptime 0:00:10\n| jobs:a  STOPPED   Not started\n| odd STARTING\n= 3\n\
         $ supervisorctl status web\n| web RUNNING pid 5\n\
         $ supervisorctl status none\n| none: ERROR (no such process)\n= 4\n\
         $ supervisorctl -c /etc/s.conf start jobs:\n| jobs:a: started\n\
         $ supervisorctl start none\n| none: ERROR (no such process)\n= 1\n\
         $ supervisorctl stop web\n| refused\n= 7\n",
    );
    let context = context_with(map! {}, programs.clone());
    let call =
        |function: &str, words: Value, keyword: Map| brine_testing::answers(&context, &[(function, words, keyword)]);
    for (name, state, expected) in [("web", "RUNNING", true), ("web", "STOPPED", false), ("none", "RUNNING", false)] {
        let keyword = map! {"expected_state" => state};
        assert!(
            call("supervisord.status_bool", list![name], keyword).ends_with(&expected.to_string()),
            "{name} {state}"
        );
    }
    let all = call("supervisord.status", list![], map! {});
    assert!(all.contains(r#""web": {"state": "RUNNING", "reason": "pid 5, uptime 0:00:10"}"#), "{all}");
    assert!(all.contains(r#""odd": {"state": "STARTING", "reason": ""}"#), "{all}");
    let started = call("supervisord.start", list!["jobs:*"], map! {"conf_file" => "/etc/s.conf"});
    assert_eq!(started, r#"supervisord.start: "jobs:a: started""#);
    assert!(call("supervisord.start", list!["none"], map! {}).contains("none: ERROR (no such process)"));
    assert!(call("supervisord.stop", list!["web"], map! {}).contains("ERROR: refused"));
}

#[test]
fn options_are_those_of_the_section() {
    let text = "[supervisord]\nlogfile=/x\n[program:web]\ncommand=/bin/web -p 80 ; the port\nnumprocs = 2\nautostart: True\n;a=b\n[program:other]\ncommand=/x\n";
    let expected = map! {"command" => "/bin/web -p 80", "numprocs" => 2, "autostart" => true};
    assert_eq!(section(text, "program:web"), Some(expected));
    assert_eq!(section(text, "program:none"), None);
}
