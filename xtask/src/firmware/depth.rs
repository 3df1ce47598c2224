//! The stack that a call takes at most, read from the machine code of an image for a Cortex-M3: each
//! function takes what its instructions push and subtract, and calls what they branch to.
//!
//! A measurement sees the situations that somebody thought of. This sees every path. It adds up what
//! exclusive paths of one function take, so that the sum is never too small.
//!
//! Two things are left out: panics, which end the program, and calls through an address in memory,
//! which are those of the wakers of calls that wait.

use std::collections::{BTreeMap, BTreeSet};

use object::read::elf::ElfFile32;
use object::{Endianness, Object, ObjectSection, ObjectSymbol, SymbolKind};

use crate::report::Verdict;

/// The names of the functions that rows are made of begin with this.
const ROOT: &str = "depth_of_";

/// The last column counts the calls that go through an address in memory.
const HEADER: &str =
    "| bytes of stack on every path, and calls that are left out | | |\n|---|--:|--:|\n";

/// A part of the machine code.
#[derive(Debug, Default, PartialEq, Eq)]
struct Function {
    name: String,
    /// Bytes that it pushes and subtracts.
    own: u32,
    calls: BTreeSet<u32>,
    /// How many of its calls go to an address in memory.
    indirect: usize,
}

/// Returns the rows of a table, one for each root.
///
/// # Errors
///
/// The image has no roots, or one of them is recursive.
pub(super) fn table(elf: &[u8]) -> Verdict<String> {
    let functions = read(elf)?;
    let mut table = String::from(HEADER);
    for (address, function) in &functions {
        if let Some(what) = function.name.strip_prefix(ROOT) {
            let (mut known, mut reached) = (BTreeMap::new(), Vec::new());
            let bytes = depth(&functions, *address, &mut known, &mut reached)?;
            let indirect = known.keys().map(|address| functions[address].indirect);
            let indirect: usize = indirect.sum();
            table += &format!("| every path: `{what}` | {bytes} | {indirect} |\n");
        }
    }
    if table == HEADER {
        return Err(format!("no function is called {ROOT}…").into());
    }
    Ok(table)
}

/// The bytes that a function takes with all that it calls.
fn depth(
    functions: &BTreeMap<u32, Function>,
    address: u32,
    known: &mut BTreeMap<u32, u32>,
    path: &mut Vec<u32>,
) -> Result<u32, String> {
    if let Some(bytes) = known.get(&address) {
        return Ok(*bytes);
    }
    let Some(function) = functions.get(&address) else {
        return Err(format!("there is no function at {address:#x}"));
    };
    if path.contains(&address) {
        return Err(format!("{} is recursive", function.name));
    }
    path.push(address);
    let mut deepest = 0;
    for call in &function.calls {
        if !ends(functions, *call) {
            deepest = depth(functions, *call, known, path)?.max(deepest);
        }
    }
    path.pop();
    let bytes = function.own + deepest;
    known.insert(address, bytes);
    Ok(bytes)
}

/// Whether a call never returns.
fn ends(functions: &BTreeMap<u32, Function>, address: u32) -> bool {
    let named = |function: &Function| function.name.contains("panic");
    functions.get(&address).is_some_and(named)
}

/// Reads the functions of an image.
fn read(image: &[u8]) -> object::Result<BTreeMap<u32, Function>> {
    let image = ElfFile32::<Endianness>::parse(image)?;
    let (mut named, mut kinds) = (BTreeMap::new(), BTreeMap::new());
    for symbol in image.symbols() {
        let (name, address) = (symbol.name()?, symbol.address() as u32);
        if name.starts_with("$t") || name.starts_with("$d") {
            kinds.insert(address, name.starts_with("$t"));
        } else if symbol.kind() == SymbolKind::Text && symbol.size() > 0 {
            named.insert(address & !1, (name.to_owned(), symbol));
        }
    }
    let mut functions = BTreeMap::new();
    for (address, (name, symbol)) in named {
        let Some(section) = symbol.section_index() else {
            continue;
        };
        let section = image.section_by_index(section)?;
        let Some(code) = section.data_range(address.into(), symbol.size())? else {
            continue;
        };
        let is_code = |at: u32| kinds.range(..=at).next_back().is_none_or(|(_, code)| *code);
        let mut function = Function {
            name,
            ..Function::default()
        };
        let end = address + code.len() as u32;
        let mut halves = (address..).step_by(2).zip(code.chunks_exact(2));
        let mut next = || {
            let (at, half) = halves.next()?;
            Some((at, u32::from(u16::from_le_bytes([half[0], half[1]]))))
        };
        while let Some((at, first)) = next() {
            if is_code(at) {
                let is_wide = first >> 11 >= 0b11101;
                let second = is_wide.then(&mut next).flatten();
                function.note(at, first, second.map_or(0, |(_, half)| half), address..end);
            }
        }
        functions.insert(address, function);
    }
    Ok(functions)
}

impl Function {
    /// Notes an instruction of one or two half words (Armv7-M Architecture Reference Manual, A7).
    fn note(&mut self, at: u32, first: u32, second: u32, own: std::ops::Range<u32>) {
        match (first, second) {
            // push
            (first, _) if first & 0xFE00 == 0xB400 => self.own += 4 * (first & 0x1FF).count_ones(),
            (0xE92D, registers) => self.own += 4 * registers.count_ones(),
            // str register, [sp, #-bytes]!
            (0xF84D, second) if second & 0x0F00 == 0x0D00 => self.own += second & 0xFF,
            // strd registers, [sp, #-bytes]!
            (0xE96D, second) => self.own += 4 * (second & 0xFF),
            // sub sp, #bytes
            (first, _) if first & 0xFF80 == 0xB080 => self.own += 4 * (first & 0x7F),
            (first, second) if first & 0xFBEF == 0xF1AD && second & 0x0F00 == 0x0D00 => {
                self.own += expanded(first >> 10 & 1, second);
            }
            (first, second) if first & 0xFBFF == 0xF2AD && second & 0x0F00 == 0x0D00 => {
                self.own += (first >> 10 & 1) << 11 | (second >> 12 & 7) << 8 | second & 0xFF;
            }
            // blx and bx of a register, but for a return
            (first, _) if first & 0xFF80 == 0x4780 => self.indirect += 1,
            (first, _) if first & 0xFF80 == 0x4700 && first >> 3 & 0xF != 14 => self.indirect += 1,
            // bl, and branches that leave the function
            (first, second) if first & 0xF800 == 0xF000 && second & 0x9000 == 0x9000 => {
                let sign = first >> 10 & 1;
                let bit = |bit: u32| u32::from(second >> bit & 1 == sign);
                let offset =
                    bit(13) << 23 | bit(11) << 22 | (first & 0x3FF) << 12 | (second & 0x7FF) << 1;
                self.branch(
                    at,
                    offset.wrapping_sub(sign << 24),
                    second & 0x4000 != 0,
                    own,
                );
            }
            (first, _) if first & 0xF800 == 0xE000 => {
                let sign = first >> 10 & 1;
                self.branch(
                    at,
                    ((first & 0x3FF) << 1).wrapping_sub(sign << 11),
                    false,
                    own,
                );
            }
            _ => {}
        }
    }

    fn branch(&mut self, at: u32, offset: u32, is_call: bool, own: std::ops::Range<u32>) {
        let to = at.wrapping_add(4).wrapping_add(offset);
        if is_call || !own.contains(&to) {
            self.calls.insert(to);
        }
    }
}

/// A constant of an instruction: eight bits, repeated or rotated.
fn expanded(high: u32, second: u32) -> u32 {
    let (code, byte) = (high << 3 | second >> 12 & 7, second & 0xFF);
    match code {
        0 => byte,
        1 => byte << 16 | byte,
        2 => byte << 24 | byte << 8,
        3 => byte * 0x0101_0101,
        _ => (byte | 0x80).rotate_right(code << 1 | byte >> 7),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A function at address 0x100, of the half words of its instructions.
    fn function(code: &[(u32, u32)]) -> Function {
        let mut function = Function::default();
        let mut at = 0x100;
        for (first, second) in code {
            function.note(at, *first, *second, 0x100..0x200);
            at += if first >> 11 >= 0b11101 { 4 } else { 2 };
        }
        function
    }

    #[test]
    fn what_is_pushed_and_subtracted_adds_up() {
        // push {r4-r7, lr}; push.w {r4-r11, lr}; str r8, [sp, #-4]!
        let pushes = [(0xB5F0, 0), (0xE92D, 0x4FF0), (0xF84D, 0x8D04)];
        assert_eq!(function(&pushes).own, 20 + 36 + 4);
        // sub sp, #24; sub.w sp, sp, #1024; subw sp, sp, #1028
        let subs = [(0xB086, 0), (0xF5AD, 0x6D80), (0xF2AD, 0x4D04)];
        assert_eq!(function(&subs).own, 24 + 1024 + 1028);
        // push {r7, lr}; mov r7, sp; add sp, #24; pop {r7, pc}
        let others = [(0xB580, 0), (0x466F, 0), (0xB006, 0), (0xBD80, 0)];
        assert_eq!(function(&others).own, 8);
    }

    #[test]
    fn calls_go_forward_back_and_through_registers() {
        // bl 0x300; bl 0x80, 0x104 and 4 and 0x84 before; b.w 0x400; b.w 0x104
        let code = [
            (0xF000, 0xF8FE),
            (0xF7FF, 0xFFBC),
            (0xF000, 0xB97A),
            (0xF7FF, 0xBFFA),
        ];
        let calls: Vec<u32> = function(&code).calls.into_iter().collect();
        assert_eq!(calls, [0x80, 0x300, 0x400]);
        // blx r3; bx r2; bx lr
        let code = [(0x4798, 0), (0x4710, 0), (0x4770, 0)];
        assert_eq!(function(&code).indirect, 2);
    }

    /// `main` calls `one` and `other`, which calls `panic`.
    #[test]
    fn the_deepest_path_counts_and_a_panic_does_not() {
        let made = |name: &str, own, calls: &[u32]| Function {
            name: name.to_owned(),
            own,
            calls: calls.iter().copied().collect(),
            indirect: 0,
        };
        let mut functions = BTreeMap::from([
            (0, made("main", 8, &[2, 4])),
            (2, made("one", 16, &[])),
            (4, made("other", 24, &[6])),
            (6, made("core::panicking::panic", 999, &[])),
        ]);
        let deepest =
            |functions: &BTreeMap<_, _>| depth(functions, 0, &mut BTreeMap::new(), &mut Vec::new());
        assert_eq!(deepest(&functions), Ok(32));
        functions.insert(2, made("one", 16, &[0]));
        assert_eq!(deepest(&functions), Err("main is recursive".to_owned()));
        functions.insert(2, made("one", 16, &[8]));
        assert!(deepest(&functions).unwrap_err().contains("at 0x8"));
    }
}
