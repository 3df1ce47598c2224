//! What is done before it stops, and what is left to the next start.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use crate::support::{Manner, Place, Receiver, User, window};
use serde_json::json;
use tokio::sync::Semaphore;

#[tokio::test]
async fn it_stops_with_what_is_slow_undone_and_goes_on_with_it() {
    let (place, user) = (Place::new(), User::new());
    let options = ["--allow-private", "--grace", "0"];
    let service = place.start(&options);
    let permits = Arc::new(Semaphore::new(0));
    let receiver = Receiver::new(Manner::Slow(permits.clone())).await;
    user.put(
        &service,
        "/subscriptions/s",
        &json!({"url": receiver.url()}),
    )
    .await;
    user.put(&service, "/objects/o", &json!(1)).await;
    // A silent connection does not hold it up, and neither does a page of the window that is open.
    let mut silent = TcpStream::connect(service.address).unwrap();
    silent.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    let mut page = TcpStream::connect(service.address).unwrap();
    let head = format!(
        "GET {} HTTP/1.1\r\nHost: {}\r\n\r\n",
        window("events"),
        service.address
    );
    page.write_all(head.as_bytes()).unwrap();
    let mut events = vec![0; 15];
    page.read_exact(&mut events).unwrap();
    assert_eq!(events, b"HTTP/1.1 200 OK");
    assert_eq!(service.terminate().await.code(), Some(0));
    let _ = silent.read_to_end(&mut Vec::new());
    // The stream of events came to its end, and was not broken off.
    page.read_to_end(&mut events).unwrap();
    assert!(events.ends_with(b"\r\n0\r\n\r\n"));
    assert!(
        place.said().contains("left for the next start: 1\n"),
        "{}",
        place.said()
    );

    let service = place.start(&options);
    permits.add_permits(1);
    receiver
        .until("delivered", |receiver| receiver.taken() == 1)
        .await;
    user.settled(&service).await;
    assert!(
        place.said().contains("owed from before: 1\n"),
        "{}",
        place.said()
    );
}

#[tokio::test]
async fn it_delivers_what_is_ready_before_it_stops() {
    let (place, user) = (Place::new(), User::new());
    let service = place.start(&["--allow-private", "--grace", "60"]);
    let receiver = Receiver::new(Manner::Steady).await;
    user.put(
        &service,
        "/subscriptions/s",
        &json!({"url": receiver.url()}),
    )
    .await;
    for object in 0..50 {
        user.put(&service, &format!("/objects/o{object}"), &json!(1))
            .await;
    }
    assert_eq!(service.terminate().await.code(), Some(0));
    assert_eq!(receiver.knows_count(), 50);
    assert!(!place.said().contains("left"), "{}", place.said());
}
