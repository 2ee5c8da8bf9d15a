//! Implementation over slices of host memory and [`PagedLayer`], which is written in place.

use super::super::host_tensor::HostTensor;
use crate::{AttentionSpec, PagedLayer, Pool, RaggedLayout, host};

pub(in crate::ops) fn attention<T: HostTensor>(
    q: T,
    new: Option<(T, T)>,
    pages: &mut PagedLayer,
    layout: &RaggedLayout,
    spec: &AttentionSpec,
) -> T {
    if let Some((k, v)) = new {
        pages.write(layout, &k.values(), &v.values());
    }
    let mut out = vec![0.0; q.shape().num_elements()];
    host::attention(Pool::global(), &q.values(), pages, layout, spec, &mut out);
    T::from_values(out, q.shape())
}
