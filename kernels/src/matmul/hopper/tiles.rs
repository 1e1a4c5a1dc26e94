//! Which tiles a product is computed by.

use super::{PANEL, ROWS, WARPGROUP};

/// What the kernel is compiled for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HopperTiles {
    /// Consumer warpgroups: 1, 2 or 3.
    pub(in super::super) consumers: usize,
    /// Products of 64 rows that a consumer has side by side: 1 or 2.
    pub(in super::super) stacked: usize,
    /// Columns of a tile of C: a multiple of 8 from 16 to 256, to 192 where that is more than 128 rows.
    pub(in super::super) block_n: usize,
    /// Stages of the ring.
    pub(in super::super) stages: usize,
    /// Blocks of a cluster: 1, 2 or 4.
    pub(in super::super) cluster: usize,
    /// Panels of C, 128 bytes wide, that a warpgroup has on their way out at most.
    pub(in super::super) slots: usize,
    /// Rows of tiles (in a cluster, of as many of them as it has blocks) that are taken together.
    pub(in super::super) group: usize,
    /// Whether A is M-major: its columns are contiguous, not its rows.
    pub(in super::super) m_major: bool,
    /// Whether B is K-major: its columns are contiguous, not its rows.
    pub(in super::super) k_major: bool,
    /// Whether C's columns are contiguous, not its rows, where it goes out through a tensor map.
    pub(in super::super) c_in_columns: bool,
}

/// Bytes of shared memory of a block of sm_90a, less what mbarriers take.
const SHARED: usize = 227 * 1024 - 512;
/// Most stages of a ring: no latency asks for more.
const MOST_STAGES: usize = 16;
/// Bytes of a sector of the L2 cache. Where rows do not start at one, their copies take half as long again.
pub(in super::super) const SECTOR: usize = 32;
/// Columns of a panel of B that lies along its rows, of 16-bit elements.
const ROW_PANEL: usize = PANEL / 2;

/// What the choice of tiles goes by.
#[derive(Clone, Copy, Debug)]
pub struct Problem {
    /// M, N and K.
    pub sizes: [usize; 3],
    /// Bytes of an element of A and B.
    pub bytes: usize,
    /// Whether rows (or columns, where those are contiguous) of A, and those of B, start at sectors of the L2 cache, of
    /// 32 bytes.
    pub aligned: [bool; 2],
    /// Whether A is M-major.
    pub m_major: bool,
    /// Whether B is K-major.
    pub k_major: bool,
    /// Whether C's columns are contiguous.
    pub c_in_columns: bool,
    /// Multiprocessors of the chip.
    pub multiprocessors: usize,
}

impl Problem {
    /// The same product as its transpose: C^T = B^T A^T.
    pub(in super::super) fn transposed(self) -> Self {
        let ([rows, columns, inner], [a, b]) = (self.sizes, self.aligned);
        Problem {
            sizes: [columns, rows, inner],
            aligned: [b, a],
            m_major: !self.k_major,
            k_major: !self.m_major,
            c_in_columns: !self.c_in_columns,
            ..self
        }
    }
}

impl HopperTiles {
    /// The tiles with the shortest estimated time, and whether they are for C as its transpose.
    ///
    /// Few rows would leave most of a warpgroup's 64 empty: there the columns of B take their place.
    pub fn best(problem: &Problem) -> (Self, bool) {
        let [rows, columns, _] = problem.sizes;
        let transposed = problem.transposed();
        match (rows < ROWS, columns < ROWS) {
            (true, false) => (Self::new(&transposed), true),
            (false, true) => (Self::new(problem), false),
            _ => {
                let (straight, turned) = (Self::new(problem), Self::new(&transposed));
                if turned.time(&transposed) < straight.time(problem) { (turned, true) } else { (straight, false) }
            }
        }
    }

    /// The tiles with the shortest estimated time, for C as it is.
    pub fn new(problem: &Problem) -> Self {
        let Problem { k_major, .. } = *problem;
        let best = Self::candidates(k_major).min_by_key(|tiles| tiles.time(problem));
        let best = best.unwrap_or_else(|| Self::of(2, 1, 256, 2, k_major));
        HopperTiles { m_major: problem.m_major, c_in_columns: problem.c_in_columns, ..best }
    }

    /// The tiles to choose from. Where times are equal, the first are taken: those with more rows, which read a B that is
    /// larger than the L2 cache less often.
    pub(super) fn candidates(k_major: bool) -> impl Iterator<Item = Self> {
        const KINDS: [(usize, usize, usize); 10] = [
            (2, 1, 1),
            (2, 1, 2),
            (2, 1, 4),
            (2, 2, 1),
            (2, 2, 2),
            (3, 1, 1),
            (3, 1, 2),
            (1, 1, 1),
            (1, 1, 2),
            (1, 1, 4),
        ];
        KINDS.into_iter().flat_map(move |(consumers, stacked, cluster)| {
            // Rows of B start at sectors, and few of its columns are loaded in vain.
            let fits = move |width: &usize| match k_major {
                true => width.is_multiple_of(8 * cluster) || width.is_multiple_of(8) && stacked > 1,
                false => width.is_multiple_of(64) || width.is_multiple_of(16) && *width > 192,
            };
            // What a thread has registers for.
            let most = if consumers.max(stacked + 1) > 2 { 192 } else { 256 };
            let widths = (16..=most).rev().filter(fits);
            widths.map(move |block_n| Self::of(consumers, stacked, block_n, cluster, k_major))
        })
    }

    /// Tiles of a shape, for a K-major A, with as many stages as there is shared memory for.
    pub(super) fn of(consumers: usize, stacked: usize, block_n: usize, cluster: usize, k_major: bool) -> Self {
        let tiles = HopperTiles {
            consumers,
            stacked,
            block_n,
            stages: 0,
            cluster,
            // Large tiles need the room for stages.
            slots: if consumers * stacked > 2 { 1 } else { 2 },
            group: 16 / cluster,
            m_major: false,
            k_major,
            c_in_columns: false,
        };
        let out = consumers * tiles.slots * ROWS * PANEL;
        let stages = ((SHARED - out) / ((tiles.block_m() + tiles.loaded_n()) * PANEL)).min(MOST_STAGES);
        HopperTiles { stages, ..tiles }
    }

    /// Whether each block of a cluster loads an equal share of a tile of B: whole groups of 8 columns, over which swizzles repeat.
    /// Otherwise blocks take turns to load all of it.
    pub(super) fn shares_are_whole_groups(&self) -> bool {
        !self.k_major || self.block_n.is_multiple_of(8 * self.cluster)
    }

    /// Columns of a tile of B in shared memory: whole panels for each block of the cluster.
    pub(super) fn loaded_n(&self) -> usize {
        if self.k_major { self.block_n } else { self.block_n.next_multiple_of(ROW_PANEL * self.cluster) }
    }

    /// Clusters that run at once. Those of four find room only inside of a GPC: 30 on the 132 multiprocessors of an H200
    /// (`cuOccupancyMaxActiveClusters`). Any more would run after all others, with persistent blocks.
    pub(super) fn at_once(&self, multiprocessors: usize) -> usize {
        let clusters = if self.cluster > 2 { multiprocessors * 5 / 22 } else { multiprocessors / self.cluster };
        clusters.max(1)
    }

    /// Estimated time of a product in picoseconds, with constants as measured on an H200
    /// (docs/src/inside/hopper-matmul.md).
    pub(super) fn time(&self, problem: &Problem) -> usize {
        let [rows, columns, inner] = problem.sizes;
        let (steps, (m, n)) = (inner.div_ceil(PANEL / problem.bytes), (self.block_m(), self.block_n));
        let clusters = rows.div_ceil(m).div_ceil(self.cluster).saturating_mul(columns.div_ceil(n));
        let rounds = clusters.div_ceil(self.at_once(problem.multiprocessors));
        if self.cluster > 2 && rounds > 1 {
            // Over several rounds they fall behind pairs, for reasons unknown: 0.80 us a step where pairs take 0.76 us.
            return usize::MAX;
        }
        // A step takes as long as the tensor cores, ..
        let products = 39 * m * n / 2;
        // .. shared memory, which each product of 64 rows reads its operands from and copies write, ..
        let traffic = 170_000 + 250 * (self.consumers * self.stacked * (64 + n) + m + n);
        // .. or the L2 cache, by the row of 128 bytes; few stages do not cover how long it takes where rows straddle sectors.
        let row = problem.aligned.map(|aligned| if aligned { 1_470 } else { 2_300 });
        let loads = m * row[0] + self.loaded_n() / self.cluster * row[1];
        let hidden = self.stages > 3 || problem.aligned == [true; 2];
        let loads = if hidden { loads } else { loads * 6 / 5 };
        // Blocks of a cluster wait for the slowest one.
        let together = match self.cluster {
            1 => 0,
            2 => 70_000,
            _ => 30_000,
        };
        let step = products.max(traffic).max(loads) + together;
        // All steps of all blocks together take as long as the power of the chip allows: products, and loads.
        let all = clusters.saturating_mul(self.cluster * steps).saturating_mul((216 * m * n + 1_080 * (m + n)) / 10);
        let power = all / problem.multiprocessors.max(1);
        // Widths that are no whole panels fall behind on large products, and with three consumers.
        let behind = match (n.is_multiple_of(64), self.consumers > 2) {
            (true, _) => 0,
            (false, false) => power / 200,
            (false, true) => power / 50,
        };
        let power = power.saturating_add(behind);
        // The output of a tile, in columns two bytes at a time, and the wait for its first stage.
        let output = (152 * m * n).saturating_sub(1_035_000).max(35_000);
        let output = if problem.c_in_columns { output + 21 * m * n / 2 } else { output };
        rounds.saturating_mul(steps.saturating_mul(step)).max(power).saturating_add(rounds.saturating_mul(output))
    }

    /// Columns of a panel of C: 128 bytes of a row, or less where a tile is narrower; or as many as fill the same room where
    /// columns are contiguous.
    pub(super) fn panel(&self, out_bytes: usize) -> usize {
        if self.c_in_columns {
            return (PANEL / out_bytes).min(self.block_n);
        }
        let widths = [PANEL, PANEL / 2, PANEL / 4].map(|bytes| bytes / out_bytes);
        widths.into_iter().find(|width| *width <= self.block_n).unwrap_or(PANEL / 4 / out_bytes)
    }

    /// Rows of a tile of C.
    pub fn block_m(&self) -> usize {
        self.consumers * self.stacked * ROWS
    }

    /// Columns of a tile of C.
    pub fn block_n(&self) -> usize {
        self.block_n
    }

    /// Threads of a block: the producer's warpgroup, and the consumers'.
    pub(super) fn threads(&self) -> u32 {
        ((self.consumers + 1) * WARPGROUP) as u32
    }

    /// Registers of a thread: the producer's, and the consumers'.
    pub(super) fn registers(&self) -> (u32, u32) {
        if self.consumers > 2 { (32, 160) } else { (40, 232) }
    }
}
