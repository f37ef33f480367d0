use super::*;
use crate::testing::{Scripted, context_with};

#[test]
fn running_minion_is_killed() {
    let mut ended = None;
    let report = killed(Some(Pid::from_raw(7)), |pid| ended = Some(pid));
    assert_eq!((report, ended), (map! {"killed" => 7, "retcode" => 0}, Some(Pid::from_raw(7))));
    let report = killed(None, |_| panic!("there is none"));
    assert_eq!(report.get(&Value::from("retcode")), Some(&70.into()));
}

#[test]
fn salt_call_kills_the_process_of_the_pid_file() {
    let directory = tempfile::tempdir().unwrap();
    let pidfile = directory.path().join("pid");
    let mut context = context_with(map! {}, Scripted::new(""));
    let minion = std::sync::Arc::get_mut(&mut context.minion).unwrap();
    std::sync::Arc::make_mut(&mut minion.config).pidfile = pidfile.clone();
    assert_eq!(daemon(&context), None);
    for (text, pid) in
        [("1\n", None), ("-1", None), ("x", None), (&format!("{}\n", std::process::id()), Some(Pid::this()))]
    {
        std::fs::write(&pidfile, text).unwrap();
        assert_eq!(daemon(&context), pid, "{text}");
    }
}

#[test]
fn the_command_of_the_configuration_restarts_the_minion() {
    let programs = Scripted::new("$ /bin/again now\n! no\n= 3\n");
    let context = context_with(map! {}, programs.clone());
    let report = restart_by_command(&context, &["/bin/again".to_owned(), "now".to_owned()]).unwrap();
    assert_eq!(report.get(&Value::from("retcode")), Some(&3.into()));
    let comment = report.get(&Value::from("comment")).unwrap().to_string();
    let expected = "['Using configuration minion_restart_command:', '    /bin/again', '    now', 'Restart failed']";
    assert_eq!(comment, expected);
    assert_eq!(programs.ran(), "/bin/again now");
}
