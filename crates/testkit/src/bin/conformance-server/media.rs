//! Minimal valid image and audio files, in base64.

/// One red pixel.
pub(crate) const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mM4oKAAAAKkAQHdsXSBAAAAAElFTkSuQmCC";
/// One wave of eight samples.
pub(crate) const WAV: &str = "UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQgAAACAsNCwgFAwUA==";
