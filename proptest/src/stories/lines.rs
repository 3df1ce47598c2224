//! The lines of a story as steps of one operation each. The README explains the language: `add 1..9`,
//! `run 1`, `not_before 5ms`, `20 times` and `for X in 1, 2` become plain steps here.
//!
//! A line that ends with a comma continues in the next. One that begins with `#` is a comment.

use std::iter::repeat_n;
use std::time::Duration;

use super::Rule;
use super::grammar::time;
use crate::operation::Key;

/// A line that is one step, with its number in the file.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    group: &'static str,
    number: usize,
    pub(crate) text: String,
}

/// How long before its time a key is still not to be had.
const MILLISECOND: Duration = Duration::from_millis(1);

impl Rule {
    /// The steps of its story, one a line.
    pub(crate) fn lines(&self) -> Result<Vec<Line>, String> {
        let mut lines: Vec<Line> = Vec::new();
        for (text, number) in self.steps.lines().zip(self.line..) {
            match lines.last_mut().filter(|last| last.text.ends_with(',')) {
                Some(last) => last.text = format!("{} {}", last.text, text.trim()),
                None if text.trim_start().starts_with('#') => {}
                None => lines.push(Line {
                    group: self.group,
                    number,
                    text: String::from(text),
                }),
            }
        }
        unfolded(&lines)
    }
}

/// The lines with each block as often as it says.
fn unfolded(lines: &[Line]) -> Result<Vec<Line>, String> {
    let indent = |line: &Line| line.text.len() - line.text.trim_start().len();
    let mut steps = Vec::new();
    let mut rest = lines;
    while let Some((first, after)) = rest.split_first() {
        let inside = after.iter().take_while(|it| indent(it) > indent(first));
        let (block, next) = after.split_at(inside.count());
        rest = next;
        let head = first.text.trim();
        let repeats = head.ends_with(" times") || head.starts_with("for ");
        if repeats == block.is_empty() {
            return Err(first.wrong(match repeats {
                true => "nothing below it is indented",
                false => "lines below it are indented",
            }));
        }
        if let Some(times) = head.strip_suffix(" times") {
            let times = times.parse().map_err(|_| first.wrong("no number"))?;
            steps.extend(repeat_n(unfolded(block)?, times).flatten());
        } else if let Some((names, values)) = head
            .strip_prefix("for ")
            .and_then(|head| head.split_once(" in "))
        {
            for value in values.split(", ") {
                let mut block = block.to_vec();
                for line in &mut block {
                    let names = names.split(' ');
                    for (name, value) in names.clone().zip(value.splitn(names.count(), ' ')) {
                        line.text = line.text.replace(name, value);
                    }
                }
                steps.extend(unfolded(&block)?);
            }
        } else {
            steps.extend(first.simple());
        }
    }
    Ok(steps)
}

impl Line {
    /// The step, and its answer.
    pub(crate) fn parts(&self) -> (&str, &str) {
        let (step, answer) = self.text.split_once("->").unwrap_or((&self.text, ""));
        (step.trim(), answer.trim())
    }

    /// Says what is wrong with it, and where it is.
    pub(crate) fn wrong(&self, wrong: &str) -> String {
        let (group, number, text) = (self.group, self.number, self.text.trim());
        format!("{wrong}\nIn proptest/src/stories/{group}.txt:{number}: {text}")
    }

    /// The same in steps that are one operation each.
    fn simple(&self) -> Vec<Self> {
        let (step, answer) = self.parts();
        let (verb, rest) = step.split_once(' ').unwrap_or((step, ""));
        let lines = |texts: Vec<String>| {
            let lines = texts.into_iter().map(|text| Self { text, ..*self });
            lines.flat_map(|line| line.simple()).collect()
        };
        let words: Vec<&str> = rest.split_whitespace().collect();
        let count = words.iter().take_while(|word| is_numbers(word)).count();
        let (keys, others) = (words[..count].join(" "), words[count..].join(" "));
        match verb {
            "get" if answer.contains(['.', ' ']) && answer.split(' ').all(is_numbers) => {
                lines(numbers(answer).map(|key| format!("get -> {key}")).collect())
            }
            "start" if rest.contains(", ") => lines(
                rest.split(", ")
                    .map(|call| format!("start {call}"))
                    .collect(),
            ),
            "not_before" if time(rest).is_some_and(|until| until >= MILLISECOND) => {
                let most = time(rest).unwrap_or_default() - MILLISECOND;
                lines(vec![
                    format!("advance {most:?}"),
                    String::from("get -> waits"),
                    format!("advance {MILLISECOND:?}"),
                ])
            }
            _ if verb.ends_with("_many") => vec![self.clone()],
            _ if keys.contains(['.', ' ']) => {
                let each = numbers(&keys).map(|key| format!("{verb} {key} {others} -> {answer}"));
                lines(each.collect())
            }
            "run" => {
                let end = if others.is_empty() { "done" } else { "finish" };
                lines(vec![
                    format!("get -> {keys}"),
                    format!("{end} {rest} -> {answer}"),
                ])
            }
            _ => vec![self.clone()],
        }
    }
}

fn is_numbers(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_digit() || c == '.')
}

/// Keys, and those from one to another.
fn numbers(words: &str) -> impl Iterator<Item = Key> {
    words.split_whitespace().flat_map(|word| {
        let (first, last) = word.split_once("..").unwrap_or((word, word));
        first.parse().unwrap_or(1)..=last.parse().unwrap_or(0)
    })
}
