//! The packets of a trace file by their offset, compressed ones unpacked.

use std::io::Read;

use flate2::read::ZlibDecoder;
use prost::Message;

use super::message::TracePacket;
use crate::error::{Fault, TraceError};
use crate::input::Bytes;

/// Input with larger packets, or with compressed ones that unpack to more, is not a trace.
const PACKET_BYTES: u64 = 64 << 20;
/// Key of field 1 of the message Trace, length-delimited.
const PACKET_KEY: u8 = 0x0a;

/// The packets of a file.
pub struct Packets {
    bytes: Bytes,
    /// The packets last unpacked, and where.
    unpacked: (u64, Vec<TracePacket>),
}

/// The content of a trace or of `compressed_packets`.
#[derive(Clone, PartialEq, Message)]
struct Trace {
    #[prost(message, repeated, tag = "1")]
    packet: Vec<TracePacket>,
}

impl Packets {
    pub fn new(bytes: Bytes) -> Packets {
        Packets { bytes, unpacked: (u64::MAX, Vec::new()) }
    }

    /// The next packet and its offset, as one packet or as those it holds compressed.
    pub fn next(&mut self) -> Result<Option<(u64, Vec<TracePacket>)>, TraceError> {
        let offset = self.bytes.position();
        if offset == self.bytes.size() {
            return Ok(None);
        }
        let [key] = self.bytes.array("a packet")?;
        if key != PACKET_KEY {
            return Err(self.bytes.malformed(offset, format!("expected a packet, found byte {key:#04x}")));
        }
        let length = self.varint()?;
        if length > PACKET_BYTES {
            return Err(self.bytes.malformed(offset, format!("a packet of {length} bytes")));
        }
        let content = self.bytes.take(length, "a packet")?;
        let undecodable = |error: prost::DecodeError| self.bytes.malformed(offset, format!("a packet: {error}"));
        let mut packet = TracePacket::decode(&*content).map_err(undecodable)?;
        match packet.compressed_packets.take() {
            None => Ok(Some((offset, vec![packet]))),
            Some(compressed) => {
                let content = self.inflate(offset, &compressed)?;
                Ok(Some((offset, Trace::decode(&*content).map_err(undecodable)?.packet)))
            }
        }
    }

    /// The packet at an offset that [`Packets::next`] gave, which of those in it; each can be fetched only once.
    pub fn at(&mut self, offset: u64, inner: usize) -> Result<TracePacket, TraceError> {
        if self.unpacked.0 != offset {
            self.bytes.seek(offset, "a packet")?;
            self.unpacked = self.next()?.unwrap_or((offset, Vec::new()));
        }
        Ok(self.unpacked.1.get_mut(inner).map(std::mem::take).unwrap_or_default())
    }

    /// An error in the packet at an offset.
    pub fn malformed(&self, offset: u64, what: impl Into<String>) -> TraceError {
        self.bytes.malformed(offset, what)
    }

    fn inflate(&self, offset: u64, compressed: &[u8]) -> Result<Vec<u8>, TraceError> {
        let mut content = Vec::new();
        let read = ZlibDecoder::new(compressed).take(PACKET_BYTES + 1).read_to_end(&mut content);
        read.map_err(|error| self.bytes.fault(offset, Fault::Io(error)))?;
        if content.len() as u64 > PACKET_BYTES {
            return Err(self
                .bytes
                .malformed(offset, "compressed packets that unpack to more than a trace writer makes"));
        }
        Ok(content)
    }

    fn varint(&mut self) -> Result<u64, TraceError> {
        let offset = self.bytes.position();
        let mut value = 0u64;
        for shift in (0..63).step_by(7) {
            let [byte] = self.bytes.array("a packet's length")?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.bytes.malformed(offset, "a packet's length of more than 9 bytes"))
    }
}
