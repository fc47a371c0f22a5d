//! Reads files from disk, up to a maximum size.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The maximum number of bytes to read, which is more than any valid file has.
const MOST: u64 = 1 << 24;

/// The content of a file and its name in messages.
#[derive(Debug)]
pub(crate) struct FileText {
    /// The path for messages.
    pub name: String,
    /// The content, truncated at 16 MiB.
    pub bytes: Vec<u8>,
}

/// Reads a file. The error is a short reason.
pub(crate) fn read(path: &Path) -> Result<FileText, String> {
    let mut bytes = Vec::new();
    // Checked before opening, because opening a FIFO without a writer would block forever.
    let kind = std::fs::metadata(path).map_err(|error| reason(&error))?;
    if !kind.is_file() && !kind.is_dir() {
        return Err("not a regular file".into());
    }
    let file = File::open(path).map_err(|error| reason(&error))?;
    file.take(MOST).read_to_end(&mut bytes).map_err(|error| reason(&error))?;
    Ok(FileText { name: path.display().to_string(), bytes })
}

/// The operating system's message without the error number.
fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}
