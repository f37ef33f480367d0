//! Links `brine-pam` with libpam, also on hosts that have only the shared library, as most do, and not the link
//! `libpam.so` of its development package. Without the library, `brine-pam` is built to refuse everybody. Release
//! builds also get the pages of the documentation, for `brine docs`.

use std::env;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "src/cli/docs/nav.rs"]
mod nav;

/// The features that `--versions-report` names.
const FEATURES: &[&str] = &["databases", "messaging", "pam"];

/// Passes commit, features and target on to `--versions-report`.
fn describe() {
    let variable = |name: &str| env::var(name).unwrap_or_default();
    println!("cargo::rerun-if-env-changed=BRINE_COMMIT");
    let mut commit = variable("BRINE_COMMIT");
    // Only of release builds, so that a commit rebuilds nothing else.
    if commit.is_empty() && variable("PROFILE") == "release" {
        println!("cargo::rerun-if-changed=.git/HEAD");
        println!("cargo::rerun-if-changed=.git/logs/HEAD");
        let asked = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output();
        commit = asked.map_or_else(|_| String::new(), |asked| String::from_utf8_lossy(&asked.stdout).trim().to_owned());
    }
    let is_on = |feature: &&&str| env::var_os(format!("CARGO_FEATURE_{}", feature.to_uppercase())).is_some();
    let features: Vec<&str> = FEATURES.iter().filter(is_on).copied().collect();
    println!("cargo::rustc-env=BRINE_COMMIT={commit}");
    println!("cargo::rustc-env=BRINE_FEATURES={}", features.join(", "));
    println!("cargo::rustc-env=BRINE_TARGET={}", variable("TARGET"));
}

/// Packs the pages of the documentation into programs that leave the tree. Others read it, so that a changed page builds
/// nothing again.
#[allow(clippy::disallowed_methods, reason = "it writes into the directory of the build")]
fn pack_docs() -> io::Result<()> {
    println!("cargo::rustc-check-cfg=cfg(packed_docs)");
    println!("cargo::rerun-if-changed=src/cli/docs/nav.rs");
    let variable = |name: &str| env::var(name).unwrap_or_default();
    if variable("PROFILE") != "release" {
        return Ok(());
    }
    let root = variable("CARGO_MANIFEST_DIR");
    println!("cargo::rerun-if-changed={}", nav::NAVIGATION);
    println!("cargo::rerun-if-changed=docs");
    let files = nav::files(Path::new(&root)).map_err(|(path, error)| io::Error::other(format!("{path}: {error}")))?;
    let pack = fs::File::create(Path::new(&variable("OUT_DIR")).join("docs.z"))?;
    let mut pack = flate2::write::ZlibEncoder::new(pack, flate2::Compression::best());
    nav::pack(&files, &mut pack)?;
    pack.finish()?;
    println!("cargo::rustc-cfg=packed_docs");
    Ok(())
}

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    describe();
    pack_docs()?;
    println!("cargo::rustc-check-cfg=cfg(libpam)");
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let is_native = variable("TARGET") == variable("HOST");
    if env::var_os("CARGO_FEATURE_PAM").is_none() {
        return Ok(());
    }
    if !is_native {
        // The linker of another platform knows where its libraries are.
        println!("cargo::rustc-cfg=libpam");
        return Ok(());
    }
    let multiarch = format!("{}-linux-gnu", variable("CARGO_CFG_TARGET_ARCH"));
    let directories = ["/usr/lib", "/lib", "/usr/lib64", "/lib64"].map(PathBuf::from);
    let directories: Vec<PathBuf> =
        directories.iter().flat_map(|directory| [directory.join(&multiarch), directory.clone()]).collect();
    let find = |name: &str| directories.iter().map(|directory| directory.join(name)).find(|path| path.exists());
    if find("libpam.so").is_some() {
        println!("cargo::rustc-cfg=libpam");
        return Ok(());
    }
    let Some(library) = find("libpam.so.0") else {
        println!(
            "cargo::warning=libpam is missing, so external_auth pam will authenticate nobody: install libpam0g first if you need it"
        );
        return Ok(());
    };
    println!("cargo::rustc-cfg=libpam");
    let own = variable("OUT_DIR");
    let link = Path::new(&own).join("libpam.so");
    if let Err(error) = symlink(library, &link)
        && error.kind() != io::ErrorKind::AlreadyExists
    {
        return Err(error);
    }
    println!("cargo::rustc-link-search=native={own}");
    Ok(())
}
