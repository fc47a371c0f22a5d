//! `docs/scenario.md` documents every key, as the table of the reader has it.
//!
//! UPDATE_PAGE=1 cargo test -p schedlab-scenario --test page rewrites the tables.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use schedlab_scenario::{preset, Scenario, Section, SECTIONS};

const END: &str = "<!-- end of keys -->\n";

fn page_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenario.md")
}

fn begin(section: &Section) -> String {
    format!("<!-- keys of {} -->\n", section.name)
}

fn table(section: &Section) -> String {
    let mut table = "| key | value | default | meaning |\n|---|---|---|---|\n".to_owned();
    for key in section.keys {
        writeln!(table, "| `{}` | {} | {} | {} |", key.name, key.form, key.default, key.help).unwrap();
    }
    table
}

#[test]
fn every_key_is_on_the_page() {
    let mut page = std::fs::read_to_string(page_file()).unwrap();
    for section in SECTIONS {
        let marker = begin(section);
        let start = page.find(&marker).unwrap_or_else(|| panic!("no {marker}")) + marker.len();
        let end = start + page[start..].find(END).unwrap();
        if std::env::var_os("UPDATE_PAGE").is_some() {
            page.replace_range(start..end, &table(section));
        } else {
            assert_eq!(&page[start..end], table(section), "{}", section.name);
        }
    }
    if std::env::var_os("UPDATE_PAGE").is_some() {
        std::fs::write(page_file(), page).unwrap();
    }
}

/// The TOML blocks of the page that have a variant are complete scenarios and must load; the others are fragments.
#[test]
fn the_pages_examples_load() {
    let page = std::fs::read_to_string(page_file()).unwrap();
    let blocks = page.split("```toml\n").skip(1).map(|block| block.split("```").next().unwrap());
    let whole: Vec<&str> = blocks.filter(|block| block.contains("[[variant]]")).collect();
    assert!(!whole.is_empty());
    for block in whole {
        if let Err(error) = Scenario::parse(block, "docs/scenario.md", None) {
            panic!("{error}; {:?}\n{block}", error.hint);
        }
    }
}

#[test]
fn every_machine_is_on_the_page() {
    let page = std::fs::read_to_string(page_file()).unwrap();
    let ids = [
        "rpi4",
        "laptop-8",
        "hikey960",
        "xeon-1s26c-smt2",
        "xeon-2s16c-smt2",
        "xeon-2s28c-smt2",
        "xeon-2s32c-smt2",
        "power9-176",
        "xeon-2s56c-smt2",
        "power10-480",
        "host",
    ];
    for id in ids {
        assert!(preset(id).is_some() && page.contains(&format!("| `{id}` |")), "{id}");
    }
}
