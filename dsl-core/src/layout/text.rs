//! CuTe's notation, both ways: `((2,4),3):((1,2),8)`.

use std::fmt;
use std::str::FromStr;

use super::dim::{Dim, LIMIT, Symbol};
use super::nested::{IntTuple, Nested};
use super::{Coord, CoordLeaf, Layout, LayoutError, Tile, Tiler};

/// Deeper nesting is no layout, and would exhaust the stack.
const DEPTH: usize = 32;

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(number) => write!(f, "?{number}"),
            Self::CeilDiv(value, divisor) => write!(f, "ceil({value}/{divisor})"),
        }
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Static(value) => write!(f, "{value}"),
            Self::Dynamic(product) => {
                match product.factor() {
                    1 => {}
                    -1 => write!(f, "-")?,
                    factor => write!(f, "{factor}*")?,
                }
                for (i, symbol) in product.symbols().iter().enumerate() {
                    write!(f, "{}{symbol}", if i == 0 { "" } else { "*" })?;
                }
                Ok(())
            }
        }
    }
}

impl fmt::Display for CoordLeaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(index) => write!(f, "{index}"),
            Self::All => write!(f, "_"),
        }
    }
}

fn write_tuple<T>(
    f: &mut fmt::Formatter<'_>,
    tree: &Nested<T>,
    brackets: (&str, &str),
    leaf: &impl Fn(&mut fmt::Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    match tree {
        Nested::Leaf(value) => leaf(f, value),
        Nested::Tuple(modes) => {
            write!(f, "{}", brackets.0)?;
            for (i, mode) in modes.iter().enumerate() {
                write!(f, "{}", if i == 0 { "" } else { "," })?;
                write_tuple(f, mode, brackets, leaf)?;
            }
            write!(f, "{}", brackets.1)
        }
    }
}

impl fmt::Display for IntTuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_tuple(f, self, ("(", ")"), &|f, dim| write!(f, "{dim}"))
    }
}

impl fmt::Display for Coord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_tuple(f, self, ("(", ")"), &|f, leaf| write!(f, "{leaf}"))
    }
}

impl fmt::Display for Tiler {
    /// `<3:3,(2,4):(1,8)>`; an extent alone stands for that many elements of stride 1.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_tuple(f, self, ("<", ">"), &|f, tile| match tile {
            Tile::Layout(layout) => write!(f, "{layout}"),
            Tile::Extent(extent) => write!(f, "{extent}"),
            Tile::All => write!(f, "_"),
        })
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.shape(), self.stride())
    }
}

/// As [`Display`](fmt::Display): a tree of modes is of no use to anyone who reads it.
impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn refuse<T>(&self, expected: &'static str) -> Result<T, LayoutError> {
        Err(LayoutError::Parse { text: self.text.to_owned(), at: self.at, expected })
    }

    fn skip_space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn accept(&mut self, token: &str) -> bool {
        self.skip_space();
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn expect(&mut self, token: &'static str) -> Result<(), LayoutError> {
        if self.accept(token) { Ok(()) } else { self.refuse(token) }
    }

    fn end(&mut self) -> Result<(), LayoutError> {
        self.skip_space();
        if self.rest().is_empty() { Ok(()) } else { self.refuse("the end") }
    }

    fn number(&mut self) -> Result<i64, LayoutError> {
        self.skip_space();
        let digits = self.rest().strip_prefix('-').unwrap_or(self.rest());
        let sign = self.rest().len() - digits.len();
        let length = sign + digits.len() - digits.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        match self.rest().get(..length).and_then(|digits| digits.parse::<i64>().ok()) {
            Some(value) if value.unsigned_abs() <= LIMIT.unsigned_abs() => {
                self.at += length;
                Ok(value)
            }
            _ => self.refuse("an integer of at most 2^62"),
        }
    }

    /// `8`, `?0`, `ceil(?0/64)`, and their products.
    fn dim(&mut self, depth: usize) -> Result<Dim, LayoutError> {
        if depth > DEPTH {
            return self.refuse("less nesting");
        }
        let mut product = Dim::Static(1);
        if self.rest().starts_with("-?") || self.rest().starts_with("-ceil") {
            self.at += 1;
            product = Dim::Static(-1);
        }
        loop {
            let factor = if self.accept("?") {
                let number = self.number()?;
                match u32::try_from(number) {
                    Ok(number) => Dim::from(Symbol::Value(number)),
                    Err(_) => return self.refuse("the number of a value"),
                }
            } else if self.accept("ceil(") {
                let value = self.dim(depth + 1)?;
                self.expect("/")?;
                let divisor = self.number()?;
                self.expect(")")?;
                value.ceil_div(divisor)?
            } else {
                Dim::Static(self.number()?)
            };
            product = product.times(&factor)?;
            if !self.accept("*") {
                return Ok(product);
            }
        }
    }

    fn tuple(&mut self, depth: usize) -> Result<IntTuple, LayoutError> {
        if depth > DEPTH {
            return self.refuse("less nesting");
        }
        if !self.accept("(") {
            self.skip_space();
            return Ok(Nested::Leaf(self.dim(0)?));
        }
        let mut modes = Vec::new();
        if self.accept(")") {
            return Ok(Nested::Tuple(modes));
        }
        loop {
            modes.push(self.tuple(depth + 1)?);
            if self.accept(")") {
                return Ok(Nested::Tuple(modes));
            }
            self.expect(",")?;
        }
    }

    fn layout(&mut self) -> Result<Layout, LayoutError> {
        let shape = self.tuple(0)?;
        if self.accept(":") { Layout::new(shape, self.tuple(0)?) } else { Layout::column_major(shape) }
    }

    fn tiler(&mut self, depth: usize) -> Result<Tiler, LayoutError> {
        if depth > DEPTH {
            return self.refuse("less nesting");
        }
        if self.accept("_") {
            return Ok(Nested::Leaf(Tile::All));
        }
        if !self.accept("<") {
            let shape = self.tuple(0)?;
            return match (self.accept(":"), &shape) {
                (true, _) => Ok(Nested::Leaf(Tile::Layout(Layout::new(shape, self.tuple(0)?)?))),
                (false, _) => Ok(Tiler::from_shape(&shape)),
            };
        }
        let mut modes = Vec::new();
        loop {
            modes.push(self.tiler(depth + 1)?);
            if self.accept(">") {
                return Ok(Nested::Tuple(modes));
            }
            self.expect(",")?;
        }
    }
}

fn parse_all<T>(text: &str, parse: impl FnOnce(&mut Parser<'_>) -> Result<T, LayoutError>) -> Result<T, LayoutError> {
    let mut parser = Parser { text, at: 0 };
    let value = parse(&mut parser)?;
    parser.end()?;
    Ok(value)
}

impl FromStr for IntTuple {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Self, LayoutError> {
        parse_all(text, |parser| parser.tuple(0))
    }
}

impl FromStr for Layout {
    type Err = LayoutError;

    /// `((2,4),3):((1,2),8)`; without a stride the layout is compact and column-major.
    fn from_str(text: &str) -> Result<Self, LayoutError> {
        parse_all(text, |parser| parser.layout())
    }
}

impl FromStr for Tiler {
    type Err = LayoutError;

    /// `<3:3,(2,4):(1,8)>`, a layout, a shape, or `_` for all of a mode.
    fn from_str(text: &str) -> Result<Self, LayoutError> {
        parse_all(text, |parser| parser.tiler(0))
    }
}
