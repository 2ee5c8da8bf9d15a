//! The pages of the key and value cache of all layers, on one device.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, ExtensionType};
use burn::tensor::{DType, Device as BurnDevice, Tensor};

use super::backend::Bridge;
use crate::{Device, KvDtype, PAGE_LEN, PageId, PagedLayer, Result};

/// Shape of one layer's cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KvGeometry {
    /// Key and value heads of the layer.
    pub num_kv_heads: usize,
    /// Elements of a head.
    pub head_dim: usize,
    /// Slots that a query sees, itself included; `None` is all. Pages outside are kept all the same.
    pub window: Option<usize>,
}

/// One layer's pages: slices on the host, tensors of all slots elsewhere.
#[derive(ExtensionType)]
pub enum KvLayer<B: Backend> {
    /// Opaque to burn: moved through operations as it is.
    Host(Box<PagedLayer>),
    /// `[num_pages * PAGE_LEN, num_kv_heads, head_dim]` each.
    Device { keys: FloatTensor<B>, values: FloatTensor<B> },
}

/// The pages of all layers on one device. A forward pass borrows it mutably and updates it in place.
///
/// A page is the same number of slots in every layer; which pages belong to which sequence is the caller's
/// business. New pages hold zeros.
///
/// ```
/// use lm_kernels::{Device, KvDtype, KvGeometry, KvPool};
///
/// let layer = KvGeometry { num_kv_heads: 2, head_dim: 64, window: None };
/// let pool = KvPool::new(Device::Cpu, &[layer; 4], 16, KvDtype::F16)?;
/// assert_eq!(pool.bytes_per_page(), 4 * 2 * 32 * 2 * 64 * 2); // layers · (k, v) · slots · heads · head_dim · bytes
/// # Ok::<(), lm_kernels::Error>(())
/// ```
pub struct KvPool {
    /// `None` while an operation holds the layer.
    layers: Vec<Option<KvLayer<Dispatch>>>,
    geometry: Vec<KvGeometry>,
    num_pages: usize,
    dtype: KvDtype,
    on_host: bool,
}

impl KvPool {
    /// Allocates `num_pages` pages for each layer.
    ///
    /// A GPU has no 8-bit pages and takes f16 in their place; one without f16 gets f32: [`dtype`](Self::dtype) says which.
    ///
    /// # Errors
    /// As [`Device::burn`] and [`PagedLayer::new`].
    pub fn new(device: Device, layers: &[KvGeometry], num_pages: usize, dtype: KvDtype) -> Result<Self> {
        let burn = device.burn()?;
        let on_host = matches!(device, Device::Cpu | Device::NdArray);
        let dtype = if on_host { dtype } else { on_device(dtype, &burn) };
        let new_layer = |layer: &KvGeometry| {
            if on_host {
                let pages = PagedLayer::new(dtype, num_pages, layer.num_kv_heads, layer.head_dim)?;
                return Ok(Some(KvLayer::Host(Box::new(pages))));
            }
            Ok(Some(KvLayer::on_device(num_pages, layer.num_kv_heads, layer.head_dim, dtype, &burn)))
        };
        let slots = layers.iter().map(new_layer).collect::<Result<_>>()?;
        Ok(Self { layers: slots, geometry: layers.to_vec(), num_pages, dtype, on_host })
    }

    /// A pool of numbered pages without any layer, for models that keep nothing.
    pub fn empty(num_pages: usize) -> Self {
        Self { layers: Vec::new(), geometry: Vec::new(), num_pages, dtype: KvDtype::default(), on_host: true }
    }

    /// Number of pages; their ids are `0..num_pages`.
    pub fn num_pages(&self) -> usize {
        self.num_pages
    }

    /// The layers' shapes, as given.
    pub fn geometry(&self) -> &[KvGeometry] {
        &self.geometry
    }

    /// Element type of the pages as they are stored.
    pub fn dtype(&self) -> KvDtype {
        self.dtype
    }

    /// Bytes of one page over all layers, keys and values.
    pub fn bytes_per_page(&self) -> usize {
        let of_layer = |layer: &KvGeometry| match self.on_host {
            true => PagedLayer::page_bytes(self.dtype, layer.num_kv_heads, layer.head_dim),
            false => 2 * PAGE_LEN * layer.num_kv_heads * layer.head_dim * self.dtype.bytes(),
        };
        self.geometry.iter().map(of_layer).sum()
    }

    /// Copies a page in every layer, so that a sequence may go on alone from a shared one.
    ///
    /// # Panics
    /// When a page is not below [`num_pages`](Self::num_pages).
    pub fn copy_page(&mut self, from: PageId, to: PageId) {
        for page in [from, to] {
            assert!((page as usize) < self.num_pages, "page {page} of {}", self.num_pages);
        }
        for layer in 0..self.layers.len() {
            let copied = self.take(layer).copy_page(from, to);
            self.put_back(layer, copied);
        }
    }

    /// A pool around one given layer.
    #[cfg(test)]
    pub(super) fn of_layer(layer: KvLayer<Dispatch>, geometry: KvGeometry, num_pages: usize) -> Self {
        Self {
            layers: vec![Some(layer)],
            geometry: vec![geometry],
            num_pages,
            dtype: KvDtype::F32,
            on_host: true,
        }
    }

    pub(super) fn take(&mut self, layer: usize) -> KvLayer<Dispatch> {
        self.layers[layer].take().expect("a layer is away only during an operation that panicked")
    }

    pub(super) fn put_back(&mut self, layer: usize, cache: KvLayer<Dispatch>) {
        self.layers[layer] = Some(cache);
    }
}

impl KvLayer<Dispatch> {
    /// Tensors of zeros.
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

/// What a device in whose memory pages are tensors keeps in place of `dtype`.
fn on_device(dtype: KvDtype, device: &BurnDevice) -> KvDtype {
    match dtype {
        KvDtype::F16 | KvDtype::Q8 if device.supports_dtype(DType::F16) => KvDtype::F16,
        KvDtype::F16 | KvDtype::Q8 | KvDtype::F32 => KvDtype::F32,
    }
}

/// burn's name of the element type of tensors.
fn element(dtype: KvDtype) -> DType {
    match dtype {
        KvDtype::F16 => DType::F16,
        KvDtype::F32 => DType::F32,
        KvDtype::Q8 => unreachable!("`on_device` has put another in its place"),
    }
}
