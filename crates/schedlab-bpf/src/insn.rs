//! Instructions of BPF (Documentation/bpf/standardization/instruction-set.rst).

/// An instruction; the second half of a 64-bit immediate is one of its own with code 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Insn {
    /// Class, operation and source.
    pub code: u8,
    /// The destination register.
    pub dst: u8,
    /// The source register.
    pub src: u8,
    /// The offset.
    pub off: i16,
    /// The immediate.
    pub imm: i32,
}

/// Load of a 64-bit immediate.
pub const LD_IMM64: u8 = 0x18;
/// Call.
pub const CALL: u8 = 0x85;
/// Return.
pub const EXIT: u8 = 0x95;
/// `src` of a call of a function of the object.
pub const PSEUDO_CALL: u8 = 1;
/// `src` of a call of a function of the kernel.
pub const PSEUDO_KFUNC: u8 = 2;
/// Size in bytes.
pub const SIZE: usize = 8;

impl Insn {
    /// Decodes eight bytes.
    #[must_use]
    pub fn decode(bytes: [u8; SIZE]) -> Insn {
        let [code, registers, off0, off1, imm @ ..] = bytes;
        Insn {
            code,
            dst: registers & 15,
            src: registers >> 4,
            off: i16::from_le_bytes([off0, off1]),
            imm: i32::from_le_bytes(imm),
        }
    }

    /// Its class.
    #[must_use]
    pub fn class(self) -> u8 {
        self.code & 7
    }

    /// Where a jump goes, relative to the next instruction; `None`: this is no jump.
    #[must_use]
    pub fn jump(self) -> Option<i64> {
        match (self.class(), self.code & 0xf0) {
            (5, 0) | (5 | 6, 0x10..=0x70 | 0xa0..=0xe0) => Some(i64::from(self.off)),
            (6, 0) => Some(i64::from(self.imm)),
            _ => None,
        }
    }
}
