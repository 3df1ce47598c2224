//! Groups: how long a small one waits behind a large one, and what turns cost.
//!
//! `-- --plot=FILE` draws the first table as an SVG.

use std::error::Error;

use plotters::prelude::*;
use requeue_bench::fairness::{SMALL_GROUPS, group_of, wait_of_the_last};
use requeue_bench::harness::{Contender, Suite, machine};
use requeue_bench::keys::Random;
#[cfg(feature = "peers")]
use requeue_bench::peers::Fifo;
use requeue_bench::port::Port;
use requeue_bench::subject::{grouped, ours};
use requeue_bench::workloads::{Scale, Steady, Workload};

type Fold = foldhash::fast::RandomState;

/// How many keys the large group has.
const LARGE: [u64; 7] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000];

/// A name, and the wait at each size of the large group.
type Line = (&'static str, Vec<(u64, u64)>);

fn main() -> Result<(), Box<dyn Error>> {
    println!("{}", machine());
    let mut suite = Suite::from_args();
    suite.group("Keys handed out until the last of 999 small groups has its turn");
    let lines = if suite.asks_for("waits") {
        waits(suite.is_quick())
    } else {
        Vec::new()
    };
    let file = std::env::args().find_map(|argument| Some(argument.strip_prefix("--plot=")?.into()));
    if let Some::<String>(file) = file {
        plot(&file, &lines)?;
    }
    suite.group("One thread, u64 keys in 1,000 groups: CPU time per key");
    for keys in [100, 10_000, 1_000_000] {
        steady(&mut suite, keys);
    }
    Ok(())
}

/// Prints how many keys are handed out until the last small group has had its turn.
fn waits(quick: bool) -> Vec<Line> {
    let sizes = LARGE.iter().filter(|size| !quick || **size <= 100);
    let sizes: Vec<u64> = sizes.copied().collect();
    let of = |name, wait: &dyn Fn(u64) -> u64| -> Line {
        let at = |size: &u64| (*size, wait(*size));
        (name, sizes.iter().map(at).collect())
    };
    let lines = vec![
        of("requeue, groups", &|large| {
            wait_of_the_last(grouped::<u64, Fold>(group_of), large)
        }),
        of("requeue", &|large| {
            wait_of_the_last(ours::<u64, Fold>(), large)
        }),
        of("client-go's layout", &|large| {
            wait_of_the_last(Port::<u64, Fold>::default(), large)
        }),
        #[cfg(feature = "peers")]
        of("crossbeam", &|large| {
            wait_of_the_last(Fifo::default(), large)
        }),
    ];
    let names: Vec<&str> = lines.iter().map(|(name, _)| *name).collect();
    println!("\n### Keys handed out until the last of {SMALL_GROUPS} small groups has its turn\n");
    println!("| keys of the large group | {} |", names.join(" | "));
    println!("|--:|{}", "--:|".repeat(lines.len()));
    for (place, size) in sizes.iter().enumerate() {
        let waits = lines.iter().map(|(_, waits)| waits[place].1.to_string());
        println!("| {size} | {} |", waits.collect::<Vec<_>>().join(" | "));
    }
    lines
}

/// The cycle of a queue under load, without groups and with a thousand of them.
fn steady(suite: &mut Suite, keys: usize) {
    let scale = Scale {
        keys,
        operations: 50_000,
    };
    suite.row(&format!("steady, {keys} waiting"), 25, scale, |scale| {
        let seed = Random::any_seed();
        let mut plain = Steady::<u64, _>::set_up(ours::<u64, Fold>(), scale, seed);
        let in_turn = grouped::<u64, Fold>(|key| key % 1_000);
        let mut grouped = Steady::<u64, _>::set_up(in_turn, scale, seed);
        vec![
            Contender::new("no groups", move || plain.round()),
            Contender::new("1,000 groups", move || grouped.round()).aim_at_most(1.3),
        ]
    });
}

/// Draws the waits against the size of the large group, both on a logarithmic scale.
fn plot(file: &str, lines: &[Line]) -> Result<(), Box<dyn Error>> {
    const COLORS: [RGBColor; 4] = [
        RGBColor(0, 114, 178),
        RGBColor(0, 158, 115),
        RGBColor(230, 159, 0),
        RGBColor(204, 121, 167),
    ];
    let longest = lines
        .iter()
        .flat_map(|(_, waits)| waits)
        .map(|(_, wait)| *wait);
    let longest = longest.max().unwrap_or(1);
    let root = SVGBackend::new(file, (720, 420)).into_drawing_area();
    root.fill(&WHITE)?;
    let last = lines
        .iter()
        .flat_map(|(_, waits)| waits.last())
        .map(|(size, _)| *size);
    let last = last.max().unwrap_or(1);
    let mut chart = ChartBuilder::on(&root)
        .margin(16)
        .x_label_area_size(44)
        .y_label_area_size(76)
        .build_cartesian_2d((1..last * 2).log_scale(), (500..longest * 2).log_scale())?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_desc("keys of the large group")
        .y_desc("keys handed out until the last small group has its turn")
        .draw()?;
    // Lines that lie on each other are narrower the later they are drawn.
    for (((name, waits), color), width) in lines.iter().zip(COLORS).zip([9, 7, 5, 2]) {
        let style = color.stroke_width(width);
        chart
            .draw_series(LineSeries::new(waits.iter().copied(), style).point_size(3))?
            .label(*name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE)
        .border_style(BLACK)
        .draw()?;
    root.present()?;
    Ok(())
}
