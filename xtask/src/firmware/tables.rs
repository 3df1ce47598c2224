//! The tables of `docs/firmware.md`, which the images print.
//!
//! A table of the page is that of an image if both have the same first line. Then it has all rows of
//! the image on the first board that runs it, the Cortex-M3 if it does. A table with a column for
//! each board has the rows that the page names, each with the figure that the image of that board
//! prints: the one for N = 64 if there are several.

use std::fs;

use crate::cmd::{read, root};
use crate::report::{Stop, Verdict};

use super::BOARDS;

pub(super) const PAGE: &str = "docs/firmware.md";

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

    /// The figure of a row in a board's table with this title.
    fn figure(&self, board: &str, title: &str, name: &str) -> Option<&str> {
        let of_title = |table: &&Table| table.board == board && cells(&table.header)[0] == title;
        self.0.iter().filter(of_title).find_map(|table| {
            let row = table.rows.iter().find(|row| cells(row)[0] == name)?;
            let columns = cells(&table.header);
            let column = columns.iter().position(|it| *it == "N = 64").unwrap_or(1);
            cells(row).get(column).copied()
        })
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
                let figures = boards.map(|board| {
                    let figure = self.figure(board, columns[0], name);
                    figure.ok_or_else(|| {
                        format!("{board} does not print {name:?} of {:?}", columns[0])
                    })
                });
                let [one, two, three] = figures;
                text += &format!("| {name} | {} | {} | {} |\n", one?, two?, three?);
            }
            for row in of_image.iter().flat_map(|table| &table.rows) {
                text += &format!("{row}\n");
            }
        }
        Ok(text)
    }

    /// Writes the figures into the page, or returns the rows that differ by more than
    /// [`MAY_DIFFER`]. Any change of core moves code, and must not touch every page.
    pub(super) fn publish(&self, writes: bool) -> Verdict<Vec<String>> {
        let page = read(PAGE)?;
        let new = self.written(&page).map_err(Stop::Failed)?;
        if writes {
            fs::write(root().join(PAGE), new)?;
            return Ok(Vec::new());
        }
        Ok(differences(&page, &new))
    }
}

/// By how much a figure of the page may differ from the one that is measured.
const MAY_DIFFER: f64 = 0.05;

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
        let row = |figure| format!("| `add` | {figure} | 7 |");
        assert_eq!(differences(&row(100), &row(104)), [""; 0]);
        let found = differences(&row(100), &row(106));
        assert_eq!(found, ["| `add` | 100 | 7 | is | `add` | 106 | 7 |"]);
        assert_eq!(differences("| `add` | 7 |", "| `sub` | 7 |").len(), 1);
        assert_eq!(
            differences("| `add` | 7 |", "| `add` | 7 |\n| `sub` | 7 |").len(),
            1
        );
    }

    #[test]
    fn other_tables_stay() {
        let page = "| image | what |\n|---|---|\n| `cost` | figures |\n";
        assert_eq!(printed().written(page).as_deref(), Ok(page));
    }
}
