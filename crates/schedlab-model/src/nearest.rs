//! The valid names that are closest to a mistyped one.

use std::cmp::Reverse;

/// The most names that are suggested.
const SUGGESTED: usize = 3;
/// The most names that are compared: enough for every table, few enough for any input.
const LOOKED_AT: usize = 1_000;
/// A longer input resembles nothing anyway.
const LONGEST: usize = 64;

/// The names nearest to `typed`, closest first: those that differ by no more than a third of their letters, or by one.
/// Swapped neighbours count once; differences of case, and between `-` and `_`, do not count.
#[must_use]
pub fn nearest<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let typed = fold(typed);
    if typed.is_empty() || typed.len() > LONGEST {
        return Vec::new();
    }
    let mut scored: Vec<(usize, Reverse<usize>, &str)> = names
        .into_iter()
        .take(LOOKED_AT)
        .filter(|name| name.len() <= 2 * LONGEST)
        .filter_map(|name| near(&typed, name))
        .collect();
    scored.sort();
    scored.into_iter().take(SUGGESTED).map(|(_, _, name)| name).collect()
}

/// The first of [`nearest`].
#[must_use]
pub fn closest<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest(typed, names).first().copied()
}

/// A hint for a name that is not among `valid`: the nearest of them, or all of them when they are few.
#[must_use]
pub fn suggest<'a>(typed: &str, valid: impl IntoIterator<Item = &'a str>) -> String {
    const FEW: usize = 16;
    let valid: Vec<&str> = valid.into_iter().collect();
    if let Some(name) = closest(typed, valid.iter().copied()) {
        return format!("did you mean \"{name}\"?");
    }
    match valid.len() {
        0 => String::new(),
        1..=FEW => format!("valid: {}", valid.join(", ")),
        more => format!("valid: {} and {} more", valid[..FEW].join(", "), more - FEW),
    }
}

fn fold(name: &str) -> Vec<char> {
    name.chars().take(LONGEST + 1).map(|c| if c == '_' { '-' } else { c.to_ascii_lowercase() }).collect()
}

/// How far the name is from what was typed, if that is near enough to be meant; a common beginning breaks ties.
fn near<'a>(typed: &[char], name: &'a str) -> Option<(usize, Reverse<usize>, &'a str)> {
    let folded = fold(name);
    let (longer, found) = (typed.len().max(folded.len()), distance(typed, &folded));
    let begins_alike = typed.iter().zip(&folded).take_while(|(a, b)| a == b).count();
    (3 * found <= longer || found == 1 && longer > 1).then_some((found, Reverse(begins_alike), name))
}

/// Edits that turn one into the other: insert, delete, replace, swap two neighbours (optimal string alignment).
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1; b.len() + 1];
        for j in 0..b.len() {
            let replaced = above[j] + usize::from(a[i] != b[j]);
            let swapped = i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j];
            let swapped = if swapped { before[j - 1] + 1 } else { usize::MAX };
            row[j + 1] = replaced.min(row[j] + 1).min(above[j + 1] + 1).min(swapped);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::{nearest, suggest};

    #[test]
    fn the_near_is_found_and_the_far_is_not() {
        let names =
            ["cgroup", "groups", "loops", "message-threads", "PLACE_LAG", "PLACE_REL_DEADLINE", "6.6", "6.12.0", "hz"];
        let cases: &[(&str, &[&str])] = &[
            ("group", &["groups", "cgroup"]),
            ("message_threads", &["message-threads"]),
            ("LOOPS", &["loops"]),
            ("loosp", &["loops"]),
            ("place_lg", &["PLACE_LAG"]),
            ("6.9", &["6.6"]),
            ("6.12", &["6.12.0"]),
            ("h", &["hz"]),
            ("", &[]),
            ("xyzzy", &[]),
        ];
        for (typed, want) in cases {
            assert_eq!(nearest(typed, names), *want, "{typed}");
        }
        assert!(nearest(&"x".repeat(100_000), names).is_empty());
    }

    #[test]
    fn hints() {
        let keys = ["name", "duration", "latency_nice", "slice"];
        let cases = [
            ("duratoin", "did you mean \"duration\"?"),
            ("latency-nice", "did you mean \"latency_nice\"?"),
            ("SLICE", "did you mean \"slice\"?"),
            ("weather", "valid: name, duration, latency_nice, slice"),
        ];
        for (given, want) in cases {
            assert_eq!(suggest(given, keys), want);
        }
        assert_eq!(suggest("x", []), "");
        assert!(suggest(&"x".repeat(100_000), keys).starts_with("valid"));
    }
}
