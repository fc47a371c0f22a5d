//! Names of programs as small numbers.

use std::collections::BTreeMap;

/// How many different names are distinguished; further ones share the number of [`OTHER`].
const MOST: usize = 4096;
/// What further names are called.
const OTHER: &str = "other tasks";

/// The number of a name.
pub type Name = u32;

/// Every name once.
pub struct Names {
    all: Vec<String>,
    numbers: BTreeMap<String, Name>,
}

impl Names {
    pub fn new() -> Self {
        Names { all: vec![OTHER.to_owned()], numbers: BTreeMap::new() }
    }

    /// The number of the program of a task: its name up to the first slash.
    pub fn program(&mut self, task: &str) -> Name {
        self.number(task.split('/').next().unwrap_or(task))
    }

    /// The number of a name.
    pub fn number(&mut self, program: &str) -> Name {
        if let Some(known) = self.numbers.get(program) {
            return *known;
        }
        if self.all.len() >= MOST {
            return 0;
        }
        let number = self.all.len() as Name;
        self.all.push(program.to_owned());
        self.numbers.insert(program.to_owned(), number);
        number
    }

    pub fn of(&self, number: Name) -> &str {
        self.all.get(number as usize).map_or(OTHER, String::as_str)
    }
}
