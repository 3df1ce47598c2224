//! Tells code from words in a Rust source, character by character.

/// A source file with its comments cut out.
///
/// It is a scanner, not a parser: it knows comments, strings and characters, so that a brace or a
/// slash inside one of them does not count, and nothing about grammar. One pass over the text.
#[derive(Debug)]
pub(crate) struct Source {
    /// The text with every comment blanked, and every letter inside a string made an underscore.
    code: Vec<char>,
    /// The text of the comments, a piece for each line, with its line number from 1.
    pub(crate) comments: Vec<(usize, String)>,
    /// The text of the strings and characters, likewise.
    pub(crate) literals: Vec<(usize, String)>,
}

impl Source {
    /// Scans a text.
    pub(crate) fn scan(text: &str) -> Self {
        let mut scanner = Scanner {
            text: text.chars().collect(),
            at: 0,
            line: 1,
            code: Vec::with_capacity(text.len()),
            comments: Vec::new(),
            literals: Vec::new(),
        };
        while scanner.at < scanner.text.len() {
            scanner.step();
        }
        Self {
            code: scanner.code,
            comments: scanner.comments,
            literals: scanner.literals,
        }
    }

    /// The identifiers in the code outside tests, with their line numbers from 1.
    pub(crate) fn words(&self) -> Vec<(usize, String)> {
        Self::words_of(&without_tests(&self.code))
    }

    /// The identifiers in the code and in its tests, with their line numbers from 1.
    pub(crate) fn all_words(&self) -> Vec<(usize, String)> {
        Self::words_of(&self.code)
    }

    fn words_of(code: &[char]) -> Vec<(usize, String)> {
        let code: String = code.iter().collect();
        let mut words = Vec::new();
        for (index, line) in code.lines().enumerate() {
            let found = line.split(|c: char| !is_word(c)).filter(|w| !w.is_empty());
            words.extend(found.map(|word| (index + 1, word.to_owned())));
        }
        words
    }

    /// Whether the code holds these tokens, spaces aside.
    pub(crate) fn contains(&self, tokens: &str) -> bool {
        let dense = |text: &mut dyn Iterator<Item = char>| -> String {
            text.filter(|c| !c.is_whitespace()).collect()
        };
        dense(&mut self.code.iter().copied()).contains(&dense(&mut tokens.chars()))
    }
}

struct Scanner {
    text: Vec<char>,
    at: usize,
    line: usize,
    code: Vec<char>,
    comments: Vec<(usize, String)>,
    literals: Vec<(usize, String)>,
}

impl Scanner {
    /// Takes one token's worth of text: a comment, a literal, or a single character.
    fn step(&mut self) {
        match (self.peek(0), self.peek(1)) {
            ('/', '/') => self.line_comment(),
            ('/', '*') => self.block_comment(),
            ('"', _) => self.string(),
            ('r', '"' | '#') if self.starts_a_word() => self.raw_string(),
            ('\'', _) => self.quote(),
            (c, _) => self.keep(c),
        }
    }

    fn line_comment(&mut self) {
        while self.at < self.text.len() && self.peek(0) != '\n' {
            self.comment();
        }
    }

    fn block_comment(&mut self) {
        let mut depth = 0_usize;
        while self.at < self.text.len() {
            match (self.peek(0), self.peek(1)) {
                ('/', '*') => depth += 1,
                ('*', '/') => depth -= 1,
                _ => {
                    self.comment();
                    continue;
                }
            }
            self.comment();
            self.comment();
            if depth == 0 {
                return;
            }
        }
    }

    fn string(&mut self) {
        append(&mut self.literals, self.line, ' ');
        self.keep('"');
        while self.at < self.text.len() && self.peek(0) != '"' {
            if self.peek(0) == '\\' {
                self.mask();
            }
            self.mask();
        }
        self.keep('"');
    }

    /// `r"…"` and `r#"…"#`, with `b` or `c` before it or not; a raw identifier is left to `keep`.
    fn raw_string(&mut self) {
        let hashes = (1..).take_while(|&ahead| self.peek(ahead) == '#').count();
        if self.peek(1 + hashes) != '"' {
            return self.keep('r');
        }
        for _ in 0..hashes + 2 {
            self.mask();
        }
        let closes = |at: &Self| at.peek(0) == '"' && (1..=hashes).all(|n| at.peek(n) == '#');
        while self.at < self.text.len() && !closes(self) {
            self.mask();
        }
        for _ in 0..=hashes {
            self.mask();
        }
    }

    /// A character literal, or the quote that begins a lifetime.
    fn quote(&mut self) {
        self.keep('\'');
        if self.peek(0) == '\\' {
            self.mask();
            self.mask();
            while self.at < self.text.len() && self.peek(0) != '\'' {
                self.mask();
            }
            self.mask();
        } else if self.peek(1) == '\'' {
            self.mask();
            self.mask();
        }
    }

    /// Whether the last character kept lets a literal's prefix begin here.
    fn starts_a_word(&self) -> bool {
        let before = self.code.last().copied().unwrap_or(' ');
        let earlier = self.code.iter().rev().nth(1).copied().unwrap_or(' ');
        !is_word(before) || (matches!(before, 'b' | 'c') && !is_word(earlier))
    }

    fn peek(&self, ahead: usize) -> char {
        self.text.get(self.at + ahead).copied().unwrap_or('\0')
    }

    /// Takes a character as code.
    fn keep(&mut self, c: char) {
        if self.at >= self.text.len() {
            return;
        }
        if c == '\n' {
            self.line += 1;
        }
        self.code.push(c);
        self.at += 1;
    }

    /// Takes a character of a literal: code, but neither a word nor a brace.
    fn mask(&mut self) {
        let c = self.peek(0);
        // The letter of an escape such as `\n` is no letter of a word.
        let escapes = self.at > 0 && self.text[self.at - 1] == '\\';
        append(&mut self.literals, self.line, if escapes { ' ' } else { c });
        self.keep(if c.is_whitespace() { c } else { '_' });
    }

    /// Takes a character of a comment.
    fn comment(&mut self) {
        let c = self.peek(0);
        append(&mut self.comments, self.line, c);
        self.keep(if c == '\n' { c } else { ' ' });
    }
}

/// Adds a character to the piece of its line.
fn append(pieces: &mut Vec<(usize, String)>, line: usize, c: char) {
    match pieces.last_mut() {
        _ if c == '\n' => {}
        Some((last, text)) if *last == line => text.push(c),
        _ => pieces.push((line, c.to_string())),
    }
}

/// Blanks each item that stands under a `#[cfg(…test…)]`, its attributes included.
fn without_tests(code: &[char]) -> Vec<char> {
    let mut rest = code.to_vec();
    let mut at = 0;
    while at < rest.len() {
        let end = match attribute_end(&rest, at) {
            Some(end) if is_cfg_test(&rest[at..end]) => item_end(&rest, end),
            _ => {
                at += 1;
                continue;
            }
        };
        for c in &mut rest[at..end] {
            if *c != '\n' {
                *c = ' ';
            }
        }
        at = end;
    }
    rest
}

/// Where the outer attribute that begins here ends, if one does.
fn attribute_end(code: &[char], at: usize) -> Option<usize> {
    if code.get(at) != Some(&'#') || code.get(at + 1) != Some(&'[') {
        return None;
    }
    Some(closing(code, at + 1, '[', ']'))
}

/// Whether an attribute is a `cfg` that holds in tests only; one with `not` or `any` need not be.
fn is_cfg_test(attribute: &[char]) -> bool {
    let text: String = attribute.iter().collect();
    let words: Vec<&str> = text
        .split(|c| !is_word(c))
        .filter(|w| !w.is_empty())
        .collect();
    words.first() == Some(&"cfg")
        && words.contains(&"test")
        && !words.contains(&"not")
        && !words.contains(&"any")
}

/// Where the item after an attribute ends: behind its braces, or at its semicolon.
fn item_end(code: &[char], from: usize) -> usize {
    let mut at = from;
    while at < code.len() {
        match code[at] {
            '(' => at = closing(code, at, '(', ')'),
            '[' => at = closing(code, at, '[', ']'),
            '{' => {
                let end = closing(code, at, '{', '}');
                return end + usize::from(code.get(end) == Some(&';'));
            }
            ';' => return at + 1,
            '}' => return at,
            _ => at += 1,
        }
    }
    at
}

/// The place behind the bracket that closes the one at `at`.
fn closing(code: &[char], at: usize, open: char, close: char) -> usize {
    let mut depth = 0_usize;
    for (index, &c) in code.iter().enumerate().skip(at) {
        if c == open {
            depth += 1;
        } else if c == close {
            depth -= 1;
            if depth == 0 {
                return index + 1;
            }
        }
    }
    code.len()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many lines hold code, those under `#[cfg(test)]` left out.
    fn code_lines(text: &str) -> usize {
        let source = Source::scan(text);
        let code: String = without_tests(&source.code).into_iter().collect();
        code.lines().filter(|line| !line.trim().is_empty()).count()
    }

    #[test]
    fn blank_lines_comments_and_docs_are_not_code() {
        let text = "//! Docs.\n\n/// More.\nfn a() { // why\n    /* a\n       b */\n}\n";
        assert_eq!(code_lines(text), 2);
    }

    #[test]
    fn block_comments_nest() {
        assert_eq!(code_lines("/* a /* b */ c\n d */ fn e() {}\nfn f() {}"), 2);
        assert_eq!(code_lines("/* a /* b */ c\n d */\n"), 0);
    }

    #[test]
    fn slashes_in_literals_are_code() {
        let text = "let a = \"// no\";\nlet b = r#\"\n\"// /* no\n\"#;\nlet c = '\"'; // yes\nd();";
        assert_eq!(code_lines(text), 6);
        assert_eq!(Source::scan(text).comments, [(5, "// yes".to_owned())]);
    }

    #[test]
    fn quotes_may_be_escaped_and_lifetimes_are_not_characters() {
        let text = r#"fn a<'x>(b: &'x str) { c("\"// no", '\'', '\u{27}', b'\\') } // yes"#;
        assert_eq!(Source::scan(text).comments, [(1, "// yes".to_owned())]);
        let text = "struct A<'x// yes\n>;";
        assert_eq!(Source::scan(text).comments, [(1, "// yes".to_owned())]);
    }

    #[test]
    fn raw_identifiers_are_not_raw_strings() {
        let text = r#"let r#type = br"// no\"; // yes"#;
        assert_eq!(Source::scan(text).comments, [(1, "// yes".to_owned())]);
    }

    #[test]
    fn items_of_tests_are_left_out() {
        let module =
            "fn a() {}\n#[cfg(test)]\n#[allow(x)]\nmod tests {\n  fn b() { \"}\" }\n}\nfn c() {}";
        assert_eq!(code_lines(module), 2);
        let declared =
            "#[cfg(test)]\nextern crate std;\nmod a;\n#[cfg(all(feature = \"b\", test))]\nmod c;";
        assert_eq!(code_lines(declared), 1);
        let used = "#[cfg(test)]\nuse a::{b, c};\nfn d() {}";
        assert_eq!(code_lines(used), 1);
    }

    #[test]
    fn items_that_stand_outside_tests_too_are_kept() {
        assert_eq!(code_lines("#[cfg(not(test))]\nfn a() {}"), 2);
        assert_eq!(code_lines("#[cfg(feature = \"test\")]\nfn a() {}"), 2);
        assert_eq!(code_lines("#[cfg(any(test, loom))]\nfn a() {}"), 2);
    }

    #[test]
    fn words_are_whole_and_stand_in_code() {
        let source = Source::scan("// Lock\nBlock::new(\"Lock\");\nLock");
        let words: Vec<_> = source.words();
        assert_eq!(
            words,
            [
                (2, "Block".to_owned()),
                (2, "new".to_owned()),
                (2, "____".to_owned()),
                (3, "Lock".to_owned()),
            ]
        );
    }

    #[test]
    fn the_text_of_literals_is_kept_apart_from_code() {
        let source = Source::scan("// no\na(\"b\\nc\", \"d\");\ne(r#\"f\"#);");
        let expected = [(2, " b\\ c d"), (3, "r#\"f\"#")];
        let expected = expected.map(|(line, text)| (line, text.to_owned()));
        assert_eq!(source.literals, expected);
    }

    #[test]
    fn tokens_are_found_whatever_the_spaces() {
        assert!(Source::scan("#![ forbid(unsafe_code) ]").contains("#![forbid(unsafe_code)]"));
        assert!(!Source::scan("// #![forbid(unsafe_code)]").contains("#![forbid(unsafe_code)]"));
    }
}
