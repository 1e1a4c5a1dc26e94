//! Lacewing.
