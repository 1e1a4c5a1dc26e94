//! Divisions into tiles, products of tiles, and the parts of blocks and threads.

use super::LayoutError;
use super::algebra::Fill;
use super::coord::{Coord, CoordLeaf, Slice};
use super::dim::Dim;
use super::nested::{IntTuple, Nested};
use super::shape::{Layout, Mode};
use super::tile::{Tile, Tiler};

/// One application of a tiler: to a layout, by one tile.
type Apply = fn(&Layout, &Layout) -> Result<Layout, LayoutError>;

fn divide(layout: &Layout, tile: &Layout) -> Result<Layout, LayoutError> {
    let fill = Fill::of(tile, "logical_divide")?;
    if let Some((stride, block)) = fill.hole {
        return Err(LayoutError::Holes { tiler: tile.to_string(), stride, block });
    }
    let rest = layout.size().ceil_div(fill.block)?;
    layout.composition(Layout::concat([tile, &fill.complement(rest)?])?)
}

fn multiply(block: &Layout, tile: &Layout) -> Result<Layout, LayoutError> {
    let fill = Fill::of(block, "logical_product")?;
    let copies = tile.cosize()?;
    let cotarget = block.size().times(&copies.into())?;
    // At least one place for each copy, also where holes in the block make it larger than its size.
    let rest = cotarget.ceil_div(fill.block)?.get("logical_product")?.max(copies);
    Layout::concat([block, &fill.complement(rest.into())?.composition(tile)?])
}

/// Applies `f` where the tiler has tiles: by mode for tuples. Modes beyond the tiler stay.
fn by_mode(layout: &Layout, tiler: &Tiler, operation: &'static str, f: Apply) -> Result<Layout, LayoutError> {
    match tiler {
        Nested::Leaf(Tile::All) => Ok(layout.clone()),
        Nested::Leaf(tile) => f(layout, &tile.layout()?),
        Nested::Tuple(tiles) => {
            if tiles.len() > layout.rank() {
                return Err(LayoutError::profile(operation, tiler, &layout.shape()));
            }
            let mut modes = Vec::new();
            for (i, mode) in layout.modes().enumerate() {
                modes.push(match tiles.get(i) {
                    Some(tile) => by_mode(&mode, tile, operation, f)?,
                    None => mode,
                });
            }
            Layout::concat(&modes)
        }
    }
}

/// The two halves of a result of [`by_mode`]: what came of the tiles, and what was left.
fn unzip(tree: &Nested<Mode>, tiler: &Tiler) -> Option<(Nested<Mode>, Nested<Mode>)> {
    match tiler {
        Nested::Leaf(Tile::All) => Some((tree.clone(), Nested::Leaf(Mode::unit()))),
        Nested::Leaf(_) => Some((tree.at(&[0])?.clone(), tree.at(&[1])?.clone())),
        Nested::Tuple(tiles) => {
            let (mut firsts, mut seconds) = (Vec::new(), Vec::new());
            for (i, mode) in tree.modes().iter().enumerate() {
                match tiles.get(i) {
                    Some(tile) => {
                        let (first, second) = unzip(mode, tile)?;
                        firsts.push(first);
                        seconds.push(second);
                    }
                    None => seconds.push(mode.clone()),
                }
            }
            Some((Nested::Tuple(firsts), Nested::Tuple(seconds)))
        }
    }
}

fn zipped(layout: &Layout, tiler: &Tiler, operation: &'static str, f: Apply) -> Result<Layout, LayoutError> {
    let applied = by_mode(layout, tiler, operation, f)?;
    let (first, second) =
        unzip(applied.tree(), tiler).ok_or_else(|| LayoutError::profile(operation, tiler, &layout.shape()))?;
    Layout::from_tree(Nested::Tuple(vec![first, second]))
}

/// `(a, (b, c))` as `(a, b, c)`, and with `both` also the first mode unpacked.
fn unpacked(pair: &Layout, both: bool) -> Result<Layout, LayoutError> {
    let (first, second) = (pair.mode(&[0])?, pair.mode(&[1])?);
    let mut modes: Vec<Layout> = if both { first.modes().collect() } else { vec![first] };
    modes.extend(second.modes());
    Layout::concat(&modes)
}

/// The rank-sensitive products: the modes of block and tile side by side.
fn interleave(block: &Layout, tile: &Layout, tile_first: bool) -> Result<Layout, LayoutError> {
    let rank = block.rank().max(tile.rank());
    let product = multiply(&block.padded(rank), &tile.padded(rank))?;
    let (blocks, tiles) = (product.mode(&[0])?, product.mode(&[1])?);
    let mut modes = Vec::new();
    for (block, tile) in blocks.modes().zip(tiles.modes()) {
        let pair = if tile_first { [&tile, &block] } else { [&block, &tile] };
        modes.push(Layout::concat(pair)?.coalesce()?);
    }
    Layout::concat(&modes)
}

impl Layout {
    /// The layout in two modes: the elements that the tile points to, and the repetitions of the tile.
    ///
    /// `self o (tile, complement(tile, size(self)))`; for a tuple of tiles, mode by mode. Defined where that
    /// composition is, and where tile and complement leave no element out. The tile may overhang the end of the
    /// layout.
    ///
    /// ```
    /// use lacewing_core::layout;
    /// use lacewing_core::layout::Tiler;
    ///
    /// let vector = layout![(4, 2, 3); (2, 1, 8)]?;
    /// assert_eq!(vector.logical_divide(layout![4; 2]?)?.to_string(), "((2,2),(2,3)):((4,1),(2,8))");
    ///
    /// let matrix = layout![(9, (4, 8)); (59, (13, 1))]?;
    /// let tiler: Tiler = "<3:3,(2,4):(1,8)>".parse()?;
    /// let divided = matrix.logical_divide(tiler)?;
    /// assert_eq!(divided.to_string(), "((3,3),((2,4),(2,2))):((177,59),((13,2),(26,1)))");
    /// # Ok::<(), lacewing_core::layout::LayoutError>(())
    /// ```
    pub fn logical_divide(&self, tiler: impl Into<Tiler>) -> Result<Self, LayoutError> {
        by_mode(self, &tiler.into(), "logical_divide", divide)
    }

    /// [`Layout::logical_divide`] with the tiles in mode 0 and the rest in mode 1:
    /// `((TileM,TileN),(RestM,RestN,L,..))`. Mode 0 is `self.composition(tiler)`, and tile number `t` starts at
    /// `(0, t)`.
    ///
    /// ```
    /// # use lacewing_core::layout;
    /// let tiles = layout![(64, 32); (32, 1)]?.zipped_divide((16, 8))?;
    /// assert_eq!(tiles.to_string(), "((16,8),(4,4)):((32,1),(512,8))");
    /// assert_eq!(tiles.crd2idx((0, (1, 2)))?, 528);
    /// # Ok::<(), lacewing_core::layout::LayoutError>(())
    /// ```
    pub fn zipped_divide(&self, tiler: impl Into<Tiler>) -> Result<Self, LayoutError> {
        zipped(self, &tiler.into(), "zipped_divide", divide)
    }

    /// [`Layout::zipped_divide`] with the rest unpacked: `((TileM,TileN),RestM,RestN,L,..)`.
    pub fn tiled_divide(&self, tiler: impl Into<Tiler>) -> Result<Self, LayoutError> {
        unpacked(&self.zipped_divide(tiler)?, false)
    }

    /// [`Layout::zipped_divide`] with tiles and rest unpacked: `(TileM,TileN,RestM,RestN,L,..)`.
    pub fn flat_divide(&self, tiler: impl Into<Tiler>) -> Result<Self, LayoutError> {
        unpacked(&self.zipped_divide(tiler)?, true)
    }

    /// The layout in two modes: itself, and `tile` with a copy of it for each element.
    ///
    /// `(self, complement(self, size(self) * cosize(tile)) o tile)`; for a tuple of tiles, mode by mode. Copies do
    /// not overlap where `tile` is injective.
    ///
    /// ```
    /// # use lacewing_core::layout;
    /// let block = layout![(2, 2); (4, 1)]?;
    /// assert_eq!(block.logical_product(layout![6; 1]?)?.to_string(), "((2,2),(2,3)):((4,1),(2,8))");
    /// # Ok::<(), lacewing_core::layout::LayoutError>(())
    /// ```
    pub fn logical_product(&self, tiler: impl Into<Tiler>) -> Result<Self, LayoutError> {
        by_mode(self, &tiler.into(), "logical_product", multiply)
    }

    /// [`Layout::logical_product`] as `((M,N),(TileM,TileN,L,..))`.
    pub fn zipped_product(&self, tiler: impl Into<Tiler>) -> Result<Self, LayoutError> {
        zipped(self, &tiler.into(), "zipped_product", multiply)
    }

    /// [`Layout::logical_product`] as `((M,N),TileM,TileN,L,..)`.
    pub fn tiled_product(&self, tiler: impl Into<Tiler>) -> Result<Self, LayoutError> {
        unpacked(&self.zipped_product(tiler)?, false)
    }

    /// [`Layout::logical_product`] as `(M,N,TileM,TileN,L,..)`.
    pub fn flat_product(&self, tiler: impl Into<Tiler>) -> Result<Self, LayoutError> {
        unpacked(&self.zipped_product(tiler)?, true)
    }

    /// A copy of this layout for each element of `tile`, side by side: mode `i` of the result is mode `i` of `self`,
    /// then mode `i` of `tile`. The rank is the larger of both.
    ///
    /// ```
    /// # use lacewing_core::layout;
    /// let (block, tile) = (layout![(2, 5); (5, 1)]?, layout![(3, 4); (1, 3)]?);
    /// assert_eq!(block.blocked_product(&tile)?.to_string(), "(6,(5,4)):(5,(1,30))");
    /// assert_eq!(block.raked_product(&tile)?.to_string(), "((3,2),(4,5)):((10,5),(30,1))");
    /// # Ok::<(), lacewing_core::layout::LayoutError>(())
    /// ```
    pub fn blocked_product(&self, tile: &Self) -> Result<Self, LayoutError> {
        interleave(self, tile, false)
    }

    /// A copy of this layout for each element of `tile`, interleaved: mode `i` of the result is mode `i` of `tile`,
    /// then mode `i` of `self`. A cyclic distribution.
    pub fn raked_product(&self, tile: &Self) -> Result<Self, LayoutError> {
        interleave(self, tile, true)
    }

    /// Copies of this layout, side by side, that make up the shape; the first mode is filled first. Mode by mode the
    /// shape must be a multiple of the block's.
    ///
    /// ```
    /// # use lacewing_core::layout;
    /// let atom = layout![(8, 4); (4, 1)]?;
    /// assert_eq!(atom.tile_to_shape((16, 8))?.to_string(), "(16,(4,2)):(4,(1,64))");
    /// assert_eq!(atom.tile_to_shape_by((16, 8), (1, 0))?.to_string(), "((8,2),(4,2)):((4,64),(1,32))");
    /// # Ok::<(), lacewing_core::layout::LayoutError>(())
    /// ```
    pub fn tile_to_shape(&self, shape: impl Into<IntTuple>) -> Result<Self, LayoutError> {
        let shape = shape.into();
        let order: Vec<i64> = (0i64..).take(shape.rank()).collect();
        self.tile_to_shape_by(shape, order)
    }

    /// [`Layout::tile_to_shape`] with the modes filled in the order of `order`: the mode of the smallest number first.
    pub fn tile_to_shape_by(
        &self,
        shape: impl Into<IntTuple>,
        order: impl Into<IntTuple>,
    ) -> Result<Self, LayoutError> {
        let operation = "tile_to_shape";
        let shape = shape.into();
        let rank = shape.rank();
        if self.rank() > rank {
            return Err(LayoutError::profile(operation, &self.shape(), &shape));
        }
        let block = self.padded(rank);
        let mut repetitions: Vec<IntTuple> = Vec::new();
        for (mode, target) in block.modes().zip(shape.modes()) {
            let target = target.product()?;
            let copies = target.exact_div(&mode.size()).map_err(|_| LayoutError::NotDivisible {
                operation,
                divisor: self.shape().to_string(),
                value: shape.to_string(),
            })?;
            repetitions.push(copies.into());
        }
        let order = match order.into() {
            leaf @ Nested::Leaf(_) => Nested::Tuple(vec![leaf]),
            order => order,
        };
        block.blocked_product(&Self::ordered(Nested::Tuple(repetitions), order)?)
    }

    /// The tile at `coord` among the tiles: [`Layout::zipped_divide`], with all of mode 0 and `coord` in mode 1. Modes
    /// that `coord` does not reach, or where it is `..`, stay.
    ///
    /// The part of a block: `local_tile((BM, BK), (block_m, ..))` has the shape `(BM, BK, k)`.
    ///
    /// ```
    /// # use lacewing_core::layout;
    /// let tile = layout![(64, 32); (32, 1)]?.local_tile((16, 8), (1, ..))?;
    /// assert_eq!(tile.layout.to_string(), "(16,8,4):(32,1,8)");
    /// assert_eq!(tile.offset, 512);
    /// # Ok::<(), lacewing_core::layout::LayoutError>(())
    /// ```
    pub fn local_tile(&self, tiler: impl Into<Tiler>, coord: impl Into<Coord>) -> Result<Slice, LayoutError> {
        let tiles = self.zipped_divide(tiler)?;
        let coord = tiles.inner_pattern(&coord.into())?;
        tiles.slice(coord)
    }

    /// [`Layout::local_tile`] of those modes of `tiler` and `coord` where `projection` has a number: one tiler
    /// `(BM, BN, BK)` and one coordinate serve `A` by `(1, .., 1)`, `B` by `(.., 1, 1)` and `C` by `(1, 1, ..)`.
    pub fn local_tile_by(
        &self,
        tiler: impl Into<Tiler>,
        coord: impl Into<Coord>,
        projection: impl Into<Coord>,
    ) -> Result<Slice, LayoutError> {
        let (tiler, coord, projection) = (tiler.into(), coord.into(), projection.into());
        let ranks = [tiler.rank(), coord.rank()];
        if ranks.iter().any(|rank| *rank != projection.rank()) {
            return Err(LayoutError::profile("local_tile", &projection, &tiler));
        }
        let numbers: Vec<usize> = (0..projection.rank())
            .filter(|&mode| projection.modes().get(mode) != Some(&Nested::Leaf(CoordLeaf::All)))
            .collect();
        self.local_tile(tiler.select(&numbers)?, coord.select(&numbers)?)
    }

    /// All of the tile and `coord` of the rest, for the result of [`Layout::zipped_divide`].
    fn inner_pattern(&self, coord: &Coord) -> Result<Coord, LayoutError> {
        let (tile, rest) = (self.mode(&[0])?, self.mode(&[1])?);
        let coord = match coord {
            Nested::Leaf(_) => coord.clone(),
            Nested::Tuple(_) => coord.padded(rest.rank()),
        };
        Ok(Nested::Tuple(vec![tile.all(), coord]))
    }

    /// The elements of thread `index` where `threads` lays out the threads: [`Layout::zipped_divide`] by the shape of
    /// `threads`, with the coordinate of `index` in mode 0 and all of mode 1.
    ///
    /// `threads` maps coordinates to thread numbers, so its index must have one coordinate: see [`Layout::idx2crd`].
    ///
    /// ```
    /// # use lacewing_core::layout;
    /// // 32 threads, 8 to a row, over a tile of 16 by 16.
    /// let part = layout![(16, 16); (16, 1)]?.local_partition(&layout![(4, 8); (8, 1)]?, 13)?;
    /// assert_eq!(part.layout.to_string(), "(4,2):(64,8)");
    /// assert_eq!(part.offset, 16 + 5);
    /// # Ok::<(), lacewing_core::layout::LayoutError>(())
    /// ```
    pub fn local_partition(&self, threads: &Self, index: i64) -> Result<Slice, LayoutError> {
        let flat = threads.flat_coordinate(index)?;
        let (tiler, coord): (Tiler, Coord) = match threads.tree() {
            Nested::Leaf(_) => (Nested::Leaf(Tile::Extent(threads.size())), flat.iter().sum::<i64>().into()),
            Nested::Tuple(_) => {
                let sizes = threads.modes().map(|mode| Nested::Leaf(Tile::Extent(mode.size())));
                (Nested::Tuple(sizes.collect()), flat.into())
            }
        };
        let tiles = self.zipped_divide(tiler)?;
        let rest = tiles.mode(&[1])?.all();
        tiles.slice(Nested::Tuple(vec![coord, rest]))
    }

    /// The pattern that keeps each mode of its own.
    fn all(&self) -> Coord {
        match self.tree() {
            Nested::Leaf(_) => Nested::Leaf(CoordLeaf::All),
            Nested::Tuple(_) => Nested::Tuple(vec![Nested::Leaf(CoordLeaf::All); self.rank()]),
        }
    }

    /// The coordinate of an index with one integer for each mode: CuTe's `get_flat_coord`.
    pub fn flat_coordinate(&self, index: i64) -> Result<Vec<i64>, LayoutError> {
        let natural = self.idx2crd(index)?;
        let mut flat = Vec::new();
        for (coord, mode) in natural.modes().iter().zip(self.modes()) {
            let coord = coord.map(&mut |part| CoordLeaf::At(part.known().unwrap_or(0)));
            flat.push(Self::column_major(mode.shape())?.crd2idx(coord)?);
        }
        Ok(flat)
    }

    /// How many tiles a tiler makes of this layout: the size of mode 1 of [`Layout::zipped_divide`], which is the
    /// number of blocks of a grid.
    pub fn tile_count(&self, tiler: impl Into<Tiler>) -> Result<Dim, LayoutError> {
        Ok(self.zipped_divide(tiler)?.mode(&[1])?.size())
    }
}
