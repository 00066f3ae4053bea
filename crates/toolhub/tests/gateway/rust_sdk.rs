//! rust_sdk
