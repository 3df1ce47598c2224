//! Which URLs name a receiver, and what is shown of them.

use super::*;

#[test]
fn only_the_origin_is_shown() {
    for (url, shown) in [
        ("http://a.example", "http://a.example/"),
        ("https://me:hush@a.example:99/", "https://a.example:99/"),
        ("http://a.example/hush", "http://a.example/…"),
        ("https://a.example/?token=hush", "https://a.example/…"),
        (
            "http://[2606:4700::1]:81/#hush",
            "http://[2606:4700::1]:81/",
        ),
    ] {
        let target = Target::parse(url, false).unwrap();
        assert_eq!(target.to_string(), shown);
        assert_eq!(format!("{target:?}"), format!("Target({shown})"));
    }
}

#[test]
fn a_host_has_one_name() {
    for (url, host) in [
        ("http://a.example/x", "a.example:80"),
        ("https://me@A.Example?y", "a.example:443"),
        ("http://a.example:8080/", "a.example:8080"),
        ("https://[2606:4700::1]/", "[2606:4700::1]:443"),
    ] {
        assert_eq!(&*Target::parse(url, false).unwrap().host(), host);
    }
}

#[test]
fn what_is_no_receiver_is_refused() {
    let long = format!("http://a.example/{}", "x".repeat(2048));
    for (url, because) in [
        (long.as_str(), "too long"),
        ("", "no URL"),
        ("hush", "no URL"),
        ("http://", "no URL"),
        ("http://hush hush/", "no URL"),
        ("http://user@/", "no URL"),
        ("http://hush:65536/", "no URL"),
        ("ftp://hush/", "http://"),
        ("file://hush/etc/passwd", "http://"),
        ("//hush/", "http://"),
        ("http://hush:0/", "port"),
    ] {
        let why = Target::parse(url, false).unwrap_err();
        assert!(
            why.contains(because) && !why.contains("hush"),
            "{url}: {why}"
        );
    }
}

#[test]
fn private_addresses_are_refused_unless_allowed() {
    for url in [
        "http://127.0.0.1/",
        "http://me@10.0.0.1:80/",
        "https://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://169.254.169.254/latest/meta-data",
        // All of these are 127.0.0.1.
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0177.0.0.1/",
        "http://127.0.0.1%2e/",
    ] {
        assert_eq!(
            Target::parse(url, false).unwrap_err(),
            "the URL's address is not public"
        );
        assert!(Target::parse(url, true).is_ok());
    }
}
