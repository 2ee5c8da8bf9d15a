use crate::checkpoint::{LayerParam, Piece};

/// Presence of a bias in a projection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bias {
    Absent,
    Present,
}

impl From<bool> for Bias {
    fn from(present: bool) -> Self {
        if present { Self::Present } else { Self::Absent }
    }
}

impl Bias {
    /// Loads what a bias consists of, if there is one.
    pub(crate) fn if_present<T, E>(
        self,
        load: impl FnOnce() -> std::result::Result<T, E>,
    ) -> std::result::Result<Option<T>, E> {
        match self {
            Self::Absent => Ok(None),
            Self::Present => load().map(Some),
        }
    }
}

/// Parameters of a projection from `inputs` to `outputs`.
pub(crate) fn linear_params(
    param: fn(Piece) -> LayerParam,
    [inputs, outputs]: [usize; 2],
    bias: Bias,
) -> Vec<(LayerParam, Vec<usize>)> {
    let weight = (param(Piece::Weight), vec![outputs, inputs]);
    match bias {
        Bias::Absent => vec![weight],
        Bias::Present => vec![weight, (param(Piece::Bias), vec![outputs])],
    }
}
