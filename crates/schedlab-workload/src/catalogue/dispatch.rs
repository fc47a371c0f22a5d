//! A jump table: one of several pieces of code, chosen by a register.

use crate::build::Code;

/// Executes `body(code, n)` of the number n below `count` that the register holds, and goes on behind all of them. The
/// table is a binary search, so that its length grows with the logarithm of `count` only.
pub(super) fn dispatch(code: &mut Code, reg: u8, count: u32, body: &mut impl FnMut(&mut Code, u32)) {
    let done = code.mark();
    search(code, reg, 0..count, body, done);
    code.bind(done);
}

fn search(
    code: &mut Code,
    reg: u8,
    among: std::ops::Range<u32>,
    body: &mut impl FnMut(&mut Code, u32),
    done: crate::build::Mark,
) {
    if among.len() <= 1 {
        among.for_each(|number| body(code, number));
        code.jump(done);
        return;
    }
    let middle = among.start + among.len() as u32 / 2;
    let lower = code.mark();
    code.jump_below(reg, i64::from(middle), lower);
    search(code, reg, middle..among.end, body, done);
    code.bind(lower);
    search(code, reg, among.start..middle, body, done);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Op;

    #[test]
    fn every_number_reaches_its_own_code() {
        for count in 1..12 {
            let mut code = Code::default();
            dispatch(&mut code, 0, count, &mut |code, n| code.op(Op::Set(1, i64::from(n))));
            let ops = code.finish("d").ops;
            for want in 0..i64::from(count) {
                let (mut pc, mut got) = (0, -1);
                while pc < ops.len() {
                    pc = match ops[pc] {
                        Op::JumpBelow { than, to, .. } if want < than => to as usize,
                        Op::Jump(to) => to as usize,
                        Op::Set(_, value) => {
                            got = value;
                            pc + 1
                        }
                        _ => pc + 1,
                    };
                }
                assert_eq!(got, want, "of {count}");
            }
        }
    }
}
