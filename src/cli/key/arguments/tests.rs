use super::*;

fn read(line: &str) -> Arguments {
    let words = line.split_whitespace().map(OsString::from).collect();
    usage::parse::<Arguments>("salt-key", "salt-key", command(), words).unwrap()
}

#[test]
fn each_action_is_a_task() {
    for (line, expected) in [
        ("", "List([Pending, Rejected, Accepted, Denied])"),
        ("-a=", "List([Pending, Rejected, Accepted, Denied])"),
        ("-L", "List([Pending, Rejected, Accepted, Denied])"),
        ("-l un", "List([Pending])"),
        ("-a web", "Change(Accept, \"web\")"),
        ("-R", "Change(Reject, \"*\")"),
        ("-D", "Change(Delete, \"*\")"),
        ("-P", "Print(\"*\")"),
        ("-f web", "Finger(\"web\")"),
        ("-F -f=", "Finger(\"*\")"),
    ] {
        assert_eq!(format!("{:?}", read(line).actions.task().unwrap()), expected, "{line}");
        assert_eq!(read(line).contradiction(), None, "{line}");
    }
    assert_eq!(read("-l bogus").actions.task().unwrap_err(), "'bogus' is not a valid argument to '--list'");
}

#[test]
fn each_pair_of_actions_is_refused() {
    let actions = [
        "-l un",
        "-L",
        "-a web",
        "-A",
        "-r web",
        "-R",
        "-p web",
        "-P",
        "-d web",
        "-D",
        "-f web",
        "-F",
        "--gen-keys=web",
    ];
    for (position, first) in actions.iter().enumerate() {
        for second in &actions[position + 1..] {
            for line in [format!("{first} {second}"), format!("{second} {first}")] {
                let said = read(&line).contradiction().unwrap_or_default();
                let names = |action: &str| said.contains(action.split([' ', '=']).next().unwrap());
                assert!(names(first) && names(second) && said.contains("once for each"), "{line}: {said}");
            }
        }
    }
}

#[test]
fn words_without_an_option_are_explained() {
    for (line, expected) in [
        ("-a web db", "unexpected argument 'db': several minions are one argument, such as -a 'web,db'"),
        ("web", "unexpected argument 'web': name an action, such as -a web"),
        ("-L web", "unexpected argument 'web': name an action, such as -a web"),
        ("-D web", "Delete all takes no arguments. Use -d to delete specified keys"),
    ] {
        assert_eq!(read(line).superfluous().unwrap(), expected, "{line}");
    }
    for line in ["-a web", "-F master"] {
        assert_eq!(read(line).superfluous(), None, "{line}");
    }
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
        assert_eq!(read(line).actions.states(act), states, "{act:?} {line}");
    }
}
