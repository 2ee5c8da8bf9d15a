//! Progress reports.

/// Progress of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadProgress {
    /// Current phase.
    pub phase: LoadPhase,
    /// Bytes of the files processed so far.
    pub done_bytes: u64,
    /// Bytes of all weights to load from the files; 0 until known.
    pub total_bytes: u64,
}

/// Phases of a load, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadPhase {
    /// Reading the config, the tokenizer and the tensors' headers.
    Opening,
    /// Packing the weights for the device.
    Weights,
    /// Everything is loaded.
    Done,
}
