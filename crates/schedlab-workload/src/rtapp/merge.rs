//! The three sections of a file, or of a list of fragments: a later fragment's key replaces an earlier one's.

use std::collections::BTreeMap;

use super::json::{self, At, Json, Member};
use super::take::{wrong, Object};
use super::{RtAppError, Source};
use schedlab_model::closest;

/// The members of each section.
pub(super) struct Sections {
    pub global: Vec<Member>,
    pub tasks: Vec<Member>,
    pub resources: Vec<Member>,
    /// The first section of tasks.
    pub tasks_at: At,
}

/// Reads and merges all files.
pub(super) fn sections(sources: &[Source<'_>]) -> Result<Sections, RtAppError> {
    let mut out = Sections { global: Vec::new(), tasks: Vec::new(), resources: Vec::new(), tasks_at: At::default() };
    let mut has_tasks = false;
    for (index, source) in sources.iter().enumerate() {
        let file = u32::try_from(index).unwrap_or(u32::MAX);
        let root = json::parse(file, source.bytes)?;
        let Json::Object(members) = root.json else {
            return Err(RtAppError::at(root.at, "", format!("the file is {}, not an object", root.json.kind())));
        };
        for member in members {
            let section = match member.key.as_str() {
                "global" => &mut out.global,
                "tasks" => {
                    if !has_tasks {
                        out.tasks_at = member.at;
                    }
                    has_tasks = true;
                    &mut out.tasks
                }
                "resources" => &mut out.resources,
                _ => return Err(unknown(&member)),
            };
            let Json::Object(inner) = member.value.json else { return Err(wrong(&member, "an object")) };
            merge(section, inner);
        }
    }
    if !has_tasks {
        let at = At { file: 0, line: 1, column: 1 };
        return Err(RtAppError::at(at, "tasks", "there is no \"tasks\" section")
            .hint("a fragment runs only together with one that has tasks: give a list of files"));
    }
    Ok(out)
}

/// Adds members; those of an earlier file with the same key are replaced, repeats within one file stay.
fn merge(section: &mut Vec<Member>, members: Vec<Member>) {
    let earlier: BTreeMap<String, usize> =
        section.iter().enumerate().rev().map(|(index, known)| (known.key.clone(), index)).collect();
    for member in members {
        match earlier.get(&member.key).copied().filter(|index| section[*index].at.file != member.at.file) {
            Some(index) => section[index] = member,
            None => section.push(member),
        }
    }
}

fn unknown(member: &Member) -> RtAppError {
    let error = RtAppError::at(member.at, &member.key, format!("unknown section \"{}\"", json::short(&member.key)));
    match closest(&member.key, ["global", "tasks", "resources"]) {
        Some(near) => error.hint(format!("did you mean \"{near}\"?")),
        None => error.hint("a file has \"tasks\" and may have \"global\" and \"resources\""),
    }
}

/// Kinds that the legacy section of resources may declare. Events make what they name, so it has no effect.
const RESOURCES: [&str; 8] = ["mutex", "wait", "signal", "broadcast", "sync", "sleep", "run", "timer"];

/// Checks the legacy section of resources.
pub(super) fn check_resources(resources: &[Member]) -> Result<(), RtAppError> {
    for member in resources {
        let object = Object::of(member).map_err(|error| error.within("resources"))?;
        let kind = object.text("type").map_err(|error| error.within(&member.key).within("resources"))?;
        if let Some((kind, at)) = kind.filter(|(kind, _)| !RESOURCES.contains(kind)) {
            let what = format!("unknown type of resource \"{}\"", json::short(kind));
            let error = RtAppError::at(at, "type", what).hint(format!("one of {}", RESOURCES.join(", ")));
            return Err(error.within(&member.key).within("resources"));
        }
    }
    Ok(())
}
