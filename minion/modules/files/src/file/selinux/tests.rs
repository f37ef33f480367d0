use brine_value::list;

use super::*;
use crate::testing::{Scripted, answers, context_with};

// As written by coreutils 9.1 and policycoreutils 3.4.
#[test]
fn contexts_are_read_and_set() {
    let programs = Scripted::new(
        "
            $ stat -c %C -- /etc/hosts
            | system_u:object_r:net_conf_t:s0
            $ stat -c %C -- /nosuch
            ! stat: cannot statx '/nosuch': No such file or directory
            = 1
            $ restorecon -FR /srv
            $ restorecon -F /nosuch
            ! restorecon: SELinux: Could not get canonical path for /nosuch restorecon: No such file or directory.
            = 255
            $ chcon -t net_conf_t /etc/hosts
            ",
    );
    let context = context_with(map! {}, programs);
    insta::assert_snapshot!(answers(&context, &[
        ("file.get_selinux_context", list!["/etc/hosts"], map! {}),
        ("file.get_selinux_context", list!["/nosuch"], map! {}),
        ("file.restorecon", list!["/srv"], map! {"recursive" => true}),
        ("file.restorecon", list!["/nosuch"], map! {}),
        ("file.restorecon", list!["-x"], map! {}),
        ("file.set_selinux_context", list!["/etc/hosts"], map! {"type" => "net_conf_t"}),
        ("file.set_selinux_context", list!["/etc/hosts"], map! {"type" => "--reference=/x"}),
        ("file.set_selinux_context", list!["/etc/hosts"], map! {}),
    ]), @r#"
        file.get_selinux_context: "system_u:object_r:net_conf_t:s0"
        file.get_selinux_context: "No selinux context information is available for /nosuch"
        file.restorecon: true
        file.restorecon: false
        file.restorecon: ERROR: '-x' cannot be used: it starts with '-' or is empty
        file.set_selinux_context: "system_u:object_r:net_conf_t:s0"
        file.set_selinux_context: ERROR: '--reference=/x' cannot be used: it starts with '-' or is empty
        file.set_selinux_context: false
        "#);
}
