//! What a Lacewing kernel is made of: types, trace, dialect, targets, lowering
