//! Tests of the expansion.
