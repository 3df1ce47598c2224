//! Which compiler the tests run under.

use std::env;
use std::process::Command;

/// Whether the compiler is the one that `rust-toolchain.toml` names, whose messages the tests
/// expect word for word. Another one, on a machine without rustup, words them otherwise: the test
/// prints that it is skipped.
///
/// # Examples
///
/// ```
/// if requeue_test_tools::is_pinned_compiler() {
///     // compare messages
/// }
/// ```
pub fn is_pinned_compiler() -> bool {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output();
    let version = version.map_or_else(|_| Vec::new(), |output| output.stdout);
    let version = String::from_utf8_lossy(&version);
    let number = version.split_whitespace().nth(1).unwrap_or("unknown");
    let is_pinned = PINNED.contains(&format!("channel = \"{number}\""));
    if !is_pinned {
        println!("skipped: the messages of rustc {number} are worded otherwise");
    }
    is_pinned
}

const PINNED: &str = include_str!("../../../rust-toolchain.toml");
