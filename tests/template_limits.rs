//! Templates with endless loops or unlimited memory end with an error, and the process stays small.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

/// Returns the peak memory of a process, in bytes.
fn peak(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}

/// Renders an SLS with `state.show_sls`. Returns the error and the peak memory of the process.
fn render(directory: &Path, source: &str) -> (String, u64) {
    // The error shows the line, and exceeds the size of a pipe: the process blocks until it is read.
    let source = format!("{source}{{# {} #}}", "x".repeat(200_000));
    std::fs::write(directory.join("srv/hostile.sls"), source).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_brine"));
    command.args(["salt-call", "--local", "--out=txt", "-c"]).arg(directory).args(["state.show_sls", "hostile"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let (mut stdout, mut first, mut rest) = (child.stdout.take().unwrap(), [0], Vec::new());
    stdout.read_exact(&mut first).unwrap();
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    stdout.read_to_end(&mut rest).unwrap();
    child.wait().unwrap();
    (String::from_utf8_lossy(&[&first, &*rest].concat()).into_owned(), peak(&status).unwrap())
}

#[test]
fn hostile_templates_fail_within_their_limits() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    std::fs::create_dir(directory.join("srv")).unwrap();
    let roots = format!("file_roots:\n  base: [{}]\n", directory.join("srv").display());
    let options = "template_fuel: 5000000\n";
    std::fs::write(directory.join("minion"), format!("id: m1\nroot_dir: {}\n{options}{roots}", directory.display()))
        .unwrap();
    let memory = "template needs more than 67108864 bytes (template_memory)";
    let fuel = "template needs more than 5000000 steps (template_fuel)";
    let text = "x".repeat(1_000);
    for (source, reported, line) in [
        (
            "{% set ns = namespace(s='x') %}{% for i in range(60) %}\n{% set ns.s = ns.s ~ ns.s %}{% endfor %}"
                .to_owned(),
            memory,
            2,
        ),
        ("{% set l = [1] %}{% for i in range(60) %}\n{% do l.extend(l) %}{% endfor %}".to_owned(), memory, 2),
        ("\n{% set l = [1] * 100000000 %}".to_owned(), memory, 2),
        (
            format!(
                "{{% set x %}}{{% for i in range(100000) %}}{{% for j in range(100000) %}}{text}{{% endfor %}}{{% endfor %}}{{% endset %}}"
            ),
            memory,
            1,
        ),
        ("\n\n{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}".to_owned(), fuel, 3),
    ] {
        let (said, most) = render(directory, &source);
        let expected = format!("render failed: {reported}: ");
        let short: String = said.chars().take(300).collect();
        assert!(said.contains(&expected) && said.contains(&format!("hostile.sls, line {line}")), "{short}");
        assert!(most < 140 << 20, "{most} bytes: {short}");
        println!("{} MB: {short}", most >> 20);
    }
}
