//! The parts of the project that an image may link. Only what a program uses may take flash, so the
//! names of its functions say whether it contains more.
//!
//! A function that was inlined has no name in the image. The bounds of the image's size find it.

use object::read::elf::ElfFile32;
use object::{Endianness, Object, ObjectSymbol, SymbolKind};

use crate::report::Verdict;

/// A part, and what the names of its functions contain.
const PARTS: [(&str, &str); 7] = [
    ("queue", "requeue_core"),
    ("groups", "grouped"),
    ("rates", "core4rate ..rates.."),
    ("policy", "queue6policy core6policy"),
    ("suspension", "queue7suspend"),
    ("slack", "slack"),
    (
        "floats",
        "__aeabi_d __aeabi_f __aeabi_i2d __aeabi_l2d __aeabi_ui2d __aeabi_ul2d __adddf3 __subdf3 \
         __muldf3 __divdf3 __ledf2 __gedf2 __fixunsdfdi __floatundidf builtins5float",
    ),
];

/// An image, and the parts that it uses.
pub(super) const USES: [(&str, &str); 8] = [
    ("flash-nothing", ""),
    ("flash-channel", ""),
    ("flash-queue", "queue"),
    ("flash-awaited", "queue"),
    ("flash-groups", "queue groups"),
    ("flash-rates", "queue groups rates"),
    ("flash-policy", "queue policy"),
    ("flash-slack", "queue slack"),
];

/// The functions of an image that belong to other parts than those that it uses.
pub(super) fn unused(elf: &[u8], image: &str, uses: &str) -> Verdict<Vec<String>> {
    let elf = ElfFile32::<Endianness>::parse(elf)?;
    let mut found = Vec::new();
    for symbol in elf.symbols() {
        if symbol.kind() == SymbolKind::Text && symbol.size() > 0 {
            let name = symbol.name()?;
            found.extend(
                belongs_to(name, uses)
                    .map(|part| format!("{image} does not use {part}, and contains {name}")),
            );
        }
    }
    Ok(found)
}

/// The part of a function that is not among these.
fn belongs_to(function: &str, uses: &str) -> Option<&'static str> {
    let is_unused = |part: &&(&str, &str)| {
        let is_used = uses.split(' ').any(|used| used == part.0);
        !is_used && part.1.split(' ').any(|name| function.contains(name))
    };
    PARTS.iter().find(is_unused).map(|part| part.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_of_a_part_that_is_not_used_is_found() {
        let rate = "_ZN12requeue_core4rate4Rate10rest_until17h6b0d510c42ffd25eE";
        assert_eq!(belongs_to(rate, "queue groups"), Some("rates"));
        assert_eq!(belongs_to(rate, "queue groups rates"), None);
        assert_eq!(belongs_to(rate, ""), Some("queue"));
        for float in ["__aeabi_dmul", "__aeabi_ul2d", "__muldf3", "__floatundidf"] {
            assert_eq!(belongs_to(float, "queue"), Some("floats"), "{float}");
        }
        assert_eq!(belongs_to("__aeabi_uldivmod", ""), None);
    }
}
