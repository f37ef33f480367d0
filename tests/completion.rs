//! Completions in a real bash, and the files that `brine link` installs.

use std::path::Path;
use std::process::Command;

use crate::support::{BRINE, System, stdout};

/// Sources the completions and completes each line, given as the line and its words as bash splits them.
const SCRIPT: &str = r#"
source "$1"
complete_line() {
    COMP_LINE=$1 COMP_POINT=${#1} COMP_WORDS=("${@:2}") COMP_CWORD=$(($# - 2)) COMPREPLY=()
    _brine 2>/dev/null
    echo "$1 -> ${COMPREPLY[*]}"
}
complete_line 'brine ke' brine ke
complete_line 'salt ' salt ''
complete_line 'salt web1 test.pin' salt web1 test.pin
complete_line 'salt --out=js' salt --out = js
complete_line 'salt --log-level=' salt --log-level =
complete_line 'salt-call state.single file.managed makedirs=T' salt-call state.single file.managed makedirs = T
complete_line 'salt-call --local --file-root /us' salt-call --local --file-root /us
"#;

const COMPLETED: &str = "\
brine ke -> key
salt  -> '*'
salt web1 test.pin -> test.ping
salt --out=js -> json
salt --log-level= -> garbage trace debug info warning error critical quiet
salt-call state.single file.managed makedirs=T -> True
salt-call --local --file-root /us -> /usr
";

#[test]
fn bash_completes_tools_functions_and_values() {
    let directory = tempfile::tempdir().unwrap();
    let bin = directory.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let linked = Command::new(BRINE).args(["link", "--completion", "--man"]).arg(&bin).output().unwrap();
    assert!(linked.status.success(), "{}", String::from_utf8_lossy(&linked.stderr));
    let share = directory.path().join("share");
    for name in ["fish/vendor_completions.d/salt.fish", "zsh/site-functions/_brine", "man/man1/brine-up.1"] {
        assert!(share.join(name).exists(), "{name}");
    }
    let page = std::fs::read_to_string(share.join("man/man1/salt.1")).unwrap();
    assert!(page.contains(".SH OPTIONS") && page.contains("Examples:"), "{page}");
    let script = share.join("bash-completion/completions/salt");
    let completed = Command::new("bash")
        .args(["-c", SCRIPT, "bash"])
        .arg(&script)
        // No keys and no configuration of this host.
        .env("SALT_CONFIG_DIR", Path::new("/nonexistent"))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&completed.stdout), COMPLETED, "{}", String::from_utf8_lossy(&completed.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_offered_where_a_function_takes_one() {
    let mut system = System::start("").await;
    system.start_minion("web1").await;
    let published = system.tool_async("salt", &["--async", "web1", "test.ping"]).await;
    let jid = stdout(&published).split_whitespace().last().unwrap().to_owned();
    let etc = system.etc();
    let offered = |line: &[&str]| {
        let words = ["--candidates", "--"].iter().chain(line).copied().collect::<Vec<_>>();
        stdout(&Command::new(BRINE).arg("completion").args(words).env("SALT_CONFIG_DIR", &etc).output().unwrap())
    };
    for line in [
        &["salt-run", "jobs.lookup_jid", ""][..],
        &["salt-run", "jobs.list_job", &jid[..8]],
        &["salt", "web1", "saltutil.find_job", ""],
    ] {
        let text = offered(line);
        assert!(text.lines().any(|job| job == format!("{jid}\ttest.ping web1")), "{line:?}: {text}");
    }
    assert!(!offered(&["salt-run", "jobs.list_jobs", ""]).contains(&jid));
    system.stop_master();
    assert!(!offered(&["salt-run", "jobs.lookup_jid", ""]).contains(&jid));
}
