//! Lists the public items of libraries, one a line: `public-items FOLDER JSON…` writes a file into
//! the folder for each of rustdoc's JSON files.
//!
//! A package of its own, so that `cargo xtask` need not wait for what it is built from.

use std::collections::{HashMap, HashSet};
use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use public_api::{Builder, PublicApi};
use serde_json::Value;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = env::args_os().skip(1).map(PathBuf::from);
    let folder = words.next().ok_or("usage: public-items FOLDER JSON…")?;
    let files: Vec<PathBuf> = words.collect();
    let mut names = HashMap::new();
    for json in &files {
        public_names(json, &mut names)?;
    }
    for json in &files {
        // `requeue-core.txt` for a `requeue_core.json`.
        let stem = json.file_stem().unwrap_or_default().to_string_lossy();
        let file = folder.join(stem.replace('_', "-")).with_extension("txt");
        let builder = Builder::from_rustdoc_json(json).omit_blanket_impls(true);
        let builder = builder.omit_auto_trait_impls(true);
        let written = builder.clone().omit_auto_derived_impls(true).build()?;
        fs::write(file, list(&builder.build()?, &written, &names))?;
    }
    Ok(())
}

/// Every item, but of what is derived only that it is: its methods say no more.
fn list(all: &PublicApi, written: &PublicApi, names: &HashMap<String, String>) -> String {
    let written: HashSet<String> = written.items().map(ToString::to_string).collect();
    let lines = all.items().map(ToString::to_string);
    let kept = lines.filter(|line| {
        written.contains(line) || (line.starts_with("impl") && !line.contains(COMPILERS_OWN))
    });
    kept.map(|line| renamed(&line, names) + "\n").collect()
}

/// A trait that no program can name.
const COMPILERS_OWN: &str = "core::marker::StructuralPartialEq";

/// Adds, for each item of a library that is defined in a private module, the path under which the
/// library shows it. Of several paths the one outside `binding` counts, and of these the shortest.
fn public_names(json: &Path, names: &mut HashMap<String, String>) -> Result<(), Box<dyn Error>> {
    let library: Value = serde_json::from_slice(&fs::read(json)?)?;
    let item = |id: &Value| &library["index"][id.to_string()];
    let root = item(&library["root"]);
    let name = root["name"].as_str().ok_or("a library without a name")?;
    let mut modules = vec![(root, name.to_owned())];
    // A public module is in one place, so each is visited once.
    while let Some((module, path)) = modules.pop() {
        let items = module["inner"]["module"]["items"].as_array();
        for id in items.into_iter().flatten() {
            let mut shown = item(id);
            let mut id = id;
            let mut name = &shown["name"];
            let used = &shown["inner"]["use"];
            if used.is_object() {
                (id, name) = (&used["id"], &used["name"]);
                shown = item(id);
            }
            // What is of another library has its name there.
            let (true, Some(name)) = (shown.is_object(), name.as_str()) else {
                continue;
            };
            let path = format!("{path}::{name}");
            if shown["inner"]["module"].is_object() {
                modules.push((shown, path));
                continue;
            }
            let defined = library["paths"][id.to_string()]["path"].as_array();
            let defined = defined.into_iter().flatten().filter_map(Value::as_str);
            let defined = defined.collect::<Vec<_>>().join("::");
            let rank = |path: &str| (path.contains("::binding::"), path.len());
            let known = names.entry(defined).or_insert_with(|| path.clone());
            if rank(&path) < rank(known) {
                *known = path;
            }
        }
    }
    Ok(())
}

/// The line with the public path of each item that it names.
fn renamed(line: &str, names: &HashMap<String, String>) -> String {
    let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let mut rest = line;
    let mut all = String::new();
    while let Some(start) = rest.find(is_path) {
        let (before, from) = rest.split_at(start);
        let (word, after) = from.split_at(from.find(|c| !is_path(c)).unwrap_or(from.len()));
        all += before;
        // A bound of an associated type follows it without a space.
        let (glued, word) = word.split_at(word.find("requeue").unwrap_or_default());
        let (owner, member) = word.rsplit_once("::").unwrap_or((word, ""));
        all += glued;
        match (names.get(word), names.get(owner)) {
            (Some(name), _) => all += name,
            (None, Some(name)) => all += &format!("{name}::{member}"),
            (None, None) => all += word,
        }
        rest = after;
    }
    all + rest
}
