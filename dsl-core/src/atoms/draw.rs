//! Drawings of layouts, copies and products, as SVG.
//!
//! Each cell is an element; its colour is the thread that holds it, and its text says which value of the thread it is.
//! Colours repeat with the threads of a warp. On demand a cell tells the bank of shared memory that it lies in.

use std::fmt::Write as _;

use super::banks::bank_phases;
use super::spec::{MmaSpec, Role};
use super::tiled_copy::places;
use super::tiled_mma::part_of;
use crate::Target;
use crate::layout::{ComposedLayout, Layout, LayoutError};

/// One element of a drawing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// The thread that holds it, and the number of its value there.
    pub owner: Option<(usize, usize)>,
    /// The index in memory.
    pub index: Option<i64>,
    /// The bank of shared memory.
    pub bank: Option<i64>,
}

/// A matrix of cells with a title.
///
/// ```
/// use lacewing_core::atoms::{Drawing, MmaAtom, MmaSync, Role};
/// use lacewing_core::types::F16;
///
/// let c = Drawing::of_operand(&MmaSync::<16, 8, 16, F16>::SPEC, Role::C);
/// assert_eq!((c.rows(), c.columns()), (16, 8));
/// assert_eq!(c.cell(9, 3).and_then(|cell| cell.owner), Some((5, 3)));
/// assert!(c.svg().starts_with("<svg"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drawing {
    title: String,
    rows: usize,
    columns: usize,
    /// Row after row.
    cells: Vec<Cell>,
}

/// Most rows and columns of a drawing: more is no picture.
pub const MAX_EXTENT: usize = 512;

impl Drawing {
    fn new(title: String, [rows, columns]: [usize; 2]) -> Result<Self, LayoutError> {
        let largest = rows.max(columns);
        if rows == 0 || columns == 0 || largest > MAX_EXTENT {
            return Err(LayoutError::Argument {
                what: "an extent of a drawing",
                value: i64::try_from(largest).unwrap_or(i64::MAX),
                why: "rows and columns are 1 to 512",
            });
        }
        Ok(Self { title, rows, columns, cells: vec![Cell::default(); rows * columns] })
    }

    /// The indices of a layout of one or two modes: rows are mode 0.
    ///
    /// # Errors
    /// A layout of more modes, one that is not static, or one too large to look at.
    pub fn of_layout(layout: &ComposedLayout) -> Result<Self, LayoutError> {
        let inner = layout.layout();
        let rank = inner.rank();
        if rank > 2 {
            let why = "a drawing has rows and columns: group or fix the other modes";
            return Err(LayoutError::Argument { what: "a layout's rank", value: rank as i64, why });
        }
        let extent = |mode: usize| -> Result<usize, LayoutError> {
            if mode >= rank { Ok(1) } else { Ok(usize::try_from(inner.mode(&[mode])?.static_size()?).unwrap_or(0)) }
        };
        let title = match layout.swizzle().bits() {
            0 => inner.to_string(),
            _ => layout.to_string(),
        };
        let mut drawing = Self::new(title, [extent(0)?, extent(1)?])?;
        for row in 0..drawing.rows {
            for column in 0..drawing.columns {
                let index = match rank {
                    1 => layout.crd2idx(row)?,
                    _ => layout.crd2idx((row, column))?,
                };
                drawing.at(row, column).index = Some(index);
            }
        }
        Ok(drawing)
    }

    /// Which thread of a warp holds which element of an operand of an instruction. B is drawn as it is multiplied, K x N.
    pub fn of_operand(spec: &MmaSpec, role: Role) -> Self {
        let tile = spec.extents(role);
        // The extents of instructions are drawn.
        Self::of_tiled_mma(spec, [1, 1], role, tile).unwrap_or(Self {
            title: spec.name(),
            rows: 0,
            columns: 0,
            cells: Vec::new(),
        })
    }

    /// Which thread of a block holds which element of an operand's tile, where `warps[0] x warps[1]` warps repeat an
    /// instruction: see [`super::TiledMma`]. `tile` counts `(m, k)`, `(n, k)` or `(m, n)`; B is drawn K x N.
    ///
    /// # Errors
    /// A tile that does not divide among the warps and their atoms.
    pub fn of_tiled_mma(spec: &MmaSpec, warps: [usize; 2], role: Role, tile: [usize; 2]) -> Result<Self, LayoutError> {
        let (operand, [rows, columns]) = (spec.operand(role), spec.extents(role));
        let parts = match role {
            Role::A => [warps[0], 1],
            Role::B => [warps[1], 1],
            Role::C => warps,
        };
        let part = [0, 1].map(|i| tile[i] / parts[i].max(1));
        let whole = (0..2).all(|i| part[i] > 0 && part[i] * parts[i] == tile[i]);
        if !whole || !part[0].is_multiple_of(rows) || !part[1].is_multiple_of(columns) {
            return Err(LayoutError::NotDivisible {
                operation: "a tiled product",
                divisor: format!("{} x {} warps of {rows} x {columns}", parts[0], parts[1]),
                value: format!("{} x {}", tile[0], tile[1]),
            });
        }
        let transposed = role == Role::B;
        let shape = if transposed { [tile[1], tile[0]] } else { tile };
        let title = match warps {
            [1, 1] => format!("{role} of {}", spec.name()),
            [m, n] => format!("{role} of {m} x {n} warps of {}", spec.name()),
        };
        let mut drawing = Self::new(title, shape)?;
        let grid = [part[0] / rows, part[1] / columns];
        for thread in 0..warps[0] * warps[1] * spec.threads() {
            let place = part_of(role, warps, thread / spec.threads());
            for atom in 0..grid[0] * grid[1] {
                for value in 0..operand.values() {
                    let index = operand.tv.index(thread % spec.threads(), value);
                    let row = place[0] * part[0] + atom / grid[1] * rows + index % rows;
                    let column = place[1] * part[1] + atom % grid[1] * columns + index / rows;
                    let cell = if transposed { drawing.at(column, row) } else { drawing.at(row, column) };
                    // Of warps that share an operand, the first is shown.
                    cell.owner.get_or_insert((thread, atom * operand.values() + value));
                }
            }
        }
        Ok(drawing)
    }

    /// Which thread copies which element of a tile: see [`super::TiledCopy`].
    ///
    /// # Errors
    /// A layout of threads that is none.
    pub fn of_tiled_copy(threads: &Layout, values: [usize; 2], tile: [usize; 2]) -> Result<Self, LayoutError> {
        let (places, groups) = places(threads)?;
        let title = format!("a copy by threads {threads} of {} x {} values", values[0], values[1]);
        let mut drawing = Self::new(title, tile)?;
        let step = [0, 1].map(|i| (groups[i] * values[i]).max(1));
        for (thread, place) in places.iter().enumerate() {
            let mut value = 0;
            for row in (place[0] * values[0]..tile[0]).step_by(step[0]) {
                for column in (place[1] * values[1]..tile[1]).step_by(step[1]) {
                    for at in 0..values[0] * values[1] {
                        let (row, column) = (row + at / values[1], column + at % values[1]);
                        if row < tile[0] && column < tile[1] {
                            drawing.at(row, column).owner = Some((thread, value));
                        }
                        value += 1;
                    }
                }
            }
        }
        Ok(drawing)
    }

    /// The same cells with their place in shared memory: index and bank under a layout of `(row, column)`.
    ///
    /// # Errors
    /// A layout that is not defined on all of the drawing.
    pub fn with_banks(
        mut self,
        layout: &ComposedLayout,
        element_bytes: usize,
        target: Target,
    ) -> Result<Self, LayoutError> {
        let (banks, _) = bank_phases(target, 4, false);
        for row in 0..self.rows {
            for column in 0..self.columns {
                let index = match layout.layout().rank() {
                    1 => layout.crd2idx(row)?,
                    _ => layout.crd2idx((row, column))?,
                };
                let cell = self.at(row, column);
                cell.index = Some(index);
                cell.bank = Some(index * element_bytes as i64 / 4 % banks);
            }
        }
        Ok(self)
    }

    fn at(&mut self, row: usize, column: usize) -> &mut Cell {
        let last = self.cells.len().saturating_sub(1);
        &mut self.cells[(row * self.columns + column).min(last)]
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// An element.
    pub fn cell(&self, row: usize, column: usize) -> Option<&Cell> {
        self.cells.get(row * self.columns + column).filter(|_| column < self.columns)
    }

    /// The drawing as an SVG document, the same bytes for the same drawing.
    pub fn svg(&self) -> String {
        // Cells hold up to three lines: thread, value (or index), bank.
        let has = |f: fn(&Cell) -> bool| self.cells.iter().any(f);
        let (owners, indices, banks) =
            (has(|c| c.owner.is_some()), has(|c| c.index.is_some()), has(|c| c.bank.is_some()));
        let lines = 2 * usize::from(owners) + usize::from(indices && !owners) + usize::from(banks);
        let (width, height) = (34, 8 + 11 * lines.max(1));
        let (left, top) = (30, 40);
        let (whole_width, whole_height) = (left + self.columns * width + 10, top + self.rows * height + 10);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {whole_width} {whole_height}\" \
             width=\"{whole_width}\" height=\"{whole_height}\" font-family=\"monospace\" font-size=\"9\" \
             text-anchor=\"middle\">\n<title>{title}</title>\n<text x=\"{left}\" y=\"14\" font-size=\"11\" \
             text-anchor=\"start\">{title}</text>\n",
            title = escaped(&self.title),
        );
        for column in 0..self.columns {
            let x = left + column * width + width / 2;
            let _ = writeln!(svg, "<text x=\"{x}\" y=\"{}\" fill=\"#777\">{column}</text>", top - 6);
        }
        for row in 0..self.rows {
            let y = top + row * height;
            let _ = writeln!(svg, "<text x=\"{}\" y=\"{}\" fill=\"#777\">{row}</text>", left / 2, y + height / 2 + 3);
            for column in 0..self.columns {
                if let Some(cell) = self.cell(row, column) {
                    draw_cell(&mut svg, cell, [left + column * width, y], [width, height]);
                }
            }
        }
        svg.push_str("</svg>\n");
        svg
    }
}

fn draw_cell(svg: &mut String, cell: &Cell, [x, y]: [usize; 2], [width, height]: [usize; 2]) {
    let fill = match (cell.owner, cell.bank.or(cell.index)) {
        (Some((thread, _)), _) => colour(thread),
        (None, Some(number)) => colour(usize::try_from(number).unwrap_or(0)),
        (None, None) => "#fff".to_owned(),
    };
    let _ = writeln!(
        svg,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{fill}\" stroke=\"#555\" stroke-width=\"0.5\"/>"
    );
    let mut lines = Vec::new();
    if let Some((thread, value)) = cell.owner {
        lines.extend([format!("T{thread}"), format!("V{value}")]);
    } else if let Some(index) = cell.index {
        lines.push(index.to_string());
    }
    lines.extend(cell.bank.map(|bank| format!("b{bank}")));
    for (number, line) in lines.iter().enumerate() {
        let (x, y) = (x + width / 2, y + 12 + 11 * number);
        let _ = writeln!(svg, "<text x=\"{x}\" y=\"{y}\">{line}</text>");
    }
}

/// A light colour for a number: eight hues, in four shades.
fn colour(number: usize) -> String {
    let (hue, shade) = (number % 8 * 45, number / 8 % 4);
    format!("hsl({hue},60%,{}%)", 90 - 7 * shade)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
