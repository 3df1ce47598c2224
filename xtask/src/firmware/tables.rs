//! The tables of `docs/firmware.md`, which the images print.
//!
//! A table of the page is that of an image if both have the same title, which is their first cell. It
//! has the rows that the page names, with the figures that the image prints on the first board that
//! runs it. A column with the name of a board has those of that board: for N = 64 if there are
//! several.
//!
//! A table of promises has the most that such a figure may be.

use std::collections::BTreeMap;
use std::fs;

use crate::cmd::{read, root};
use crate::report::{Verdict, verdict};

const PAGE: &str = "docs/firmware.md";

/// The header of the promises.
const PROMISES: [&str; 4] = ["table", "row", "column", "at most"];

/// Everything that the images have printed, by title, row and column.
#[derive(Default)]
pub(super) struct Tables(BTreeMap<[String; 3], String>);

impl Tables {
    /// Adds the tables of an image's output.
    pub(super) fn add(&mut self, board: &str, text: &str) {
        for (line, header) in lines(text) {
            let row = cells(line);
            for number in 1..header.len().min(row.len()) {
                let is_for_board = header.len() == 2 || header[number] == "N = 64";
                let mut columns = vec![column(&header, number)];
                columns.extend(is_for_board.then(|| board.to_owned()));
                for column in columns {
                    let key = [header[0].to_owned(), row[0].to_owned(), column];
                    self.0.entry(key).or_insert(row[number].to_owned());
                }
            }
        }
    }

    fn figure(&self, title: &str, row: &str, column: &str) -> Option<&String> {
        self.0.get(&[title, row, column].map(str::to_owned))
    }

    /// The page with these figures.
    fn written(&self, page: &str) -> Result<String, String> {
        let mut text = String::new();
        for (line, header) in lines(page) {
            if !self.0.keys().any(|key| header.first() == Some(&&*key[0])) {
                text += &format!("{line}\n");
                continue;
            }
            let row = cells(line)[0];
            text += &format!("| {row} |");
            for number in 1..header.len() {
                let figure = self.figure(header[0], row, &column(&header, number));
                let why = || format!("no board prints column {number} of this row: {line}");
                text += &format!(" {} |", figure.ok_or_else(why)?);
            }
            text.push('\n');
        }
        Ok(text)
    }

    /// The promises of a page that are not kept.
    fn broken(&self, page: &str) -> Vec<String> {
        let is_broken = |line: &&str| {
            let [title, row, column, most, ..] = cells(line)[..] else {
                return true;
            };
            let figure = self
                .figure(title, row, column)
                .map(|figure| figure.parse::<f64>());
            !matches!((figure, most.parse()), (Some(Ok(is)), Ok(most)) if is <= most)
        };
        let promises = lines(page)
            .into_iter()
            .filter(|line| line.1.starts_with(&PROMISES));
        let broken = promises.map(|line| line.0).filter(is_broken);
        broken.map(|line| format!("not kept: {line}")).collect()
    }

    /// Writes the figures into the page, or fails for the rows that differ by more than
    /// [`MAY_DIFFER`]: any change of core moves code, and must not touch every page. Fails for the
    /// promises that are not kept too.
    pub(super) fn publish(&self, writes: bool) -> Verdict {
        let page = read(PAGE)?;
        let mut failures = self.broken(&page);
        let new = self.written(&page)?;
        if writes {
            fs::write(root().join(PAGE), new)?;
        } else if let differences @ [_, ..] = &*differences(&page, &new) {
            failures.extend_from_slice(differences);
            failures.push(format!(
                "{PAGE}: to write them: `cargo xtask firmware --write`"
            ));
        }
        verdict(&failures)
    }
}

/// The name of a column, or its number if it has none.
fn column(header: &[&str], number: usize) -> String {
    match header[number] {
        "" => number.to_string(),
        name => name.to_owned(),
    }
}

/// The lines of a text, each row of a table with the header of the table.
fn lines(text: &str) -> Vec<(&str, Vec<&str>)> {
    let mut header = Vec::new();
    let with_header = text.lines().map(|line| {
        if !line.starts_with('|') {
            header.clear();
        } else if header.is_empty() {
            header = cells(line);
        } else if !line.starts_with("|---") {
            return (line, header.clone());
        }
        (line, Vec::new())
    });
    with_header.collect()
}

/// The cells of a row, without the margins.
fn cells(row: &str) -> Vec<&str> {
    row.trim_matches('|').split('|').map(str::trim).collect()
}

/// By how much a figure of the page may differ from the one that is measured.
const MAY_DIFFER: f64 = 0.05;

/// The rows of a page that differ from the new ones.
fn differences(page: &str, new: &str) -> Vec<String> {
    let is_other = |(old, new): (&str, &str)| match (old.parse::<f64>(), new.parse::<f64>()) {
        (Ok(old), Ok(new)) => (old - new).abs() > new * MAY_DIFFER,
        _ => old != new,
    };
    let differ = page.lines().zip(new.lines()).filter(|(old, new)| {
        let (old, new) = (cells(old), cells(new));
        old.len() != new.len() || old.into_iter().zip(new).any(is_other)
    });
    differ.map(|(old, new)| format!("{old} is {new}")).collect()
}

#[cfg(test)]
mod tests {
    use super::super::BOARDS;
    use super::*;

    const PRINTED: &str = "noise\n| what | N = 16 | N = 64 |\n|---|--:|--:|\n| `add` | 1 | 2 |\n\n\
                           | bytes | |\n|---|--:|\n| a | 7 |\n";

    fn printed() -> Tables {
        let mut tables = Tables::default();
        for board in &BOARDS {
            tables.add(board.about, PRINTED);
        }
        tables
    }

    #[test]
    fn a_table_keeps_its_rows_and_has_their_figures() {
        let page = "text\n\n| what | N = 16 | N = 64 |\n|---|--:|--:|\n| `add` | 0 | 0 |\n\n\
                    | what | Cortex-M0 | RISC-V |\n|---|--:|--:|\n| `add` | 0 |\n\n\
                    | bytes | RISC-V |\n|---|\n| a | 0 |\n\n\
                    | image | what |\n|---|---|\n| `cost` | figures |\n";
        let new = page.replace("| 0 | 0 |", "| 1 | 2 |");
        let new = new.replace("`add` | 0 |", "`add` | 2 | 2 |");
        assert_eq!(printed().written(page), Ok(new.replace("a | 0", "a | 7")));
        for (old, unknown) in [
            ("`add`", "`sub`"),
            ("RISC-V", "RISC-VI"),
            ("N = 16", "N = 1"),
        ] {
            assert!(printed().written(&page.replace(old, unknown)).is_err());
        }
    }

    #[test]
    fn figures_that_are_off_by_more_than_they_may_are_found() {
        let page = "| `add` | 100 | 7 |";
        assert_eq!(differences(page, "| `add` | 104 | 7 |"), [""; 0]);
        let found = differences(page, "| `add` | 106 | 7 |");
        assert_eq!(found, ["| `add` | 100 | 7 | is | `add` | 106 | 7 |"]);
        assert_eq!(differences(page, "| `add` | 100 |").len(), 1);
    }

    #[test]
    fn a_promise_is_kept_up_to_its_figure() {
        let header = "| table | row | column | at most |\n|---|\n";
        let broken = |row: &str| printed().broken(&format!("{header}{row}"));
        let kept = "| what | `add` | N = 16 | 1 |\n| bytes | a | RISC-V | 7 | a remark |\n";
        assert_eq!(broken(kept), [""; 0]);
        for row in [
            "| what | `add` | N = 64 | 1 |",
            "| bytes | a | RISC-V | few |",
            "| bytes | b | RISC-V | 9 |",
        ] {
            assert_eq!(broken(row).len(), 1, "{row}");
        }
        let page = read(PAGE).unwrap();
        assert!(
            Tables::default().broken(&page).len() > 6,
            "the page makes promises"
        );
    }
}
