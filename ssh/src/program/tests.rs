use std::io::Write;

use super::*;

#[test]
fn each_machine_has_its_program() {
    let directory = tempfile::tempdir().unwrap();
    let own = directory.path().join("own");
    std::fs::write(&own, "abc").unwrap();
    let none = Programs::read(&directory.path().join("none"), &own).unwrap();
    assert_eq!(
        none.hashes().collect::<Vec<_>>(),
        [(own_machine().as_str(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")]
    );
    let error = none.of("Linux riscv64").unwrap_err();
    assert!(error.contains(&own_machine()) && error.contains("none/brine-ssh-host-riscv64"), "{error}");
    for name in ["brine-ssh-host-riscv64", "brine-ssh-host-';x", "brine-ssh-host", "README"] {
        std::fs::write(directory.path().join(name), name).unwrap();
    }
    let some = Programs::read(directory.path(), &own).unwrap();
    assert_eq!(some.by_machine.len(), 2, "{some:?}");
    assert_eq!(some.of("Linux riscv64").unwrap().size, 22);
    std::fs::write(directory.path().join(format!("{STATIC}{}", std::env::consts::ARCH)), "static").unwrap();
    assert_eq!(Programs::read(directory.path(), &own).unwrap().of(&own_machine()).unwrap().size, 6);
}

#[tokio::test]
async fn a_program_is_compressed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("program");
    std::fs::write(&path, "abc").unwrap();
    let program = Program::read(&path).unwrap();
    assert_eq!(program.size, 3);
    for compressor in Programs::read(directory.path(), &path).unwrap().compressors() {
        let compressed = program.compressed(*compressor).await.unwrap();
        let mut unpacking = std::process::Command::new(compressor.name());
        unpacking.arg("-dc").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut unpacking = unpacking.spawn().unwrap();
        unpacking.stdin.take().unwrap().write_all(&compressed).unwrap();
        assert_eq!(unpacking.wait_with_output().unwrap().stdout, b"abc", "{compressor:?}");
        assert_eq!(Compressor::of_name(compressor.name()), Some(*compressor));
    }
    assert!(Program::read(&directory.path().join("none")).is_err());
}
