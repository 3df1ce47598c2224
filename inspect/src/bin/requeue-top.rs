//! `requeue-top URL`: the window on work queues in a terminal.
//!
//! Reads the JSON of a window once a second, and changes nothing. Over ssh, forward the port:
//! `ssh -L 8181:localhost:8181 HOST`, then `requeue-top http://localhost:8181/`.

use std::process::ExitCode;
use std::time::{Duration, Instant};
use std::{env, fmt, io};

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span as Part};
use ratatui::widgets::{Block, Cell, Paragraph, Row, Sparkline, Table, TableState, Wrap};
use ratatui::{DefaultTerminal, Frame};
use requeue_inspect::{
    GroupPage, KeyDetail, KeyPage, KeyPhase, QueueView, RunView, Sample, Shown, Span,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;

const USAGE: &str = "usage: requeue-top [--once] URL\n\n\
    Shows the queues of the window at URL, as `Registry::listen` of requeue-inspect serves it.\n\
    With --once it prints them as text and ends.\n\n\
    keys: Tab the next queue, arrows and Enter one key, s the order, f the state, Esc back, q quit";

const EVERY: Duration = Duration::from_secs(1);
const KEYS_MAX: usize = 100;
/// The orders and states that `s` and `f` go through, as the JSON names them.
const SORTS: [&str; 5] = ["", "phase", "failures", "next", "group"];
const PHASES: [&str; 6] = ["", "active", "ready", "delayed", "suspended", "failures"];

fn main() -> ExitCode {
    let (flags, urls): (Vec<String>, Vec<String>) =
        env::args().skip(1).partition(|word| word.starts_with('-'));
    let once = flags == ["--once"];
    let [url] = &*urls else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    if !once && !flags.is_empty() {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    }
    let mut top = Top::new(url);
    let shown = match once {
        true => top.print(),
        false => ratatui::run(|terminal| top.follow(terminal)).map_err(|error| error.to_string()),
    };
    match shown {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("requeue-top: {why}");
            ExitCode::FAILURE
        }
    }
}

/// The queues of a window.
#[derive(Deserialize)]
struct Queues {
    queues: Vec<QueueView>,
}

/// What is shown.
struct Top {
    agent: ureq::Agent,
    base: String,
    queues: Vec<QueueView>,
    /// The queue that is shown, and of it:
    at: usize,
    keys: KeyPage,
    runs: Vec<RunView>,
    groups: GroupPage,
    samples: Vec<Sample>,
    sort: usize,
    phase: usize,
    selected: TableState,
    /// The key whose own page is shown.
    open: Option<String>,
    detail: Option<KeyDetail>,
    /// Why there is no news.
    error: Option<String>,
}

impl Top {
    fn new(url: &str) -> Self {
        let with_scheme = match url.contains("://") {
            true => url.to_owned(),
            false => format!("http://{url}"),
        };
        let config = ureq::Agent::config_builder().timeout_global(Some(EVERY * 5));
        Self {
            agent: config.build().into(),
            base: with_scheme.trim_end_matches('/').to_owned(),
            queues: Vec::new(),
            at: 0,
            keys: KeyPage::default(),
            runs: Vec::new(),
            groups: GroupPage::default(),
            samples: Vec::new(),
            sort: 0,
            phase: 0,
            selected: TableState::default(),
            open: None,
            detail: None,
            error: None,
        }
    }

    fn get<T: DeserializeOwned>(&self, path: &str, query: &[(&str, &str)]) -> Result<T, String> {
        let url = format!("{}/api/{path}", self.base);
        let request = self.agent.get(&url).query_pairs(query.iter().copied());
        let mut answer = request.call().map_err(|why| format!("{url}: {why}"))?;
        let text = answer.body_mut().read_to_string();
        let text = text.map_err(|why| format!("{url}: {why}"))?;
        serde_json::from_str(&text).map_err(|why| format!("{url} is not a window's answer: {why}"))
    }

    fn load(&mut self) -> Result<(), String> {
        let Queues { queues } = self.get("queues", &[])?;
        self.queues = queues;
        self.at = self.at.min(self.queues.len().saturating_sub(1));
        let Some(queue) = self.queues.get(self.at) else {
            return Ok(());
        };
        let path = format!("queues/{}", encode(&queue.name));
        let limit = KEYS_MAX.to_string();
        let query = [
            ("sort", SORTS[self.sort % SORTS.len()]),
            ("phase", PHASES[self.phase % PHASES.len()]),
            ("limit", &limit),
        ];
        self.keys = self.get(&format!("{path}/keys"), &query)?;
        self.runs = self.get(&format!("{path}/runs"), &[("limit", "10")])?;
        self.groups = self.get(&format!("{path}/groups"), &[("limit", "10")])?;
        self.samples = self.get(&format!("{path}/samples"), &[])?;
        self.detail = match &self.open {
            Some(id) => Some(self.get(&format!("{path}/key"), &[("id", id)])?),
            None => None,
        };
        Ok(())
    }

    /// Text for a pipe, or a terminal that is none.
    fn print(&mut self) -> Result<(), String> {
        self.load()?;
        for at in 0..self.queues.len() {
            self.at = at;
            self.load()?;
            let Some(queue) = self.queues.get(at) else {
                break;
            };
            println!("{}: {}", Shown(&queue.name), Counts(queue));
            for finding in &queue.findings {
                println!("  ! {finding}");
            }
            for key in &self.keys.keys {
                println!("  {}: {}", Shown(&key.id), key.why);
            }
        }
        Ok(())
    }

    fn follow(&mut self, terminal: &mut DefaultTerminal) -> io::Result<()> {
        loop {
            self.error = self.load().err();
            terminal.draw(|frame| self.draw(frame))?;
            let next = Instant::now() + EVERY;
            // Keys are answered at once, and news come once a second.
            while event::poll(next.saturating_duration_since(Instant::now()))? {
                if let Event::Key(key) = event::read()?
                    && key.kind == KeyEventKind::Press
                {
                    let interrupts = key.modifiers.contains(KeyModifiers::CONTROL);
                    if key.code == KeyCode::Char('q')
                        || interrupts && key.code == KeyCode::Char('c')
                    {
                        return Ok(());
                    }
                    if self.press(key.code) {
                        break;
                    }
                }
                terminal.draw(|frame| self.draw(frame))?;
            }
        }
    }

    /// Returns whether other data are needed.
    fn press(&mut self, key: KeyCode) -> bool {
        match key {
            KeyCode::Tab | KeyCode::Right => {
                self.at = (self.at + 1) % self.queues.len().max(1);
                self.open = None;
                self.selected.select(None);
            }
            KeyCode::Char('s') => self.sort += 1,
            KeyCode::Char('f') => self.phase += 1,
            KeyCode::Esc => self.open = None,
            KeyCode::Enter => {
                let selected = self
                    .selected
                    .selected()
                    .and_then(|at| self.keys.keys.get(at));
                self.open = selected.map(|key| key.id.clone());
            }
            KeyCode::Down => {
                self.selected.select_next();
                return false;
            }
            KeyCode::Up => {
                self.selected.select_previous();
                return false;
            }
            _ => return false,
        }
        true
    }

    fn draw(&mut self, frame: &mut Frame<'_>) {
        let soft = Style::new().add_modifier(Modifier::DIM);
        let bad = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
        let findings = self
            .queues
            .get(self.at)
            .map_or(0, |queue| queue.findings.len().max(1));
        let heights = [
            Constraint::Length(2),
            Constraint::Length(u16::try_from(findings).unwrap_or(9).min(9)),
            Constraint::Length(4),
            Constraint::Min(5),
            Constraint::Length(1),
        ];
        let [head, notes, picture, body, foot] = Layout::vertical(heights).areas(frame.area());

        let mut names = vec![Part::from("requeue-top  ")];
        for (at, queue) in self.queues.iter().enumerate() {
            let chosen = if at == self.at {
                Modifier::REVERSED
            } else {
                Modifier::empty()
            };
            names.push(Part::styled(
                format!(" {} ", Shown(&queue.name)),
                Style::new().add_modifier(chosen),
            ));
        }
        let queue = self.queues.get(self.at);
        let counts = queue.map(|queue| Counts(queue).to_string());
        let counts = Line::from(counts.unwrap_or_else(|| "no queue".to_owned()));
        frame.render_widget(Paragraph::new(vec![Line::from(names), counts]), head);

        let lines: Vec<Line<'_>> = match (&self.error, queue) {
            (Some(why), _) => vec![Line::styled(format!("no news: {}", Shown(why)), bad)],
            (None, Some(queue)) if !queue.findings.is_empty() => {
                let lines = queue.findings.iter();
                lines
                    .map(|finding| Line::styled(finding.as_str(), bad))
                    .collect()
            }
            _ => vec![Line::styled("Nothing keeps keys from running.", soft)],
        };
        frame.render_widget(Paragraph::new(lines), notes);

        let wide = usize::from(picture.width);
        let ready = self
            .samples
            .iter()
            .rev()
            .take(wide)
            .map(|sample| sample.ready as u64);
        let mut ready: Vec<u64> = ready.collect();
        ready.reverse();
        let most = ready.iter().max().copied().unwrap_or(0);
        let title = format!("ready, a second each, up to {most}");
        let bars = Sparkline::default()
            .data(&ready)
            .block(Block::new().title(title));
        frame.render_widget(bars, picture);

        match &self.detail {
            Some(detail) => draw_key(frame, body, detail, bad),
            None => self.draw_keys(frame, body, soft),
        }
        let shown = |name: &'static str, empty| if name.is_empty() { empty } else { name };
        let order = shown(SORTS[self.sort % SORTS.len()], "none");
        let state = shown(PHASES[self.phase % PHASES.len()], "any");
        let help = format!(
            "s order: {order}  f state: {state}  Tab queue  ↑↓ Enter key  Esc back  q quit"
        );
        frame.render_widget(Paragraph::new(help).style(soft), foot);
    }

    fn draw_keys(&mut self, frame: &mut Frame<'_>, body: ratatui::layout::Rect, soft: Style) {
        let beside = u16::try_from(self.runs.len().max(self.groups.groups.len())).unwrap_or(10);
        let split = [Constraint::Min(4), Constraint::Length(beside.min(10) + 1)];
        let [keys, below] = Layout::vertical(split).areas(body);
        let [runs, groups] =
            Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).areas(below);

        let rows = self.keys.keys.iter().map(|key| {
            let why = key.why.clone();
            Row::new([
                Shown(&key.id).to_string(),
                phase(key.phase).to_owned(),
                key.failures.to_string(),
                why,
            ])
        });
        let widths = [
            Constraint::Percentage(25),
            Constraint::Length(9),
            Constraint::Length(8),
            Constraint::Fill(1),
        ];
        let head = Row::new(["KEY", "STATE", "FAILURES", "WHY IT DOES NOT RUN"]);
        let table = Table::new(rows, widths)
            .header(head.style(soft))
            .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
        frame.render_stateful_widget(table, keys, &mut self.selected);

        let rows = self.runs.iter().map(|run| {
            let age = Span(Duration::from_millis(run.running_ms)).to_string();
            Row::new([
                Shown(&run.id).to_string(),
                age,
                format!("attempt {}", run.attempt),
            ])
        });
        let widths = [
            Constraint::Fill(1),
            Constraint::Length(12),
            Constraint::Length(12),
        ];
        let head = Row::new(["RUNS"]).style(soft);
        frame.render_widget(Table::new(rows, widths).header(head), runs);

        let rows = self.groups.groups.iter().map(|group| {
            let state = match group {
                group if group.paused => "paused",
                group if group.blocked => "blocked",
                _ => "",
            };
            let limit = group.limits.max_active.map(|most| format!("of {most}"));
            Row::new([
                Cell::from(Shown(&group.name).to_string()),
                Cell::from(format!("{} ready", group.ready)),
                Cell::from(format!(
                    "{} {} active",
                    group.active,
                    limit.unwrap_or_default()
                )),
                Cell::from(state),
            ])
        });
        let widths = [
            Constraint::Fill(1),
            Constraint::Length(14),
            Constraint::Length(18),
            Constraint::Length(8),
        ];
        let head = Row::new(["GROUPS"]).style(soft);
        frame.render_widget(Table::new(rows, widths).header(head), groups);
    }
}

fn draw_key(frame: &mut Frame<'_>, body: ratatui::layout::Rect, detail: &KeyDetail, bad: Style) {
    let key = &detail.key;
    let mut lines = vec![
        Line::styled(
            Shown(&key.id).to_string(),
            Style::new().add_modifier(Modifier::BOLD),
        ),
        Line::from(key.why.as_str()),
    ];
    if let Some(why) = &detail.dead {
        lines.push(Line::styled(
            format!("It was given up: {}", Shown(why)),
            bad,
        ));
    }
    lines.push(Line::from(""));
    for end in &detail.history {
        let ago = Span(Duration::from_millis(end.ago_ms));
        let took = Span(Duration::from_secs_f64(end.took_ms / 1_000.0));
        let error = end
            .error
            .as_deref()
            .map(|error| format!(": {}", Shown(error)));
        let (outcome, attempt) = (&end.outcome, end.attempt);
        let error = error.unwrap_or_default();
        lines.push(Line::from(format!(
            "{ago} ago, attempt {attempt}, after {took}: {outcome}{error}"
        )));
    }
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }), body);
}

fn phase(phase: KeyPhase) -> &'static str {
    match phase {
        KeyPhase::Active => "active",
        KeyPhase::Dirty => "dirty",
        KeyPhase::Ready => "ready",
        KeyPhase::Delayed => "delayed",
        KeyPhase::Suspended => "suspended",
        KeyPhase::Failures => "failures",
        _ => "absent",
    }
}

/// The counts of a queue on one line.
struct Counts<'q>(&'q QueueView);

impl fmt::Display for Counts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let queue = self.0;
        let (ready, active, delayed) = (queue.ready, queue.active, queue.delayed);
        write!(f, "{ready} ready, {active} active, {delayed} delayed")?;
        if let Some(workers) = queue.workers {
            write!(f, ", {workers} workers")?;
        }
        write!(f, ", {} runs, {} failures", queue.runs, queue.failures)?;
        let half = queue.run_times.quantile(0.5);
        half.map_or(Ok(()), |half| {
            write!(f, ", half of all runs take {} or less", Span(half))
        })
    }
}

/// A part of a path.
fn encode(name: &str) -> String {
    let encoded = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    name.bytes().map(encoded).collect()
}
