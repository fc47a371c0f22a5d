//! Which ring buffer of several is read: `trace-cmd report` prints the events of all, each with its buffer's name.

use std::collections::BTreeSet;

/// The buffers of a trace.
#[derive(Default, Debug)]
pub struct Buffers {
    /// The one that is read; the empty name is that of the top buffer.
    chosen: String,
    /// Events of it were seen.
    present: bool,
    others: BTreeSet<String>,
}

/// More names are not listed.
const NAMED: usize = 20;

impl Buffers {
    /// Reads the buffer of this name.
    pub fn new(chosen: &str) -> Buffers {
        Buffers { chosen: chosen.to_owned(), ..Buffers::default() }
    }

    /// Whether the buffer is the one that is read. The others are remembered.
    pub fn reads(&mut self, name: &str) -> bool {
        let chosen = name == self.chosen;
        self.present |= chosen;
        if !chosen && self.others.len() <= NAMED && !self.others.contains(name) {
            self.others.insert(name.to_owned());
        }
        chosen
    }

    /// Names the buffers that are not read.
    pub fn note(&self) -> Option<String> {
        not_read(self.others.iter().map(String::as_str))
    }

    /// What is wrong if no event of the buffer was seen.
    pub fn absent(&self) -> Option<String> {
        let wanted = !self.present && !self.chosen.is_empty();
        wanted.then(|| no_buffer(&self.chosen, self.others.iter().map(String::as_str)))
    }
}

/// The note about buffers that are not read.
pub fn not_read<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let names: Vec<&str> = names.map(shown).collect();
    let buffers = if names.len() == 1 { "buffer" } else { "buffers" };
    let read = "was not read (schedlab convert --buffer NAME writes one to a file of its own)";
    (!names.is_empty()).then(|| format!("the {buffers} {} {}", names.join(", "), plural(names.len(), read)))
}

/// The error about a buffer that the file does not have.
pub fn no_buffer<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.map(shown).collect();
    let has = if names.is_empty() { "no other buffer".to_owned() } else { names.join(", ") };
    format!("no buffer '{name}'; the file has {has}")
}

fn plural(count: usize, text: &str) -> String {
    if count == 1 {
        text.to_owned()
    } else {
        text.replacen("was", "were", 1)
    }
}

/// The top buffer has no name of its own.
fn shown(name: &str) -> &str {
    if name.is_empty() {
        "top"
    } else {
        name
    }
}
