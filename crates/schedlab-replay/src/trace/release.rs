//! Which kernel a trace was recorded on.

use schedlab_policy::Release;
use schedlab_trace::Header;

/// The release of the recorded kernel; `None` if the header names none.
pub fn release(header: &Header) -> Option<Release> {
    let text = header.kernel.as_deref().unwrap_or("");
    text.split(|c: char| !(c.is_ascii_digit() || c == '.')).next().and_then(Release::parse)
}
