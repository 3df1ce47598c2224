//! The tables of `docs/firmware.md`, which the images print.
//!
//! A table of the page is that of an image if both have the same first line. Then it has all rows of
//! the image on the first board that runs it, the Cortex-M3 if it does. A table with a column for
//! each board has the rows that the page names, each with the figure that the image of that board
//! prints: the one for N = 64 if there are several.
//!
//! A table of promises has the most that such a figure may be on the first board.

use std::fs;

use crate::cmd::{read, root};
use crate::report::{Verdict, verdict};

use super::BOARDS;

const PAGE: &str = "docs/firmware.md";

/// A table that an image has printed.
struct Table {
    board: &'static str,
    header: String,
    rows: Vec<String>,
}

/// Everything that the images have printed.
#[derive(Default)]
pub(super) struct Tables(Vec<Table>);

/// The cells of a row, without the margins.
fn cells(row: &str) -> Vec<&str> {
    row.trim_matches('|').split('|').map(str::trim).collect()
}

impl Tables {
    /// Adds the tables of an image's output.
    pub(super) fn add(&mut self, board: &'static str, text: &str) {
        let mut lines = text.lines().peekable();
        while let Some(header) = lines.next() {
            if lines.next_if(|line| line.starts_with("|---")).is_none() {
                continue;
            }
            let mut rows = Vec::new();
            while let Some(row) = lines.next_if(|line| line.starts_with('|')) {
                rows.push(row.to_owned());
            }
            let header = header.to_owned();
            self.0.push(Table {
                board,
                header,
                rows,
            });
        }
    }

    /// The figure of a row in a board's table with this title: that of a column if it has the column.
    fn figure(&self, board: &str, title: &str, name: &str, column: &str) -> Result<&str, String> {
        let of_title = |table: &&Table| table.board == board && cells(&table.header)[0] == title;
        let figure = self.0.iter().filter(of_title).find_map(|table| {
            let row = table.rows.iter().find(|row| cells(row)[0] == name)?;
            let columns = cells(&table.header);
            let column = columns.iter().position(|it| *it == column).unwrap_or(1);
            cells(row).get(column).copied()
        });
        figure.ok_or_else(|| format!("{board} does not print {name:?} of {title:?}"))
    }

    /// The page with these figures.
    fn written(&self, page: &str) -> Result<String, String> {
        let boards = BOARDS.map(|board| board.about);
        let mut text = String::new();
        let mut lines = page.lines().peekable();
        while let Some(line) = lines.next() {
            text += &format!("{line}\n");
            let Some(rule) = lines.next_if(|line| line.starts_with("|---")) else {
                continue;
            };
            text += &format!("{rule}\n");
            let is_of = |table: &&Table| table.header == line;
            let of_image = self.0.iter().find(is_of);
            let columns = cells(line);
            while let Some(row) = lines.next_if(|line| line.starts_with('|')) {
                if of_image.is_some() {
                    continue;
                }
                if columns[1..] != boards {
                    text += &format!("{row}\n");
                    continue;
                }
                let name = cells(row)[0];
                let [one, two, three] =
                    boards.map(|board| self.figure(board, columns[0], name, "N = 64"));
                text += &format!("| {name} | {} | {} | {} |\n", one?, two?, three?);
            }
            for row in of_image.iter().flat_map(|table| &table.rows) {
                text += &format!("{row}\n");
            }
        }
        Ok(text)
    }

    /// The promises of a page that are not kept.
    fn broken(&self, page: &str) -> Result<Vec<String>, String> {
        let (_, rows) = page
            .split_once(PROMISES)
            .ok_or("the page promises nothing")?;
        let mut broken = Vec::new();
        for row in rows
            .lines()
            .skip(2)
            .take_while(|line| line.starts_with('|'))
        {
            let [title, name, column, most, ..] = cells(row)[..] else {
                return Err(format!("not a promise: {row}"));
            };
            let figure = self.figure(BOARDS[0].about, title, name, column)?;
            let (figure, most) = (figure.parse::<f64>(), most.parse::<f64>());
            if !matches!((&figure, &most), (Ok(figure), Ok(most)) if figure <= most) {
                broken.push(format!("{name}: {figure:?}, at most {most:?}"));
            }
        }
        Ok(broken)
    }

    /// Writes the figures into the page, or fails for the rows that differ by more than
    /// [`MAY_DIFFER`]: any change of core moves code, and must not touch every page. Fails for the
    /// promises that are not kept too.
    pub(super) fn publish(&self, writes: bool) -> Verdict {
        let page = read(PAGE)?;
        let mut failures = self.broken(&page)?;
        let new = self.written(&page)?;
        if writes {
            fs::write(root().join(PAGE), new)?;
        } else if let differences @ [_, ..] = &*differences(&page, &new) {
            failures.extend_from_slice(differences);
            failures.push(format!(
                "{PAGE} has other figures: `cargo xtask firmware --write`"
            ));
        }
        verdict(&failures)
    }
}

/// The header of the page's promises.
const PROMISES: &str = "| table | row | column | at most |";

/// By how much a figure of the page may differ from the one that is measured.
const MAY_DIFFER: f64 = 0.05;

/// The rows of a page that differ from the new ones.
fn differences(page: &str, new: &str) -> Vec<String> {
    let (page, new): (Vec<&str>, Vec<&str>) = (page.lines().collect(), new.lines().collect());
    if page.len() != new.len() {
        return vec!["the page has other rows".to_owned()];
    }
    let pairs = page.into_iter().zip(new);
    let differ = pairs.filter(|(old, new)| {
        let (old, new) = (cells(old), cells(new));
        old.len() != new.len() || old.iter().zip(&new).any(|(old, new)| is_other(old, new))
    });
    differ.map(|(old, new)| format!("{old} is {new}")).collect()
}

/// Whether a cell differs: a figure by more than it may, or a text.
fn is_other(old: &str, new: &str) -> bool {
    match (old.parse::<f64>(), new.parse::<f64>()) {
        (Ok(old), Ok(new)) => (old - new).abs() > new * MAY_DIFFER,
        _ => old != new,
    }
}

#[cfg(test)]
mod tests {
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
    fn a_table_with_the_first_line_of_an_image_has_its_rows() {
        let page = "text\n\n| what | N = 16 | N = 64 |\n|---|--:|--:|\n| gone | 0 | 0 |\n\nend\n";
        let new = page.replace("| gone | 0 | 0 |", "| `add` | 1 | 2 |");
        assert_eq!(printed().written(page), Ok(new));
    }

    #[test]
    fn a_table_of_boards_keeps_its_rows_and_has_their_figures() {
        let page = "| what | Cortex-M3 | Cortex-M0 | RISC-V |\n|---|--:|--:|--:|\n| `add` | 0 |\n";
        let new = page.replace("| 0 |", "| 2 | 2 | 2 |");
        assert_eq!(printed().written(page), Ok(new));
        let page = page.replace("`add`", "`sub`");
        let why = printed().written(&page).unwrap_err();
        assert_eq!(why, "Cortex-M3 does not print \"`sub`\" of \"what\"");
    }

    #[test]
    fn figures_that_are_off_by_more_than_they_may_are_found() {
        let page = "| `add` | 100 | 7 |";
        assert_eq!(differences(page, "| `add` | 104 | 7 |"), [""; 0]);
        let found = differences(page, "| `add` | 106 | 7 |");
        assert_eq!(found, ["| `add` | 100 | 7 | is | `add` | 106 | 7 |"]);
        assert_eq!(differences(page, &page.replace("add", "sub")).len(), 1);
        assert_eq!(differences(page, &format!("{page}\n{page}")).len(), 1);
    }

    #[test]
    fn a_promise_holds_up_to_its_figure() {
        let broken = |row: &str| printed().broken(&format!("{PROMISES}\n|--|\n{row}"));
        let kept = "| what | `add` | N = 16 | 1 |\n| bytes | a | | 7 |\n";
        assert_eq!(broken(kept), Ok(vec![]));
        assert_eq!(broken("| what | `add` | N = 64 | 1 |").unwrap().len(), 1);
        assert_eq!(broken("| bytes | a | | few |").unwrap().len(), 1);
        assert!(broken("| bytes | b | | 7 |").is_err());
        assert!(printed().broken("| bytes | 7 |").is_err());
    }

    #[test]
    fn other_tables_stay() {
        let page = "| image | what |\n|---|---|\n| `cost` | figures |\n";
        assert_eq!(printed().written(page).as_deref(), Ok(page));
    }
}
