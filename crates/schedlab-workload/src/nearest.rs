//! The valid name nearest to a mistyped one.

/// Names looked at: enough for every table, few enough for any input.
const MAX_NAMES: usize = 1_000;

/// The name with the smallest edit distance to `typed`, if it is near enough to be meant.
pub(crate) fn nearest<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let short: String = typed.chars().take(64).collect();
    let limit = 1 + short.chars().count() / 3;
    let names = names.into_iter().take(MAX_NAMES).filter(|name| name.len() <= 4 * (short.len() + limit));
    let scored = names.map(|name| (distance(&short, name), name));
    scored.filter(|(d, _)| *d <= limit).min_by_key(|(d, _)| *d).map(|(_, name)| name)
}

/// Levenshtein distance, ignoring case and taking `-` and `_` for equal.
fn distance(a: &str, b: &str) -> usize {
    let fold = |c: char| if c == '_' { '-' } else { c.to_ascii_lowercase() };
    let b: Vec<char> = b.chars().map(fold).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().map(fold).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn the_near_is_found_and_the_far_is_not() {
        let names = ["groups", "loops", "datasize", "message-threads"];
        let cases = [
            ("group", Some("groups")),
            ("message_threads", Some("message-threads")),
            ("LOOPS", Some("loops")),
            ("", None),
            ("xyzzy", None),
        ];
        for (typed, want) in cases {
            assert_eq!(nearest(typed, names), want, "{typed}");
        }
    }
}
