//! `fmha_fwd` captured in a graph on a GPU: what its launches leave for each other belongs to the graph.

use super::*;

/// Inputs whose values change between replays, so that a replay which computes nothing shows.
fn replays(case: &Case) {
    let Some(device) = gpu().filter(|device| device.target() == Target::SM_90A) else { return };
    let device = device.with_synchronous(false);
    let (first, second) = (case.inputs::<BF16>(), Case { amplitude: 0.5, ..case.clone() }.inputs::<BF16>());
    let (tensors, kv_len) = (first.on::<BF16>(&device), case.lengths_on(&device));
    let mut out = Outputs::<half::bf16>::new(&device, &case.shape());
    let graph = device.capture(|capturing| {
        let (q, k, v) = (tensors.q.on(capturing)?, tensors.k.on(capturing)?, tensors.v.on(capturing)?);
        let forward = Forward { q: &q, k: &k, v: &v, kv_len: &kv_len, causal: case.causal, scale: case.scale_value() };
        // Twice, so that launches in one graph follow each other.
        forward.fmha_fwd::<BF16>(&mut out.o, &mut out.lse)?;
        forward.fmha_fwd::<BF16>(&mut out.o, &mut out.lse).map(drop)
    });
    let graph = graph.unwrap();
    let mut tensors = tensors;
    for inputs in [&first, &second, &first] {
        let new = inputs.on::<BF16>(&device);
        tensors.q.copy_from(&new.q.to_vec().unwrap()).unwrap();
        tensors.k.copy_from(&new.k.to_vec().unwrap()).unwrap();
        tensors.v.copy_from(&new.v.to_vec().unwrap()).unwrap();
        let mut wanted = Outputs::<half::bf16>::new(&device, &case.shape());
        new.forward(case, &kv_len).fmha_fwd::<BF16>(&mut wanted.o, &mut wanted.lse).unwrap();
        for _ in 0..3 {
            graph.launch().unwrap();
            assert!(out.read().same(&wanted.read()), "{case:?}");
        }
        case.wanted(inputs, BF16::PRECISION).compare(&out.read(), &format!("a graph of {case:?}"));
    }
}

#[test]
fn a_gpu_replays_whole_rows() {
    replays(&Case::new(300, 300, 64).heads(4, 2).causal());
}

/// The last row blocks are shared out: 144 on 132 multiprocessors.
#[test]
fn a_gpu_replays_rows_that_are_shared_out() {
    replays(&Case::new(1152, 2560, 128).heads(16, 4));
}

#[test]
fn a_gpu_replays_keys_in_parts() {
    replays(&Case::new(1, 5000, 128).heads(8, 2));
}

#[test]
fn a_gpu_replays_even_parts() {
    replays(&Case::new(1, 3000, 128).heads(8, 2).kv_len(&[3000, 17, 900]));
}
