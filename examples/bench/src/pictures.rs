//! Pictures of figures, as SVG.
//!
//! A picture depends only on its figures, so a test can check that the two belong together.

mod axis;
mod bars;
mod delays;
mod lines;
mod page;

use std::error::Error;
use std::path::{Path, PathBuf};

use crate::figures::Figures;

pub use delays::{COMMAND as DELAYS, figures as delays};

/// The contents and the form of a picture.
#[derive(Debug)]
pub struct Picture {
    /// The name of its files, which hold the figures as JSON and the picture as SVG.
    pub name: &'static str,
    /// The bench that measures the figures, and its rows, all if empty. No bench measures the output
    /// of an example.
    pub measured: Option<(&'static str, &'static str)>,
    title: &'static str,
    shapes: Shapes,
}

#[derive(Debug)]
enum Shapes {
    Lines(lines::Lines),
    /// One bar for each of these contenders in each row.
    Bars(&'static [(&'static str, &'static str)]),
}

/// The folder of pictures, each beside its figures.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/src/pictures")
}

const OURS: &str = "requeue";

/// Every picture of figures.
pub const PICTURES: [Picture; 7] = [
    Picture {
        name: "speed",
        measured: Some(("speed", "u64 keys: CPU time per key: steady")),
        title: "CPU time to add, get and complete a key",
        shapes: Shapes::Lines(lines::Lines {
            x: ("waiting keys", axis::Scale::Logarithmic),
            y: axis::Scale::FromZero,
            lines: &[
                ("", "requeue", OURS),
                ("", "port, foldhash", "client-go's layout, foldhash"),
                ("", "port, SipHash", "client-go's layout, SipHash"),
            ],
        }),
    },
    Picture {
        name: "deadlines",
        measured: Some(("peers", "delay, expire, take")),
        title: "CPU time of a key that is delayed, becomes due, and is completed",
        shapes: Shapes::Lines(lines::Lines {
            x: ("delayed keys", axis::Scale::Logarithmic),
            y: axis::Scale::FromZero,
            lines: &[
                (", u64", "requeue", OURS),
                (", u64", "DelayQueue", "tokio-util's DelayQueue"),
            ],
        }),
    },
    Picture {
        name: "threads",
        measured: Some(("speed", "Threads, u64 keys")),
        title: "Wall time per key, by threads that add and threads that complete",
        shapes: Shapes::Bars(&[
            ("requeue", "requeue-std"),
            ("port, foldhash", "client-go's layout, foldhash"),
        ]),
    },
    Picture {
        name: "worst",
        measured: Some(("worst", "Instructions of the slowest")),
        title: "Instructions of the slowest operation as all keys become due at once",
        shapes: Shapes::Lines(lines::Lines {
            x: ("keys that are due", axis::Scale::Logarithmic),
            y: axis::Scale::Logarithmic,
            lines: &[
                ("due at once", "requeue", OURS),
                ("due at once", "port, foldhash", "client-go's layout"),
            ],
        }),
    },
    Picture {
        name: "fairness",
        measured: Some(("groups", "Keys handed out")),
        title: "Keys handed out until each of 999 small groups has had its turn",
        shapes: Shapes::Lines(lines::Lines {
            x: ("keys of one large group", axis::Scale::Logarithmic),
            y: axis::Scale::Logarithmic,
            lines: &[
                ("", "requeue, groups", "requeue, groups"),
                ("", "requeue", "requeue"),
                ("", "client-go's layout", "client-go's layout"),
                ("", "crossbeam", "crossbeam"),
            ],
        }),
    },
    Picture {
        name: "memory",
        measured: Some(("memory", "")),
        title: "Bytes per key, of a million keys",
        shapes: Shapes::Bars(&[("requeue", OURS), ("port, foldhash", "client-go's layout")]),
    },
    Picture {
        name: "delays",
        measured: None,
        title: "How long a key waits after its n-th failure in a row",
        shapes: Shapes::Lines(lines::Lines {
            x: ("failures", axis::Scale::Linear),
            y: axis::Scale::Logarithmic,
            lines: &[
                ("", "default_controller", "default_controller"),
                ("", "default_item_based", "default_item_based"),
                ("", "WithMaxWait, 20 s", "WithMaxWait, 20 s"),
                ("", "FastSlow", "FastSlow"),
                ("", "TokenBucket", "TokenBucket"),
            ],
        }),
    },
];

/// Draws a picture.
///
/// # Errors
///
/// The figures of one of its shapes are missing.
pub fn draw(picture: &Picture, figures: &Figures) -> Result<String, Box<dyn Error>> {
    let drawing = match &picture.shapes {
        Shapes::Lines(lines) => lines::draw(lines, figures)?,
        Shapes::Bars(contenders) => bars::draw(contenders, figures)?,
    };
    Ok(page::finish(&drawing, picture.title, &figures.source))
}
