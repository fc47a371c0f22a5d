//! `[[workload]]`: a program of the catalogue, an rt-app file, or steps in the scenario itself.

use std::path::Path;

use schedlab_workload::catalogue::{self, Entry, OptionValue, Where};
use schedlab_workload::rtapp::TaskSet;
use schedlab_workload::{lower, Workload};
use serde_json::{json, Map, Value as Json};

use crate::attributes::Attributes;
use crate::error::{quote, Result};
use crate::guest;
use crate::keys::WORKLOAD;
use crate::naming::{name_of, numbered, repeat_of};
use crate::option_default::option_default;
use crate::program::tree;
use crate::rt_app;
use crate::value::{Table, Value};
use schedlab_model::suggest;

/// A workload that has not been checked against the variants.
#[derive(Clone, Debug)]
pub(crate) struct Draft<'a> {
    /// The table of the workload.
    pub table: Table<'a>,
    /// The catalogue id, the path, or `program`.
    pub uses: String,
    /// The file to which the line numbers of its programs refer, if it is not the scenario.
    pub file: Option<String>,
    /// The workload.
    pub workload: Workload,
    /// The program, if it is in the catalogue.
    pub program: Option<Program>,
    /// The task attributes of the table, which have been applied already.
    pub attributes: Attributes<'a>,
    /// The name of its table, from which that of the workload differs if its guest is the second or a later one of a
    /// table.
    pub declared: String,
    /// The guest that it runs in; `None` = the host.
    pub guest: Option<String>,
}

/// A program with its options, from which a real arm starts the real program.
#[derive(Clone, PartialEq, Debug)]
pub struct Program {
    /// The id in the catalogue, or `rt-app`.
    pub id: &'static str,
    /// The options that the scenario sets; all are valid.
    pub options: Vec<(String, OptionValue)>,
    /// Whether the program is started again when it has ended.
    pub repeat: bool,
    /// What rt-app runs.
    pub task_set: Option<TaskSet>,
}

impl Draft<'_> {
    /// The same workload in the guest of this name, which is the `number`th of its table.
    fn within(&self, guest: &str, number: usize) -> Self {
        let mut copy = self.clone();
        copy.workload.name = numbered(&self.declared, number);
        copy.guest = Some(guest.to_owned());
        copy
    }

    /// All options of the benchmark with their effective values, and the other keys of the table except steps.
    pub fn show(&self) -> Json {
        let given = self.program.as_ref().map_or(&[][..], |program| &program.options);
        let mut options = Map::new();
        for option in self.entry().map_or(&[][..], |entry| entry.options) {
            let own = given.iter().find(|(name, _)| name == option.name).map(|(_, value)| show_option(value));
            let value = own.unwrap_or_else(|| option_default(option.default));
            if !value.is_null() {
                options.insert(option.name.into(), value);
            }
        }
        let hidden = |key: &str| ["use", "name"].contains(&key) || OWN.contains(&key) || options.contains_key(key);
        let mut attributes: Map<String, Json> = self
            .table
            .entries()
            .iter()
            .filter(|(key, _)| !hidden(key))
            .map(|(key, v)| ((*key).into(), v.json()))
            .collect();
        if let Some(guest) = &self.guest {
            attributes.insert("guest".into(), guest.as_str().into());
        }
        let given: Vec<&String> = given.iter().map(|(name, _)| name).collect();
        json!({ "options": options, "given": given, "attributes": attributes })
    }

    fn entry(&self) -> Option<&'static Entry> {
        let program = self.program.as_ref()?;
        catalogue::all().iter().find(|entry| entry.id == program.id).copied()
    }
}

fn show_option(value: &OptionValue) -> Json {
    match value {
        OptionValue::Bool(on) => (*on).into(),
        OptionValue::Int(number) => (*number).into(),
        OptionValue::Float(number) => (*number).into(),
        OptionValue::Text(text) => text.as_str().into(),
    }
}

/// The keys that are valid only for programs in the scenario itself.
const OWN: [&str; 6] = ["program", "task", "remote", "object", "count", "memory"];

/// Reads a workload for a machine with `nr_cpus` CPUs, or one for each guest of a table. Paths are relative to `dir`.
pub(crate) fn read<'a>(
    table: Table<'a>,
    dir: &Path,
    nr_cpus: usize,
    guests: &[guest::Draft<'a>],
) -> Result<Vec<Draft<'a>>> {
    let inside = guest::of_workload(&table, guests)?;
    let nr_cpus = inside.first().map_or(nr_cpus, |guest| guest.topology.nr_cpus());
    let (uses, file, (mut workload, program), skip) = match (table.get("use"), table.get("rt-app")) {
        (Some(_), Some(_)) => {
            return Err(table.key_error("rt-app", "a workload cannot have both \"use\" and \"rt-app\""))
        }
        (Some(id), None) => {
            let entry = entry(&id)?;
            let workload = from_catalogue(&table, entry, nr_cpus)?;
            (entry.id.to_owned(), None, workload, entry.options.iter().map(|option| option.name).collect())
        }
        (None, Some(path)) => {
            let table = only_common(&table, &["rt-app"], "an rt-app workload")?;
            let app = rt_app::read(&table, &path, dir, nr_cpus)?;
            let program = Program { id: "rt-app", options: Vec::new(), repeat: false, task_set: Some(app.task_set) };
            (app.uses, app.file, (app.workload, Some(program)), Vec::new())
        }
        (None, None) => ("program".to_owned(), None, (from_steps(&table, nr_cpus)?, None), Vec::new()),
    };
    let attributes = Attributes::read(&table, &skip, nr_cpus)?;
    attributes.apply_to(&mut workload);
    if !inside.is_empty() && (attributes.cgroup.is_some() || workload.tasks.iter().any(|task| task.cgroup.is_some())) {
        return Err(table.error("control groups inside a guest are not modelled").hint("remove cgroup"));
    }
    let declared = workload.name.clone();
    let first = Draft { table, uses, file, workload, program, attributes, declared, guest: None };
    if inside.is_empty() {
        return Ok(vec![first]);
    }
    Ok(inside.iter().enumerate().map(|(index, guest)| first.within(&guest.name, index + 1)).collect())
}

fn entry(id: &Value) -> Result<&'static Entry> {
    let given = id.string("the id of a program")?;
    let known = catalogue::all().iter().find(|entry| entry.id == given);
    known.copied().ok_or_else(|| id.unknown("workload", given, catalogue::all().iter().map(|entry| entry.id)))
}

fn from_catalogue(table: &Table, entry: &'static Entry, nr_cpus: usize) -> Result<(Workload, Option<Program>)> {
    let option_of = |key: &str| entry.options.iter().find(|option| option.is_called(key));
    let common = common_keys(&["use"]);
    let mut options: Vec<(String, OptionValue, Where)> = Vec::new();
    for (key, value) in table.entries() {
        if let Some(option) = option_of(key) {
            let twice = table.entries().into_iter().find(|(other, _)| *other != key && option.is_called(other));
            if let Some((other, _)) = twice {
                let what = format!("{} and {} are the same option of {}", quote(key), quote(other), entry.id);
                return Err(table.key_error(key, what).expected("one of the two"));
            }
            options.push((option.name.to_owned(), option_value(&value)?, place(&value)));
        } else if !common.contains(&key) {
            let valid = entry.options.iter().map(|option| option.name).chain(common.iter().copied());
            let error = table.key_error(key, format!("unknown key {}", quote(key)));
            let error = error.expected(format!("an option of {} or a key of [[workload]]", entry.id));
            return Err(error.hint(suggest(key, valid)));
        }
    }
    let repeat = repeat_of(table)?;
    let workload =
        catalogue::build(entry.id, &options, &name_of(table, entry.id)?, repeat, nr_cpus).map_err(|error| {
            let written = table
                .entries()
                .into_iter()
                .map(|(key, _)| key)
                .find(|key| *key == error.key || option_of(key).is_some_and(|option| option.name == error.key));
            let key = written.unwrap_or("use");
            let located = table.get(key).map_or_else(|| table.error(&error.what), |value| value.error(&error.what));
            let nearest = error.nearest.as_ref().map(|name| format!("did you mean \"{name}\"?"));
            located.expected(error.expected.as_str()).hint(nearest.unwrap_or_default())
        })?;
    let options = options.into_iter().map(|(key, value, _)| (key, value)).collect();
    Ok((workload, Some(Program { id: entry.id, options, repeat, task_set: None })))
}

fn from_steps(table: &Table, nr_cpus: usize) -> Result<Workload> {
    if !OWN.iter().any(|key| table.get(key).is_some()) {
        return Err(table.error("there is nothing to run").expected("one of use, rt-app, program, task"));
    }
    let table = only_common(table, &OWN, "[[workload]]")?;
    if table.get("count").is_some() && table.get("program").is_none() {
        return Err(table.key_error("count", "count without program").hint("set count in each [[workload.task]]"));
    }
    if let Some(repeat) = table.get("repeat").filter(|_| repeat_of(&table).unwrap_or(true)) {
        repeat.boolean()?;
        return Err(repeat.error("repeat is not supported for steps").hint("use { loop = \"forever\", do = [...] }"));
    }
    let tree = tree(&table, &name_of(&table, "program")?, nr_cpus)?;
    lower(&tree).map_err(|error| {
        let located = if error.line > 0 {
            table.error(error.what.as_str()).at(error.line, 1)
        } else {
            table.error(error.what.as_str())
        };
        located.hint(error.hint.unwrap_or_default())
    })
}

/// The keys that are valid for every workload.
fn common_keys(with: &[&'static str]) -> Vec<&'static str> {
    let special = |key: &&str| ["use", "rt-app"].contains(key) || OWN.contains(key);
    let common = WORKLOAD.keys.iter().map(|key| key.name).filter(|key| !special(key));
    common.chain(with.iter().copied()).collect()
}

fn only_common<'a>(table: &Table<'a>, with: &[&'static str], what: &str) -> Result<Table<'a>> {
    table.clone().only_these(&common_keys(with), what)
}

fn option_value(value: &Value) -> Result<OptionValue> {
    if let Some(text) = value.as_string() {
        return Ok(OptionValue::Text(text.to_owned()));
    }
    if let Some(number) = value.as_integer() {
        return Ok(OptionValue::Int(number));
    }
    if let Ok(boolean) = value.boolean() {
        return Ok(OptionValue::Bool(boolean));
    }
    value.number(f64::MIN..=f64::MAX).map(OptionValue::Float).map_err(|mut error| {
        error.expected = Some("a boolean, a number or a string".into());
        error
    })
}

fn place(value: &Value) -> Where {
    let (line, column) = value.position();
    Where { line, column }
}
