//! The compiler's messages for programs that do not fit. They name the bound that is missing.
//!
//! trybuild builds all dependencies of a package again. This package has few, so the messages for
//! threads are checked here too.

use requeue_test_tools::is_pinned_compiler;

#[test]
fn messages_name_the_bound() {
    if is_pinned_compiler() {
        trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
    }
}
