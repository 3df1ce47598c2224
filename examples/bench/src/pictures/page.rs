//! What every picture has: colors for light and dark, a title, and where its figures come from.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::figures::Source;

pub(super) const WIDTH: u32 = 720;
/// Room for the title.
pub(super) const TITLE: i32 = 52;
/// Room for the caption.
pub(super) const CAPTION: i32 = 52;

const TEXT: RGBColor = RGBColor(0x24, 0x29, 0x2F);
pub(super) const GRID: RGBColor = RGBColor(0xD0, 0xD7, 0xDE);
pub(super) const COLORS: [RGBColor; 5] = [
    RGBColor(0x09, 0x69, 0xDA),
    RGBColor(0x1A, 0x7F, 0x37),
    RGBColor(0xBC, 0x4C, 0x00),
    RGBColor(0x82, 0x50, 0xDF),
    RGBColor(0xBF, 0x39, 0x89),
];

/// Each color of a drawing, and what stands for it if a reader prefers dark pages.
const DARK: [(&str, &str); 7] = [
    ("#24292F", "#e6edf3"),
    ("#D0D7DE", "#30363d"),
    ("#0969DA", "#58a6ff"),
    ("#1A7F37", "#56d364"),
    ("#BC4C00", "#f0883e"),
    ("#8250DF", "#bc8cff"),
    ("#BF3989", "#f778ba"),
];

const FONT: &str = "system-ui, sans-serif";
/// plotters divides the sizes of letters by this.
const PIXEL: f64 = 1.24;

/// Text of the usual size.
pub(super) fn text<'a>() -> TextStyle<'a> {
    TextStyle::from((FONT, 13.0 * PIXEL)).color(&TEXT)
}

/// Text that begins at a point, in the color of what it names.
pub(super) fn quiet(color: &RGBColor) -> TextStyle<'_> {
    text().color(color).pos(Pos::new(HPos::Left, VPos::Center))
}

/// Puts a page behind a drawing and writes the title and the caption on it.
pub(super) fn finish(drawing: &str, title: &str, source: &Source) -> String {
    let (open, rest) = drawing.split_once('\n').unwrap_or((drawing, ""));
    let height = open
        .split_once("height=\"")
        .and_then(|(_, rest)| rest.split_once('"')?.0.parse().ok())
        .unwrap_or(0);
    let (title, [first, second]) = (escaped(title), caption(source).map(|line| escaped(&line)));
    let mut style = String::new();
    for (light, dark) in DARK {
        for part in ["fill", "stroke"] {
            style += &format!("[{part}=\"{light}\"]{{{part}:{dark}}}");
        }
    }
    format!(
        "{open}\n<title>{title}</title>\n<desc>{first}. {second}</desc>\n\
         <style>\n.page{{fill:#fff;stroke:#d0d7de}}\
         .title,.source{{font-family:{FONT};fill:#24292f}}\
         .title{{font-size:16px;font-weight:600}}.source{{font-size:11px;fill:#57606a}}\n\
         @media (prefers-color-scheme:dark){{.page{{fill:#161b22;stroke:#30363d}}\
         .title{{fill:#e6edf3}}.source{{fill:#9da7b3}}\n{style}}}\n</style>\n\
         <rect class=\"page\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"8\"/>\n\
         <text class=\"title\" x=\"20\" y=\"30\">{title}</text>\n\
         <text class=\"source\" x=\"20\" y=\"{}\">{first}</text>\n\
         <text class=\"source\" x=\"20\" y=\"{}\">{second}</text>\n{rest}",
        WIDTH - 1,
        height - 1,
        height - 30,
        height - 14,
    )
}

/// Two lines that say where figures come from.
fn caption(source: &Source) -> [String; 2] {
    let Source {
        command,
        commit,
        date,
        machine,
        rustc,
        load,
    } = source;
    [
        format!("commit {commit}, {date}; {machine}, {rustc}, load {load}"),
        command.clone(),
    ]
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_color_has_one_for_dark_pages() {
        for RGBColor(r, g, b) in COLORS.into_iter().chain([TEXT, GRID]) {
            let color = format!("#{r:02X}{g:02X}{b:02X}");
            assert!(DARK.iter().any(|(light, _)| *light == color), "{color}");
        }
    }
}
