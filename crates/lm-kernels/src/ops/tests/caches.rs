//! Attention and recurrent states over both forms of a cache, and updates in place.

use burn::tensor::DType;

use super::super::kv_pool::KvLayer;
use super::*;
use crate::{
    AttentionSpec, CacheLayout, CausalConv, DeltaNet, DeltaNetSpec, HeadOrder, KvDtype, KvGeometry,
    LayerCache, Mamba2, Mamba2Spec, PagedLayer, RaggedLayout, SequenceLayout, StatePages,
};

fn spec() -> AttentionSpec {
    AttentionSpec {
        num_heads: 4,
        num_kv_heads: 2,
        head_dim: 8,
        scale: 0.5,
        window: Some(20),
        soft_cap: Some(0.7),
        sinks: Some([0.5, -1.0, 2.0, 0.0].into()),
    }
}

fn geometry() -> KvGeometry {
    KvGeometry { num_kv_heads: 2, head_dim: 8, window: None, shared_with: None }
}

/// A prompt of 40 rows that crosses a page boundary, one of 3, then single rows.
fn layouts() -> [RaggedLayout; 2] {
    let sequence = |rows: std::ops::Range<usize>, cached_len, block_table: &[u32]| SequenceLayout {
        rows,
        cached_len,
        block_table: block_table.to_vec(),
        ..Default::default()
    };
    let mut prompts = vec![sequence(0..40, 0, &[3, 1]), sequence(40..43, 0, &[0])];
    prompts[0].bidirectional = vec![5..9, 30..36];
    let steps = vec![sequence(0..1, 40, &[3, 1]), sequence(1..2, 3, &[0])];
    [RaggedLayout { sequences: prompts }, RaggedLayout { sequences: steps }]
}

fn qkv(layout: &RaggedLayout, device: &BurnDevice) -> [Tensor<3>; 3] {
    let (rows, spec) = (layout.rows(), spec());
    let tensor = |heads, seed| noise_tensor([rows, heads, spec.head_dim], seed, device);
    [tensor(spec.num_heads, 20), tensor(spec.num_kv_heads, 21), tensor(spec.num_kv_heads, 22)]
}

fn new_kv(k: Tensor<3>, v: Tensor<3>) -> attention::NewKv<Dispatch> {
    attention::NewKv::Rows { k: k.into_dispatch(), v: v.into_dispatch() }
}

/// An empty layer of 4 pages in either form; the tensors are f32 if the device has no f16.
fn layers(dtype: KvDtype, device: &BurnDevice) -> [KvLayer<Dispatch>; 2] {
    let spec = spec();
    let host = PagedLayer::new(dtype, 4, spec.num_kv_heads, spec.head_dim).unwrap();
    let tensors = if device.supports_dtype(DType::F16) { dtype } else { KvDtype::F32 };
    let on_device = KvLayer::on_device(4, spec.num_kv_heads, spec.head_dim, tensors, device);
    [KvLayer::Host(Box::new(host)), on_device]
}

#[test]
fn attention_equals_its_default_body_for_both_caches() {
    let geometry = geometry();
    for (&device, burn) in Device::available().iter().zip(host_devices()) {
        for dtype in [KvDtype::F32, KvDtype::F16] {
            let mut pool = KvPool::new(device, &CacheLayout::new([geometry]), 4, dtype).unwrap();
            let [mut host, mut on_device] = layers(dtype, &burn);
            let both = dtype == KvDtype::F32 || burn.supports_dtype(DType::F16);
            for layout in layouts() {
                let [q, k, v] = qkv(&layout, &burn);
                let out = attention(q, k, v, &mut pool, 0, &Arc::new(layout.clone()), &spec());
                let portable = |cache: KvLayer<Dispatch>| {
                    let [q, k, v] = qkv(&layout, &burn);
                    attention::portable(q, new_kv(k, v), cache, &layout, &spec())
                };
                let expected;
                (expected, host) = portable(host);
                assert_close("default body over host pages", out.clone(), expected, 2e-6);
                if both {
                    let expected;
                    (expected, on_device) = portable(on_device);
                    assert_close("default body over tensors", out, expected, 2e-6);
                }
            }
        }
    }
}

#[test]
fn copied_page_is_independent() {
    let burn = Device::Cpu.burn().unwrap();
    for form in 0..2 {
        let [prompts, steps] = layouts();
        let [q, k, v] = qkv(&prompts, &burn);
        let (_, cache) = attention::portable(
            q,
            new_kv(k, v),
            layers(KvDtype::F32, &burn).into_iter().nth(form).unwrap(),
            &prompts,
            &spec(),
        );
        let mut pool = KvPool::of_layer(cache, geometry(), 4);
        pool.copy_page(0, 1, 2);
        // The copy takes the step: the output is the same, and the original page keeps its slots.
        let mut moved = steps.clone();
        moved.sequences[0].block_table = vec![3, 2];
        let step = |pool: &mut KvPool, layout: &RaggedLayout| {
            let [q, k, v] = qkv(layout, &burn);
            attention(q, k, v, pool, 0, &Arc::new(layout.clone()), &spec())
        };
        let on_copy = step(&mut pool, &moved);
        let on_original = step(&mut pool, &steps);
        assert_close("a step on a copied page", on_copy, on_original, 0.0);
    }
}

/// Only the new rows of a pool are copied: on every device in its own form, and as tensors of host memory.
#[test]
fn caches_are_updated_in_place() {
    for &device in Device::available() {
        let burn = match device.burn() {
            Ok(burn) => burn,
            Err(error) => {
                println!("skipped: caches in place on {device}: {error}");
                continue;
            }
        };
        for dtype in [KvDtype::F32, KvDtype::F16, KvDtype::Q8] {
            assert_stays(KvPool::new(device, &CacheLayout::new([geometry()]), 4, dtype).unwrap(), &burn);
        }
    }
    let burn = Device::Cpu.burn().unwrap();
    for dtype in [KvDtype::F32, KvDtype::F16] {
        let [_, tensors] = layers(dtype, &burn);
        assert_stays(KvPool::of_layer(tensors, geometry(), 4), &burn);
    }
}

fn assert_stays(mut pool: KvPool, burn: &BurnDevice) {
    let before = pool.addresses();
    assert_eq!(before.len(), 1);
    for layout in layouts() {
        let [q, k, v] = qkv(&layout, burn);
        attention(q, k, v, &mut pool, 0, &Arc::new(layout), &spec());
        assert_eq!(pool.addresses(), before);
    }
    pool.copy_page(0, 0, 2);
    assert_eq!(pool.addresses(), before);
}

/// A page of all layers is adjacent, so that huge pages commit little more than what is used.
#[test]
fn layers_of_a_pool_share_one_mapping() {
    let layout = CacheLayout::new([geometry(); 3]);
    for dtype in [KvDtype::F32, KvDtype::F16, KvDtype::Q8] {
        let pool = KvPool::new(Device::Cpu, &layout, 64, dtype).unwrap();
        let addresses = pool.addresses();
        let group = 8 * pool.bytes_per_page() / 3;
        for layer in 1..3 {
            assert_eq!(addresses[layer][0] - addresses[layer - 1][0], group, "{dtype}, layer {layer}");
        }
    }
}

#[test]
fn layer_has_all_pages_of_its_space() {
    let layout = CacheLayout::new([geometry(), KvGeometry { window: Some(20), ..geometry() }]);
    let mut pool = KvPool::new(Device::Cpu, &layout, 4, KvDtype::F32).unwrap();
    assert_eq!((layout.num_spaces(), pool.num_pages(0)), (1, 8));
    pool.copy_page(0, 0, 7);
}

/// A copy changes the addresses, which the test above relies on.
#[test]
fn shared_pool_is_copied_on_write() {
    let burn = Device::Cpu.burn().unwrap();
    let [_, tensors] = layers(KvDtype::F32, &burn);
    let KvLayer::Device { keys, values } = &tensors else { panic!("the second form is tensors") };
    let _held = (keys.clone(), values.clone());
    let mut pool = KvPool::of_layer(tensors, geometry(), 4);
    let before = pool.addresses();
    let [prompts, _] = layouts();
    let [q, k, v] = qkv(&prompts, &burn);
    attention(q, k, v, &mut pool, 0, &Arc::new(prompts), &spec());
    assert_ne!(pool.addresses(), before);
}

#[test]
#[should_panic(expected = "page 4 of 4")]
fn unknown_page_is_rejected() {
    let [_, mut steps] = layouts();
    steps.sequences[1].block_table = vec![4];
    let burn = Device::Cpu.burn().unwrap();
    let geometry = geometry();
    let mut pool = KvPool::new(Device::Cpu, &CacheLayout::new([geometry]), 4, KvDtype::F32).unwrap();
    let [q, k, v] = qkv(&steps, &burn);
    attention(q, k, v, &mut pool, 0, &Arc::new(steps), &spec());
}

#[test]
fn shared_layer_reads_the_written_rows() {
    let geometry = KvGeometry { num_kv_heads: 2, head_dim: 8, window: Some(20), shared_with: None };
    let layout = CacheLayout::new([geometry, KvGeometry { shared_with: Some(0), ..geometry }]);
    for (&device, burn) in Device::available().iter().zip(host_devices()) {
        let mut pool = KvPool::new(device, &layout, 4, KvDtype::F32).unwrap();
        for layout in layouts() {
            let [q, k, v] = qkv(&layout, &burn);
            let layout = Arc::new(layout);
            let written = attention(q.clone(), k, v, &mut pool, 0, &layout, &spec());
            let shared = attention_shared(q, &mut pool, 1, &layout, &spec());
            assert_close("a layer that shares", shared, written, 0.0);
        }
    }
}

#[test]
fn pages_before_the_window_are_not_read() {
    let burn = Device::Cpu.burn().unwrap();
    for cache in layers(KvDtype::F32, &burn) {
        let geometry = KvGeometry { num_kv_heads: 2, head_dim: 8, window: Some(20), shared_with: None };
        let mut pool = KvPool::of_layer(cache, geometry, 4);
        let run = |pool: &mut KvPool, rows, cached_len, block_table: &[u32]| {
            let sequence =
                SequenceLayout { rows, cached_len, block_table: block_table.to_vec(), ..Default::default() };
            let layout = RaggedLayout { sequences: vec![sequence] };
            let [q, k, v] = qkv(&layout, &burn);
            attention(q, k, v, pool, 0, &Arc::new(layout), &spec())
        };
        run(&mut pool, 0..60, 0, &[3, 1]);
        // The row in slot 60 sees slots 41..=60.
        let whole = run(&mut pool, 0..1, 60, &[3, 1]);
        let freed = run(&mut pool, 0..1, 60, &[crate::NO_PAGE, 1]);
        assert_close("without the page before the window", freed, whole, 0.0);
    }
}

/// Outputs of two calls, and the states after them: host kernels and default bodies share one state layout.
#[test]
fn state_operations_equal_their_default_bodies() {
    let order = HeadOrder::Tiled;
    let (channels, spec) =
        (20, DeltaNetSpec { num_key_heads: 2, num_value_heads: 4, key_dim: 24, value_dim: 20, order });
    let conv = Arc::new(CausalConv::new(3, channels, &noise(60, 30), Some(&noise(20, 31))));
    let qkv_conv = CausalConv::new(4, spec.width(), &noise(4 * spec.width(), 32), None);
    let net = Arc::new(DeltaNet::new(spec, qkv_conv, vec![0.5; 4], noise(4, 33)));
    let time_step_limit = [0.1, 2.0];
    let mamba_spec = Mamba2Spec { num_heads: 4, head_dim: 20, num_groups: 2, state_dim: 24, time_step_limit };
    let width = mamba_spec.conv_width();
    let mamba_conv = CausalConv::new(4, width, &noise(4 * width, 38), Some(&noise(width, 39)));
    let mamba = Arc::new(Mamba2::new(mamba_spec, mamba_conv, vec![0.5; 4], noise(4, 40), noise(4, 41)));
    for (&device, burn) in Device::available().iter().zip(host_devices()) {
        let layers =
            [conv.state_len(), net.state_len(), mamba.state_len()].map(|len| LayerCache::State { len });
        let mut pool = KvPool::new(device, &CacheLayout::new(layers), 4, KvDtype::F32).unwrap();
        let pages = pool.num_pages(0);
        let [mut convs, mut nets, mut mambas] = layers.map(|layer| match layer {
            LayerCache::State { len } => StatePages::new(pages, len).unwrap(),
            LayerCache::Kv(_) => unreachable!(),
        });
        for layout in layouts() {
            let (rows, layout) = (layout.rows(), Arc::new(layout));
            let x = || noise_tensor([rows, 3 * channels], 34, &burn);
            let expected = short_conv::portable(x(), &conv, &mut convs, &layout);
            assert_close("short_conv", short_conv(x(), &conv, &mut pool, 0, &layout), expected, 2e-6);
            let qkv = || noise_tensor([rows, spec.width()], 35, &burn);
            let gate = |seed| noise_tensor([rows, 4], seed, &burn);
            let expected = delta_net::portable(qkv(), gate(36), gate(37), &net, &mut nets, &layout);
            let got = delta_net(qkv(), gate(36), gate(37), &net, &mut pool, 1, &layout);
            assert_close("delta_net", got, expected, 5e-6);
            let projected = || noise_tensor([rows, mamba_spec.projected_width()], 42, &burn);
            let expected = mamba2::portable(projected(), &mamba, &mut mambas, &layout);
            assert_close("mamba2", mamba2(projected(), &mamba, &mut pool, 2, &layout), expected, 1e-5);
            for page in [0, 1, 3] {
                for (layer, states) in [&convs, &nets, &mambas].into_iter().enumerate() {
                    for (one, other) in pool.states(layer).get(page).iter().zip(states.get(page)) {
                        assert!((one - other).abs() < 1e-5, "state of layer {layer}: {one} and {other}");
                    }
                }
            }
        }
    }
}
