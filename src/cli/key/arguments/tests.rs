use super::*;

fn read(line: &str) -> Actions {
    let words = line.split_whitespace().map(OsString::from).collect();
    usage::parse::<Arguments>("salt-key", "salt-key", command(), words).unwrap().actions
}

#[test]
fn of_several_tasks_salts_first_runs() {
    for (line, expected) in [
        ("", "List([Pending, Rejected, Accepted, Denied])"),
        ("-a=", "List([Pending, Rejected, Accepted, Denied])"),
        ("-L -a web", "List([Pending, Rejected, Accepted, Denied])"),
        ("-l un -L", "List([Pending])"),
        ("-r db -a web", "Change(Accept, \"web\")"),
        ("-R -d web", "Change(Reject, \"*\")"),
        ("-D", "Change(Delete, \"*\")"),
        ("-F -P", "Print(\"*\")"),
        ("-f web -F", "Finger(\"web\")"),
        ("-a web -A", "Change(Accept, \"web\")"),
    ] {
        assert_eq!(format!("{:?}", read(line).task().unwrap()), expected, "{line}");
    }
    assert_eq!(read("-l bogus").task().unwrap_err(), "'bogus' is not a valid argument to '--list'");
}

#[test]
fn included_states_depend_on_the_action() {
    use KeyState::{Accepted, Denied, Pending, Rejected};
    for (act, line, states) in [
        (Act::Accept, "", &[Pending][..]),
        (Act::Accept, "--include-all", &[Pending, Rejected]),
        (Act::Accept, "--include-rejected --include-denied --include-accepted", &[Pending, Rejected, Denied]),
        (Act::Reject, "--include-all", &[Pending, Accepted]),
        (Act::Reject, "--include-accepted --include-rejected", &[Pending, Accepted]),
    ] {
        assert_eq!(read(line).states(act), states, "{act:?} {line}");
    }
}
