//! The pages: tables that need no script, and the parts of them that events replace. Owns the
//! markup; never asks a queue for more than a page shows.

use std::time::Duration;

use maud::{DOCTYPE, Markup, html};

use crate::http::{App, Base, encode};
use crate::inspector::Inspect;
use crate::text::{Shown, Span, count};
use crate::view::{
    EndView, GroupView, Histogram, KeyDetail, KeyPage, KeyPhase, KeyQuery, KeyView, QueueView,
    Sample, Sort,
};

/// How many rows the tables beside the keys have.
const ROWS: usize = 20;

/// The heads of columns that contain numbers.
const NUMBERS: [&str; 10] = [
    "A second",
    "Active",
    "All",
    "At most active",
    "Attempt",
    "Failures",
    "For",
    "Ready",
    "Took",
    "Weight",
];

/// The size of the picture, in its own units.
const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 120.0;

const PHASES: [(KeyPhase, &str, &str); 6] = [
    (KeyPhase::Active, "active", "active"),
    (KeyPhase::Dirty, "dirty", "active, runs again"),
    (KeyPhase::Ready, "ready", "ready"),
    (KeyPhase::Delayed, "delayed", "delayed"),
    (KeyPhase::Suspended, "suspended", "suspended"),
    (KeyPhase::Failures, "failures", "failures only"),
];

const SORTS: [(Sort, &str, &str); 4] = [
    (Sort::Phase, "phase", "state"),
    (Sort::Group, "group", "group"),
    (Sort::Failures, "failures", "most failures"),
    (Sort::Next, "next", "next time"),
];

fn ms(millis: u64) -> Span {
    Span(Duration::from_millis(millis))
}

fn phase(phase: KeyPhase) -> &'static str {
    let known = PHASES.iter().find(|(other, ..)| *other == phase);
    known.map_or("not in the queue", |(.., shown)| shown)
}

/// The frame of every page.
fn frame(
    base: &Base,
    title: &str,
    way: &[(String, &str)],
    live: Option<String>,
    body: &Markup,
) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (Shown(title)) " · requeue" }
                link rel="stylesheet" href=(base.path("style.css"));
                script src=(base.path("script.js")) defer {}
            }
            body data-live=[live.as_deref()] {
                a.skip href="#main" { "Skip to the content" }
                header {
                    nav aria-label="Where you are" {
                        ol {
                            li { a href=(base.path("")) { "Queues" } }
                            @for (path, name) in way {
                                li { a href=(path) { (Shown(name)) } }
                            }
                        }
                    }
                    @if live.is_some() {
                        // Without the script there is nothing to stop.
                        p #connection hidden {
                            span #news role="status" { "live" }
                            button #hold type="button" { "Stop updates" }
                        }
                    }
                }
                main #main { (body) }
                footer { a href=(base.path("api/openapi.json")) { "JSON of all this (OpenAPI)" } }
            }
        }
    }
}

pub(crate) fn problem(base: &Base, why: &str) -> Markup {
    let body = html! {
        h1 { "That did not work" }
        p { (capital(why)) "." }
        p { a href=(base.path("")) { "All queues" } }
    };
    frame(base, "That did not work", &[], None, &body)
}

fn capital(sentence: &str) -> String {
    let mut chars = sentence.chars();
    let first = chars.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(chars).collect()
}

pub(crate) fn index(app: &App, base: &Base) -> Markup {
    let body = html! {
        h1 { "Queues" }
        div.scroll tabindex="0" role="region" aria-label="Queues" {
            table {
                thead { tr {
                    th scope="col" { "Queue" }
                    th.n scope="col" { "Ready" } th.n scope="col" { "Active" }
                    th.n scope="col" { "Delayed" } th.n scope="col" { "Runs" }
                    th.n scope="col" { "Failures" } th scope="col" { "What keeps keys from running" }
                } }
                tbody {
                    @for view in app.registry.queues().map(Inspect::view) {
                        tr {
                            th scope="row" { a href=(base.queue(&view.name)) { (Shown(&view.name)) } }
                            td.n { (view.ready) } td.n { (view.active) }
                            td.n { (view.delayed) } td.n { (view.runs) }
                            td.n { (view.failures) }
                            td { (view.findings.first().map_or("Nothing.", String::as_str)) }
                        }
                    }
                }
            }
        }
    };
    frame(base, "Queues", &[], None, &body)
}

pub(crate) fn queue(
    app: &App,
    base: &Base,
    queue: &dyn Inspect,
    query: &KeyQuery,
    keys: &KeyPage,
) -> Markup {
    let view = queue.view();
    let body = html! {
        h1 { (Shown(&view.name)) }
        nav.parts aria-label="On this page" {
            a href="#runs" { "Runs" }
            @if view.has_groups { a href="#groups" { "Groups" } }
            a href="#times" { "Times" } a href="#ends" { "Last runs" }
            @if view.dead.is_some() { a href="#dead" { "Dead keys" } }
            a href="#keys" { "Keys" }
            @if app.token.is_some() { a href="#control" { "Change" } }
        }
        (queue_live(app, base, queue))
        (list(base, &view, query, keys))
        @if app.token.is_some() { (controls(app, base, &view)) }
    };
    let path = base.queue(&view.name);
    let live = Some(format!("{path}/live"));
    frame(base, &view.name, &[(path, &view.name)], live, &body)
}

/// What changes every second: sections with ids, which the script replaces by these.
pub(crate) fn queue_live(app: &App, base: &Base, queue: &dyn Inspect) -> Markup {
    let view = queue.view();
    let samples = app.samples(&view.name);
    html! {
        section #findings {
            h2 { "What keeps keys from running" }
            @if view.findings.is_empty() {
                p.fine { "Nothing: keys that are ready are run." }
            } @else {
                ul.findings { @for finding in &view.findings { li { (finding) } } }
            }
        }
        section #figures {
            h2 { "Now" }
            dl {
                (figure("Ready", view.ready)) (figure("Active", view.active))
                (figure("Delayed", view.delayed)) (figure("Suspended", view.suspended))
                @if let Some(workers) = view.workers { (figure("Workers", workers)) }
                (figure("Runs", view.runs)) (figure("Failures", view.failures))
                (figure("Given up", view.given_up))
                @if let Some(dead) = view.dead { (figure("Dead keys", dead)) }
                @if let Some(most) = view.max_keys { (figure("Room for", most)) }
            }
        }
        section #picture {
            h2 { "The last five minutes" }
            (picture(&samples))
        }
        (runs(base, queue, &view))
        @if view.has_groups { (groups(app, base, queue, &view)) }
        section #times {
            h2 { "Waits and run times" }
            div.beside {
                (histogram("How long keys waited for a worker", &view.waits,
                    "No key has waited, or the queue keeps no times: build it with `report_to(Times)` or with metrics."))
                (histogram("How long runs took", &view.run_times, "No run has ended."))
            }
        }
        (ends("The last runs", base, &view.name, &queue.ends(ROWS)))
        @if view.dead.is_some() { (dead(app, base, queue, &view)) }
        (actions(app, &view))
    }
}

fn figure(name: &str, value: impl std::fmt::Display) -> Markup {
    html! { div { dt { (name) } dd { (value) } } }
}

/// Depth above, runs and failures below, on the same seconds.
fn picture(samples: &[Sample]) -> Markup {
    let last = samples.last().copied().unwrap_or_default();
    let depth = samples
        .iter()
        .map(|sample| sample.ready.max(sample.active).max(sample.delayed));
    let depth = depth.max().unwrap_or(0).max(1);
    let runs = samples
        .iter()
        .map(|sample| sample.runs)
        .max()
        .unwrap_or(0)
        .max(1);
    let line = |most: f64, of: fn(&Sample) -> f64| {
        let points = samples.iter().map(|sample| {
            let x = WIDTH - (last.seq - sample.seq) as f64 * 2.0;
            let y = HEIGHT - 2.0 - of(sample) / most * (HEIGHT - 4.0);
            format!("{x:.0},{y:.1}")
        });
        points.collect::<Vec<_>>().join(" ")
    };
    let depth_of = depth as f64;
    let runs_of = runs as f64;
    html! {
        figure {
            figcaption { "Keys, up to " (depth) ": "
                span.k-ready { "ready " (last.ready) } ", " span.k-active { "active " (last.active) } ", "
                span.k-delayed { "delayed " (last.delayed) } }
            svg viewBox={"0 0 " (WIDTH) " " (HEIGHT)} preserveAspectRatio="none" role="img"
                aria-label={"Keys over five minutes: now " (last.ready) " ready, " (last.active) " active, "
                    (last.delayed) " delayed; at most " (depth)} {
                polyline.ready points=(line(depth_of, |sample| sample.ready as f64)) {}
                polyline.delayed points=(line(depth_of, |sample| sample.delayed as f64)) {}
                polyline.active points=(line(depth_of, |sample| sample.active as f64)) {}
            }
        }
        figure {
            figcaption { "A second, up to " (runs) ": "
                span.k-runs { "runs " (last.runs) } ", " span.k-failed { "failures " (last.failures) } }
            svg viewBox={"0 0 " (WIDTH) " " (HEIGHT)} preserveAspectRatio="none" role="img"
                aria-label={"Runs in each second of five minutes: now " (last.runs) ", " (last.failures)
                    " of them failed; at most " (runs)} {
                polyline.runs points=(line(runs_of, |sample| sample.runs as f64)) {}
                polyline.failed points=(line(runs_of, |sample| sample.failures as f64)) {}
            }
        }
    }
}

fn runs(base: &Base, queue: &dyn Inspect, view: &QueueView) -> Markup {
    let runs = queue.runs(ROWS);
    html! {
        section #runs {
            h2 { "Runs in progress" }
            @if view.workers.is_none() {
                p { "The workers of this queue are not watched, so their runs are not known." }
            } @else if runs.is_empty() {
                p { "No key runs." }
            } @else {
                (table("Runs in progress", &["Key", "For", "Attempt", ""], &html! {
                    @for run in &runs {
                        tr {
                            th scope="row" { (key_link(base, &view.name, &run.id)) }
                            td.n { (ms(run.running_ms)) } td.n { (run.attempt) }
                            td { @if run.overdue { strong.bad { "past its timeout" } } }
                        }
                    }
                }))
                @if view.active > runs.len() { p.note { "The oldest of " (view.active) "." } }
            }
        }
    }
}

fn groups(app: &App, base: &Base, queue: &dyn Inspect, view: &QueueView) -> Markup {
    let page = queue.groups(ROWS);
    let controls = app.token.is_some();
    let mut heads = vec![
        "Group",
        "Ready",
        "Active",
        "All",
        "At most active",
        "A second",
        "Weight",
        "State",
    ];
    if controls {
        heads.push("Change");
    }
    html! {
        section #groups {
            h2 { "Groups" }
            (table("Groups, the longest backlog first", &heads, &html! {
                @for group in &page.groups {
                    tr {
                        th scope="row" {
                            a href={(base.queue(&view.name)) "?group=" (encode(&group.name)) "#keys"} { (Shown(&group.name)) }
                        }
                        td.n { (group.ready) } td.n { (group.active) } td.n { (group.total) }
                        td.n { @match group.limits.max_active { Some(most) => (most), None => "–" } }
                        td.n { @match group.limits.rate {
                            Some(rate) => { (rate.per_second) " (burst " (rate.burst) ")" }, None => "–"
                        } }
                        td.n { (group.limits.weight.unwrap_or(1)) }
                        td { (group_state(group)) }
                        @if controls { td { (group_controls(app, base, view, group)) } }
                    }
                }
            }))
            @if page.total > page.groups.len() { p.note { (page.groups.len()) " of " (page.total) " groups." } }
        }
    }
}

fn group_state(group: &GroupView) -> Markup {
    let at_limit = group
        .limits
        .max_active
        .is_some_and(|most| group.active >= most);
    html! {
        @if group.paused { strong.bad { "paused" } }
        @else if group.blocked && at_limit { strong.bad { "at its limit" } }
        @else if group.blocked { strong.bad { "has used its rate" } }
        @else { "runs" }
    }
}

fn group_controls(app: &App, base: &Base, view: &QueueView, group: &GroupView) -> Markup {
    let name = Shown(&group.name);
    let action = if group.paused {
        "unpause_group"
    } else {
        "pause_group"
    };
    let word = if group.paused { "Unpause" } else { "Pause" };
    let limits = &group.limits;
    html! {
        (form(app, base, view, &html! {
            input type="hidden" name="group" value=(encode(&group.name));
            button name="action" value=(action) aria-label={(word) " the group " (name)} { (word) }
        }))
        details {
            summary { "Limits" }
            (form(app, base, view, &html! {
                input type="hidden" name="group" value=(encode(&group.name));
                label { "At most active " input type="number" min="0" name="max_active" value=[limits.max_active]; }
                label { "A second " input type="number" min="0" step="any" name="per_second" value=[limits.rate.map(|rate| rate.per_second)]; }
                label { "Burst " input type="number" min="1" name="burst" value=[limits.rate.map(|rate| rate.burst)]; }
                label { "Weight " input type="number" min="1" name="weight" value=[limits.weight]; }
                button name="action" value="limit_group" aria-label={"Set the limits of the group " (name)} { "Set" }
            }))
        }
    }
}

fn histogram(caption: &str, times: &Histogram, nothing: &str) -> Markup {
    let most = times
        .buckets
        .iter()
        .map(|bucket| bucket.count)
        .max()
        .unwrap_or(0)
        .max(1);
    let first = times
        .buckets
        .iter()
        .position(|bucket| bucket.count > 0)
        .unwrap_or(0);
    let end = times
        .buckets
        .iter()
        .rposition(|bucket| bucket.count > 0)
        .map_or(0, |last| last + 1);
    let shown = times.buckets.get(first..end).unwrap_or_default();
    html! {
        div {
            h3 { (caption) }
            @if times.count == 0 { p { (nothing) } } @else {
                table.bars {
                    caption.hidden { (caption) }
                    thead { tr { th.n scope="col" { "At most" } th.n scope="col" { "Count" } th scope="col" { span.hidden { "Share" } } } }
                    tbody {
                        @for bucket in shown {
                            tr {
                                th.n scope="row" { @match bucket.at_most_ms {
                                    Some(ms) => (Span(Duration::from_secs_f64(ms / 1_000.0))), None => "longer"
                                } }
                                td.n { (bucket.count) }
                                td { svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" {
                                    rect width=(bucket.count as f64 / most as f64 * 100.0) height="8" {}
                                } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn ends(title: &str, base: &Base, queue: &str, ends: &[EndView]) -> Markup {
    html! {
        section #ends {
            h2 { (title) }
            @if ends.is_empty() { p { "No run has ended." } } @else {
                (table(title, &["Key", "Ended", "How", "Attempt", "Took", "Error"], &html! {
                    @for end in ends {
                        tr.failed[end.error.is_some()] {
                            th scope="row" { (key_link(base, queue, &end.id)) }
                            td { (ms(end.ago_ms)) " ago" } td { (end.outcome) } td.n { (end.attempt) }
                            td.n { (Span(Duration::from_secs_f64(end.took_ms / 1_000.0))) }
                            td { @if let Some(error) = &end.error { (Shown(error)) } }
                        }
                    }
                }))
            }
        }
    }
}

fn dead(app: &App, base: &Base, queue: &dyn Inspect, view: &QueueView) -> Markup {
    let dead = queue.dead_keys(ROWS);
    let mut heads = vec!["Key", "Why"];
    if app.token.is_some() {
        heads.push("Change");
    }
    html! {
        section #dead {
            h2 { "Dead keys" }
            @if dead.is_empty() { p { "No key was given up." } } @else {
                (table("Dead keys, the oldest first", &heads, &html! {
                    @for key in &dead {
                        tr {
                            th scope="row" { (key_link(base, &view.name, &key.id)) }
                            td { (Shown(&key.why)) }
                            @if app.token.is_some() { td { (dead_controls(app, base, view, &key.id)) } }
                        }
                    }
                }))
                @if view.dead.is_some_and(|all| all > dead.len()) {
                    p.note { "The oldest of " (view.dead.unwrap_or_default()) "." }
                }
            }
        }
    }
}

fn dead_controls(app: &App, base: &Base, view: &QueueView, id: &str) -> Markup {
    form(
        app,
        base,
        view,
        &html! {
            input type="hidden" name="id" value=(encode(id));
            button name="action" value="retry_dead" aria-label={"Retry " (Shown(id))} { "Retry" }
            button name="action" value="drop_dead" aria-label={"Drop " (Shown(id))} { "Drop" }
        },
    )
}

fn actions(app: &App, view: &QueueView) -> Markup {
    let mut actions = app.actions();
    actions.retain(|action| action.queue == view.name);
    actions.truncate(ROWS);
    html! {
        @if !actions.is_empty() {
            section #actions {
                h2 { "What was done here" }
                (table("Actions, the latest first", &["Who", "When", "What", "Outcome"], &html! {
                    @for action in &actions {
                        tr {
                            td { (Shown(&action.who)) } td { (ms(action.ago_ms)) " ago" }
                            td { code { (Shown(&action.what)) } } td { (Shown(&action.outcome)) }
                        }
                    }
                }))
            }
        }
    }
}

/// The keys, with what to search them by. Not live: a search goes through all of them.
fn list(base: &Base, view: &QueueView, query: &KeyQuery, keys: &KeyPage) -> Markup {
    let mut heads = vec!["Key", "State"];
    if view.has_groups {
        heads.push("Group");
    }
    heads.extend(["Failures", "Next", "Why it does not run"]);
    html! {
        section #keys {
            h2 { "Keys" }
            form.search action={(base.queue(&view.name)) "#keys"} method="get" role="search" {
                label { "Contains " input type="search" name="search" value=(query.search); }
                label { "State " select name="phase" {
                    option value="" { "any" }
                    @for (phase, name, shown) in PHASES {
                        option value=(name) selected[query.phase == Some(phase)] { (shown) }
                    }
                } }
                @if view.has_groups {
                    label { "Group " input name="group" value=[query.group.as_deref()]; }
                }
                label { "Sort by " select name="sort" {
                    option value="" { "nothing" }
                    @for (sort, name, shown) in SORTS {
                        @if sort != Sort::Group || view.has_groups {
                            option value=(name) selected[query.sort == Some(sort)] { (shown) }
                        }
                    }
                } }
                button { "Search" }
            }
            @if keys.keys.is_empty() { p { "No key." } } @else {
                (table("Keys", &heads, &html! {
                    @for key in &keys.keys { (key_row(base, view, key)) }
                }))
            }
            p.note { (found(view, query, keys)) }
            nav.pages aria-label="Pages of keys" {
                @if query.offset > 0 {
                    a rel="prev" href=(page_of(base, view, query, query.offset.saturating_sub(query.limit))) { "Back" }
                }
                @if keys.more {
                    a rel="next" href=(page_of(base, view, query, query.offset + query.limit)) { "More" }
                }
            }
        }
    }
}

fn found(view: &QueueView, query: &KeyQuery, keys: &KeyPage) -> String {
    let all = count(view.total, "key");
    match keys.matching {
        _ if keys.keys.is_empty() => format!("The queue has {all}."),
        Some(matching) => format!(
            "{} to {} of {matching} that match, of {all}.",
            query.offset + 1,
            query.offset + keys.keys.len()
        ),
        None => format!(
            "{} to {} of {all}.",
            query.offset + 1,
            query.offset + keys.keys.len()
        ),
    }
}

fn page_of(base: &Base, view: &QueueView, query: &KeyQuery, offset: usize) -> String {
    let phase = PHASES
        .iter()
        .find(|(phase, ..)| query.phase == Some(*phase));
    let sort = SORTS.iter().find(|(sort, ..)| query.sort == Some(*sort));
    format!(
        "{}?search={}&phase={}&group={}&sort={}&limit={}&offset={offset}#keys",
        base.queue(&view.name),
        encode(&query.search),
        phase.map_or("", |(_, name, _)| name),
        encode(query.group.as_deref().unwrap_or_default()),
        sort.map_or("", |(_, name, _)| name),
        query.limit,
    )
}

fn key_row(base: &Base, view: &QueueView, key: &KeyView) -> Markup {
    html! {
        tr {
            th scope="row" { (key_link(base, &view.name, &key.id)) }
            td { (phase(key.phase)) }
            @if view.has_groups { td { (Shown(key.group.as_deref().unwrap_or_default())) } }
            td.n { (key.failures) }
            td { (next(key)) }
            td { (key.why) }
        }
    }
}

fn next(key: &KeyView) -> Markup {
    html! {
        @if let Some(age) = key.running_ms { "runs for " (ms(age)) }
        @else if let Some(left) = key.due_in_ms { "in " (ms(left)) }
        @else if key.phase == KeyPhase::Ready { "now" }
    }
}

pub(crate) fn key(app: &App, base: &Base, queue: &dyn Inspect, detail: &KeyDetail) -> Markup {
    let (view, id) = (queue.view(), &detail.key.id);
    let body = html! {
        h1 { (Shown(id)) }
        (key_live(app, base, queue, detail))
        @if app.token.is_some() {
            section #control {
                h2 { "Change" }
                (form(app, base, &view, &html! {
                    input type="hidden" name="id" value=(encode(id));
                    button name="action" value="expedite" { "End its delay" }
                    button name="action" value="cancel" { "Cancel its work" }
                }))
                @if detail.dead.is_some() { (dead_controls(app, base, &view, id)) }
            }
        }
    };
    let own = base.key(&view.name, id);
    let live = Some(format!(
        "{}/key/live?id={}",
        base.queue(&view.name),
        encode(id)
    ));
    frame(
        base,
        id,
        &[(base.queue(&view.name), &view.name), (own, id)],
        live,
        &body,
    )
}

pub(crate) fn key_live(app: &App, base: &Base, queue: &dyn Inspect, detail: &KeyDetail) -> Markup {
    let (view, key) = (queue.view(), &detail.key);
    html! {
        section #why {
            h2 { "Why it does not run" }
            p.why { (key.why) }
            @if let Some(why) = &detail.dead {
                p.why { "It was given up: " (Shown(why)) }
            }
        }
        section #figures {
            h2 { "Now" }
            dl {
                (figure("State", phase(key.phase)))
                (figure("Failures", key.failures))
                @if let Some(group) = &key.group { (figure("Group", Shown(group))) }
                (figure("Priority", key.priority))
                @if key.running_ms.or(key.due_in_ms).is_some() { (figure("Next", next(key).into_string())) }
            }
        }
        (ends("Its last runs", base, &view.name, &detail.history))
        (actions(app, &view))
    }
}

fn controls(app: &App, base: &Base, view: &QueueView) -> Markup {
    let (action, word) = match view.paused {
        true => ("unpause", "Unpause the queue"),
        false => ("pause", "Pause the queue"),
    };
    html! {
        section #control {
            h2 { "Change" }
            (form(app, base, view, &html! { button name="action" value=(action) { (word) } }))
            @if let Some(workers) = view.workers {
                (form(app, base, view, &html! {
                    label { "Workers " input type="number" min="0" name="workers" value=(workers) required; }
                    button name="action" value="set_workers" { "Set" }
                }))
            }
        }
    }
}

fn form(app: &App, base: &Base, view: &QueueView, fields: &Markup) -> Markup {
    html! {
        form.control method="post" action={(base.queue(&view.name)) "/control"} {
            input type="hidden" name="token" value=[app.token.as_deref()];
            (fields)
        }
    }
}

fn key_link(base: &Base, queue: &str, id: &str) -> Markup {
    html! { a href=(base.key(queue, id)) { (Shown(id)) } }
}

/// A table that scrolls by itself where it is too wide.
fn table(caption: &str, heads: &[&str], rows: &Markup) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(caption) {
            table {
                caption.hidden { (caption) }
                thead { tr { @for head in heads {
                    @if head.is_empty() { td {} } @else { th.n[NUMBERS.contains(head)] scope="col" { (head) } }
                } } }
                tbody { (rows) }
            }
        }
    }
}
