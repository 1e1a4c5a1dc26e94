//! Global and shared memory.

use lacewing::prelude::*;

use super::constructs;

#[derive(Clone, Copy, Shared)]
struct Stages {
    tiles: [SharedTile<F16, 8, 16, 24>; 2],
    #[shared(align = 1024)]
    swizzled: SharedTile<F32, 4, 4>,
    #[shared(overlap = "tiles")]
    sums: [SharedArray<F32, 32>; 2],
    flags: SharedArray<U32, 4>,
}

#[derive(Clone, Copy, Shared)]
#[shared(union)]
struct Phases {
    first: Stages,
    second: [SharedArray<F64, 8>; 3],
}

#[kernel(block = [32, 1, 1])]
fn shared_struct(y: TensorMut<F32, 1>) {
    let memory = shared::<Phases>();
    let lane = lane_id();
    memory.first.tiles[1].at((lane % 8, 3)).store(F16::from(1.0));
    memory.first.swizzled.at((2, lane % 4)).store(F32::from(2.0));
    memory.first.flags.at(3).store(U32::from(1));
    barrier();
    y.at(lane).store(memory.first.sums[1].at(lane).load() + memory.second[2].at(7).load().cast::<F32>());
}

#[kernel(block = [32, 1, 1])]
fn shared_slices(#[comptime] length: usize, y: TensorMut<F32, 1>) {
    let memory = shared_array::<F32>(length);
    let more = shared_array_named::<I32>("counts", 4);
    let row = memory.at(lane_id() * 4);
    row.store_vec(y.at(0).load_vec::<4>());
    row.offset(1).store(row.load());
    more.at(0).store(I32::from(memory.len() as i32));
}

#[kernel(block = [32, 1, 1])]
fn tensor_access(x: Tensor<F32, 3>, y: TensorMut<F32, 2>) {
    let (i, j) = (thread_id(X), block_id(X).cast::<I64>());
    let place = x.at((i, j, 2));
    y.at((i, 0)).store(place.load());
    let last = x.extent(2) - 1;
    y.at((0, i)).store(place.offset(last).load() + x.stride(1).cast::<F32>());
}

#[kernel(block = [32, 1, 1])]
fn tensor_vectors(n: I32, x: Tensor<F16, 1>, y: TensorMut<F16, 1>) {
    let i = thread_id(X) * 8;
    let mask = i < n;
    let zero = F16::from(0.0);
    y.at(i).store_vec(x.at(i).load_vec::<8>());
    y.at(i).store_vec_if(mask, x.at(i).load_vec_if::<8>(mask, Vector::splat(zero)));
    y.at(i).store_if(mask, x.at(i).load_if(mask, zero));
}

#[kernel(block = [32, 1, 1])]
fn tensor_tiles(x: Tensor<F32, 2>, y: TensorMut<F32, 2>) {
    let source = x.local_tile([16, 32], (block_id(X), block_id(Y)));
    let target = y.local_tile([16, 32], (block_id(X), 0));
    let i = thread_id(X);
    if i < source.extent(0) && i < target.extent(1) {
        target.at((0, i)).store(source.at((i, 0)).load());
    }
}

#[kernel(block = [32, 1, 1])]
fn buffers(x: Tensor<F16, 2>, y: TensorMut<F32, 1>) {
    let source = BufferRsrc::new(x);
    let target = BufferRsrc::new(y);
    let i = thread_id(X);
    let loaded = source.load::<4>(elements(i * 4), i < 7);
    target.store(elements(i * 4) + elements(1), loaded.cast::<F32>(), Bool::from(true));
}

#[kernel(block = [32, 1, 1])]
fn atomic_kinds(n: TensorMut<I32, 1>, u: TensorMut<U32, 1>, f: TensorMut<F32, 1>) {
    let (i, j, k) = (I32::from(1), U32::from(2), F32::from(3.0));
    let place = n.at(0);
    let old = [place.atomic_add(i), place.atomic_max(i), place.atomic_min(i), place.atomic_exch(i)];
    let old =
        old.into_iter().chain([place.atomic_and(i), place.atomic_or(i), place.atomic_xor(i), place.atomic_cas(i, -i)]);
    for (at, old) in constexpr(old.enumerate()) {
        n.at(at).store(old);
    }
    u.at(0).store(u.at(0).atomic_max(j) + u.at(0).atomic_min(j));
    f.at(0).store(f.at(0).atomic_add(k) + f.at(0).atomic_max(k));
}

#[kernel(block = [32, 1, 1])]
fn atomic_orders(n: TensorMut<I32, 1>) {
    let memory = shared_array::<I32>(1);
    let one = I32::from(1);
    let _ = n.at(0).atomic_add_with(one, Ordering::AcqRel, Scope::System);
    let _ = n.at(0).atomic_cas_with(one, one + 1, Ordering::Acquire, Scope::Device);
    let _ = memory.at(0).atomic_add_with(one, Ordering::Relaxed, Scope::Block);
    let _ = n.at(0).atomic_exch_with(one, Ordering::Release, Scope::Device);
}

#[kernel(block = [32, 1, 1], cluster = [4, 1, 1])]
fn other_blocks(y: TensorMut<I32, 1>) {
    let tile = shared_array_named::<I32>("tile", 64);
    let swizzled = SwizzledTile::<BF16>::new("swizzled", 8, 64);
    let i = thread_id(X);
    tile.at(i).store(i);
    cluster_sync();
    let next = (*cluster_rank() + 1) % 4;
    let there = tile.of_block(next);
    let sum = there.at(i).load() + there.at(3).load() + tile.at(i).of_block(2).load();
    there.at(i * 2).store_vec(Vector::<I32, 2>::splat(sum));
    let old = there.at(0).atomic_add(sum) + there.at(1).atomic_add_with(sum, Ordering::AcqRel, Scope::Cluster);
    swizzled.of_block(i % 4).at((i % 8, 0)).store_if(i < 8, BF16::from(1.0));
    let mut setup = BarrierSetup::new();
    let came = setup.mbarrier("came", 1);
    setup.finish();
    there.at(i).store_async(sum, came.of_block(next));
    if elect_one() {
        swizzled.of_block(next).copy_from(swizzled, came.of_block(next));
    }
    fence(Scope::Cluster);
    cluster_sync();
    y.at(i).store(old);
}

constructs! {
    "shared memory" {
        struct_with_unions: shared_struct::new();
        slices: shared_slices::new(128);
        of_other_blocks: other_blocks::new(), on SM_90A;
    }
    "tensors" {
        elements_of_tensors: tensor_access::new();
        vectors_and_masks: tensor_vectors::new();
        tiles: tensor_tiles::new();
    }
    "buffers" { bounded: buffers::new(); }
    "atomics" {
        kinds: atomic_kinds::new();
        orders_and_scopes: atomic_orders::new();
    }
}
