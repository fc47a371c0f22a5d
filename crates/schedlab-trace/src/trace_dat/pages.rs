//! One CPU's pages in order, unpacked.

use super::head::{Compression, CpuBuffer};
use crate::error::TraceError;
use crate::input::Bytes;
use crate::tracepoint::Endian;

/// The pages of one CPU.
#[derive(Debug)]
pub struct Pages {
    next: u64,
    end: u64,
    page_size: u64,
    /// Unpacking, and the chunks left; `None` before the first.
    chunks: Option<Chunks>,
}

#[derive(Debug)]
struct Chunks {
    compression: Compression,
    endian: Endian,
    left: Option<u32>,
    unpacked: Vec<u8>,
    at: usize,
}

impl Pages {
    pub fn new(buffer: CpuBuffer, page_size: u32, compression: Compression, endian: Endian) -> Pages {
        let chunks = Chunks { compression, endian, left: None, unpacked: Vec::new(), at: 0 };
        Pages {
            next: buffer.offset,
            end: buffer.offset.saturating_add(buffer.size),
            page_size: u64::from(page_size),
            chunks: buffer.compressed.then_some(chunks),
        }
    }

    /// The next page and the offset to name in errors about it.
    pub fn next(&mut self, bytes: &mut Bytes) -> Result<Option<(u64, Vec<u8>)>, TraceError> {
        if self.chunks.is_some() {
            return self.next_unpacked(bytes);
        }
        let offset = self.next;
        if offset >= self.end {
            return Ok(None);
        }
        bytes.seek(offset, "a CPU's pages")?;
        let page = bytes.take(self.page_size.min(self.end - offset), "a page")?;
        self.next = offset + self.page_size;
        Ok(Some((offset, page)))
    }

    fn next_unpacked(&mut self, bytes: &mut Bytes) -> Result<Option<(u64, Vec<u8>)>, TraceError> {
        let Some(chunks) = &mut self.chunks else { return Ok(None) };
        while chunks.at >= chunks.unpacked.len() {
            if self.next >= self.end {
                return Ok(None);
            }
            bytes.seek(self.next, "a CPU's pages")?;
            let left = match chunks.left {
                Some(left) => left,
                None => chunks.endian.number(&bytes.array::<4>("the number of chunks")?) as u32,
            };
            if left == 0 {
                return Ok(None);
            }
            let packed = chunks.endian.number(&bytes.array::<4>("a chunk")?);
            let unpacked = chunks.endian.number(&bytes.array::<4>("a chunk")?);
            let block = bytes.take(packed, "a chunk")?;
            let content = chunks.compression.unpack(&block, unpacked);
            chunks.unpacked = content.map_err(|what| bytes.malformed(self.next, what))?;
            chunks.at = 0;
            chunks.left = Some(left - 1);
            self.next = bytes.position();
        }
        let end = (chunks.at + self.page_size as usize).min(chunks.unpacked.len());
        let page = chunks.unpacked[chunks.at..end].to_vec();
        chunks.at = end;
        Ok(Some((self.next, page)))
    }
}
