//! The most that the queue may cost on a board.
//!
//! Instructions are the same on every machine, with the compiler that `rust-toolchain.toml` names.
//! Most bounds are a few per cent above the measured figure, because any change of core moves code.
//! Of the aims on the Cortex-M3, which are for N = 64, only that of `AMONG` is missed.

/// The most that a row of a table of an image may show, column by column.
struct Bound {
    board: &'static str,
    image: &'static str,
    row: &'static str,
    most: &'static [f64],
}

const fn bound(board: &'static str, row: &'static str, most: &'static [f64]) -> Bound {
    let image = "cost";
    Bound {
        board,
        image,
        row,
        most,
    }
}

/// The same for a queue with groups.
const fn grouped(board: &'static str, row: &'static str, most: &'static [f64]) -> Bound {
    let image = "cost-groups";
    Bound {
        image,
        ..bound(board, row, most)
    }
}

/// The same for the slowest call when the deadlines of all keys have passed.
const fn slowest(board: &'static str, row: &'static str, most: &'static [f64]) -> Bound {
    let image = "overdue";
    Bound {
        image,
        ..bound(board, row, most)
    }
}

const ONE_KEY: &str = "**`add`, `try_get`, `success` of one key**";
const DEDUP: &str = "**`add` of a key that is ready: dedup**";
const ALONE: &str = "**`add_after` and its release, nothing else delayed**";
const AMONG: &str = "**`add_after` and its release, N - 1 others delayed**";
const SMALL: &str = "**queue of 16 `u16` keys, exponential, 3 waiters**";
const SLEEP: &str = "`get().await` that goes to sleep";
const NEXT: &str = "`next().await`: ends a run, and goes to sleep";
const FUTURE: &str = "the future of `get`";
const SLOT: &str = "**for each slot**";

// Bytes of stack.
const ADD: &str = "`add`";
const ADD_AFTER: &str = "`add_after`";
const GET_RETRY: &str = "`try_get`, `retry`";
const GET: &str = "`get().await`, once polled and dropped";

const ITS_GROUP: &str = "**`add`, `try_get`, `success` of one key and its group**";
const IN_TURN: &str = "**`add`, `try_get`, `success` of one key, seven groups in turn**";
const AT_LIMIT: &str = "`try_get` while the group is at its limit";
const LETS_RUN: &str = "`success` that lets its next key run";

const BOUNDS: [Bound; 65] = [
    bound("mps2", ADD, &[256.0]),
    bound("mps2", ADD_AFTER, &[272.0]),
    bound("mps2", GET_RETRY, &[432.0]),
    bound("mps2", GET, &[656.0]),
    bound("microbit", ADD, &[384.0]),
    bound("microbit", ADD_AFTER, &[416.0]),
    bound("microbit", GET_RETRY, &[544.0]),
    bound("microbit", GET, &[776.0]),
    bound("virt", ADD, &[240.0]),
    bound("virt", ADD_AFTER, &[240.0]),
    bound("virt", GET_RETRY, &[368.0]),
    bound("virt", GET, &[624.0]),
    bound("mps2", ONE_KEY, &[360.0, 362.0, 407.0]),
    bound("mps2", DEDUP, &[88.0, 88.0, 106.0]),
    bound("mps2", ALONE, &[434.0, 434.0, 480.0]),
    bound("mps2", AMONG, &[721.0, 825.0, 990.0]),
    bound("mps2", SLEEP, &[352.0, 354.0, 368.0]),
    bound("mps2", NEXT, &[460.0, 463.0, 507.0]),
    bound("mps2", FUTURE, &[112.0]),
    bound("mps2", SMALL, &[700.0]),
    bound("mps2", SLOT, &[32.0]),
    bound("microbit", ONE_KEY, &[542.0, 545.0]),
    bound("microbit", DEDUP, &[125.0, 124.0]),
    bound("microbit", ALONE, &[702.0, 712.0]),
    bound("microbit", AMONG, &[1139.0, 1328.0]),
    bound("virt", ONE_KEY, &[562.0, 571.0, 629.0]),
    bound("virt", DEDUP, &[106.0, 109.0, 130.0]),
    bound("virt", ALONE, &[634.0, 639.0, 701.0]),
    bound("virt", AMONG, &[908.0, 1030.0, 1241.0]),
    bound("virt", SLOT, &[32.0]),
    grouped("mps2", ITS_GROUP, &[1010.0, 1012.0, 1080.0]),
    grouped("mps2", IN_TURN, &[698.0, 682.0, 743.0]),
    grouped("mps2", DEDUP, &[102.0, 103.0, 119.0]),
    grouped("mps2", AT_LIMIT, &[87.0, 87.0, 95.0]),
    grouped("mps2", LETS_RUN, &[342.0, 342.0, 369.0]),
    grouped("mps2", SMALL, &[1888.0]),
    grouped("microbit", ITS_GROUP, &[1540.0, 1540.0]),
    grouped("microbit", IN_TURN, &[1055.0, 1020.0]),
    grouped("microbit", AT_LIMIT, &[147.0, 147.0]),
    grouped("microbit", LETS_RUN, &[528.0, 528.0]),
    grouped("virt", ITS_GROUP, &[1293.0, 1307.0, 1400.0]),
    grouped("virt", IN_TURN, &[881.0, 879.0, 951.0]),
    grouped("virt", AT_LIMIT, &[105.0, 106.0, 116.0]),
    grouped("virt", LETS_RUN, &[447.0, 460.0, 501.0]),
    slowest("mps2", "slowest `add`", &[915.0, 1160.0, 1410.0]),
    slowest("mps2", "slowest `add_after`", &[1005.0, 1250.0, 1510.0]),
    slowest("mps2", "slowest `forget`", &[94.0, 94.0, 103.0]),
    slowest("mps2", "slowest `try_get`", &[895.0, 1120.0, 1380.0]),
    slowest("mps2", "slowest `success`", &[900.0, 1120.0, 1390.0]),
    slowest("mps2", "slowest `release`", &[900.0, 1120.0, 1390.0]),
    slowest("mps2", "slowest `retry`", &[1200.0, 1419.0, 1677.0]),
    slowest("microbit", "slowest `add`", &[1460.0, 1905.0]),
    slowest("microbit", "slowest `add_after`", &[1660.0, 2115.0]),
    slowest("microbit", "slowest `forget`", &[127.0, 127.0]),
    slowest("microbit", "slowest `try_get`", &[1445.0, 1895.0]),
    slowest("microbit", "slowest `success`", &[1440.0, 1890.0]),
    slowest("microbit", "slowest `release`", &[1440.0, 1890.0]),
    slowest("microbit", "slowest `retry`", &[2052.0, 2475.0]),
    slowest("virt", "slowest `add`", &[915.0, 1115.0, 1425.0]),
    slowest("virt", "slowest `add_after`", &[1045.0, 1245.0, 1540.0]),
    slowest("virt", "slowest `forget`", &[92.0, 93.0, 107.0]),
    slowest("virt", "slowest `try_get`", &[985.0, 1190.0, 1485.0]),
    slowest("virt", "slowest `success`", &[965.0, 1175.0, 1470.0]),
    slowest("virt", "slowest `release`", &[965.0, 1175.0, 1470.0]),
    slowest("virt", "slowest `retry`", &[1275.0, 1495.0, 1795.0]),
];

/// The most bytes of flash that an image may have more than the one that it is compared with.
const FLASH: [(&str, &str, i64); 6] = [
    ("mps2", "flash-queue", 5800),
    ("microbit", "flash-queue", 6204),
    ("virt", "flash-queue", 8728),
    ("mps2", "flash-groups", 11_250),
    ("microbit", "flash-groups", 11_900),
    ("virt", "flash-groups", 16_280),
];

/// Returns the rows of a board's tables that exceed their bounds or are missing.
pub(super) fn excess(board: &str, image: &str, tables: &str) -> Vec<String> {
    let bounds = BOUNDS
        .iter()
        .filter(|bound| (bound.board, bound.image) == (board, image));
    bounds.filter_map(|bound| exceeded(bound, tables)).collect()
}

/// As [`excess`], for the flash that an image takes.
pub(super) fn flash_excess(board: &str, image: &str, bytes: i64) -> Option<String> {
    let mut bounds = FLASH.iter();
    let (_, _, most) = bounds.find(|(on, of, _)| (*on, *of) == (board, image))?;
    (bytes > *most).then(|| format!("{image} on {board}: {bytes} bytes, at most {most}"))
}

fn exceeded(bound: &Bound, tables: &str) -> Option<String> {
    let Bound {
        board,
        image,
        row,
        most,
    } = bound;
    let line = tables.lines().find_map(|line| {
        let figures = line.strip_prefix("| ")?.strip_prefix(row)?;
        figures.strip_prefix(" |")
    });
    let figures = line.unwrap_or("").split('|').map(str::trim);
    let figures: Vec<f64> = figures.map_while(|word| word.parse().ok()).collect();
    if figures.len() < most.len() {
        return Some(format!("{image} on {board} does not show {row}"));
    }
    let mut pairs = figures.iter().zip(*most);
    pairs
        .any(|(figure, most)| figure > most)
        .then(|| format!("{image} on {board}: {row} {figures:?}, at most {most:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: Bound = bound("mps2", "**a key**", &[400.0, 382.0]);

    #[test]
    fn figures_up_to_the_bound_pass() {
        assert_eq!(exceeded(&BOUND, "| **a key** | 400 | 380 | 9999 |\n"), None);
        assert_eq!(flash_excess("mps2", "flash-queue", 5800), None);
    }

    #[test]
    fn one_more_in_any_column_is_too_much() {
        for line in ["| **a key** | 401 | 380 |", "| **a key** | 400 | 383 |"] {
            let why = exceeded(&BOUND, line).unwrap();
            assert!(why.contains("at most [400.0, 382.0]"), "{why}");
        }
        assert!(flash_excess("mps2", "flash-queue", 5801).is_some());
    }

    #[test]
    fn a_row_that_is_missing_or_short_is_no_pass() {
        let others = [
            "",
            "| **a key** of another kind | 1 | 1 |",
            "| **a key** | 1 |",
        ];
        for tables in others {
            let why = exceeded(&BOUND, tables).unwrap();
            assert!(why.contains("does not show"), "{why}");
        }
    }
}
