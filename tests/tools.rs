//! The tools as programs: every option of Salt's tools is known, closed pipes cause no panic, documentation is never
//! empty, and mistyped names get a suggestion.

use std::fs::File;
use std::process::{Output, Stdio};

use crate::support::{BRINE, System, stderr, stdout, within_limit};

/// The long and short options of Salt 3008's tools. `=` marks options with a value.
const OPTIONS: &[(&str, &str)] = &[
    (
        "salt",
        "--version -V --versions-report -h --help --saltfile= -c= --config-dir= --module-executors= --executor-opts= -t= \
         --timeout= --args-stdin --hard-crash --no-parse= -s --static -p --progress --failhard --async --subset= -v \
         --verbose --hide-timeout --show-jid -b= --batch= --batch-size= --batch-wait= --batch-safe-limit= \
         --batch-safe-size= --return= --return_config= --return_kwargs= -d --doc --documentation --args-separator= \
         --summary --metadata= --start-event --output-diff --config-dump --preview-target -H --hosts -E --pcre -L --list \
         -G --grain -P --grain-pcre -N --nodegroup -R --range -C --compound -I --pillar -J --pillar-pcre -S --ipcidr \
         --delimiter= -a= --auth= --eauth= --external-auth= -T --make-token --username= --password= --out= --output= \
         --out-indent= --output-indent= --out-file= --output-file= --out-file-append --output-file-append --no-color \
         --no-colour --force-color --force-colour --state-output= --state_output= --state-verbose= --state_verbose= -l= \
         --log-level= --log-file= --log-file-level=",
    ),
    (
        "salt-call",
        "--version -V --versions-report -h --help --saltfile= -c= --config-dir= --proxyid= --module-executors= \
         --executor-opts= --cachedir= --args-stdin --hard-crash --no-parse= -g --grains -m= --module-dirs= -d --doc \
         --documentation --master= --return= --local --file-root= --pillar-root= --states-dir= --retcode-passthrough \
         --metadata --set-metadata= --id= --skip-grains --refresh-grains-cache --no-return-event -t= --timeout= \
         --output-diff --priv= -r --resources --tgt= --tgt-type= --out= --output= --out-indent= --output-indent= \
         --out-file= --output-file= --out-file-append --output-file-append --no-color --no-colour --force-color \
         --force-colour --state-output= --state_output= --state-verbose= --state_verbose= --profiling-path= \
         --enable-profiling -l= --log-level= --log-file= --log-file-level=",
    ),
    (
        "salt-run",
        "--version -V --versions-report -h --help --saltfile= -c= --config-dir= -t= --timeout= --args-stdin --jid= \
         --hard-crash --no-parse= -d --doc --documentation --async --skip-grains -a= --auth= --eauth= --external-auth= -T \
         --make-token --username= --password= --out= --output= --out-indent= --output-indent= --out-file= --output-file= \
         --out-file-append --output-file-append --no-color --no-colour --force-color --force-colour --state-output= \
         --state_output= --state-verbose= --state_verbose= --profiling-path= --enable-profiling --quiet -l= --log-level= \
         --log-file= --log-file-level=",
    ),
    (
        "salt-key",
        "--version -V --versions-report -h --help --saltfile= -c= --config-dir= -u= --user= --hard-crash -q --quiet -y \
         --yes --rotate-aes-key= --preserve-minions= --auth= --eauth= --external-auth= -T --make-token --username= \
         --password= --out= --output= --out-indent= --output-indent= --out-file= --output-file= --out-file-append \
         --output-file-append --no-color --no-colour --force-color --force-colour --state-output= --state_output= \
         --state-verbose= --state_verbose= -l= --list= -L --list-all -a= --accept= -A --accept-all -r= --reject= -R \
         --reject-all --include-all --include-accepted --include-rejected --include-denied -p= --print= -P --print-all \
         -d= --delete= -D --delete-all -f= --finger= -F --finger-all --gen-keys= --gen-keys-dir= --keysize= \
         --gen-signature --priv= --signature-path= --pub= --auto-create --log-level= --log-file= --log-file-level=",
    ),
    (
        "salt-master",
        "--version -V --versions-report -h --help --saltfile= -c= --config-dir= -u= --user= -d --daemon --pid-file= \
         --disable-keepalive -l= --log-level= --log-file= --log-file-level=",
    ),
    (
        "salt-minion",
        "--version -V --versions-report -h --help --saltfile= -c= --config-dir= -u= --user= -d --daemon --pid-file= \
         --disable-keepalive -l= --log-level= --log-file= --log-file-level=",
    ),
    (
        "salt-syndic",
        "--version -V --versions-report -h --help --saltfile= -c= --config-dir= -u= --user= -d --daemon --pid-file= \
         --disable-keepalive -l= --log-level= --log-file= --log-file-level=",
    ),
    (
        "salt-api",
        "--version -V --versions-report -h --help -c= --config-dir= -d --daemon --pid-file= --disable-keepalive -l= \
         --log-level= --log-file= --log-file-level=",
    ),
    (
        "salt-cp",
        "--version -V --versions-report -h --help --saltfile= -c= --config-dir= -t= --timeout= --hard-crash -H --hosts -E \
         --pcre -L --list -G --grain -P --grain-pcre -N --nodegroup -R --range --delimiter= --out= --output= --out-indent= \
         --output-indent= --out-file= --output-file= --out-file-append --output-file-append --no-color --no-colour \
         --force-color --force-colour --state-output= --state_output= --state-verbose= --state_verbose= -C --chunked -n \
         --no-compression -l= --log-level= --log-file= --log-file-level=",
    ),
    (
        "salt-ssh",
        "--version -V --versions-report -h --help --saltfile= -c= --config-dir= --jid= --no-parse= -r --raw --raw-shell \
         --roster= --roster-file= --refresh --refresh-cache --max-procs= --extra-filerefs= -v --verbose -s --static -w \
         --wipe -W --rand-thin-dir -t --regen-thin --thin -H --hosts -E --pcre -L --list -G --grain -P --grain-pcre -N \
         --nodegroup --delimiter= --out= --output= --out-indent= --output-indent= --out-file= --output-file= \
         --out-file-append --output-file-append --no-color --no-colour --force-color --force-colour --state-output= \
         --state-verbose= --remote-port-forwards= --disable-keepalive --keepalive-interval= --keepalive-count-max= \
         --ssh-option= --priv= --priv-passwd= -i --ignore-host-keys --no-host-keys --user= --passwd= --askpass \
         --key-deploy --identities-only --sudo --hard-crash -l= --log-level= --log-file= --log-file-level=",
    ),
];

fn brine(words: &[&str]) -> Output {
    within_limit(BRINE).args(words).stdin(Stdio::null()).output().unwrap()
}

/// Returns a valid value of an option.
fn value_of(option: &str) -> &'static str {
    match option {
        "-t"
        | "--timeout"
        | "--subset"
        | "--batch-safe-limit"
        | "--out-indent"
        | "--output-indent"
        | "--batch-wait"
        | "--max-procs"
        | "--keepalive-interval"
        | "--keepalive-count-max" => "3",
        "--saltfile" => concat!(env!("CARGO_MANIFEST_DIR"), "/tests/commands/world/salt/files/tree/a.yml"),
        "-l" | "--log-level" | "--log-file-level" => "error",
        "--rotate-aes-key" => "True",
        "--keysize" => "2048",
        _ => "x",
    }
}

#[test]
fn each_option_of_salts_tools_is_known() {
    let mut tried = 0;
    for (tool, options) in OPTIONS {
        for option in options.split_whitespace() {
            let (name, takes_value) = option.strip_suffix('=').map_or((option, false), |name| (name, true));
            // In salt-key, -l is `--list`.
            let value = if *tool == "salt-key" && name == "-l" { "un" } else { value_of(name) };
            let words = if takes_value { vec![*tool, name, value, "--help"] } else { vec![*tool, name, "--help"] };
            let output = brine(&words);
            let said = format!("{}{}", stdout(&output), stderr(&output));
            assert_eq!(output.status.code(), Some(0), "{words:?}: {said}");
            tried += 1;
        }
    }
    assert!(tried > 330, "{tried}");
}

/// Options of a Saltfile stand before those of the command line and above the configuration.
#[test]
fn saltfile_sets_options_per_tool() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::create_dir(path("etc")).unwrap();
    std::fs::write(path("etc/minion"), "file_client: local\nfrom: config\nother: config\n").unwrap();
    let text = format!(
        "salt-call:\n  config_dir: {}\n  output: json\n  from: saltfile\n  cachedir: {}\n",
        path("etc").display(),
        path("cache").display()
    );
    std::fs::write(path("Saltfile"), text).unwrap();
    let call = |words: &[&str], named: bool| {
        let mut command = within_limit(BRINE);
        command.current_dir(directory.path()).env("HOME", directory.path()).arg("salt-call").stdin(Stdio::null());
        if named {
            command.env("SALT_SALTFILE", path("Saltfile")).current_dir("/");
        }
        command.args(["--local", "--id=x"]).args(words).output().unwrap()
    };
    for named in [false, true] {
        for (words, expected) in [
            (&["config.get", "from"][..], "{\n    \"local\": \"saltfile\"\n}\n"),
            (&["config.get", "other"], "{\n    \"local\": \"config\"\n}\n"),
            (&["--out=yaml", "config.get", "from"], "local: saltfile\n"),
        ] {
            let output = call(words, named);
            assert_eq!(stdout(&output), expected, "{words:?}: {}", stderr(&output));
        }
    }
    // Another user could have written it.
    std::fs::set_permissions(path("Saltfile"), std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
    let output = call(&["--out=yaml", "config.get", "from"], false);
    assert!(!stdout(&output).contains("saltfile") && stderr(&output).contains("is not read"), "{}", stderr(&output));
    std::fs::write(path("Saltfile"), "- a\n- b: [").unwrap();
    let output = call(&["test.ping"], true);
    assert_eq!(output.status.code(), Some(64));
    assert!(stderr(&output).contains("Saltfile") && stderr(&output).contains("is invalid"), "{}", stderr(&output));
}

#[test]
fn options_that_would_change_the_result_are_refused() {
    for (words, message) in [
        (&["salt", "-T", "*", "test.ping"][..], "salt: error: "),
        (&["salt", "-R", "x", "test.ping"], "salt: error: option --range: targets by range are not supported"),
        (&["salt", "--saltfile", "/no/such", "*", "test.ping"], "salt: error: '/no/such' file does not exist."),
        (
            &["salt-ssh", "--relenv", "*", "test.ping"],
            "salt-ssh: error: option --relenv: the program on a host is this one",
        ),
        (&["salt-call", "--proxyid", "x", "test.ping"], "salt-call: error: option --proxyid: proxy minions are not"),
        (&["salt-call", "-r", "test.ping"], "salt-call: error: option --resources: Brine's minions have no resources"),
        (&["salt-run", "--jid", "1", "manage.up"], "salt-run: error: '1' is not a valid JID"),
        (
            &["salt-key", "--gen-signature"],
            "salt-key: error: option --gen-signature: the master signs its key by itself",
        ),
        (&["salt", "--oot=json"], "salt: error: no such option: --oot (did you mean '--out'?)"),
        (
            &["salt", "--ba", "1"],
            "salt: error: ambiguous option: --ba (--batch, --batch-safe-limit, --batch-safe-size, --batch-size, --batch-wait?)",
        ),
        (&["salt", "-Z"], "salt: error: no such option: -Z\n"),
    ] {
        let output = brine(words);
        assert!(stderr(&output).contains(message), "{words:?}: {}", stderr(&output));
        assert_eq!(output.status.code(), Some(64), "{words:?}");
    }
}

/// The command lines of each tool that are run with a closed pipe.
const LINES: &[&[&str]] = &[
    &["--help"],
    &["--version"],
    &["salt", "--help"],
    &["salt"],
    &["salt", "*", "test.ping"],
    &["salt", "*", "test.ping", "--out=json", "--static"],
    &["salt", "*", "test.ping", "-b", "1"],
    &["salt", "-d", "*", "test"],
    &["salt", "--preview-target", "*"],
    &["salt", "--config-dump"],
    &["salt", "--bogus"],
    &["salt", "nobody", "test.ping"],
    &["salt-run", "--help"],
    &["salt-run", "-d"],
    &["salt-run", "manage.up"],
    &["salt-run", "no.such"],
    &["salt-run", "state.event", "since=1", "count=1"],
    &["salt-key", "--help"],
    &["salt-key", "-L"],
    &["salt-key", "-F"],
    &["salt-call", "--help"],
    &["salt-call", "-d"],
    &["salt-call", "--local", "test.ping"],
    &["salt-call", "--local", "no.such"],
    &["salt-master", "--help"],
    &["salt-master", "--check"],
    &["salt-minion", "--help"],
    &["salt-minion", "--check"],
    &["up", "--help"],
    &["swarm", "--help"],
    &["link", "--help"],
];

#[tokio::test(flavor = "multi_thread")]
async fn no_tool_panics_when_its_output_is_closed() {
    let mut system = System::start("").await;
    system.start_minion("web1").await;
    let etc = system.etc();
    system.write("etc/minion", "id: local\nroot_dir: ROOT/local\nfile_client: local\nmaster: 127.0.0.1\n");
    for line in LINES {
        // The configuration follows the tool's name.
        let mut words = line.to_vec();
        if line[0].starts_with("salt") {
            words.splice(1..1, ["-c", etc.as_str()]);
        }
        for stream in ["stdout", "stderr", "both"] {
            for how in ["closed", "pipe", "full"] {
                let sink = || match how {
                    // The other end has no reader.
                    "pipe" => Stdio::from(std::io::pipe().unwrap().1),
                    "full" => Stdio::from(File::options().write(true).open("/dev/full").unwrap()),
                    _ => Stdio::null(),
                };
                let closed = match (how, stream) {
                    ("closed", "stdout") => ">&-",
                    ("closed", "stderr") => "2>&-",
                    ("closed", _) => ">&- 2>&-",
                    _ => "",
                };
                let mut command = within_limit("sh");
                command.args(["-c", &format!("exec \"$@\" {closed}"), "sh", BRINE]).args(&words);
                command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
                if stream != "stderr" {
                    command.stdout(sink());
                }
                if stream != "stdout" {
                    command.stderr(sink());
                }
                let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
                let said = format!("{}{}", stdout(&output), stderr(&output));
                let code = output.status.code();
                assert!(
                    !said.contains("panicked")
                        && !said.contains("Broken pipe")
                        && !matches!(code, None | Some(101 | 134)),
                    "{words:?} {stream} {how}: {code:?} {said}"
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_documentation_is_reported() {
    let mut system = System::start("").await;
    system.start_minion("web1").await;
    system.write("etc/minion", "id: local\nroot_dir: ROOT/local\nfile_client: local\nmaster: 127.0.0.1\n");
    for (tool, words, starts) in [
        ("salt", &["*", "sys.doc", "test.ping"][..], "test.ping:\n\n    "),
        ("salt", &["-d", "*", "test.ping"], "test.ping:\n\n    "),
        ("salt", &["*", "-d", "test"], "test."),
        ("salt", &["*", "sys.doc", "nope.nope"], "nope.nope:\n\n    'nope.nope' is not available."),
        ("salt-run", &["-d", "state.event"], "state.event:\n\n    "),
        ("salt-run", &["-d", "jobs"], "jobs.active:\n\n    "),
        ("salt-run", &["-d"], "auth."),
        ("salt-call", &["-d", "test.ping"], "test.ping:\n\n    "),
        ("salt-call", &["--local", "-d"], "acl."),
    ] {
        let output = system.tool_async(tool, words).await;
        let text = stdout(&output);
        assert!(text.starts_with(starts), "{tool} {words:?}: {text}{}", stderr(&output));
        assert_eq!(output.status.success(), words[words.len() - 1] != "nope.nope", "{tool} {words:?}");
    }
    for (tool, words, message) in [
        ("salt-run", &["-d", "nope.nope"][..], "ERROR: no documentation found for 'nope.nope'"),
        ("salt-run", &["-d", "jobs.lst_jobs"], "did you mean 'jobs.list_jobs'?"),
        ("salt-call", &["-d", "nope.nope"], "ERROR: no documentation found for 'nope.nope'"),
        ("salt-call", &["-d", "test.pnig"], "did you mean 'test.ping'?"),
    ] {
        let output = system.tool_async(tool, words).await;
        assert!(stderr(&output).contains(message), "{tool} {words:?}: {}", stderr(&output));
        assert_eq!((stdout(&output).as_str(), output.status.code()), ("", Some(1)), "{tool} {words:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mistyped_names_get_the_nearest_as_suggestion() {
    let mut system = System::start("").await;
    system.start_minion("web1").await;
    let output = system.tool_async("salt", &["wbe1", "test.ping"]).await;
    assert_eq!(stdout(&output), "No minions matched the target. No command was sent, no jid was assigned.\n");
    assert_eq!(
        stderr(&output),
        "ERROR: No return received\n'wbe1' matches no minion: did you mean 'web1'?\nMore: brine docs troubleshooting#no-minion-matches-the-target\n"
    );
    let output = system.tool_async("salt-run", &["jobs.lst_jobs"]).await;
    assert_eq!((stdout(&output).as_str(), output.status.code()), ("'jobs.lst_jobs' is not available.\n", Some(1)));
    assert!(stderr(&output).contains("did you mean 'jobs.list_jobs'?"), "{}", stderr(&output));
    // As in Salt: the documentation of functions with this prefix.
    let output = system.tool_async("salt-run", &["jobs.list_jo"]).await;
    assert!(stdout(&output).starts_with("jobs.list_job:\n"), "{}", stdout(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn subset_selects_minions_that_have_the_function() {
    let mut system = System::start("").await;
    for id in ["web1", "web2"] {
        system.start_minion(id).await;
    }
    let run = async |words: &[&str]| system.tool_async("salt", words).await;
    let text = stdout(&run(&["*", "test.ping", "--subset=1", "--out=txt"]).await);
    assert_eq!(text.lines().count(), 1, "{text}");
    assert_eq!(stdout(&run(&["*", "test.ping", "--subset=9", "--out=txt"]).await).lines().count(), 2);
    assert_eq!(run(&["*", "no.such", "--subset=1"]).await.status.code(), Some(2));
    // The selection applies beside all other options.
    for options in [&["--static"][..], &["-b", "1", "--static"]] {
        let text = stdout(&run(&[&["*", "test.ping", "--subset=1", "--out=txt"], options].concat()).await);
        assert_eq!(text.lines().count(), 1, "{options:?}: {text}");
    }
    let text = stdout(&run(&["*", "test.ping", "--preview-target", "--static", "--out=json"]).await);
    assert_eq!(text.split_whitespace().collect::<String>(), r#"["web1","web2"]"#);
    let safe = run(&["*", "test.ping", "--batch-safe-limit=2", "--batch-safe-size=1"]).await;
    let text = stdout(&safe);
    assert!(text.starts_with("\nNOTICE: Too many minions targeted, switching to batch execution.\n"), "{text}");
    assert_eq!(text.matches("Executing run on").count(), 2);
}
