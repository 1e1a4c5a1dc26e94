//! `lacewing draw`.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use lacewing_core::Target;
use lacewing_core::atoms::{Drawing, MMA_TABLE, MmaSpec, Role};
use lacewing_core::layout::{ComposedLayout, Layout, Swizzle};
use lacewing_runtime::device::target_from_name;
use lacewing_runtime::registry::unknown;

use super::failure::Failure;
use super::{Io, files};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
    /// Show in which bank of shared memory each element lies
    #[arg(long, global = true)]
    banks: bool,
    /// The layout in shared memory that banks are shown for; that of rows without gaps when left out
    #[arg(long, value_name = "LAYOUT", global = true)]
    memory: Option<String>,
    /// A swizzle of the layout in memory: bits, base, shift, as 3,3,3
    #[arg(long, value_name = "B,M,S", global = true)]
    swizzle: Option<String>,
    /// Bytes of an element
    #[arg(long, default_value_t = 2, value_name = "BYTES", global = true, value_parser = clap::value_parser!(u8).range(1..=16))]
    element: u8,
    /// The chip whose banks are shown
    #[arg(long, default_value = "sm_80", global = true)]
    target: String,
    /// Write to a file instead of standard output (`-` is standard output too)
    #[arg(short, long, value_name = "FILE", global = true)]
    output: Option<PathBuf>,
}

#[derive(Subcommand)]
enum What {
    /// A layout, as "(8,64):(64,1)": the index of each coordinate
    Layout {
        /// In CuTe's notation, with one or two modes
        layout: String,
    },
    /// An operand of a matrix instruction, or of warps that repeat it: the thread and value of each element
    Mma {
        /// The instruction, as mma_sync.16x8x16.f16
        atom: String,
        /// A, B or C; B is drawn K x N
        #[arg(long, default_value = "C")]
        operand: String,
        /// Warps along m and n, as 2x2
        #[arg(long, default_value = "1x1", value_name = "MxN")]
        warps: String,
        /// Rows and columns of the operand's tile, (m, k), (n, k) or (m, n); one instruction's when left out
        #[arg(long, value_name = "RxC")]
        tile: Option<String>,
    },
    /// A copy of a tile by threads: the thread and value of each element
    Copy {
        /// A layout from a place to a thread, as "(16,8):(8,1)"
        threads: String,
        /// Values of a thread at each place, as 1x8
        #[arg(long, default_value = "1x1", value_name = "RxC")]
        values: String,
        /// Rows and columns of the tile
        #[arg(long, value_name = "RxC")]
        tile: String,
    },
}

/// `RxC` as two numbers.
fn pair(text: &str) -> Result<[usize; 2], Failure> {
    let parts = text.split_once('x').and_then(|(a, b)| Some([a.trim().parse().ok()?, b.trim().parse().ok()?]));
    parts
        .filter(|parts| parts.iter().all(|part| (1..=4096).contains(part)))
        .ok_or_else(|| Failure::input(format!("`{text}` is not two numbers from 1 to 4096, as 16x8")))
}

fn layout(text: &str) -> Result<Layout, Failure> {
    text.parse::<Layout>().map_err(|error| Failure::input(error.to_string()))
}

fn swizzle(text: &str) -> Result<Swizzle, Failure> {
    let wrong = || Failure::input(format!("`{text}` is no swizzle: give bits, base and shift, as 3,3,3"));
    let numbers: Vec<i32> =
        text.split(',').map(|part| part.trim().parse().map_err(|_| wrong())).collect::<Result<_, _>>()?;
    let [bits, base, shift] = numbers.as_slice() else { return Err(wrong()) };
    let unsigned = |number: i32| u32::try_from(number).map_err(|_| wrong());
    Swizzle::new(unsigned(*bits)?, unsigned(*base)?, *shift).map_err(|error| Failure::input(error.to_string()))
}

fn atom(name: &str) -> Result<&'static MmaSpec, Failure> {
    let names: Vec<String> = MMA_TABLE.iter().map(MmaSpec::name).collect();
    let found = MMA_TABLE.iter().find(|spec| spec.name() == name);
    found.ok_or_else(|| Failure::input(unknown("matrix instruction", name, names.iter().map(String::as_str))))
}

fn role(name: &str) -> Result<Role, Failure> {
    match name {
        "A" | "a" => Ok(Role::A),
        "B" | "b" => Ok(Role::B),
        "C" | "c" | "D" | "d" => Ok(Role::C),
        _ => Err(Failure::input(unknown("operand", name, ["A", "B", "C"]))),
    }
}

pub(crate) fn draw(arguments: &Arguments, io: &mut Io) -> Result<(), Failure> {
    let path = arguments.output.as_deref().filter(|path| *path != Path::new("-"));
    if let Some(path) = path {
        files::check_writable(path)?;
    }
    let svg = picture(arguments)?;
    match path {
        Some(path) => files::write_atomically(path, svg.as_bytes())
            .map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display()))),
        None => Ok(io.out.write_all(svg.as_bytes())?),
    }
}

fn picture(arguments: &Arguments) -> Result<String, Failure> {
    let refused = |error: lacewing_core::layout::LayoutError| Failure::input(error.to_string());
    let target: Target = target_from_name(&arguments.target)?;
    let swizzle = arguments.swizzle.as_deref().map_or(Ok(Swizzle::IDENTITY), swizzle)?;
    let mut memory = arguments.memory.as_deref().map(layout).transpose()?;
    let drawing = match &arguments.what {
        What::Layout { layout: text } => {
            let drawn = layout(text)?;
            let composed = ComposedLayout::new(swizzle, drawn.clone()).map_err(refused)?;
            memory.get_or_insert(drawn);
            Drawing::of_layout(&composed)
        }
        What::Mma { atom: name, operand, warps, tile } => {
            let (spec, role, warps) = (atom(name)?, role(operand)?, pair(warps)?);
            let parts = match role {
                Role::A => [warps[0], 1],
                Role::B => [warps[1], 1],
                Role::C => warps,
            };
            let [rows, columns] = spec.extents(role);
            let tile = tile.as_deref().map_or(Ok([rows * parts[0], columns * parts[1]]), pair)?;
            Drawing::of_tiled_mma(spec, warps, role, tile)
        }
        What::Copy { threads, values, tile } => Drawing::of_tiled_copy(&layout(threads)?, pair(values)?, pair(tile)?),
    }
    .map_err(refused)?;
    if !arguments.banks {
        return Ok(drawing.svg());
    }
    let rows = || Layout::new((drawing.rows(), drawing.columns()), (drawing.columns(), 1));
    let memory =
        memory.map_or_else(rows, Ok).and_then(|memory| ComposedLayout::new(swizzle, memory)).map_err(refused)?;
    Ok(drawing.with_banks(&memory, arguments.element.into(), target).map_err(refused)?.svg())
}
