//! Writes a board's memory layout, and packs the recordings of client-go to fit into its flash.

use std::path::{Path, PathBuf};
use std::{env, fs};

#[path = "build/pack.rs"]
mod pack;

struct Board {
    feature: &'static str,
    memory: &'static str,
    /// Bytes of its flash that recordings may take.
    recordings_max: usize,
}

const BOARDS: [Board; 3] = [
    Board {
        feature: "MPS2",
        memory: "MEMORY {
            FLASH : ORIGIN = 0x00000000, LENGTH = 4M
            RAM : ORIGIN = 0x21000000, LENGTH = 16M
        }",
        recordings_max: usize::MAX,
    },
    Board {
        feature: "MICROBIT",
        memory: "MEMORY {
            FLASH : ORIGIN = 0x00000000, LENGTH = 256K
            RAM : ORIGIN = 0x20000000, LENGTH = 16K
        }",
        recordings_max: 190 * 1024,
    },
    Board {
        feature: "VIRT",
        memory: r#"MEMORY { RAM : ORIGIN = 0x80000000, LENGTH = 16M }
            REGION_ALIAS("REGION_TEXT", RAM);
            REGION_ALIAS("REGION_RODATA", RAM);
            REGION_ALIAS("REGION_DATA", RAM);
            REGION_ALIAS("REGION_BSS", RAM);
            REGION_ALIAS("REGION_HEAP", RAM);
            REGION_ALIAS("REGION_STACK", RAM);"#,
        recordings_max: usize::MAX,
    },
];

const RECORDINGS: &str = "../../proptest/traces";

fn main() {
    let chosen = |board: &&Board| env::var_os(format!("CARGO_FEATURE_{}", board.feature)).is_some();
    let boards: Vec<&Board> = BOARDS.iter().filter(chosen).collect();
    let [board] = boards[..] else {
        panic!("choose one board: --features mps2, microbit or virt");
    };
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("memory.x"), board.memory).expect("the folder is cargo's");
    println!("cargo:rustc-link-search={}", out.display());
    if board.feature == "VIRT" {
        // The script of cortex-m-rt includes this one by itself, that of riscv-rt does not.
        println!("cargo:rustc-link-arg-bins=-Tmemory.x");
    }
    println!("cargo:rustc-link-arg-bins=-Tlink.x");

    let packed = pack::pack(Path::new(RECORDINGS), board.recordings_max);
    fs::write(out.join("recordings.bin"), packed).expect("the folder is cargo's");
    for path in ["build.rs", "build", RECORDINGS] {
        println!("cargo:rerun-if-changed={path}");
    }
}
