//! File names for people: on one line, and without effect on a terminal.

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Shows a path. Unprintable characters and bytes that are not UTF-8 are escaped as in a Rust
/// string. A backslash is doubled, so that two paths never look the same.
pub(crate) struct Escaped<'p>(pub(crate) &'p Path);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.as_os_str().as_bytes().utf8_chunks() {
            f.write_str(&escaped(chunk.valid()))?;
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

/// Escapes what is not printable.
pub(crate) fn escaped(text: &str) -> String {
    let escaped = text.escape_debug().to_string();
    // Quotes are fine, since nothing is put between quotes here.
    escaped.replace("\\'", "'").replace("\\\"", "\"")
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[track_caller]
    fn check(name: &[u8], expected: &str) {
        let shown = Escaped(Path::new(OsStr::from_bytes(name))).to_string();
        assert_eq!(shown, expected);
    }

    #[test]
    fn what_can_be_read_is_left_as_it_is() {
        for name in [
            "a/b c.txt",
            "it's \"so\"",
            "gr\u{fc}n/\u{65e5}\u{672c}",
            "e\u{301}",
        ] {
            check(name.as_bytes(), name);
        }
    }

    #[test]
    fn control_characters_are_shown_by_their_codes() {
        check(b"a\nmirror: b\r", "a\\nmirror: b\\r");
        check(b"\x1b[31mred\x07\x7f", "\\u{1b}[31mred\\u{7}\\u{7f}");
        // C1, the right-to-left override, a line separator.
        check(
            "\u{9b}1m\u{202e}gpj.exe\u{2028}".as_bytes(),
            "\\u{9b}1m\\u{202e}gpj.exe\\u{2028}",
        );
    }

    #[test]
    fn what_is_not_unicode_is_shown_by_its_bytes() {
        check(b"not\xffunicode/\xfe\n", "not\\xffunicode/\\xfe\\n");
    }

    #[test]
    fn no_two_names_look_the_same() {
        check(b"\n", "\\n");
        check(b"\\n", "\\\\n");
        check(b"\\'", "\\\\'");
        check(b"\\\\\"", "\\\\\\\\\"");
    }
}
