//! Cache pages of all layers, on one device.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, ExtensionType, Flex};
use burn::tensor::{DType, Device as BurnDevice, Tensor};

use super::backend::Bridge;
use crate::cache_layout::{CacheLayout, KvGeometry, LayerCache};
use crate::device::Device;
use crate::error::Result;
use crate::host::{KvDtype, PAGE_LEN, PageId, PagedLayer, StatePages};

/// Pages of one layer: slices on the host, tensors of all slots elsewhere.
#[derive(ExtensionType)]
pub enum KvLayer<B: Backend> {
    /// Opaque to burn: passed through operations unchanged.
    Host(Box<PagedLayer>),
    /// `[num_pages * PAGE_LEN, num_kv_heads, head_dim]` each.
    Device { keys: FloatTensor<B>, values: FloatTensor<B> },
}

/// Page pool of the caches of all layers on one device. A forward pass borrows it mutably and updates it in
/// place.
///
/// A page is the same number of slots in every layer of its group, or a state of each; the caller assigns
/// pages to sequences. New pages are zeroed.
///
/// ```
/// use lm_kernels::{CacheLayout, Device, KvDtype, KvGeometry, KvPool};
///
/// let layer = KvGeometry { num_kv_heads: 2, head_dim: 64, window: None, shared_with: None };
/// let pool = KvPool::new(Device::Cpu, &CacheLayout::new([layer; 4]), 16, KvDtype::F16)?;
/// assert_eq!(pool.bytes_per_page(), 4 * 2 * 32 * 2 * 64 * 2); // layers · (k, v) · slots · heads · head_dim · bytes
/// # Ok::<(), lm_kernels::Error>(())
/// ```
pub struct KvPool {
    layout: CacheLayout,
    spaces: Vec<Space>,
    dtype: KvDtype,
    on_host: bool,
}

/// Pages with ids of their own, `0..num_pages`.
struct Space {
    num_pages: usize,
    stores: Vec<Store>,
}

/// Pages of the layers at the same index in their groups.
#[allow(clippy::large_enum_variant, reason = "a model has a few dozen")]
enum Store {
    /// `None` while an operation has taken it.
    Kv(Option<KvLayer<Dispatch>>),
    /// In host memory on every device; `None` while an operation has taken them.
    State(Option<StatePages>),
}

impl KvPool {
    /// Allocates pages so that every group of `layout` can hold `num_pages` pages of tokens; there are fewer
    /// state pages ([`CacheLayout::pages_of`]).
    ///
    /// A GPU does not support 8-bit pages and uses f16 instead, or f32 without f16 support:
    /// [`dtype`](Self::dtype) returns the type used.
    ///
    /// # Errors
    /// As [`Device::burn`], [`PagedLayer::new`] and [`StatePages::new`].
    pub fn new(device: Device, layout: &CacheLayout, num_pages: usize, dtype: KvDtype) -> Result<Self> {
        let burn = device.burn()?;
        let on_host = device.resolved() != Device::Gpu;
        let dtype = if on_host { dtype } else { on_device(dtype, &burn) };
        let new_space = |space| {
            let (num_pages, layers) = (layout.pages_of(space, num_pages), layout.stores(space));
            let shapes: Vec<_> = layers.iter().filter(|_| on_host).filter_map(kv_shape).collect();
            let mut host_layers = PagedLayer::for_layers(dtype, num_pages, &shapes)?.into_iter();
            let new_store = |layer: &LayerCache| {
                Ok(match *layer {
                    LayerCache::State { len } => Store::State(Some(StatePages::new(num_pages, len)?)),
                    LayerCache::Kv(KvGeometry { num_kv_heads, head_dim, .. }) => {
                        Store::Kv(Some(match host_layers.next() {
                            Some(pages) => KvLayer::Host(Box::new(pages)),
                            None => KvLayer::on_device(num_pages, num_kv_heads, head_dim, dtype, &burn),
                        }))
                    }
                })
            };
            Ok(Space { num_pages, stores: layers.iter().map(new_store).collect::<Result<_>>()? })
        };
        let spaces = (0..layout.num_spaces()).map(new_space).collect::<Result<_>>()?;
        Ok(Self { layout: layout.clone(), spaces, dtype, on_host })
    }

    /// Creates a pool of numbered pages without layers, for models without a cache.
    pub fn empty(num_pages: usize) -> Self {
        let spaces = vec![Space { num_pages, stores: Vec::new() }];
        Self { layout: CacheLayout::empty(), spaces, dtype: KvDtype::default(), on_host: true }
    }

    /// The groups of the layers and the spaces of their pages.
    pub fn layout(&self) -> &CacheLayout {
        &self.layout
    }

    /// Number of pages of a space; their ids are `0..num_pages`.
    ///
    /// # Panics
    /// When the space is out of range.
    pub fn num_pages(&self, space: usize) -> usize {
        self.spaces[space].num_pages
    }

    /// Element type of the stored keys and values.
    pub fn dtype(&self) -> KvDtype {
        self.dtype
    }

    /// Bytes per [`PAGE_LEN`] tokens: a page of every group, and for states a pool's share for that many
    /// tokens.
    pub fn bytes_per_page(&self) -> usize {
        // Enough pages to make the fixed minimum of states negligible.
        const PAGES: usize = 1 << 16;
        let of_layer = |layer: &LayerCache| match *layer {
            LayerCache::State { len } => len * size_of::<f32>(),
            LayerCache::Kv(KvGeometry { num_kv_heads, head_dim, .. }) => match self.on_host {
                true => PagedLayer::page_bytes(self.dtype, num_kv_heads, head_dim),
                false => 2 * PAGE_LEN * num_kv_heads * head_dim * self.dtype.bytes(),
            },
        };
        let of_space = |space| {
            let page: usize = self.layout.stores(space).iter().map(of_layer).sum();
            page * self.layout.pages_of(space, PAGES) / PAGES
        };
        (0..self.layout.num_spaces()).map(of_space).sum()
    }

    /// Copies a page of a space (copy-on-write of a page shared between sequences).
    ///
    /// # Panics
    /// When the space or page is out of range.
    pub fn copy_page(&mut self, space: usize, from: PageId, to: PageId) {
        let Space { num_pages, stores } = &mut self.spaces[space];
        for page in [from, to] {
            assert!((page as usize) < *num_pages, "page {page} of {num_pages}");
        }
        for store in stores {
            match store {
                Store::Kv(layer) => *layer = layer.take().map(|layer| layer.copy_page(from, to)),
                Store::State(states) => present(states.as_mut()).copy_page(from, to),
            }
        }
    }

    /// Bytes of a page of a space as [`read_page`](Self::read_page) writes it; `None` if pages cannot be
    /// read: they are not in host memory, or this machine is not little-endian.
    ///
    /// # Panics
    /// When the space is out of range.
    pub fn readable_page_bytes(&self, space: usize) -> Option<usize> {
        let of_store = |store: &Store| match store {
            Store::Kv(layer) => match present(layer.as_ref()) {
                KvLayer::Host(pages) => Some(pages.bytes_per_page()),
                KvLayer::Device { .. } => None,
            },
            Store::State(states) => Some(present(states.as_ref()).state_len() * size_of::<f32>()),
        };
        let bytes = self.spaces[space].stores.iter().map(of_store).sum::<Option<usize>>();
        bytes.filter(|_| cfg!(target_endian = "little"))
    }

    /// Appends the contents of a page to `out`, layer by layer. Slots of keys and values from `slots` on are
    /// written as zeros.
    ///
    /// # Panics
    /// When the page is out of range, or cannot be read ([`readable_page_bytes`](Self::readable_page_bytes)).
    pub fn read_page(&self, space: usize, page: PageId, slots: usize, out: &mut Vec<u8>) {
        for store in &self.spaces[space].stores {
            match store {
                Store::Kv(layer) => present(layer.as_ref()).host().read_page(page, slots, out),
                Store::State(states) => {
                    out.extend_from_slice(bytemuck::cast_slice(present(states.as_ref()).get(page)));
                }
            }
        }
    }

    /// Fills a page with the bytes of [`read_page`](Self::read_page).
    ///
    /// # Panics
    /// As [`read_page`](Self::read_page); when the bytes do not have the length of a page.
    pub fn write_page(&mut self, space: usize, page: PageId, mut bytes: &[u8]) {
        for store in &mut self.spaces[space].stores {
            match store {
                Store::Kv(layer) => {
                    let pages = present(layer.as_mut()).host_mut();
                    let (own, rest) = bytes.split_at(pages.bytes_per_page());
                    pages.write_page(page, own);
                    bytes = rest;
                }
                Store::State(states) => {
                    let state = bytemuck::cast_slice_mut::<f32, u8>(present(states.as_mut()).get_mut(page));
                    let (own, rest) = bytes.split_at(state.len());
                    state.copy_from_slice(own);
                    bytes = rest;
                }
            }
        }
        assert!(bytes.is_empty(), "{} bytes more than those of a page", bytes.len());
    }

    /// State pages of a layer.
    ///
    /// # Panics
    /// When the layer has no states.
    pub fn states(&mut self, layer: usize) -> &mut StatePages {
        match self.store(layer) {
            Store::State(states) => present(states.as_mut()),
            Store::Kv(_) => panic!("layer {layer} keeps keys and values, not a state"),
        }
    }

    /// Memory addresses of keys and values: a pair for each layer index in the groups, whose pages the groups
    /// of a space share; none for states.
    ///
    /// They stay the same while every operation writes to its pages in place. A changed address means that an
    /// operation has copied the whole pool: a test counts those.
    pub fn addresses(&self) -> Vec<[usize; 2]> {
        let stores = self.spaces.iter().flat_map(|space| &space.stores);
        stores
            .filter_map(|store| if let Store::Kv(layer) = store { layer.as_ref() } else { None })
            .map(KvLayer::addresses)
            .collect()
    }

    /// Creates a pool with one given layer.
    #[cfg(test)]
    pub(super) fn of_layer(layer: KvLayer<Dispatch>, geometry: KvGeometry, num_pages: usize) -> Self {
        let spaces = vec![Space { num_pages, stores: vec![Store::Kv(Some(layer))] }];
        Self { layout: CacheLayout::new([geometry]), spaces, dtype: KvDtype::F32, on_host: true }
    }

    /// Number of pages in the space of a layer.
    pub(super) fn num_pages_of(&self, layer: usize) -> usize {
        self.num_pages(self.layout.place(layer).space)
    }

    pub(super) fn take(&mut self, layer: usize) -> KvLayer<Dispatch> {
        match self.store(layer) {
            Store::Kv(cache) => present(cache.take()),
            Store::State(_) => panic!("layer {layer} keeps a state, not keys and values"),
        }
    }

    pub(super) fn put_back(&mut self, layer: usize, cache: KvLayer<Dispatch>) {
        *self.store(layer) = Store::Kv(Some(cache));
    }

    pub(super) fn take_states(&mut self, layer: usize) -> StatePages {
        match self.store(layer) {
            Store::State(states) => present(states.take()),
            Store::Kv(_) => panic!("layer {layer} keeps keys and values, not a state"),
        }
    }

    pub(super) fn put_back_states(&mut self, layer: usize, states: StatePages) {
        *self.store(layer) = Store::State(Some(states));
    }

    fn store(&mut self, layer: usize) -> &mut Store {
        let place = self.layout.place(layer);
        &mut self.spaces[place.space].stores[place.store]
    }
}

/// KV heads and head dimension of a layer with keys and values.
fn kv_shape(layer: &LayerCache) -> Option<(usize, usize)> {
    match *layer {
        LayerCache::Kv(KvGeometry { num_kv_heads, head_dim, .. }) => Some((num_kv_heads, head_dim)),
        LayerCache::State { .. } => None,
    }
}

/// Unwraps a store, which is empty only if an operation has taken it and panicked.
fn present<T>(held: Option<T>) -> T {
    held.expect("a layer is away only during an operation that panicked")
}

impl KvLayer<Dispatch> {
    /// Allocates tensors of zeros.
    pub(super) fn on_device(
        num_pages: usize,
        num_kv_heads: usize,
        head_dim: usize,
        dtype: KvDtype,
        device: &BurnDevice,
    ) -> Self {
        let shape = [num_pages * PAGE_LEN, num_kv_heads, head_dim];
        let zeros = || Tensor::<3>::zeros(shape, (device, element(dtype))).into_dispatch();
        KvLayer::Device { keys: zeros(), values: zeros() }
    }

    fn host(&self) -> &PagedLayer {
        match self {
            KvLayer::Host(pages) => pages,
            KvLayer::Device { .. } => panic!("the pages are on a device"),
        }
    }

    fn host_mut(&mut self) -> &mut PagedLayer {
        match self {
            KvLayer::Host(pages) => pages,
            KvLayer::Device { .. } => panic!("the pages are on a device"),
        }
    }

    fn addresses(&self) -> [usize; 2] {
        match self {
            KvLayer::Host(pages) => pages.addresses(),
            KvLayer::Device { keys, values } => {
                [keys, values].map(|tensor| address(Dispatch::lift(tensor.clone())))
            }
        }
    }
}

impl<B: Bridge> KvLayer<B> {
    fn copy_page(self, from: PageId, to: PageId) -> Self {
        let slots = |page: PageId| page as usize * PAGE_LEN..(page as usize + 1) * PAGE_LEN;
        let copy = |cache: FloatTensor<B>| {
            let cache: Tensor<3> = B::lift(cache);
            // Gathered, not sliced: a slice would share the memory and the assignment would copy the pool.
            let indices: Vec<i32> = slots(from).map(|slot| slot as i32).collect();
            let page = cache.clone().select(0, Tensor::from_data(indices.as_slice(), &cache.device()));
            B::lower(cache.slice_assign(slots(to), page))
        };
        match self {
            KvLayer::Host(mut pages) => {
                pages.copy_page(from, to);
                KvLayer::Host(pages)
            }
            KvLayer::Device { keys, values } => KvLayer::Device { keys: copy(keys), values: copy(values) },
        }
    }
}

/// Identity of a tensor's memory.
fn address(tensor: Tensor<3>) -> usize {
    #[cfg(feature = "wgpu")]
    if let Ok(tensor) = tensor.clone().try_into_primitive::<burn_wgpu::CubeBackend>() {
        return std::ptr::from_ref(tensor.handle.memory.descriptor()).addr();
    }
    let tensor =
        tensor.try_into_primitive::<Flex>().expect("pages are tensors on a GPU, and in tests on Flex");
    tensor.bytes().as_ptr().addr()
}

/// Element type that a device with tensor pages uses instead of `dtype`.
fn on_device(dtype: KvDtype, device: &BurnDevice) -> KvDtype {
    match dtype {
        KvDtype::F16 | KvDtype::Q8 if device.supports_dtype(DType::F16) => KvDtype::F16,
        KvDtype::F16 | KvDtype::Q8 | KvDtype::F32 => KvDtype::F32,
    }
}

/// burn's element type.
fn element(dtype: KvDtype) -> DType {
    match dtype {
        KvDtype::F16 => DType::F16,
        KvDtype::F32 => DType::F32,
        KvDtype::Q8 => unreachable!("`on_device` has put another in its place"),
    }
}
