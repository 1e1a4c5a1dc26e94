//! The expansion behind Lacewing's macros, as an ordinary library
