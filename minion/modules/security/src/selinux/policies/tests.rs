use brine_value::list;

use crate::testing::{Scripted, answers, context_with};

// As written by policycoreutils 3.4.
#[test]
fn policies_are_found_and_changed() {
    let programs = Scripted::new(
        "
            $ semanage fcontext --list
            | SELinux fcontext                                   type               Context
            |
            | /                                                  directory          system_u:object_r:root_t:s0
            | /var/www(/.*)?                                     all files          system_u:object_r:httpd_sys_content_t:s0
            | /var/www(/.*)?                                     regular file       system_u:object_r:other_t:s0-s0:c0.c1023
            | /\\.journal                                         all files          <<None>>
            $ semanage fcontext --modify --ftype f --type httpd_t '/var/www(/.*)?'
            $ semanage fcontext --add --type httpd_t /srv
            $ semanage fcontext --delete --type httpd_t /srv
            ! ValueError: File context for /srv is not defined
            = 1
            $ restorecon -n -v -R /srv
            | Would relabel /srv from system_u:object_r:var_t:s0 to system_u:object_r:httpd_t:s0
            $ restorecon -v -F -R /srv
            | Relabeled /srv from system_u:object_r:var_t:s0 to system_u:object_r:httpd_t:s0
            $ restorecon -n -v /etc
            $ semanage port --list
            | SELinux Port Type              Proto    Port Number
            |
            | http_port_t                    tcp      80, 443, 488, 8008
            | x_port_t                       udp      100-200
            $ semanage port --add --proto tcp --type http_port_t 81
            $ semanage port --modify --proto tcp --type x_port_t --range s0 81
            $ semanage port --delete --proto tcp 81
            ",
    );
    let context = context_with(brine_value::map! {}, programs);
    let none = || brine_value::map! {};
    insta::assert_snapshot!(answers(&context, &[
        ("selinux.filetype_id_to_string", list!["l"], none()),
        ("selinux.filetype_id_to_string", list!["x"], none()),
        ("selinux.fcontext_get_policy", list!["/var/www(/.*)?"], none()),
        ("selinux.fcontext_get_policy", list!["/var/www(/.*)?", "f"], none()),
        ("selinux.fcontext_get_policy", list!["/var/www(/.*)?", "a", "other_t"], none()),
        ("selinux.fcontext_add_policy", list!["/var/www(/.*)?", "f", "httpd_t"], none()),
        ("selinux.fcontext_add_policy", list!["/srv", "a", "httpd_t"], none()),
        ("selinux.fcontext_delete_policy", list!["/srv", "a", "httpd_t"], none()),
        ("selinux.fcontext_policy_is_applied", list!["/etc"], none()),
        ("selinux.fcontext_apply_policy", list!["/srv", true], none()),
        ("selinux.port_get_policy", list!["tcp/443"], none()),
        ("selinux.port_get_policy", list!["tcp/443", "x_port_t"], none()),
        ("selinux.port_get_policy", list!["x"], brine_value::map! {"protocol" => "udp", "port" => "100-200"}),
        ("selinux.port_get_policy", list!["x"], none()),
        ("selinux.port_add_policy", list!["tcp/81", "http_port_t"], none()),
        ("selinux.port_add_policy", list!["tcp/81"], none()),
        ("selinux.port_modify_policy", list!["tcp/81", "x_port_t"], brine_value::map! {"sel_range" => "s0"}),
        ("selinux.port_delete_policy", list!["tcp/81"], none()),
    ]), @r#"
        selinux.filetype_id_to_string: "symbolic link"
        selinux.filetype_id_to_string: ERROR: Invalid file type code 'x'; expected one of: a, f, d, c, b, s, l, p
        selinux.fcontext_get_policy: {"filespec": "/var/www(/.*)?", "filetype": "all files", "sel_user": "system_u", "sel_role": "object_r", "sel_type": "httpd_sys_content_t", "sel_level": "s0"}
        selinux.fcontext_get_policy: {"filespec": "/var/www(/.*)?", "filetype": "regular file", "sel_user": "system_u", "sel_role": "object_r", "sel_type": "other_t", "sel_level": "s0-s0:c0.c1023"}
        selinux.fcontext_get_policy: null
        selinux.fcontext_add_policy: {"pid": 1, "retcode": 0, "stdout": "", "stderr": ""}
        selinux.fcontext_add_policy: {"pid": 1, "retcode": 0, "stdout": "", "stderr": ""}
        selinux.fcontext_delete_policy: {"pid": 1, "retcode": 1, "stdout": "", "stderr": "ValueError: File context for /srv is not defined"}
        selinux.fcontext_policy_is_applied: ""
        selinux.fcontext_apply_policy: {"pid": 1, "retcode": 0, "stdout": "Relabeled /srv from system_u:object_r:var_t:s0 to system_u:object_r:httpd_t:s0", "stderr": "", "changes": {"/srv": {"old": {"sel_type": "var_t"}, "new": {"sel_type": "httpd_t"}}}}
        selinux.port_get_policy: {"sel_type": "http_port_t", "protocol": "tcp", "port": "80, 443, 488, 8008"}
        selinux.port_get_policy: null
        selinux.port_get_policy: {"sel_type": "x_port_t", "protocol": "udp", "port": "100-200"}
        selinux.port_get_policy: ERROR: Invalid name "x" format and protocol and port not provided or invalid: "None" "None".
        selinux.port_add_policy: {"pid": 1, "retcode": 0, "stdout": "", "stderr": ""}
        selinux.port_add_policy: ERROR: SELinux Type is required to add a policy
        selinux.port_modify_policy: {"pid": 1, "retcode": 0, "stdout": "", "stderr": ""}
        selinux.port_delete_policy: {"pid": 1, "retcode": 0, "stdout": "", "stderr": ""}
        "#);
}
