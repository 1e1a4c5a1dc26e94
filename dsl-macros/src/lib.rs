//! The attribute and derive macros of Lacewing: a thin shell over `lacewing-expand`
