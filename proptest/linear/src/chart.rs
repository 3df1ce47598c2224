//! A history as a chart: time runs down, and every thread has a column.

use std::collections::HashSet;
use std::fmt::Debug;
use std::fmt::Write as _;

use crate::minimise::{Core, up_to};
use crate::{CallId, History};

/// What happens on one line.
struct Event {
    at: u64,
    thread: usize,
    begins: bool,
    text: String,
}

/// Draws the beginning of a history, with the calls of its core marked.
pub(crate) fn draw<O: Clone + Debug, A: Clone + Debug>(
    history: &History<O, A>,
    core: &Core,
) -> String {
    let history = up_to(history, core.end);
    let marked: HashSet<CallId> = core.calls.iter().copied().collect();
    let mut chart = draw_marked(&history, &marked);
    let ends = history.calls().filter(|(_, call)| call.returned.is_none());
    let open = ends.count();
    if open > 0 {
        let _ = writeln!(chart, "calls without an end here: {open}");
    }
    chart
}

/// Draws all of a history, with some of its calls marked.
pub(crate) fn draw_marked<O: Debug, A: Debug>(
    history: &History<O, A>,
    marked: &HashSet<CallId>,
) -> String {
    let events = events(history, marked);
    let widths: Vec<usize> = (0..history.threads.len())
        .map(|thread| {
            let own = events.iter().filter(|event| event.thread == thread);
            let widest = own.map(|event| event.text.chars().count() + 2).max();
            widest.unwrap_or(0).max("thread 0".len())
        })
        .collect();
    let mut chart = String::new();
    let mut line = |at: String, cells: Vec<String>| {
        let mut row = format!("{at:>5}");
        for (cell, width) in cells.iter().zip(&widths) {
            let _ = write!(row, "  {cell:<width$}");
        }
        chart.push_str(row.trim_end());
        chart.push('\n');
    };
    let names = (0..widths.len()).map(|thread| format!("thread {thread}"));
    line(String::new(), names.collect());
    let mut open = vec![0_usize; widths.len()];
    for event in events {
        let (sign, after) = if event.begins {
            ("┌", open[event.thread] + 1)
        } else {
            ("└", open[event.thread].saturating_sub(1))
        };
        let cells = open.iter().enumerate().map(|(thread, &open)| {
            if thread == event.thread {
                format!("{sign} {}", event.text)
            } else if open > 0 {
                String::from("│")
            } else {
                String::new()
            }
        });
        line(event.at.to_string(), cells.collect());
        open[event.thread] = after;
    }
    chart
}

fn events<O: Debug, A: Debug>(history: &History<O, A>, marked: &HashSet<CallId>) -> Vec<Event> {
    let mut events = Vec::new();
    for (id, call) in history.calls() {
        let mark = if marked.contains(&id) { "! " } else { "" };
        let mut event = |at, begins, text| {
            events.push(Event {
                at,
                thread: id.thread,
                begins,
                text,
            });
        };
        event(call.called, true, format!("{mark}{:?}", call.request));
        if let Some(at) = call.returned {
            let text = match &call.response {
                Some(response) => format!("{mark}{response:?}"),
                None => format!("{mark}(not known)"),
            };
            event(at, false, text);
        }
    }
    events.sort_by_key(|event| event.at);
    events
}
