//! A command line that is shown before it runs, so that you can repeat it. It shows its variables
//! too, which `xshell` and similar libraries do not.

use std::env;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::report::{Stop, Verdict, verdict};

/// The folder of the repository. Every command runs there unless [`Cmd::dir`] says otherwise.
pub(crate) fn root() -> &'static Path {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask)
}

/// A path below the folder in which cargo builds.
pub(crate) fn target(path: &str) -> String {
    let folder = env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
    root().join(folder).join(path).display().to_string()
}

/// The text of a file of the repository.
///
/// # Errors
///
/// It cannot be read.
pub(crate) fn read(path: impl AsRef<Path>) -> Verdict<String> {
    let path = path.as_ref();
    let text = fs::read_to_string(root().join(path));
    text.map_err(|error| format!("{}: {error}", path.display()).into())
}

/// A command line: the variables that are set for a program, the program and its arguments.
#[derive(Debug, Clone)]
pub(crate) struct Cmd {
    words: Vec<String>,
    folder: PathBuf,
}

/// A command line of words without spaces in them, perhaps after variables: `LEVEL=2 program word`.
pub(crate) fn cmd(line: &str) -> Cmd {
    Cmd {
        words: line.split_whitespace().map(str::to_owned).collect(),
        folder: root().to_owned(),
    }
}

impl Cmd {
    /// Adds a word as it is.
    pub(crate) fn arg(mut self, word: impl Into<String>) -> Self {
        self.words.push(word.into());
        self
    }

    /// Adds words, each as it is.
    pub(crate) fn args<W: Into<String>>(mut self, words: impl IntoIterator<Item = W>) -> Self {
        self.words.extend(words.into_iter().map(Into::into));
        self
    }

    /// Sets a variable of the environment.
    pub(crate) fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.words.insert(0, format!("{name}={}", value.into()));
        self
    }

    /// Runs in another folder.
    pub(crate) fn dir(mut self, folder: impl AsRef<Path>) -> Self {
        self.folder = root().join(folder);
        self
    }

    /// Shows the line and runs it. Its output goes where this program prints.
    ///
    /// # Errors
    ///
    /// It cannot be started, or it fails.
    pub(crate) fn run(&self) -> Verdict {
        println!("$ {self}");
        self.finish(Stdio::inherit()).map(|_| ())
    }

    /// Returns what the line prints to its standard output, without showing the line.
    ///
    /// # Errors
    ///
    /// It cannot be started, or it fails.
    pub(crate) fn read(&self) -> Verdict<String> {
        self.finish(Stdio::piped())
    }

    fn finish(&self, output: Stdio) -> Verdict<String> {
        let mut command = self.command();
        let command = command.stdin(Stdio::inherit()).stderr(Stdio::inherit());
        match command.stdout(output).output() {
            Ok(output) if output.status.success() => {
                Ok(String::from_utf8_lossy(&output.stdout).into_owned())
            }
            Ok(output) => Err(format!("{}: {self}", output.status).into()),
            Err(error) => Err(format!("{error}: {self}").into()),
        }
    }

    /// Whether the line can be started and succeeds. Nothing is shown.
    pub(crate) fn succeeds(&self) -> bool {
        let mut command = self.command();
        let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
        quiet.status().is_ok_and(|status| status.success())
    }

    fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.words.iter().map_while(|word| word.split_once('='))
    }

    /// The line for [`std::process`].
    pub(crate) fn command(&self) -> Command {
        let mut words = self.words.iter().skip(self.variables().count());
        let mut command = Command::new(words.next().map_or("", String::as_str));
        command.args(words).current_dir(&self.folder);
        command.envs(self.variables());
        // Variables that `cargo run` or a service manager sets for this program are removed,
        // because a repeated line does not have them.
        let about_us = ["CARGO_PKG_", "CARGO_MANIFEST_", "NOTIFY_SOCKET"];
        for (name, _) in env::vars_os() {
            let name = name.to_string_lossy();
            if about_us.iter().any(|begin| name.starts_with(begin)) {
                command.env_remove(&*name);
            }
        }
        command
    }
}

/// Runs all lines, also after a failure.
///
/// # Errors
///
/// All failures.
pub(crate) fn run_each(lines: impl IntoIterator<Item = Cmd>) -> Verdict {
    all(lines.into_iter().map(|line| line.run()))
}

/// Shows and collects failures. A step that cannot run stops the rest.
///
/// # Errors
///
/// All of them in one.
pub(crate) fn all(verdicts: impl IntoIterator<Item = Verdict>) -> Verdict {
    let mut failures = Vec::new();
    for verdict in verdicts {
        match verdict {
            Err(Stop::Failed(why)) => failures.push(why),
            other => other?,
        }
    }
    verdict(&failures)
}

impl fmt::Display for Cmd {
    /// The line for a shell.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=+./:,@%".contains(c);
        let quoted = |word: &str| match !word.is_empty() && word.chars().all(is_plain) {
            true => word.to_owned(),
            false => format!("'{}'", word.replace('\'', r"'\''")),
        };
        let variables = self
            .variables()
            .map(|(name, value)| format!("{name}={}", quoted(value)));
        let words = self.words.iter().skip(self.variables().count());
        let words = variables.chain(words.map(|word| quoted(word)));
        f.write_str(&words.collect::<Vec<_>>().join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_shown_as_a_shell_takes_it() {
        let line = cmd("LEVEL=2 cargo check").args(["it's", ""]);
        let line = line.env("RUSTFLAGS", "-D warnings");
        let shown = r"RUSTFLAGS='-D warnings' LEVEL=2 cargo check 'it'\''s' ''";
        assert_eq!(line.to_string(), shown);
    }

    #[test]
    fn a_failure_says_which_line_failed_and_stops_no_other() {
        let missing = cmd("no-such-program-anywhere");
        let failed = run_each([cmd("false --why not"), cmd("true"), missing]);
        let Err(Stop::Failed(why)) = failed else {
            panic!("{failed:?}");
        };
        assert!(why.contains(": false --why not\n") && why.ends_with(": no-such-program-anywhere"));
    }
}
