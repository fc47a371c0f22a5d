//! Arithmetic, and conditions of jumps: shared by the machine and by the search for instructions that can be reached.

use crate::insn::Insn;

/// The result of an ALU instruction with these operands; `None`: there is no such operation.
#[must_use]
#[inline]
pub fn alu(insn: Insn, dst: u64, src: u64) -> Option<u64> {
    let wide = insn.class() == 7;
    let (op, bits) = (insn.code & 0xf0, if wide { 64 } else { 32 });
    let (a, b) = if wide { (dst, src) } else { (dst & 0xffff_ffff, src & 0xffff_ffff) };
    let shift = (b & (bits - 1)) as u32;
    let signed = |value: u64| if wide { value as i64 } else { i64::from(value as i32) };
    let out = match op {
        0x00 => a.wrapping_add(b),
        0x10 => a.wrapping_sub(b),
        0x20 => a.wrapping_mul(b),
        0x30 if insn.off == 1 => signed_division(signed(a), signed(b)),
        0x30 => a.checked_div(b).unwrap_or(0),
        0x40 => a | b,
        0x50 => a & b,
        0x60 => a.wrapping_shl(shift),
        0x70 => a.wrapping_shr(shift),
        0x80 => a.wrapping_neg(),
        0x90 if insn.off == 1 => signed_remainder(signed(a), signed(b)),
        0x90 => a.checked_rem(b).unwrap_or(a),
        0xa0 => a ^ b,
        0xb0 => match insn.off {
            0 => b,
            8 => b as i8 as u64,
            16 => b as i16 as u64,
            32 => b as i32 as u64,
            _ => return None,
        },
        0xc0 => signed(a).wrapping_shr(shift) as u64,
        0xd0 => return byte_order(insn, dst),
        _ => return None,
    };
    Some(if wide { out } else { out & 0xffff_ffff })
}

/// Signed division: by zero it is 0.
fn signed_division(a: i64, b: i64) -> u64 {
    if b == 0 {
        0
    } else {
        a.wrapping_div(b) as u64
    }
}

/// Signed remainder: by zero it is the dividend.
fn signed_remainder(a: i64, b: i64) -> u64 {
    if b == 0 {
        a as u64
    } else {
        a.wrapping_rem(b) as u64
    }
}

/// Conversions to little-endian truncate, others swap bytes.
fn byte_order(insn: Insn, value: u64) -> Option<u64> {
    let swap = insn.class() == 7 || insn.code & 8 != 0;
    Some(match (insn.imm, swap) {
        (16, false) => value & 0xffff,
        (32, false) => value & 0xffff_ffff,
        (64, false) => value,
        (16, true) => u64::from((value as u16).swap_bytes()),
        (32, true) => u64::from((value as u32).swap_bytes()),
        (64, true) => value.swap_bytes(),
        _ => return None,
    })
}

/// Whether a conditional jump is taken; `None`: it is no conditional jump.
#[must_use]
#[inline]
pub fn taken(insn: Insn, dst: u64, src: u64) -> Option<bool> {
    let wide = insn.class() == 5;
    let (a, b) = if wide { (dst, src) } else { (dst & 0xffff_ffff, src & 0xffff_ffff) };
    let (sa, sb) = if wide { (a as i64, b as i64) } else { (i64::from(a as i32), i64::from(b as i32)) };
    Some(match insn.code & 0xf0 {
        0x10 => a == b,
        0x20 => a > b,
        0x30 => a >= b,
        0x40 => a & b != 0,
        0x50 => a != b,
        0x60 => sa > sb,
        0x70 => sa >= sb,
        0xa0 => a < b,
        0xb0 => a <= b,
        0xc0 => sa < sb,
        0xd0 => sa <= sb,
        _ => return None,
    })
}
