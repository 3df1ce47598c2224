//! The command line.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use lexopt::prelude::*;

use crate::text::escaped;

const HELP: &str = "\
Keeps TARGET a faithful copy of SOURCE: files, directories and symlinks, with
their permissions and modification times. What SOURCE does not have is deleted
from TARGET.

Usage: mirror [OPTIONS] [SOURCE TARGET]

Without SOURCE and TARGET it mirrors this repository's core/ into
target/mirror.

Options:
  -w, --watch          follow every change, until Ctrl-C
  -j, --workers N      number of copying threads [default: one per processor]
      --retries N      how often to retry a failed path, with growing delays,
                       before giving it up [default: 5]
      --grace SECONDS  how long to finish pending paths after Ctrl-C
                       [default: 10]
  -v, --verbose        print each change
  -h, --help           print this help
  -V, --version        print the version

Files with the same size and modification time count as equal. A file that is
being written to is copied once it rests. Holes in files are kept. Owners, hard
links and extended attributes are not kept. Devices, sockets and FIFOs are
named and skipped. The set-user-ID and set-group-ID bits are kept if the copy
has the same owner and group as its source. Otherwise they are left out, and
the path is named. With --watch, directories that the system cannot watch are
polled every second, or less often if there are many.

No symlink is followed in either tree. Nothing outside the trees is read,
written or deleted, even if another program replaces directories meanwhile.

Ctrl-C (or SIGTERM) finishes pending paths and names the rest. A second Ctrl-C
stops at once. The next run continues, however this one was stopped. SIGUSR1
prints the paths in progress and the waiting ones.

Exit code: 0 if TARGET is the same as SOURCE was, 1 if paths were given up or
left undone (they are named), 2 if the arguments are wrong, 130 after a second
Ctrl-C.
";

/// The user's command.
#[derive(Debug, PartialEq)]
pub(crate) enum Command {
    Mirror(Options),
    Say(String),
}

#[derive(Debug, PartialEq)]
pub(crate) struct Options {
    pub(crate) source: PathBuf,
    pub(crate) target: PathBuf,
    pub(crate) watch: bool,
    pub(crate) workers: NonZeroUsize,
    pub(crate) retries: u32,
    pub(crate) grace: Duration,
    pub(crate) verbose: bool,
}

/// Reads the arguments. The error is one line for the user.
pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Command, String> {
    parse_args(lexopt::Parser::from_args(args)).map_err(|error| {
        // The error may contain an argument.
        format!("{}; see --help", escaped(&error.to_string()))
    })
}

fn parse_args(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let mut trees: Vec<PathBuf> = Vec::new();
    let mut options = Options {
        source: PathBuf::new(),
        target: PathBuf::new(),
        watch: false,
        workers: thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
        retries: 5,
        grace: Duration::from_secs(10),
        verbose: false,
    };
    while let Some(arg) = parser.next()? {
        match arg {
            Short('w') | Long("watch") => options.watch = true,
            Short('j') | Long("workers") => options.workers = parser.value()?.parse()?,
            Long("retries") => options.retries = parser.value()?.parse()?,
            Long("grace") => options.grace = Duration::from_secs(parser.value()?.parse()?),
            Short('v') | Long("verbose") => options.verbose = true,
            Short('h') | Long("help") => return Ok(Command::Say(HELP.into())),
            Short('V') | Long("version") => {
                let version = concat!("mirror ", env!("CARGO_PKG_VERSION"), "\n");
                return Ok(Command::Say(version.into()));
            }
            Value(tree) if trees.len() < 2 => trees.push(tree.into()),
            _ => return Err(arg.unexpected()),
        }
    }
    let mut trees = trees.into_iter();
    (options.source, options.target) = match (trees.next(), trees.next()) {
        (Some(source), Some(target)) => (source, target),
        (Some(_), None) => return Err("SOURCE is given, but no TARGET".into()),
        (None, _) => repository().ok_or("SOURCE and TARGET are missing")?,
    };
    Ok(Command::Mirror(options))
}

/// `core/` and `target/mirror` of the repository in which the program was built, or, if that has
/// moved, of the one in which it runs.
fn repository() -> Option<(PathBuf, PathBuf)> {
    let built_from = Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf();
    let here = std::env::current_dir().ok();
    let homes = [Some(built_from), here];
    let roots = homes.iter().flatten().flat_map(|home| home.ancestors());
    let mut trees = roots.map(|root| (root.join("core"), root.join("target/mirror")));
    trees.find(|(core, _)| core.join("Cargo.toml").is_file())
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    fn options(args: &[&str]) -> Options {
        match parse(args.iter().map(OsString::from)).unwrap() {
            Command::Mirror(options) => options,
            Command::Say(text) => panic!("{text}"),
        }
    }

    #[track_caller]
    fn refused(args: &[&str], because: &str) {
        let message = parse(args.iter().map(OsString::from)).unwrap_err();
        assert!(message.contains(because), "{message}");
        assert_eq!(message.lines().count(), 1);
    }

    #[test]
    fn options_may_stand_anywhere() {
        let options = options(&["-w", "a", "--workers", "3", "b", "--retries=0", "-v"]);
        assert_eq!(options.source, Path::new("a"));
        assert_eq!(options.target, Path::new("b"));
        assert_eq!(options.workers.get(), 3);
        assert_eq!(options.retries, 0);
        assert_eq!(options.grace, Duration::from_secs(10));
        assert!(options.watch && options.verbose);
    }

    #[test]
    fn without_trees_it_is_this_repository() {
        let options = options(&[]);
        assert!(options.source.join("src/lib.rs").is_file());
        assert!(options.target.ends_with("target/mirror"));
    }

    #[test]
    fn nonsense_gets_one_line() {
        refused(&["a"], "no TARGET");
        refused(&["a", "b", "c"], "\"c\"");
        refused(&["a", "b", "--workers", "0"], "\"0\"");
        refused(&["a", "b", "--workers", "many"], "\"many\"");
        refused(&["--what"], "--what");
    }

    #[test]
    fn paths_need_not_be_unicode() {
        let odd = OsString::from_vec(vec![0x66, 0xff]);
        let Ok(Command::Mirror(options)) = parse([odd.clone(), "b".into()]) else {
            panic!("not taken");
        };
        assert_eq!(options.source, Path::new(&odd));
    }

    #[test]
    fn help_tells_every_option() {
        for option in [
            "--watch",
            "--workers",
            "--retries",
            "--grace",
            "--verbose",
            "--help",
            "--version",
        ] {
            assert!(HELP.contains(option), "{option}");
        }
        assert!(HELP.lines().all(|line| line.len() <= 80));
    }
}
