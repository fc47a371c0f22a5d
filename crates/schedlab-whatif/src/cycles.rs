//! Finds the cycles in the steps of a program: equal kinds of steps that follow each other become a loop, whose lengths
//! are recorded sequences.

use schedlab_model::Nanos;

use crate::steps::{Step, StepKind};

/// A part of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// How often it is repeated.
    pub times: usize,
    /// Its steps, each with its length in every pass.
    pub steps: Vec<(StepKind, Vec<Nanos>)>,
}

/// The longest cycle that is found, in steps.
const LONGEST: usize = 16;
/// Fewer passes are no cycle.
const FEWEST: usize = 3;

/// Divides the steps of a program into cycles and what lies between them.
#[must_use]
pub fn cycles(steps: &[Step]) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut at = 0;
    while at < steps.len() {
        let rest = &steps[at..];
        let best = (1..=LONGEST.min(rest.len() / FEWEST))
            .map(|length| (length, passes(rest, length)))
            .filter(|(_, times)| *times >= FEWEST)
            // The shortest of those that cover the most.
            .max_by_key(|(length, times)| (length * times, std::cmp::Reverse(*length)));
        let (length, times) = best.unwrap_or((1, 1));
        parts.push(part(&rest[..length * times], length, times));
        at += length * times;
    }
    parts
}

/// How often the first `length` steps follow each other.
fn passes(steps: &[Step], length: usize) -> usize {
    let same = steps.iter().zip(&steps[length..]).take_while(|(a, b)| a.kind == b.kind).count();
    1 + same / length
}

fn part(steps: &[Step], length: usize, times: usize) -> Part {
    let of = |at: usize| (steps[at].kind, steps.iter().skip(at).step_by(length).map(|step| step.length).collect());
    Part { times, steps: (0..length).map(of).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(kind: StepKind, length: Nanos) -> Step {
        Step { kind, length }
    }

    #[test]
    fn a_cycle_is_found_behind_its_beginning() {
        let start = [step(StepKind::Run, 9), step(StepKind::Sleep, 8)];
        let cycle = |n| [step(StepKind::Run, n), step(StepKind::Timer, 0)];
        let steps: Vec<Step> = start.into_iter().chain((1..=4).flat_map(cycle)).collect();
        let parts = cycles(&steps);
        let times: Vec<usize> = parts.iter().map(|part| part.times).collect();
        assert_eq!(times, [1, 1, 4], "{parts:?}");
        assert_eq!(parts[2].steps, [(StepKind::Run, vec![1, 2, 3, 4]), (StepKind::Timer, vec![0; 4])]);
    }

    #[test]
    fn no_step_is_lost() {
        let kinds = [StepKind::Run, StepKind::Sleep, StepKind::Wait, StepKind::Post(1)];
        let mut state = 7_u32;
        let mut draw = || {
            state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345);
            (state >> 16) as usize
        };
        let steps: Vec<Step> = (0..500).map(|n| step(kinds[draw() % 4], n)).collect();
        let back: Vec<Step> = cycles(&steps)
            .iter()
            .flat_map(|part| {
                (0..part.times).flat_map(move |pass| part.steps.iter().map(move |(kind, of)| step(*kind, of[pass])))
            })
            .collect();
        assert_eq!(back, steps);
    }
}
