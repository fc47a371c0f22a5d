//! The types of a kernel, from its image, its `vmlinux`, or a file of BTF.

use std::io::Read;

use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection};

use crate::BpfError;

/// Where the boot protocol of x86 (Documentation/arch/x86/boot.rst) has its magic number, the number of setup sectors,
/// and offset and length of the compressed kernel.
const HDRS: usize = 0x202;
const SETUP_SECTS: usize = 0x1f1;
const PAYLOAD_OFFSET: usize = 0x248;
const PAYLOAD_LENGTH: usize = 0x24c;
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const GZIP: &[u8] = &[0x1f, 0x8b];
const XZ: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z'];
const BTF: &[u8] = &[0x9f, 0xeb, 1];
/// No kernel is larger when decompressed.
const LARGEST: u64 = 1 << 30;

/// The BTF of a kernel: `file` is a bzImage compressed with zstd, an ELF file (`vmlinux`), or BTF
/// (`/sys/kernel/btf/vmlinux`).
///
/// # Errors
/// The file is of another kind, or the kernel was built without BTF.
pub fn kernel_btf(file: &[u8]) -> Result<Vec<u8>, BpfError> {
    if file.starts_with(BTF) {
        return Ok(file.to_vec());
    }
    if file.get(HDRS..HDRS + 4) == Some(b"HdrS") {
        return from_vmlinux(&decompressed(payload(file)?)?);
    }
    if file.starts_with(b"\x7fELF") {
        return from_vmlinux(file);
    }
    Err(BpfError::new("this is no kernel: neither an image, nor vmlinux, nor BTF")
        .with_hint("/sys/kernel/btf/vmlinux has the BTF of the running kernel"))
}

fn payload(image: &[u8]) -> Result<&[u8], BpfError> {
    let word = |at: usize| Some(u32::from_le_bytes(image.get(at..at + 4)?.try_into().ok()?) as usize);
    let part = || {
        let sectors = usize::from(*image.get(SETUP_SECTS)?).max(1);
        let start = ((sectors + 1) * 512).checked_add(word(PAYLOAD_OFFSET)?)?;
        image.get(start..start.checked_add(word(PAYLOAD_LENGTH)?)?)
    };
    part().ok_or_else(|| BpfError::new("the kernel image is damaged: it ends before its compressed part"))
}

fn decompressed(payload: &[u8]) -> Result<Vec<u8>, BpfError> {
    if !payload.starts_with(ZSTD) {
        let known = [(GZIP, "gzip"), (XZ, "xz")].into_iter().find(|(magic, _)| payload.starts_with(magic));
        let how = known.map_or("another format", |(_, name)| name);
        return Err(BpfError::new(format!("the kernel image is compressed with {how}; only zstd is supported"))
            .with_hint("name the kernel's vmlinux, or a file of its BTF"));
    }
    let damaged = |what: String| BpfError::new(format!("the kernel image is damaged: {what}"));
    let decoder = ruzstd::decoding::StreamingDecoder::new(payload).map_err(|e| damaged(e.to_string()))?;
    let mut out = Vec::new();
    // The image ends with the kernel's length, which is no part of the compressed stream.
    decoder.take(LARGEST).read_to_end(&mut out).map_err(|e| damaged(e.to_string()))?;
    Ok(out)
}

fn from_vmlinux(vmlinux: &[u8]) -> Result<Vec<u8>, BpfError> {
    let elf = ElfFile64::<LittleEndian>::parse(vmlinux)
        .map_err(|e| BpfError::new(format!("the kernel cannot be read: {e}")))?;
    let section = elf.section_by_name(".BTF").and_then(|section| section.data().ok());
    section.map(<[u8]>::to_vec).ok_or_else(|| {
        BpfError::new("the kernel has no BTF").with_hint("it was built without CONFIG_DEBUG_INFO_BTF; name another one")
    })
}
