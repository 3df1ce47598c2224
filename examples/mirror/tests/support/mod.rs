//! Trees to mirror, the program that mirrors them, and a look at what became of them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use filetime::FileTime;

/// No test waits that long unless something is broken.
const BROKEN_AFTER: Duration = Duration::from_secs(60);

/// A directory with a source in it, and room for a target.
pub struct Place {
    root: tempfile::TempDir,
    /// Every file gets a time of its own, long ago.
    next_time: i64,
}

impl Place {
    pub fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("source")).unwrap();
        Self {
            root,
            next_time: 1_000_000_000,
        }
    }

    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.root.path().join(name)
    }

    pub fn source(&self) -> PathBuf {
        self.path("source")
    }

    pub fn target(&self) -> PathBuf {
        self.path("target")
    }

    pub fn write(&mut self, name: impl AsRef<Path>, content: &str) -> PathBuf {
        let path = self.source().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        self.next_time += 1;
        // Old files are copied at once; the nanoseconds show whether they are kept.
        let time = FileTime::from_unix_time(self.next_time, 123_456_789);
        filetime::set_file_mtime(&path, time).unwrap();
        path
    }

    pub fn link(&self, name: &str, to: &str) {
        let path = self.source().join(name);
        symlink(to, &path).unwrap();
        let time = FileTime::from_unix_time(5, 6);
        filetime::set_symlink_file_times(&path, time, time).unwrap();
    }

    /// Runs the program to its end.
    pub fn mirror(&self, options: &[&str]) -> Outcome {
        self.run(program(options))
    }

    /// Runs the program to its end, as a user that modes can keep out: if this one is root, as
    /// another, which owns everything here from then on.
    pub fn mirror_unprivileged(&self, options: &[&str]) -> Outcome {
        if !is_root() {
            return self.mirror(options);
        }
        // Where the program was built may be closed to that user.
        let copy = self.path("program");
        fs::copy(env!("CARGO_BIN_EXE_mirror"), &copy).unwrap();
        for path in snapshot(&self.path("")).keys() {
            lchown(self.path(path), Some(UNPRIVILEGED), Some(UNPRIVILEGED)).unwrap();
        }
        let mut command = Command::new(copy);
        command.args(options).stdin(Stdio::null());
        command.uid(UNPRIVILEGED).gid(UNPRIVILEGED);
        self.run(command)
    }

    fn run(&self, mut command: Command) -> Outcome {
        let command = command.args([self.source(), self.target()]);
        let output = command.output().unwrap();
        Outcome {
            status: output.status,
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Starts the program.
    pub fn start(&self, options: &[&str]) -> Running {
        let (stdout, pipe) = io::pipe().unwrap();
        self.start_into(pipe, stdout, options)
    }

    /// Starts the program with a stdout that is full, so that its first line waits for ever.
    pub fn start_unheard(&self, options: &[&str]) -> Running {
        let (stdout, pipe) = io::pipe().unwrap();
        fill(&pipe);
        self.start_into(pipe, stdout, options)
    }

    fn start_into(&self, pipe: PipeWriter, stdout: PipeReader, options: &[&str]) -> Running {
        self.start_command(program(options), pipe, stdout)
    }

    /// Starts the program by a command of another name, which takes these as its last arguments.
    pub fn start_by(&self, mut command: Command, options: &[&str]) -> Running {
        let (stdout, pipe) = io::pipe().unwrap();
        command.arg(env!("CARGO_BIN_EXE_mirror")).args(options);
        self.start_command(command, pipe, stdout)
    }

    fn start_command(&self, mut command: Command, pipe: PipeWriter, stdout: PipeReader) -> Running {
        command.args([self.source(), self.target()]);
        Running::new(command.stdout(pipe).stderr(Stdio::piped()), stdout)
    }

    #[track_caller]
    pub fn assert_mirrored(&self) {
        let (source, target) = (snapshot(&self.source()), snapshot(&self.target()));
        for (path, entry) in &source {
            assert_eq!(target.get(path), Some(entry), "{}", path.display());
        }
        for path in target.keys() {
            assert!(source.contains_key(path), "extra: {}", path.display());
        }
    }

    pub fn is_mirrored(&self) -> bool {
        snapshot(&self.source()) == snapshot(&self.target())
    }
}

pub fn program(options: &[impl AsRef<OsStr>]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mirror"));
    command.args(options).stdin(Stdio::null());
    command
}

/// A user who owns nothing.
pub const UNPRIVILEGED: u32 = 65534;

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Writes until there is no room for another byte.
fn fill(mut pipe: &PipeWriter) {
    rustix::io::ioctl_fionbio(pipe, true).unwrap();
    for chunk in [4096, 1] {
        while pipe.write(&vec![b'.'; chunk]).is_ok() {}
    }
    rustix::io::ioctl_fionbio(pipe, false).unwrap();
}

pub fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// What a run said.
#[derive(Debug)]
pub struct Outcome {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Outcome {
    /// A figure of the summary, by the first words of its line.
    #[track_caller]
    pub fn figure(&self, name: &str) -> u64 {
        let line = self.stdout.lines().find(|line| line.starts_with(name));
        let value = line.and_then(|line| line.split_whitespace().last());
        value.unwrap_or_else(|| panic!("{self:?}")).parse().unwrap()
    }

    /// The lines about what is amiss. A run that takes long says in others how far it is.
    pub fn warnings(&self) -> Vec<&str> {
        let lines = self.stderr.lines();
        lines.filter(|line| line.starts_with("mirror: ")).collect()
    }

    /// The last line.
    #[track_caller]
    pub fn verdict(&self) -> &str {
        self.stdout.lines().last().unwrap_or_default()
    }

    #[track_caller]
    pub fn assert_code(&self, code: i32) {
        assert_eq!(self.status.code(), Some(code), "{self:?}");
    }
}

/// A program that runs. Its stdout is not read until [`end`](Self::end), so a program that says
/// more than a pipe holds stands still.
pub struct Running {
    child: Child,
    stdout: PipeReader,
    errors: Receiver<String>,
    stderr: String,
}

impl Running {
    fn new(command: &mut Command, stdout: PipeReader) -> Self {
        let mut child = command.spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (sender, errors) = channel();
        thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            stdout,
            errors,
            stderr: String::new(),
        }
    }

    /// The next line of its stderr; none if it has ended.
    #[track_caller]
    pub fn line(&mut self) -> Option<String> {
        use std::sync::mpsc::RecvTimeoutError::{Disconnected, Timeout};
        match self.errors.recv_timeout(BROKEN_AFTER) {
            Ok(line) => {
                self.stderr += &line;
                self.stderr.push('\n');
                Some(line)
            }
            Err(Disconnected) => None,
            Err(Timeout) => panic!("no more news after {:?}", self.stderr),
        }
    }

    /// Waits for a line with these words.
    #[track_caller]
    pub fn wait_for(&mut self, words: &str) {
        loop {
            let line = self.line().expect("the program has ended");
            if line.contains(words) {
                return;
            }
        }
    }

    /// Reads this many lines of its stdout, and whatever more comes in the same gulp.
    pub fn read_stdout(&mut self, lines: usize) {
        let said = BufReader::with_capacity(64, &mut self.stdout);
        let said = said.lines().take(lines);
        assert_eq!(said.map_while(Result::ok).count(), lines);
    }

    pub fn signal(&self, name: &str) {
        let command = format!("kill -{name} {}", self.child.id());
        let status = Command::new("sh").args(["-c", &command]).status().unwrap();
        assert!(status.success());
    }

    /// Waits until there is a file of this name; nothing tells of one but the file itself.
    #[track_caller]
    pub fn wait_for_file(&mut self, path: &Path) {
        let begun = Instant::now();
        while !path.exists() {
            assert!(begun.elapsed() < BROKEN_AFTER, "no {}", path.display());
            assert_eq!(self.child.try_wait().unwrap(), None, "it has ended");
            thread::yield_now();
        }
    }

    /// Waits for its end before reading what it has said.
    pub fn end_unread(mut self) -> Outcome {
        while self.line().is_some() {}
        self.end()
    }

    /// Reads what it says until its end.
    pub fn end(mut self) -> Outcome {
        let mut stdout = String::new();
        self.stdout.read_to_string(&mut stdout).unwrap();
        while self.line().is_some() {}
        Outcome {
            status: self.child.wait().unwrap(),
            stdout,
            stderr: std::mem::take(&mut self.stderr),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A test that fails leaves no program behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Debug, PartialEq)]
pub enum Content {
    Directory,
    File(Vec<u8>),
    Link(PathBuf),
    Special,
}

/// Everything that is to be equal: content, mode and time of every entry, the root's included.
#[derive(Debug, PartialEq)]
pub struct Entry {
    pub content: Content,
    pub mode: u32,
    pub mtime: (i64, i64),
}

pub fn snapshot(root: &Path) -> BTreeMap<PathBuf, Entry> {
    let mut entries = BTreeMap::new();
    let mut pending = vec![PathBuf::new()];
    while let Some(path) = pending.pop() {
        let full = root.join(&path);
        // What is gone meanwhile is not there.
        let Ok(metadata) = fs::symlink_metadata(&full) else {
            continue;
        };
        let kind = metadata.file_type();
        let content = if kind.is_dir() {
            let names = fs::read_dir(&full).into_iter().flatten().flatten();
            pending.extend(names.map(|entry| path.join(entry.file_name())));
            Content::Directory
        } else if kind.is_file() {
            Content::File(fs::read(&full).unwrap_or_default())
        } else if kind.is_symlink() {
            Content::Link(fs::read_link(&full).unwrap_or_default())
        } else {
            Content::Special
        };
        let entry = Entry {
            content,
            mode: metadata.mode(),
            mtime: (metadata.mtime(), metadata.mtime_nsec()),
        };
        entries.insert(path, entry);
    }
    entries
}
