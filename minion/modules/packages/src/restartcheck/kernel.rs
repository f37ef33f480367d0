//! Compares the running kernel with the newest installed one.

use brine_context::Context;
use brine_context::programs::run;
use brine_function::CallError;

/// Returns whether another kernel runs than the newest installed one; `None` on systems whose packages are unknown. A
/// host without a package of a kernel, such as a container, has none to restart for.
pub fn is_outdated(context: &Context) -> Result<Option<bool>, CallError> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    let versions = match &*context.os_family() {
        "Debian" => {
            let format = "${db:Status-Abbrev} ${Package} ${Version}\n";
            let query = ["dpkg-query", "--show", "--showformat", format, "linux-image-*"];
            let is_ubuntu = context.grains().get("os").and_then(|os| os.as_str()) == Some("Ubuntu");
            of_debian(&run(context, &words(&query), &[])?.stdout, is_ubuntu)
        }
        "RedHat" => of_redhat(&run(context, &words(&["rpm", "-q", "--last", "kernel"]), &[])?.stdout),
        _ => return Ok(None),
    };
    if versions.is_empty() {
        return Ok(Some(false));
    }
    let running = run(context, &words(&["uname", "-a"]), &[])?.stdout;
    Ok(Some(!versions.iter().any(|version| running.contains(version.as_str()))))
}

/// Returns what the output of `uname -a` has if the newest kernel of a list of Debian's packages runs.
fn of_debian(packages: &str, is_ubuntu: bool) -> Vec<String> {
    let numbers = |name: &str| -> Vec<u64> {
        name.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
    };
    let installed = packages.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (status, name, version) = (words.next()?, words.next()?, words.next()?);
        // The other packages have no kernel of their own.
        let is_kernel = name.strip_prefix("linux-image-")?.starts_with(|c: char| c.is_ascii_digit());
        (status == "ii" && is_kernel).then_some((numbers(name), version))
    });
    let Some((_, version)) = installed.max() else { return Vec::new() };
    let mut versions = vec![version.to_owned()];
    if let Some((release, build)) = version.rsplit_once('.').filter(|_| is_ubuntu) {
        versions.extend(["generic", "lowlatency"].map(|flavour| format!("{release}-{flavour} #{build}")));
    }
    versions
}

/// Returns the release of the newest kernel, the first of `rpm -q --last`.
fn of_redhat(packages: &str) -> Vec<String> {
    let release = |line: &str| Some(line.split_whitespace().next()?.strip_prefix("kernel-")?.to_owned());
    packages.lines().find_map(release).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_kernel_is_expected() {
        let debian = "ii  linux-image-6.1.0-18-amd64 6.1.76-1\nii  linux-image-6.1.0-9-amd64 6.1.27-1\n\
                      rc  linux-image-6.1.0-20-amd64 6.1.85-1\nii  linux-image-amd64 6.1.76-1\n";
        let ubuntu = "ii  linux-image-5.15.0-94-generic 5.15.0-94.104\nii  linux-image-generic 5.15.0.94.91\n";
        for (packages, is_ubuntu, versions) in [
            (debian, false, vec!["6.1.76-1"]),
            (ubuntu, true, vec!["5.15.0-94.104", "5.15.0-94-generic #104", "5.15.0-94-lowlatency #104"]),
            ("un  linux-image-amd64 \n", false, vec![]),
            ("ii\nii linux-image-", false, vec![]),
            ("", true, vec![]),
        ] {
            assert_eq!(of_debian(packages, is_ubuntu), versions);
        }
        let redhat =
            "kernel-5.14.0-362.8.1.el9_3.x86_64            Tue 12 Dec 2023\nkernel-5.14.0-162.6.1.el9_1.x86_64   Mon\n";
        assert_eq!(of_redhat(redhat), ["5.14.0-362.8.1.el9_3.x86_64"]);
        assert!(of_redhat("package kernel is not installed").is_empty());
    }
}
