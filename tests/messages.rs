//! The compiler's messages for programs that do not fit. They name the bound that is missing.

use requeue_test_tools::is_pinned_compiler;

#[test]
fn messages_name_the_bound() {
    if is_pinned_compiler() {
        trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
    }
}
