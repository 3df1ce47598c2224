//! The pictures of README and book belong to the figures beside them.

#![allow(clippy::unwrap_used)]

use std::fs;

use requeue_bench::figures::{Figure, Figures};
use requeue_bench::pictures::{PICTURES, delays, draw, folder};

fn read(name: &str) -> Figures {
    Figures::read(&folder().join(name).with_extension("json")).unwrap()
}

#[test]
fn each_picture_is_drawn_from_the_figures_beside_it() {
    for picture in &PICTURES {
        let name = picture.name;
        let drawn = draw(picture, &read(name)).unwrap();
        let file = folder().join(name).with_extension("svg");
        let is_same = drawn == fs::read_to_string(&file).unwrap();
        let again = "`cargo run -p requeue-bench --bin pictures` draws it again";
        assert!(is_same, "{}: not of its figures; {again}", file.display());
    }
}

#[test]
fn figures_are_written_as_they_are_read() {
    for picture in &PICTURES {
        let file = folder().join(picture.name).with_extension("json");
        let text = fs::read_to_string(file).unwrap();
        assert_eq!(read(picture.name).to_json().unwrap(), text);
    }
}

#[test]
fn the_delays_are_those_that_the_example_prints() {
    let example = folder().join("../../../../examples/cookbook/delays.rs");
    let example = fs::read_to_string(example).unwrap();
    let header = example.lines().filter_map(|line| line.strip_prefix("//! "));
    let table = header.skip_while(|line| *line != "```text").skip(1);
    let table: Vec<&str> = table.take_while(|line| *line != "```").collect();
    let printed = delays(&table.join("\n"));
    let known = read("delays").figures;
    let is_known = |figure: &&Figure| !known.contains(figure);
    let unknown: Vec<&Figure> = printed.iter().filter(is_known).collect();
    assert!(!printed.is_empty() && unknown.is_empty(), "{unknown:?}");
}
