//! Bars, one row of them for each row of a table.

use std::error::Error;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::axis::show;
use super::page::{CAPTION, COLORS, TITLE, WIDTH, quiet, text};
use crate::figures::Figures;

/// Room for a letter of a row's name, and around the names.
const LETTER: i32 = 7;
const MARGIN: i32 = 24;
/// Room for a value at the end of the longest bar.
const RIGHT: i32 = 56;
const BAR: i32 = 15;
const GAP: i32 = 14;
/// The line of names below the title.
const NAMES: i32 = 26;

pub(super) fn draw(
    contenders: &[(&str, &str)],
    figures: &Figures,
) -> Result<String, Box<dyn Error>> {
    let mut rows: Vec<&str> = figures.figures.iter().map(|it| it.work.as_str()).collect();
    rows.dedup();
    let values = figures.figures.iter().map(|figure| figure.value);
    let longest = values.fold(0.0, f64::max);
    if rows.is_empty() || longest <= 0.0 {
        return Err("no figures".into());
    }
    let row_height = BAR * contenders.len() as i32 + GAP;
    let top = TITLE + NAMES;
    let height = top + row_height * rows.len() as i32 + CAPTION;
    let letters = rows.iter().map(|row| row.chars().count()).max();
    let left = MARGIN + LETTER * letters.unwrap_or(0) as i32;
    let full = (WIDTH as i32 - left - RIGHT) as f64;

    let mut svg = String::new();
    let root = SVGBackend::with_string(&mut svg, (WIDTH, height as u32)).into_drawing_area();
    let mut name_left = left;
    for ((_, name), color) in contenders.iter().zip(COLORS) {
        root.draw(&Rectangle::new(
            [(name_left, TITLE), (name_left + 12, TITLE + 12)],
            color.filled(),
        ))?;
        root.draw_text(name, &quiet(&color), (name_left + 18, TITLE + 6))?;
        name_left += 18 + LETTER * name.chars().count() as i32 + MARGIN;
    }
    for (place, row) in rows.iter().enumerate() {
        let row_top = top + row_height * place as i32;
        let middle = row_top + BAR * contenders.len() as i32 / 2;
        let to_the_left = text().pos(Pos::new(HPos::Right, VPos::Center));
        root.draw_text(row, &to_the_left, (left - 10, middle))?;
        for (bar, ((contender, name), color)) in contenders.iter().zip(COLORS).enumerate() {
            let mut of_row = figures.figures.iter().filter(|figure| figure.work == *row);
            let figure = of_row.find(|figure| figure.contender == *contender);
            let figure = figure.ok_or_else(|| format!("no figure of {name}: {row}"))?;
            let end = left + (figure.value / longest * full).round() as i32;
            let bar_top = row_top + BAR * bar as i32;
            root.draw(&Rectangle::new(
                [(left, bar_top), (end, bar_top + BAR - 2)],
                color.filled(),
            ))?;
            let value = show(figure.value, &figure.unit);
            root.draw_text(&value, &quiet(&color), (end + 6, bar_top + BAR / 2))?;
        }
    }
    root.present()?;
    drop(root);
    Ok(svg)
}
