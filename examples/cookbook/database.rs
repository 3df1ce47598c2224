//! A queue fed by a database. Notifications name rows, and a run reads the row as it is now.
//!
//! ```text
//! order 1 is sent to Lima
//! order 2 is sent to Oslo
//! order 3 was deleted
//! ```

use requeue::std::{Action, WorkQueue};
use rusqlite::{Connection, OptionalExtension};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let database = Connection::open_in_memory()?;
    database.execute_batch("CREATE TABLE orders (id INTEGER PRIMARY KEY, city TEXT)")?;

    let queue = WorkQueue::new();
    let changed = queue.producer();
    // Runs under the database's lock, so it only adds. With PostgreSQL, use the payloads of LISTEN.
    database.update_hook(Some(move |_, _: &str, _: &str, row: i64| {
        let _ = changed.add(row);
    }));
    database.execute_batch(
        "INSERT INTO orders VALUES (1, 'Oslo'), (2, 'Oslo'), (3, 'Oslo');
         UPDATE orders SET city = 'Lima' WHERE id = 1; DELETE FROM orders WHERE id = 3",
    )?;
    // No hook saw earlier changes. So list the rows now, and after each lost connection.
    let ids = database
        .prepare("SELECT id FROM orders")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<Vec<i64>, _>>()?;
    let _ = queue.add_many(ids);

    queue.shut_down();
    while let Ok(run) = queue.get() {
        let city = "SELECT city FROM orders WHERE id = ?1";
        let city = database.query_row(city, [*run], |row| row.get::<_, String>(0));
        let action = city.optional().map(|city| match city {
            Some(city) => println!("order {} is sent to {city}", *run),
            None => println!("order {} was deleted", *run), // A retry would not find it either.
        });
        run.finish(action.map_or(Action::Retry, |()| Action::Success));
    }
    Ok(())
}
