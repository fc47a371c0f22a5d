//! The closest valid names to one that was mistyped.

/// At most three of `names`, closest first, by edit distance; names with nothing in common are left out.
pub(crate) fn nearest(typed: &str, names: impl Iterator<Item = &'static str>) -> Vec<&'static str> {
    let typed = typed.to_ascii_lowercase();
    let mut scored: Vec<(usize, &'static str)> = names
        .map(|name| (distance(&typed, &name.to_ascii_lowercase()), name))
        .filter(|(cost, name)| *cost < name.len().max(typed.len()))
        .collect();
    scored.sort();
    scored.into_iter().take(3).map(|(_, name)| name).collect()
}

/// Levenshtein distance over bytes; a long input is cut, it resembles nothing anyway.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (&a.as_bytes()[..a.len().min(64)], &b.as_bytes()[..b.len().min(64)]);
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let substitute = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substitute.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closest_first() {
        let names = || ["PLACE_LAG", "PLACE_REL_DEADLINE", "DELAY_ZERO"].into_iter();
        assert_eq!(nearest("place_lg", names())[0], "PLACE_LAG");
        assert!(nearest("", names()).is_empty());
    }
}
