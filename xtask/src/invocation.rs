//! A command line that is shown before it is run, so that a person can repeat it.

use std::env;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};

/// A program, its arguments and the variables that are set for it.
#[derive(Debug)]
pub(crate) struct Invocation {
    variables: Vec<(&'static str, String)>,
    words: Vec<String>,
}

impl Invocation {
    /// A command line of words without spaces in them.
    pub(crate) fn new(line: &str) -> Self {
        Self {
            variables: Vec::new(),
            words: line.split_whitespace().map(str::to_owned).collect(),
        }
    }

    /// Adds words, each as it is.
    pub(crate) fn args<W: Into<String>>(mut self, words: impl IntoIterator<Item = W>) -> Self {
        self.words.extend(words.into_iter().map(Into::into));
        self
    }

    /// As [`args`](Self::args), for `cargo`'s way to name several packages.
    pub(crate) fn packages<'a>(self, names: impl IntoIterator<Item = &'a str>) -> Self {
        self.args(names.into_iter().flat_map(|name| ["-p", name]))
    }

    /// Sets a variable of the environment.
    pub(crate) fn variable(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    /// Shows the line and runs it in a folder; what it prints goes where this program prints.
    ///
    /// # Errors
    ///
    /// It cannot be started, or it fails.
    pub(crate) fn run(&self, folder: &Path) -> Result<(), String> {
        let status = self.status(folder)?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("{status}: {self}"))
        }
    }

    /// The same, where more than one way to end is expected.
    ///
    /// # Errors
    ///
    /// It cannot be started.
    pub(crate) fn status(&self, folder: &Path) -> Result<ExitStatus, String> {
        println!("$ {self}");
        let status = self.command(folder).status();
        status.map_err(|error| format!("{error}: {self}"))
    }

    /// Runs the line in a folder, and returns whether it succeeded and what it printed. Both
    /// streams go through a file, so that their lines stay in order.
    ///
    /// # Errors
    ///
    /// It cannot be started, or the file cannot be used.
    pub(crate) fn capture(&self, folder: &Path, file: &Path) -> Result<(bool, String), String> {
        let said = |error: io::Error| format!("{error}: {self}");
        let output = File::create(file).map_err(said)?;
        let copy = output.try_clone().map_err(said)?;
        let mut command = self.command(folder);
        let status = command.stdout(output).stderr(copy).status();
        let status = status.map_err(said)?;
        let text = fs::read(file).map_err(said)?;
        let text = String::from_utf8_lossy(&text).into_owned();
        Ok((status.success(), text))
    }

    /// Shows the line and starts it; both of its streams can be read as one.
    ///
    /// # Errors
    ///
    /// It cannot be started.
    pub(crate) fn spawn_piped(&self, folder: &Path) -> Result<(Child, io::PipeReader), String> {
        println!("$ {self}");
        let start = || {
            let (reader, writer) = io::pipe()?;
            let mut command = self.command(folder);
            command.stdout(writer.try_clone()?).stderr(writer);
            Ok((command.spawn()?, reader))
        };
        start().map_err(|error: io::Error| format!("{error}: {self}"))
    }

    fn command(&self, folder: &Path) -> Command {
        let mut words = self.words.iter();
        let mut command = Command::new(words.next().map_or("", String::as_str));
        command.args(words).current_dir(folder);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        // `cargo run` describes this package to this program. A shown line is repeated without.
        let about_us =
            |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
        for (name, _) in env::vars_os() {
            if name.to_str().is_some_and(about_us) {
                command.env_remove(name);
            }
        }
        command
    }
}

impl fmt::Display for Invocation {
    /// The line as a shell takes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.variables {
            write!(f, "{name}={} ", Quoted(value))?;
        }
        for (index, word) in self.words.iter().enumerate() {
            let space = if index == 0 { "" } else { " " };
            write!(f, "{space}{}", Quoted(word))?;
        }
        Ok(())
    }
}

struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=+./:,@%".contains(c);
        if !self.0.is_empty() && self.0.chars().all(is_plain) {
            f.write_str(self.0)
        } else {
            write!(f, "'{}'", self.0.replace('\'', r"'\''"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_shown_as_a_shell_takes_it() {
        let line = Invocation::new("cargo check")
            .packages(["a", "b"])
            .args(["it's", ""])
            .variable("RUSTFLAGS", "-D warnings");
        assert_eq!(
            line.to_string(),
            r"RUSTFLAGS='-D warnings' cargo check -p a -p b 'it'\''s' ''"
        );
    }

    #[test]
    fn a_failure_says_which_line_failed() {
        let here = Path::new(".");
        assert!(Invocation::new("true").run(here).is_ok());
        let refused = Invocation::new("false --why not").run(here);
        assert!(refused.unwrap_err().ends_with(": false --why not"));
        let missing = Invocation::new("no-such-program-anywhere").run(here);
        assert!(missing.unwrap_err().ends_with(": no-such-program-anywhere"));
    }
}
