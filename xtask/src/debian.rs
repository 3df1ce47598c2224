//! Programs from Debian's packages, unpacked below `target`: nothing is installed on this machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::invocation::Invocation;
use crate::report::Stop;

/// `apt-get` with lists and a cache of its own.
pub(crate) struct Apt {
    folder: PathBuf,
}

impl Apt {
    /// Prepares a folder, and fetches the lists of what there is: `deb`, or `deb deb-src`.
    ///
    /// # Errors
    ///
    /// This is no Debian, or its mirrors are out of reach.
    pub(crate) fn new(folder: &Path, kinds: &str) -> Result<Self, Stop> {
        let tools = ["apt-get", "dpkg"];
        if let Some(missing) = tools.into_iter().find(|tool| !is_there(tool)) {
            return Err(Stop::NotRun(format!("{missing} is missing")));
        }
        let sources = "/etc/apt/sources.list.d/debian.sources";
        let Ok(sources) = fs::read_to_string(sources) else {
            return Err(Stop::NotRun(format!("{sources} is missing")));
        };
        let wrong = |error: std::io::Error| Stop::Failed(format!("{}: {error}", folder.display()));
        let parts = ["lists/partial", "cache/archives/partial", "sources"];
        for part in parts {
            fs::create_dir_all(folder.join("apt").join(part)).map_err(wrong)?;
        }
        let sources = sources.replace("Types: deb\n", &format!("Types: {kinds}\n"));
        fs::write(folder.join("apt/sources/debian.sources"), sources).map_err(wrong)?;
        let apt = Self {
            folder: folder.to_owned(),
        };
        match apt.get("update").run(folder) {
            Ok(()) => Ok(apt),
            Err(why) => Err(Stop::NotRun(why)),
        }
    }

    /// A call of `apt-get` with the words of a line.
    pub(crate) fn get(&self, line: &str) -> Invocation {
        self.invocation("apt-get", line)
    }

    /// Returns the newest listed version of a source package that begins with `series`, in full:
    /// `apt-get source` takes no pattern.
    ///
    /// # Errors
    ///
    /// The lists hold none.
    pub(crate) fn source_version(&self, package: &str, series: &str) -> Result<String, Stop> {
        let line = self.invocation("apt-cache", "showsrc --only-source");
        let file = self.folder.join("apt/showsrc.txt");
        let (_, text) = line.args([package]).capture(&self.folder, &file)?;
        let version = newest(&text, series, is_newer).map(str::to_owned);
        version.ok_or_else(|| {
            Stop::NotRun(format!("this Debian has no sources of {package} {series}"))
        })
    }

    fn invocation(&self, program: &str, line: &str) -> Invocation {
        let folder = self.folder.join("apt");
        let options = [
            ("Dir::Etc::sourceparts", "sources"),
            ("Dir::State::lists", "lists"),
            ("Dir::Cache", "cache"),
        ];
        let options = options.map(|(name, part)| {
            [
                "-o".to_owned(),
                format!("{name}={}", shown(&folder.join(part))),
            ]
        });
        Invocation::new(program)
            .args("-q -o Dir::Etc::sourcelist=/dev/null -o Debug::NoLocking=1".split(' '))
            .args(options.into_iter().flatten())
            .args(line.split(' '))
    }

    /// Unpacks packages, and what they depend on that this machine lacks.
    fn unpack(&self, packages: &str, root: &Path) -> Result<(), Stop> {
        let line = "install --download-only --no-install-recommends --yes";
        let fetched = self.get(line).args(packages.split(' ')).run(&self.folder);
        fetched.map_err(Stop::NotRun)?;
        let archives = self.folder.join("apt/cache/archives");
        let wrong = |error: std::io::Error| Stop::Failed(format!("{}: {error}", root.display()));
        for entry in fs::read_dir(&archives).map_err(wrong)? {
            let path = entry.map_err(wrong)?.path();
            if path.extension().is_some_and(|extension| extension == "deb") {
                Invocation::new("dpkg -x")
                    .args([shown(&path), shown(root)])
                    .run(&self.folder)?;
            }
        }
        Ok(())
    }
}

/// Unpacks packages below `folder/root`, with what they depend on, and writes `folder/bin/<name>`
/// for each of the programs: a script that runs it with the libraries beside it.
///
/// # Errors
///
/// As [`Apt::new`], or the packages do not hold the programs.
pub(crate) fn programs(folder: &Path, packages: &str, wanted: &[&str]) -> Result<(), Stop> {
    let root = folder.join("root");
    Apt::new(folder, "deb")?.unpack(packages, &root)?;
    let scripts = folder.join("bin");
    let wrong = |error: std::io::Error| Stop::Failed(format!("{}: {error}", scripts.display()));
    fs::create_dir_all(&scripts).map_err(wrong)?;
    for name in wanted {
        let Some(program) = installed(&root, name) else {
            return Err(Stop::NotRun(format!("no {name} in {packages}")));
        };
        let script = format!(
            "#!/bin/sh\nroot='{}'\nLD_LIBRARY_PATH=\"$(echo \"$root\"/usr/lib/*-linux-gnu)\" \
             exec '{}' \"$@\"\n",
            shown(&root),
            shown(&program)
        );
        let path = scripts.join(name);
        fs::write(&path, script).map_err(wrong)?;
        Invocation::new("chmod +x")
            .args([shown(&path)])
            .run(folder)?;
    }
    Ok(())
}

/// Where a program is below a root: among the commands, or where Debian keeps those of PostgreSQL.
pub(crate) fn installed(root: &Path, name: &str) -> Option<PathBuf> {
    let versions = fs::read_dir(root.join("usr/lib/postgresql"));
    let versions = versions.into_iter().flatten().flatten();
    let folders = versions.map(|entry| entry.path().join("bin"));
    let mut places = folders.chain([root.join("usr/bin"), root.join("usr/sbin")]);
    places.find_map(|folder| Some(folder.join(name)).filter(|path| path.is_file()))
}

/// The newest of the versions that `apt-cache showsrc` prints and that begin with `series`.
fn newest<'a>(
    text: &'a str,
    series: &str,
    is_newer: impl Fn(&str, &str) -> bool,
) -> Option<&'a str> {
    let versions = text.lines().filter_map(|l| l.strip_prefix("Version: "));
    let versions = versions.filter(|version| version.starts_with(series));
    versions.reduce(|best, other| if is_newer(other, best) { other } else { best })
}

/// Whether the first version is newer than the second, by Debian's rules.
fn is_newer(version: &str, than: &str) -> bool {
    Command::new("dpkg")
        .args(["--compare-versions", version, "gt", than])
        .status()
        .is_ok_and(|status| status.success())
}

/// Whether a shell finds a program of this name.
pub(crate) fn is_there(tool: &str) -> bool {
    Command::new("sh")
        .args(["-c", &format!("command -v {tool} >/dev/null")])
        .status()
        .is_ok_and(|status| status.success())
}

pub(crate) fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_of_a_series_is_taken_in_full() {
        let text = "Package: kubernetes\nFormat: 3.0 (quilt)\n\
                    Version: 1.20.5+really1.20.2-1.1\nStandards-Version: 4.5.1\n\n\
                    Package: kubernetes\nVersion: 1.20.5+really1.20.2-1.1+deb12u1\n\n\
                    Package: kubernetes\nVersion: 1.32.3+ds-2\n";
        let is_newer = |version: &str, than: &str| version > than;
        let newest = |series| newest(text, series, is_newer);
        assert_eq!(newest("1.20."), Some("1.20.5+really1.20.2-1.1+deb12u1"));
        assert_eq!(newest("1.2."), None);
    }
}
