//! What the compiler says of programs that do not fit: the message names the bound that is missing.

use requeue_test_tools::is_pinned_compiler;

#[test]
fn messages_name_the_bound() {
    if is_pinned_compiler() {
        trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
    }
}
