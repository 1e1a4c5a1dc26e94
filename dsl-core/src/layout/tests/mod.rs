//! Each operation against a model that knows nothing of the algebra, and the examples of CuTe's documentation.

mod divisions;
mod dynamic;
mod functions;
mod model;
mod odd;
mod swizzles;
mod tables;
