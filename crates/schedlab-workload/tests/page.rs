//! Every entry of the catalogue is documented completely, and `docs/guides/catalogue.md` is generated from the entries.
//!
//! UPDATE_PAGE=1 cargo test -p schedlab-workload --test page rewrites the page.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use schedlab_workload::catalogue::{self, Entry, MetricSpec};

fn docs(page: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides").join(page)
}

#[test]
fn every_entry_has_structure_parameters_metrics_and_simplifications() {
    for entry in catalogue::all() {
        let (id, about) = (entry.id, &entry.about);
        let sentences = [about.structure, about.simplified].concat();
        assert!(!about.structure.is_empty() && !about.parameters.is_empty() && !about.simplified.is_empty(), "{id}");
        assert!(sentences.iter().all(|text| text.ends_with('.') && text.len() > 20), "{id}: whole sentences");
        // A hog counts nothing, which would be a system call or a look at the clock.
        assert!(!entry.metrics.is_empty() || id == "hog", "{id} has no metric");
        for metric in entry.metrics {
            assert!(!metric.help.is_empty(), "{id}.{}", metric.name);
            assert!(metric.kind.is_sampled() != metric.stats.is_empty(), "{id}.{}: which statistics", metric.name);
        }
        for parameter in about.parameters {
            let name = parameter.name;
            assert!(!parameter.value.to_string().is_empty() && parameter.source.len() > 5, "{id}: {name}");
            // An estimate has its range.
            let range = parameter.source.contains(" to ");
            assert!(!parameter.source.contains("estimate") || range, "{id}: the range of {name}");
        }
    }
}

/// A list has a line of 80 columns for each entry.
#[test]
fn summaries_fit_on_a_line() {
    let widest = catalogue::all().iter().map(|entry| entry.id.len()).max().unwrap();
    for entry in catalogue::all() {
        assert!(widest + 2 + entry.summary.chars().count() <= 80, "{}", entry.id);
    }
}

#[test]
fn the_guide_names_every_entry_and_no_other() {
    let page = std::fs::read_to_string(docs("workloads.md")).unwrap();
    let table = page.lines().skip_while(|line| !line.starts_with("| family |")).skip(2);
    let cells = table.take_while(|line| line.starts_with('|')).map(|line| line.split('|').nth(2).unwrap());
    let mut named: Vec<String> =
        cells.flat_map(|cell| cell.split(',')).map(|id| id.trim().trim_matches('`').to_owned()).collect();
    let mut ids: Vec<String> = catalogue::all().iter().map(|entry| entry.id.to_owned()).collect();
    named.sort();
    ids.sort();
    assert_eq!(named, ids);
}

#[test]
fn the_page_is_what_the_entries_say() {
    let mut page = "# The catalogue, entry by entry\n\n\
        This page is generated from `crates/schedlab-workload/src/catalogue`: the output of `schedlab list workloads NAME`\n\
        without the options. [Workloads of the catalogue](workloads.md) has the families, their purpose, and their counts\n\
        compared with those of the real programs.\n"
        .to_owned();
    catalogue::all().iter().for_each(|entry| section(&mut page, entry));
    if std::env::var_os("UPDATE_PAGE").is_some() {
        std::fs::write(docs("catalogue.md"), &page).unwrap();
    }
    let kept = std::fs::read_to_string(docs("catalogue.md")).unwrap_or_default();
    assert!(kept == page, "UPDATE_PAGE=1 cargo test -p schedlab-workload --test page");
}

fn section(page: &mut String, entry: &Entry) {
    writeln!(page, "\n## {}\n\n{}\n\n**Structure**\n", entry.id, entry.summary).unwrap();
    entry.about.structure.iter().for_each(|text| writeln!(page, "- {}", plain(text)).unwrap());
    writeln!(page, "\n| parameter | value | source |\n|---|---|---|").unwrap();
    for parameter in entry.about.parameters {
        let value = plain(&parameter.value.to_string());
        writeln!(page, "| {} | {value} | {} |", plain(parameter.name), plain(parameter.source)).unwrap();
    }
    if !entry.metrics.is_empty() {
        writeln!(page, "\n| metric | unit | better | meaning |\n|---|---|---|---|").unwrap();
        entry.metrics.iter().for_each(|metric| self::metric(page, metric));
    }
    writeln!(page, "\n**Simplified or left out**\n").unwrap();
    entry.about.simplified.iter().for_each(|text| writeln!(page, "- {}", plain(text)).unwrap());
}

fn metric(page: &mut String, metric: &MetricSpec) {
    let (unit, better) = (metric.unit.name(), metric.better.name());
    writeln!(page, "| `{}` | {unit} | {better} | {} |", metric.name, plain(metric.help)).unwrap();
}

/// Characters that Markdown would take for markup.
fn plain(text: &str) -> String {
    text.replace('|', "\\|").replace('*', "\\*").replace('<', "&lt;")
}
