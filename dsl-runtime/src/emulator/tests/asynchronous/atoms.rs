//! The atoms of a warpgroup and of tensor copies: the core's layouts, the model, and what the emulator computes.

use lacewing_core::atoms::{BoxSpec, PanelLayout, WGMMA_TABLE, WgmmaSpec};

use super::copies::CASES;
use super::products::{Layout, Product};

/// Sees that the bytes that the model makes of its matrices lie as the atom's layouts say.
fn agrees(product: &Product, spec: &WgmmaSpec) {
    let (a, b) = product.operands();
    let ([m, n, _], k, size) = (spec.shape, product.k, spec.a.element.bytes());
    // Registers of A: one instruction after the other.
    let bytes = product.fragments(&a);
    for step in 0..k / spec.shape[2] {
        for thread in 0..128 {
            for value in 0..spec.a.values() {
                let index = spec.a.tv.index(thread, value);
                let wanted = a[index % m][step * spec.shape[2] + index / m].to_le_bytes();
                let at = ((thread * (k / spec.shape[2]) + step) * spec.a.values() + value) * size;
                assert_eq!(bytes[at..at + size], wanted[..size], "{}: thread {thread}, value {value}", spec.name());
            }
        }
    }
    for row in 0..m {
        for column in 0..n {
            let (thread, register) = Product::place(row, column);
            assert_eq!(spec.d.tv.index(thread, register), row + m * column, "{}", spec.name());
        }
    }
    // Tiles of shared memory.
    for (layout, matrix) in [(product.a, &a), (product.b, &b)] {
        if layout == Layout::Registers {
            continue;
        }
        let text = product.layout_text(layout, matrix.len());
        let panels = PanelLayout::parse(&text).unwrap().layout(matrix.len(), k, size).unwrap();
        let image = product.image(layout, matrix);
        for (row, elements) in matrix.iter().enumerate() {
            for (at, bits) in elements.iter().enumerate() {
                let byte = panels.crd2idx((row, at)).unwrap() as usize * size;
                assert_eq!(image[byte..byte + size], bits.to_le_bytes()[..size], "{text}: {row}, {at}");
            }
        }
    }
}

/// Every product of the table on random data, with A in registers and in shared memory, is the plain product.
#[test]
fn every_warpgroup_product_is_the_plain_product() {
    for (number, spec) in WGMMA_TABLE.iter().enumerate() {
        let tiles = [Layout::K(128), Layout::K(64), Layout::K(32), Layout::Mn(128), Layout::Mn(64), Layout::Mn(32)];
        let kinds = if spec.transposes { 6 } else { 3 };
        let [_, n, step] = spec.shape;
        // The contiguous dimension is whole rows of panels, or ends in the first.
        let fits = |layout: Layout, extent: usize| match layout {
            Layout::Mn(swizzle) => (extent * spec.a.element.bytes()).is_multiple_of(swizzle),
            _ => true,
        };
        let pick = |from: usize, extent: usize| {
            let all = (0..kinds).map(|i| tiles[(from + i) % kinds]);
            all.into_iter().find(|&layout| fits(layout, extent)).unwrap()
        };
        let a = if number % 2 == 0 { Layout::Registers } else { pick(number / 2, 64) };
        let k = step * [1, 2, 4][number % 3];
        let b = pick(number / 3, n);
        let product = Product { kind: spec.kind, n, k, a, b, zero: number % 3 == 0, seed: 77 + number as u64 };
        agrees(&product, spec);
        product.check();
    }
}

/// Where the copies' model puts each element of a box is where the atom's layout does.
#[test]
fn boxes_land_as_the_copy_atom_says() {
    for case in CASES {
        let extents = case.box_shape.iter().map(|&extent| extent as usize).collect();
        let spec = BoxSpec { extents, element: case.bytes as usize, swizzle: case.swizzle as usize };
        let layout = spec.layout().unwrap();
        for (number, (_, shared)) in case.places().into_iter().enumerate() {
            assert_eq!(layout.crd2idx(number).unwrap() * i64::from(case.bytes), shared as i64, "{spec:?}");
        }
        assert_eq!(spec.bytes(), case.box_bytes() as usize);
    }
}
