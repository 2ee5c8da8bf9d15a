//! Per-layer KV cache and state requirements, and their layout in pages.

use crate::host::{KvDtype, PAGE_LEN, PagedLayer};

/// Keys and values that an attention layer caches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KvGeometry {
    /// Key and value heads of the layer.
    pub num_kv_heads: usize,
    /// Elements of a head.
    pub head_dim: usize,
    /// Sliding window in slots, the query's own included; `None` for full attention.
    pub window: Option<usize>,
    /// Earlier layer of the same shape and window whose keys and values this one reads (cross-layer KV
    /// sharing); such a layer caches none of its own.
    pub shared_with: Option<usize>,
}

/// Cache of one layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LayerCache {
    /// Keys and values of every token that a later one may attend to.
    Kv(KvGeometry),
    /// Recurrent state of fixed size that each token updates: of a convolution or a linear-attention
    /// recurrence.
    State {
        /// Number of `f32` elements.
        len: usize,
    },
}

impl From<KvGeometry> for LayerCache {
    fn from(geometry: KvGeometry) -> Self {
        Self::Kv(geometry)
    }
}

/// Pages of a sequence that a group of layers retains, counted from the first token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Retention {
    /// All pages (full attention).
    All,
    /// Pages with a slot visible to the next token, in a sliding window of this many slots, itself included.
    Window(usize),
    /// The page that holds the state after the last token. Earlier ones are snapshots: the state after a
    /// page's last token.
    State,
}

impl Retention {
    /// First page that a sequence of `len` tokens needs to continue; it needs all from there to the last
    /// token's.
    pub fn first_retained_page(self, len: usize) -> usize {
        match self {
            Self::All => 0,
            Self::Window(slots) => (len + 1).saturating_sub(slots) / PAGE_LEN,
            Self::State => len.saturating_sub(1) / PAGE_LEN,
        }
    }

    /// Pages that a forward pass of `rows` rows after `len` tokens writes to, in order.
    ///
    /// A state is stored after the last row, and after the last full page before it if that ends within the
    /// rows.
    pub fn written(self, len: usize, rows: usize) -> impl Iterator<Item = usize> + Clone {
        let end = (len + rows).div_ceil(PAGE_LEN);
        let first = match self {
            Self::All | Self::Window(_) => len / PAGE_LEN,
            Self::State => end.saturating_sub(if (end.saturating_sub(1)) * PAGE_LEN > len { 2 } else { 1 }),
        };
        first..if rows == 0 { first } else { end }
    }
}

/// Layers that retain and free the same pages of a sequence and so share its block table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CacheGroup {
    /// The pages that they retain.
    pub retention: Retention,
    /// Page pool of the group: an index below [`CacheLayout::num_spaces`].
    pub space: usize,
}

/// Layers' caches, sorted into groups with a block table each, whose pages come from spaces with page
/// numbers of their own.
///
/// Layers whose pages have the same size share a space, whatever their window, so that pages freed by
/// sliding-window layers serve the layers with full attention. For that, the groups of a space have the same
/// maximum size: 22 layers with a window and 4 without give one group of 4 and six of at most 4, and a page
/// is a page of 4 layers.
///
/// ```
/// use lm_kernels::{CacheLayout, KvGeometry, Retention};
///
/// let full = KvGeometry { num_kv_heads: 2, head_dim: 64, window: None, shared_with: None };
/// let near = KvGeometry { window: Some(512), ..full };
/// let layout = CacheLayout::new([near, near, full, near]);
/// let retentions: Vec<Retention> = layout.groups().iter().map(|group| group.retention).collect();
/// let window = Retention::Window(512);
/// assert_eq!(retentions, [window, window, window, Retention::All]);
/// assert_eq!(layout.num_spaces(), 1);
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CacheLayout {
    layers: Vec<LayerCache>,
    places: Vec<Place>,
    groups: Vec<CacheGroup>,
    /// By space, the contents of a page: the layers at this index in their groups.
    stores: Vec<Vec<LayerCache>>,
}

/// Location of a layer's pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Place {
    pub group: usize,
    pub space: usize,
    /// Index among the stores of the space.
    pub store: usize,
}

/// Layers of one space with the same retention.
struct Class {
    space: usize,
    retention: Retention,
    layers: Vec<usize>,
}

impl CacheLayout {
    /// Sorts a model's layers into groups and spaces.
    ///
    /// # Panics
    /// If `shared_with` is not an earlier layer that owns its cache and has the same geometry and window, or
    /// if a window is 0.
    pub fn new<L: Into<LayerCache>>(layers: impl IntoIterator<Item = L>) -> Self {
        let layers: Vec<LayerCache> = layers.into_iter().map(Into::into).collect();
        let places = vec![Place::default(); layers.len()];
        let mut layout = Self { layers, places, ..Self::default() };
        let (spaces, classes) = layout.classes();
        layout.stores = vec![Vec::new(); spaces];
        for class in &classes {
            let sizes =
                classes.iter().filter(|other| other.space == class.space).map(|other| other.layers.len());
            let size = sizes.min().expect("the class itself is one");
            class.layers.chunks(size).for_each(|layers| layout.add_group(class, layers));
        }
        for layer in 0..layout.layers.len() {
            layout.places[layer] = layout.places[layout.owner(layer)];
        }
        layout
    }

    /// Returns the number of spaces, and the layers with pages of their own by space and retention.
    fn classes(&self) -> (usize, Vec<Class>) {
        let (mut shapes, mut classes): (Vec<_>, Vec<Class>) = (Vec::new(), Vec::new());
        for layer in (0..self.layers.len()).filter(|&layer| self.owner(layer) == layer) {
            let (shape, retention) = shape_and_retention(&self.layers[layer]);
            let space = position_or_push(&mut shapes, |other| *other == shape, || shape);
            let like_it = |class: &Class| (class.space, class.retention) == (space, retention);
            let class =
                position_or_push(&mut classes, like_it, || Class { space, retention, layers: Vec::new() });
            classes[class].layers.push(layer);
        }
        (shapes.len(), classes)
    }

    fn add_group(&mut self, &Class { space, retention, .. }: &Class, layers: &[usize]) {
        let group = self.groups.len();
        self.groups.push(CacheGroup { retention, space });
        for (store, &layer) in layers.iter().enumerate() {
            self.places[layer] = Place { group, space, store };
            if store == self.stores[space].len() {
                self.stores[space].push(self.layers[layer]);
            }
        }
    }

    /// Creates a layout of one group that retains all pages without storing any, for models without a cache.
    pub fn empty() -> Self {
        let groups = vec![CacheGroup { retention: Retention::All, space: 0 }];
        Self { groups, stores: vec![Vec::new()], ..Self::default() }
    }

    /// The cache of each layer, as given.
    pub fn layers(&self) -> &[LayerCache] {
        &self.layers
    }

    /// The groups; a sequence has one block table for each of them.
    pub fn groups(&self) -> &[CacheGroup] {
        &self.groups
    }

    /// The group of a layer, which is that of the layer it shares with.
    ///
    /// # Panics
    /// When the layer is out of range.
    pub fn group_of(&self, layer: usize) -> usize {
        self.places[layer].group
    }

    /// Number of spaces.
    pub fn num_spaces(&self) -> usize {
        self.stores.len()
    }

    /// The geometry of an attention layer.
    ///
    /// # Panics
    /// When the layer is out of range, or keeps a state.
    pub fn kv(&self, layer: usize) -> &KvGeometry {
        match &self.layers[layer] {
            LayerCache::Kv(geometry) => geometry,
            LayerCache::State { .. } => panic!("layer {layer} keeps a state, not keys and values"),
        }
    }

    /// Location of a layer's pages.
    pub(crate) fn place(&self, layer: usize) -> Place {
        self.places[layer]
    }

    /// The layers stored in each page of a space.
    pub(crate) fn stores(&self, space: usize) -> &[LayerCache] {
        &self.stores[space]
    }

    /// Number of pages of a space that let its groups hold `num_pages` pages of tokens each.
    ///
    /// States are larger than the keys and values of a page, and few are needed: those of the running
    /// sequences and occasional snapshots.
    pub fn pages_of(&self, space: usize, num_pages: usize) -> usize {
        let pages = |group: &CacheGroup| match group.retention {
            Retention::All | Retention::Window(_) => num_pages,
            Retention::State => num_pages.div_ceil(PAGES_PER_STATE) + LEAST_STATES,
        };
        self.groups.iter().filter(|group| group.space == space).map(pages).sum()
    }

    /// Bytes of a pool in host memory with `num_pages` pages for each group, keys and values stored as
    /// `dtype`; saturates at `usize::MAX`.
    pub fn host_bytes(&self, num_pages: usize, dtype: KvDtype) -> usize {
        let of_layer = |layer: &LayerCache| match *layer {
            LayerCache::State { len } => len.saturating_mul(size_of::<f32>()),
            LayerCache::Kv(KvGeometry { num_kv_heads, head_dim, .. }) => {
                PagedLayer::page_bytes(dtype, num_kv_heads, head_dim)
            }
        };
        let of_space = |space| {
            let page = self.stores(space).iter().map(of_layer).fold(0, usize::saturating_add);
            page.saturating_mul(self.pages_of(space, num_pages))
        };
        (0..self.num_spaces()).map(of_space).fold(0, usize::saturating_add)
    }

    /// Returns the layer whose pages hold a layer's keys and values.
    fn owner(&self, layer: usize) -> usize {
        let LayerCache::Kv(KvGeometry { shared_with: Some(owner), window, num_kv_heads, head_dim }) =
            self.layers[layer]
        else {
            return layer;
        };
        let shared = LayerCache::Kv(KvGeometry { num_kv_heads, head_dim, window, shared_with: None });
        assert!(
            owner < layer && self.layers[owner] == shared,
            "layer {layer} cannot share with {owner}: it is not an earlier one like it"
        );
        owner
    }
}

/// Pages of tokens per state, in the size of a pool.
const PAGES_PER_STATE: usize = 16;

/// Minimum number of states in a pool.
const LEAST_STATES: usize = 8;

/// The number and length of the heads (`None` for states), and the pages retained.
fn shape_and_retention(layer: &LayerCache) -> (Option<(usize, usize)>, Retention) {
    match *layer {
        LayerCache::Kv(KvGeometry { num_kv_heads, head_dim, window, .. }) => {
            assert_ne!(window, Some(0), "a window holds at least the query itself");
            (Some((num_kv_heads, head_dim)), window.map_or(Retention::All, Retention::Window))
        }
        LayerCache::State { .. } => (None, Retention::State),
    }
}

fn position_or_push<T>(list: &mut Vec<T>, is_it: impl FnMut(&T) -> bool, make: impl FnOnce() -> T) -> usize {
    list.iter().position(is_it).unwrap_or_else(|| {
        list.push(make());
        list.len() - 1
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SequenceLayout;

    const FULL: KvGeometry = KvGeometry { num_kv_heads: 2, head_dim: 8, window: None, shared_with: None };
    const NEAR: KvGeometry = KvGeometry { window: Some(40), ..FULL };

    #[test]
    fn groups_of_equal_size_share_pages() {
        let layers = (0..26).map(|layer| if layer % 6 == 5 { FULL } else { NEAR });
        let layout = CacheLayout::new(layers);
        assert_eq!((layout.groups().len(), layout.num_spaces(), layout.stores(0).len()), (7, 1, 4));
        let places: std::collections::HashSet<_> =
            (0..26).map(|layer| (layout.place(layer).group, layout.place(layer).store)).collect();
        assert_eq!(places.len(), 26, "no two layers have one place");
        for layer in 0..26 {
            let retention = layout.groups()[layout.group_of(layer)].retention;
            assert_eq!(retention, if layer % 6 == 5 { Retention::All } else { Retention::Window(40) });
        }
        assert_eq!(layout.pages_of(0, 10), 70);
    }

    #[test]
    fn other_shapes_and_states_have_separate_spaces() {
        let wide = KvGeometry { head_dim: 16, ..FULL };
        let state = |len| LayerCache::State { len };
        let layout = CacheLayout::new([FULL.into(), state(7), wide.into(), state(9), LayerCache::Kv(FULL)]);
        assert_eq!((layout.groups().len(), layout.num_spaces()), (3, 3));
        assert_eq!(layout.stores(1), [state(7), state(9)]);
        assert_eq!(layout.group_of(1), layout.group_of(3));
        assert_eq!(layout.pages_of(1, 32), 10);
    }

    #[test]
    fn shared_layer_has_the_same_place() {
        let layout = CacheLayout::new([FULL, NEAR, KvGeometry { shared_with: Some(1), ..NEAR }]);
        assert_eq!(layout.place(2), layout.place(1));
        assert_eq!(layout.groups().len(), 2);
    }

    #[test]
    #[should_panic(expected = "layer 1 cannot share with 0")]
    fn layers_share_only_with_equal_layers() {
        CacheLayout::new([FULL, KvGeometry { shared_with: Some(0), ..NEAR }]);
    }

    #[test]
    fn pages_needed_and_written() {
        let window = Retention::Window(40);
        assert_eq!([0, 39, 70, 71, 72, 103].map(|len| window.first_retained_page(len)), [0, 0, 0, 1, 1, 2]);
        assert_eq!([0, 1, 32, 33, 64].map(|len| Retention::State.first_retained_page(len)), [0, 0, 0, 1, 1]);
        let written = |retention: Retention, len, rows| retention.written(len, rows).collect::<Vec<_>>();
        assert_eq!(written(Retention::All, 20, 100), [0, 1, 2, 3]);
        for (len, rows, pages) in [
            (0, 0, vec![]),
            (0, 1, vec![0]),
            (0, 32, vec![0]),
            (0, 33, vec![0, 1]),
            (20, 100, vec![2, 3]),
            (20, 108, vec![2, 3]),
            (32, 1, vec![1]),
            (33, 31, vec![1]),
        ] {
            assert_eq!(written(Retention::State, len, rows), pages, "{rows} rows after {len}");
            let block_table = (0..4).collect();
            let sequence =
                SequenceLayout { rows: 0..rows, cached_len: len, block_table, ..Default::default() };
            let to: Vec<_> = sequence.state_runs().map(|run| run.to as usize).collect();
            assert_eq!(to, pages, "runs of {rows} rows after {len}");
        }
    }
}
