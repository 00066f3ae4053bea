//! lossless
