//! The bundled kernels of Lacewing: attention and the small ones the book teaches with

pub mod reference;
