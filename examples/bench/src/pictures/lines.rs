//! Lines, each with its name at its end.

use std::collections::BTreeMap;
use std::error::Error;

use plotters::prelude::*;

use super::axis::{Axis, Scale, show};
use super::page::{CAPTION, COLORS, GRID, TITLE, WIDTH, quiet, text};
use crate::figures::Figures;

/// Lines against one axis.
#[derive(Debug)]
pub(super) struct Lines {
    pub(super) x: (&'static str, Scale),
    pub(super) y: Scale,
    /// What the rows contain in their names, whose they are, and what the line is called. The
    /// largest of several figures of one size counts.
    pub(super) lines: &'static [(&'static str, &'static str, &'static str)],
}

const HEIGHT: u32 = 400;
/// Room for a letter of a name, however wide the reader's letters are.
const LETTER: f64 = 7.4;
/// How far names are apart.
const APART: i32 = 17;

/// The points of a line, by size.
type Points = BTreeMap<u64, f64>;

pub(super) fn draw(lines: &Lines, figures: &Figures) -> Result<String, Box<dyn Error>> {
    let all: Vec<Points> = lines
        .lines
        .iter()
        .map(|(work, contender, _)| points(work, contender, lines.y, figures))
        .collect();
    if let Some(place) = all.iter().position(Points::is_empty) {
        return Err(format!("no figures of {}", lines.lines[place].2).into());
    }
    let unit = figures.figures.first().map_or("", |first| &first.unit);
    let (x_name, x_scale) = lines.x;
    let sizes = all.iter().flat_map(|points| points.keys());
    let x_axis = Axis::new(x_scale, sizes.map(|size| *size as f64));
    let values = all.iter().flat_map(|points| points.values().copied());
    let y_axis = Axis::new(lines.y, values);

    let last = |points: &Points| points.values().last().map(|value| show(*value, unit));
    let names = lines.lines.iter().zip(&all);
    let names =
        names.map(|((.., name), points)| format!("{name} {}", last(points).unwrap_or_default()));
    let names: Vec<String> = names.collect();
    let longest = names.iter().map(|name| name.chars().count()).max();
    let right = 20.0 + LETTER * longest.unwrap_or(0) as f64;

    let mut svg = String::new();
    let root = SVGBackend::with_string(&mut svg, (WIDTH, HEIGHT)).into_drawing_area();
    let mut chart = ChartBuilder::on(&root)
        .margin_top(TITLE)
        .margin_right(right)
        .margin_bottom(CAPTION)
        .margin_left(10)
        .x_label_area_size(46)
        .y_label_area_size(88)
        .build_cartesian_2d(x_axis, y_axis)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .bold_line_style(GRID)
        .axis_style(GRID)
        .label_style(text())
        .x_desc(x_name)
        .x_label_formatter(&|value| show(*value, ""))
        .y_label_formatter(&|value| show(*value, unit))
        .draw()?;
    let mut ends = Vec::new();
    for ((name, points), (color, width)) in names.iter().zip(&all).zip(styles(&all)) {
        let places = points.iter().map(|(size, value)| (*size as f64, *value));
        let places: Vec<(f64, f64)> = places.collect();
        let style = color.stroke_width(width);
        chart.draw_series(LineSeries::new(places.iter().copied(), style))?;
        let dot = |place| Circle::new(place, width.div_ceil(2) + 1, color.filled());
        chart.draw_series(places.iter().copied().map(dot))?;
        if let Some(end) = places.last() {
            let (x, y) = chart.backend_coord(end);
            ends.push((y, x, name, color));
        }
    }
    ends.sort_by_key(|(y, ..)| *y);
    let mut above = i32::MIN;
    for (y, x, name, color) in ends {
        above = y.max(above.saturating_add(APART));
        root.draw_text(name, &quiet(&color), (x + 12, above))?;
    }
    root.present()?;
    drop(chart);
    drop(root);
    Ok(svg)
}

fn points(work: &str, contender: &str, scale: Scale, figures: &Figures) -> Points {
    let mut points = Points::new();
    for figure in &figures.figures {
        let is_meant = figure.work.contains(work) && figure.contender == contender;
        if is_meant && scale.holds(figure.value) {
            let largest = points.entry(figure.size).or_insert(figure.value);
            *largest = largest.max(figure.value);
        }
    }
    points
}

/// The color and width of each line. A line that begins on another is wider, to be seen below it.
fn styles(all: &[Points]) -> impl Iterator<Item = (RGBColor, u32)> {
    let widths = all.iter().enumerate().map(|(place, points)| {
        let first = |points: &Points| points.iter().next().map(|(size, value)| (*size, *value));
        let later = all.iter().skip(place + 1);
        let on_it = later.filter(|other| first(other) == first(points)).count();
        2 + 2 * on_it as u32
    });
    COLORS.into_iter().cycle().zip(widths)
}
