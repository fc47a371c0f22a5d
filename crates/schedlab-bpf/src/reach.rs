//! Which instructions can be executed when constants are known: the verifier discards the others, so that an object may
//! contain calls of functions that a kernel lacks. An instruction that lacks something does not end the search, so that
//! everything that an object needs is found.
//!
//! Constants are followed through registers, not through memory; read-only data count as unknown, because a loader may
//! change them.

use crate::alu::{alu, taken};
use crate::insn::{CALL, EXIT, LD_IMM64, PSEUDO_CALL};
use crate::link::Linked;
use crate::program::{Object, Ref};

/// The constants in the registers.
type Registers = [Option<u64>; 11];

/// For each instruction, whether it can be reached from one of `roots`.
pub(crate) fn reachable(object: &Object, linked: &Linked, roots: impl IntoIterator<Item = usize>) -> Vec<bool> {
    let mut before: Vec<Option<Registers>> = vec![None; object.insns.len()];
    let mut work: Vec<usize> = Vec::new();
    for root in roots {
        merge(&mut before, &mut work, root, [None; 11]);
    }
    while let Some(at) = work.pop() {
        let Some(registers) = before[at] else { continue };
        step(object, linked, at, registers, &mut |next, registers| merge(&mut before, &mut work, next, registers));
    }
    before.iter().map(Option::is_some).collect()
}

fn merge(before: &mut [Option<Registers>], work: &mut Vec<usize>, at: usize, new: Registers) {
    let Some(old) = before.get_mut(at) else { return };
    let joined = match old {
        None => new,
        Some(old) => std::array::from_fn(|n| if old[n] == new[n] { old[n] } else { None }),
    };
    if *old != Some(joined) {
        *old = Some(joined);
        work.push(at);
    }
}

/// Passes on each instruction that may follow, with the constants that it finds.
fn step(object: &Object, linked: &Linked, at: usize, registers: Registers, next: &mut dyn FnMut(usize, Registers)) {
    let (insn, mut after) = (linked.insns[at], registers);
    let (dst, src) = (usize::from(insn.dst).min(10), usize::from(insn.src).min(10));
    let immediate = insn.code & 8 == 0;
    let operand = if immediate { Some(insn.imm as i64 as u64) } else { registers[src] };
    match insn.class() {
        4 | 7 if linked.poisoned.contains(&at) => after[dst] = None,
        4 | 7 => {
            after[dst] = match (insn.code & 0xf0, operand, registers[dst]) {
                (0xb0, Some(b), _) => alu(insn, 0, b),
                (_, Some(b), Some(a)) => alu(insn, a, b),
                _ => None,
            };
        }
        0 | 1 if insn.code == LD_IMM64 => {
            after[dst] = match object.refs.get(&at) {
                Some(Ref::Code(target)) => {
                    next(*target, [None; 11]);
                    None
                }
                Some(Ref::Extern(number)) => linked.externs[*number],
                Some(_) => None,
                None => linked.insns.get(at + 1).map(|high| insn.imm as u32 as u64 | (high.imm as u64) << 32),
            };
            return next(at + 2, after);
        }
        0 | 1 => after[dst] = None,
        3 if insn.code & 0xe0 == 0xc0 => {
            after[src] = None;
            after[0] = None;
        }
        _ => {}
    }
    if insn.code == EXIT {
        return;
    }
    if insn.code == CALL {
        if insn.src == PSEUDO_CALL {
            if let Ok(target) = usize::try_from(at as i64 + 1 + i64::from(insn.imm)) {
                next(target, [None; 11]);
            }
        }
        after[..6].fill(None);
        return next(at + 1, after);
    }
    if let Some(offset) = insn.jump() {
        let target = usize::try_from(at as i64 + 1 + offset).unwrap_or(usize::MAX);
        let known = operand.zip(registers[dst]).and_then(|(b, a)| taken(insn, a, b));
        let always = matches!(insn.class(), 5 | 6) && insn.code & 0xf0 == 0;
        if always || known != Some(false) {
            next(target, after);
        }
        if always || known == Some(true) {
            return;
        }
    }
    next(at + 1, after);
}
