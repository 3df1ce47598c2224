//! The default hasher cannot be predicted: not even from another process of the same program whose
//! addresses are the same.

use std::env;
use std::hash::BuildHasher;
use std::process::Command;

use requeue_core::binding::RandomState;

/// Set in the processes that print a hash and end.
const PRINT: &str = "REQUEUE_PRINT_A_HASH";

#[test]
#[cfg_attr(miri, ignore = "Miri starts no processes")]
fn two_processes_hash_differently_without_address_randomisation() {
    if env::var_os(PRINT).is_some() {
        println!("hash={}", RandomState::default().hash_one("node-7"));
        return;
    }
    let (one, other) = (hash_of_a_process(), hash_of_a_process());
    assert_ne!(one, other, "an attacker who knows one seed knows them all");
}

/// Runs this test again, with fixed addresses if the system has a command for that.
fn hash_of_a_process() -> String {
    let this = env::current_exe().unwrap();
    let name = "seeds::two_processes_hash_differently_without_address_randomisation";
    let fixed = Command::new("setarch").args(["-R", "true"]).status();
    let mut process = if fixed.is_ok_and(|status| status.success()) {
        let mut setarch = Command::new("setarch");
        setarch.arg("-R").arg(this);
        setarch
    } else {
        Command::new(this)
    };
    let output = process
        .args([name, "--exact", "--nocapture"])
        .env(PRINT, "1")
        .output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    let hash = text.split("hash=").nth(1);
    hash.unwrap().lines().next().unwrap().to_owned()
}
