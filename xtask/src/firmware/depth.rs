//! The stack that a call takes at most, read from the disassembly of an image for a Cortex-M3: each
//! function takes what its instructions push and subtract, and calls what they branch to.
//!
//! A measurement sees the situations that somebody thought of. This sees every path. It adds up what
//! exclusive paths of one function take, so that the sum is never too small.
//!
//! Two things are left out: panics, which end the program, and calls through an address in memory,
//! which are those of the wakers of calls that wait.

use std::collections::{BTreeMap, BTreeSet};

use crate::cmd::cmd;
use crate::report::Verdict;
use crate::tools::OBJDUMP_ARM;

/// The names of the functions that rows are made of begin with this.
const ROOT: &str = "depth_of_";

/// The last column counts the calls that go through an address in memory.
const HEADER: &str =
    "| bytes of stack on every path, and calls that are left out | | |\n|---|--:|--:|\n";

/// A part of the machine code.
#[derive(Default)]
struct Function<'a> {
    /// Bytes that it pushes and subtracts.
    own: u32,
    /// The names of the functions that it calls.
    calls: BTreeSet<&'a str>,
    /// How many of its calls go to an address in memory.
    indirect: usize,
}

/// Returns the rows of a table, one for each root of an image.
///
/// # Errors
///
/// The image has no roots, or one of them is recursive.
pub(super) fn table(image: &str) -> Verdict<String> {
    let listing = cmd("").arg(OBJDUMP_ARM.promised()?);
    let listing = listing.args(["-d", "--no-show-raw-insn", image]).read()?;
    let functions = functions(&listing)?;
    let mut table = String::from(HEADER);
    for name in functions.keys() {
        if let Some(what) = name.strip_prefix(ROOT) {
            let mut known = BTreeMap::new();
            let bytes = depth(&functions, name, &mut known, &mut Vec::new())?;
            let indirect: usize = known.keys().map(|name| functions[name].indirect).sum();
            table += &format!("| every path: `{what}` | {bytes} | {indirect} |\n");
        }
    }
    if table == HEADER {
        return Err(format!("no function is called {ROOT}…").into());
    }
    Ok(table)
}

/// The bytes that a function takes with all that it calls.
fn depth<'a>(
    functions: &BTreeMap<&'a str, Function<'a>>,
    name: &'a str,
    known: &mut BTreeMap<&'a str, u32>,
    path: &mut Vec<&'a str>,
) -> Result<u32, String> {
    if let Some(bytes) = known.get(name) {
        return Ok(*bytes);
    }
    let function = functions
        .get(name)
        .ok_or_else(|| format!("there is no function {name}"))?;
    if path.contains(&name) {
        return Err(format!("{name} is recursive"));
    }
    path.push(name);
    let mut deepest = 0;
    for call in function.calls.iter().filter(|call| !call.contains("panic")) {
        deepest = depth(functions, call, known, path)?.max(deepest);
    }
    path.pop();
    known.insert(name, function.own + deepest);
    Ok(function.own + deepest)
}

/// Reads what `objdump -d` prints: the name of each function, and its instructions below it.
///
/// # Errors
///
/// The line of an instruction that takes an unknown number of bytes.
fn functions(listing: &str) -> Result<BTreeMap<&str, Function<'_>>, String> {
    let mut functions = BTreeMap::new();
    let mut name = "";
    for line in listing.lines() {
        if let Some(label) = line.strip_suffix(">:") {
            name = label.split_once(" <").map_or("", |(_, name)| name);
        } else if let [_, instruction, operands, ..] = line.split('\t').collect::<Vec<_>>()[..] {
            let function: &mut Function<'_> = functions.entry(name).or_default();
            let noted = function.note(name, instruction, operands);
            noted.ok_or_else(|| format!("not understood: {line}"))?;
        }
    }
    Ok(functions)
}

impl<'a> Function<'a> {
    /// Notes an instruction of the function called `name`, which may end in a condition or `.w`.
    fn note(&mut self, name: &str, instruction: &str, operands: &'a str) -> Option<()> {
        let is = |begin| instruction.starts_with(begin);
        let commas = operands.matches(", ").count() as u32;
        self.own += if is("push") {
            4 * (commas + 1)
        } else if is("stmdb") && operands.starts_with("sp!") {
            4 * commas
        } else if is("sub") && operands.starts_with("sp, ") || operands.contains("[sp, #-") {
            let (_, bytes) = operands.rsplit_once('#')?;
            bytes.trim_matches(['-', ']', '!']).parse().ok()?
        } else {
            0
        };
        if let Some((_, to)) = operands.split_once(" <").filter(|_| is("b")) {
            let to = to.trim_end_matches('>').split("+0x").next().unwrap_or(to);
            // Other branches stay in the function.
            if instruction == "bl" || to != name {
                self.calls.insert(to);
            }
        } else if (is("bx") || is("blx")) && operands != "lr" {
            self.indirect += 1;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `main` calls `one`, through an address, and at its end `other`, which calls `panic`.
    const LISTING: &str = "
00000100 <main>:
     100:\tpush\t{r4, r5, r6, r7, lr}
     102:\tstmdb\tsp!, {r8, r9, sl, fp}
     106:\tstr.w\tr8, [sp, #-4]!
     10a:\tsubw\tsp, sp, #1028\t@ 0x404
     10e:\tbne.n\t10a <main+0xa>
     110:\tbl\t200 <one>
     114:\tblx\tr3
     116:\tadd\tsp, #24
     118:\tbx\tlr
     11a:\tb.w\t300 <other>

00000200 <one>:
     200:\tsub\tsp, #16

00000300 <other>:
     300:\tsub.w\tsp, sp, #24
     304:\tbl\t400 <core::panicking::panic>
";

    fn deepest(listing: &str) -> Result<u32, String> {
        depth(
            &functions(listing)?,
            "main",
            &mut BTreeMap::new(),
            &mut Vec::new(),
        )
    }

    #[test]
    fn the_deepest_path_counts_and_a_panic_does_not() {
        assert_eq!(deepest(LISTING), Ok(20 + 16 + 4 + 1028 + 24));
        let functions = functions(LISTING).unwrap();
        assert_eq!(functions["main"].indirect, 1);
        assert_eq!(functions["main"].calls, BTreeSet::from(["one", "other"]));
    }

    #[test]
    fn what_has_no_known_depth_is_found() {
        let recursive = LISTING.replace("sub\tsp, #16", "bl\t100 <main>");
        assert_eq!(deepest(&recursive), Err("main is recursive".to_owned()));
        let missing = LISTING.replace("200 <one>\n", "500 <two>\n");
        assert_eq!(
            deepest(&missing),
            Err("there is no function two".to_owned())
        );
        let variable = LISTING.replace("sp, #16", "sp, r4");
        assert_eq!(
            deepest(&variable),
            Err("not understood:      200:\tsub\tsp, r4".to_owned())
        );
    }
}
