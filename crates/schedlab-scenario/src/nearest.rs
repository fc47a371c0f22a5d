//! Which valid name somebody may have meant.

/// A hint for a name that is not among `valid`: the nearest of them, or all of them when they are few.
pub(crate) fn suggest<'a>(given: &str, valid: impl IntoIterator<Item = &'a str>) -> String {
    const FEW: usize = 16;
    let valid: Vec<&str> = valid.into_iter().collect();
    if let Some(name) = nearest(given, &valid) {
        return format!("did you mean \"{name}\"?");
    }
    match valid.len() {
        0 => String::new(),
        1..=FEW => format!("valid: {}", valid.join(", ")),
        more => format!("valid: {} and {} more", valid[..FEW].join(", "), more - FEW),
    }
}

/// The valid name that differs least, if it differs by no more than a third of its letters; `-`, `_` and case are free.
fn nearest<'a>(given: &str, valid: &[&'a str]) -> Option<&'a str> {
    const LONGEST: usize = 64;
    if given.chars().count() > LONGEST {
        return None;
    }
    let given = fold(given);
    let distance = |name: &str| strsim::damerau_levenshtein(&given, &fold(name));
    let best = valid.iter().min_by_key(|name| distance(name))?;
    (distance(best) * 3 <= best.chars().count().max(given.len())).then_some(*best)
}

fn fold(name: &str) -> String {
    name.to_lowercase().replace('_', "-")
}

#[cfg(test)]
mod tests {
    use super::suggest;

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
