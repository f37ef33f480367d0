use brine_value::list;

use super::*;
use crate::testing::{Scripted, answers, context_with};

const TRANSCRIPT: &str = "
        $ incrontab -l root
        | # by hand
        | /srv IN_MODIFY,IN_CREATE echo changed
        | /srv IN_DELETE echo gone now
        | /opt IN_MODIFY alone
        $ incrontab /no
        ! refused
        = 1
    ";

#[test]
fn watches_are_set_and_removed() {
    // Tables are passed to `incrontab` as temporary files.
    let accepted = format!("$ incrontab {} ...", std::env::temp_dir().display());
    let programs = Scripted::new(&format!("{TRANSCRIPT}\n{accepted}"));
    let context = context_with(map! {"os_family" => "Debian"}, programs);
    let job = |path: &str, mask: &str, command: &str| list!["root", path, mask, command];
    let calls = [
        ("incron.list_tab", list!["root"], Map::new()),
        ("incron.set_job", job("/srv", "in_create,in_modify", "echo changed"), Map::new()),
        ("incron.set_job", job("/srv", "IN_MODIFY", "echo changed"), Map::new()),
        ("incron.set_job", job("/srv", "IN_MOVE", "echo changed"), Map::new()),
        ("incron.set_job", job("/srv", "IN_WRITE", "echo changed"), Map::new()),
        ("incron.set_job", job("/srv", "IN_MOVE", "a\n/etc IN_MODIFY reboot now"), Map::new()),
        ("incron.set_job", job("/a b", "IN_MOVE", "c d"), Map::new()),
        ("incron.rm_job", job("/srv", "IN_DELETE", "echo gone now"), Map::new()),
        ("incron.rm", job("/srv", "IN_MODIFY", "echo gone now"), Map::new()),
        ("incron.write_incron_file", list!["root", "/no"], Map::new()),
        ("incron.write_incron_file_verbose", list!["root", "/no"], Map::new()),
        ("incron.write_incron_file", list!["root", "--reload"], Map::new()),
    ];
    insta::assert_snapshot!(answers(&context, &calls), @r##"
        incron.list_tab: {"crons": [{"path": "/srv", "mask": "IN_MODIFY,IN_CREATE", "cmd": "echo changed"}, {"path": "/srv", "mask": "IN_DELETE", "cmd": "echo gone now"}], "pre": ["# by hand", "/opt IN_MODIFY alone"]}
        incron.set_job: "present"
        incron.set_job: "updated"
        incron.set_job: "new"
        incron.set_job: "Invalid mask type: IN_WRITE"
        incron.set_job: ERROR: the command is invalid: expected one line
        incron.set_job: ERROR: the path is invalid: expected no blanks and one line
        incron.rm_job: "removed"
        incron.rm: "absent"
        incron.write_incron_file: false
        incron.write_incron_file_verbose: {"pid": 1, "retcode": 1, "stdout": "", "stderr": "refused"}
        incron.write_incron_file: ERROR: '--reload' cannot be used: it starts with '-' or is empty
        "##);
}

#[test]
fn tables_are_rendered_as_salt_renders_them() {
    let text = "# by hand\n/srv IN_MODIFY  echo   changed\n";
    assert_eq!(Table::parse(text).text(), "# by hand\n/srv IN_MODIFY echo changed\n");
    assert_eq!(Table::parse("").text(), "");
}
