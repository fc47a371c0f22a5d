//! Reading files from disk, never more of them than could be meant.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Read at most this much: one byte more than any file may have, so that a larger one is noticed.
const MOST: u64 = 1 << 24;

/// A file's bytes under the name that messages use.
#[derive(Debug)]
pub(crate) struct FileText {
    /// The path as shown.
    pub name: String,
    /// Its content, cut at 16 MiB.
    pub bytes: Vec<u8>,
}

/// Reads a file, or says in a few words why that is not possible.
pub(crate) fn read(path: &Path) -> Result<FileText, String> {
    let mut bytes = Vec::new();
    // Checked before it is opened: opening a FIFO without a writer blocks forever.
    let kind = std::fs::metadata(path).map_err(|error| reason(&error))?;
    if !kind.is_file() && !kind.is_dir() {
        return Err("not a regular file".into());
    }
    let file = File::open(path).map_err(|error| reason(&error))?;
    file.take(MOST).read_to_end(&mut bytes).map_err(|error| reason(&error))?;
    Ok(FileText { name: path.display().to_string(), bytes })
}

/// The operating system's words without its error number, which no reader needs.
fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}
