//! Records that perf has compressed (`perf record -z`): one zstd stream through all records of this kind.
//!
//! The decoder keeps as many bytes back as later blocks may refer to, so records appear after others of the file that
//! perf wrote later. [`Unpacker::written`] says how far the stream goes, which tells when such a record is due.

use ruzstd::decoding::FrameDecoder;

/// No window of a stream is larger: that of the highest level of zstd.
const WINDOW_BYTES: u64 = 128 << 20;
/// A raw block of no bytes, the last one of its frame: perf does not end its stream.
const LAST_BLOCK: [u8; 3] = [1, 0, 0];

/// The stream.
pub struct Unpacker {
    decoder: FrameDecoder,
    /// A frame was begun.
    begun: bool,
    /// Input that is not yet a whole block.
    input: Vec<u8>,
    /// Output that was not yet taken, from `at` on.
    output: Vec<u8>,
    at: usize,
    taken: u64,
    window: u64,
}

impl std::fmt::Debug for Unpacker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unpacker").field("taken", &self.taken).finish_non_exhaustive()
    }
}

impl Default for Unpacker {
    fn default() -> Unpacker {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(WINDOW_BYTES);
        let (input, output) = (Vec::new(), Vec::new());
        Unpacker { decoder, begun: false, input, output, at: 0, taken: 0, window: 0 }
    }
}

impl Unpacker {
    /// Takes the content of a compressed record. The error says what is wrong with it.
    pub fn push(&mut self, block: &[u8]) -> Result<(), String> {
        self.input.extend_from_slice(block);
        self.decode()
    }

    /// The file has ended: nothing is kept back any more.
    pub fn finish(&mut self) -> Result<(), String> {
        if self.begun && !self.decoder.is_finished() {
            self.push(&LAST_BLOCK)?;
        }
        Ok(())
    }

    /// Takes the next `length` bytes of output; `None` if there are fewer.
    pub fn take(&mut self, length: usize) -> Option<&[u8]> {
        let bytes = self.output.get(self.at..self.at + length)?;
        self.at += length;
        self.taken += length as u64;
        Some(bytes)
    }

    /// Looks at the next `length` bytes of output; `None` if there are fewer.
    pub fn peek(&self, length: usize) -> Option<&[u8]> {
        self.output.get(self.at..self.at + length)
    }

    /// Bytes of output that were taken.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// How long the output is, with what is kept back; `None` while that is not known.
    pub fn written(&self) -> Option<u64> {
        let ready = self.taken + (self.output.len() - self.at) as u64;
        match self.begun && !self.decoder.is_finished() {
            false => Some(ready),
            true => (ready > 0).then_some(ready + self.window),
        }
    }

    fn decode(&mut self) -> Result<(), String> {
        if self.at > 0 && self.at == self.output.len() {
            self.output.clear();
            self.at = 0;
        }
        let failed = |error: ruzstd::decoding::errors::FrameDecoderError| format!("compressed records: {error}");
        let mut buffer = vec![0; 1 << 16];
        let mut used = 0;
        loop {
            let rest = &self.input[used..];
            if (!self.begun || self.decoder.is_finished()) && !rest.is_empty() {
                let mut source = rest;
                self.decoder.reset(&mut source).map_err(failed)?;
                self.window = window(rest);
                self.begun = true;
                used += rest.len() - source.len();
                continue;
            }
            if !self.begun {
                break;
            }
            let (read, written) = self.decoder.decode_from_to(rest, &mut buffer).map_err(failed)?;
            used += read;
            self.output.extend_from_slice(&buffer[..written]);
            if read + written == 0 {
                break;
            }
        }
        self.input.drain(..used);
        Ok(())
    }
}

/// The window size that the header of a frame states (RFC 8878, 3.1.1.1).
fn window(frame: &[u8]) -> u64 {
    let (descriptor, rest) = (frame.get(4).copied().unwrap_or(0), frame.get(5..).unwrap_or(&[]));
    let single_segment = descriptor & 0x20 != 0;
    if !single_segment {
        let (exponent, mantissa) = rest.first().map_or((0, 0), |byte| (byte >> 3, u64::from(byte & 7)));
        let base = 1u64 << (10 + exponent);
        return base + base / 8 * mantissa;
    }
    let skipped = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let length = [1, 2, 4, 8][usize::from(descriptor >> 6)];
    let bytes = rest.get(skipped..skipped + length).unwrap_or(&[]);
    let size = bytes.iter().rev().fold(0, |size, byte| size << 8 | u64::from(*byte));
    size + if length == 2 { 256 } else { 0 }
}
