//! The compiler's messages for programs that do not fit, on threads and on tasks. They name the
//! bound that is missing. They are here because trybuild builds all dependencies of the package again,
//! and this one has few.

use requeue_test_tools::is_pinned_compiler;

#[test]
fn messages_name_the_bound() {
    if is_pinned_compiler() {
        trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
    }
}
