use super::*;

/// Builds a file piece by piece, invalid ones included.
#[derive(Clone)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn head(version: u32, tensors: u64, keys: u64) -> Self {
        Self(b"GGUF".to_vec()).u32(version).u64(tensors).u64(keys)
    }

    fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }

    fn u32(self, value: u32) -> Self {
        self.raw(&value.to_le_bytes())
    }

    fn u64(self, value: u64) -> Self {
        self.raw(&value.to_le_bytes())
    }

    fn str(self, text: &str) -> Self {
        self.u64(text.len() as u64).raw(text.as_bytes())
    }

    /// Appends a key whose value follows.
    fn key(self, key: &str, ty: GgufValueType) -> Self {
        self.str(key).u32(ty as u32)
    }

    fn array(self, ty: GgufValueType, count: u64) -> Self {
        self.u32(ty as u32).u64(count)
    }

    fn tensor(self, name: &str, dims: &[u64], ty: u32, offset: u64) -> Self {
        let head = self.str(name).u32(dims.len() as u32);
        dims.iter().fold(head, |bytes, &dim| bytes.u64(dim)).u32(ty).u64(offset)
    }

    /// Pads up to the first tensor, then appends `bytes` zeros.
    fn data(mut self, bytes: usize) -> Self {
        self.0.resize(self.0.len().next_multiple_of(DEFAULT_ALIGNMENT) + bytes, 0);
        self
    }

    fn read(self) -> Result<GgufFile> {
        GgufFile::read("f.gguf", FileBytes::Owned(self.0.into()))
    }

    fn problem(self) -> GgufProblem {
        match self.read() {
            Err(Error::Gguf { file, problem }) if file == "f.gguf" => problem,
            other => panic!("{other:?}"),
        }
    }
}

/// A file with a value of each type and two tensors.
fn whole() -> Bytes {
    Bytes::head(3, 2, 6)
        .key("general.architecture", GgufValueType::String)
        .str("llama")
        .key("size", GgufValueType::U32)
        .u32(7)
        .key("float", GgufValueType::F32)
        .raw(&0.5_f32.to_le_bytes())
        .key("texts", GgufValueType::Array)
        .array(GgufValueType::String, 2)
        .str("a")
        .str("")
        .key("numbers", GgufValueType::Array)
        .array(GgufValueType::I32, 2)
        .u32(1)
        .u32(u32::MAX)
        .key("nested", GgufValueType::Array)
        .array(GgufValueType::Array, 1)
        .array(GgufValueType::Bool, 2)
        .raw(&[0, 1])
        .tensor("b", &[3, 2], 0, 64)
        .tensor("a", &[32], 8, 0)
        .data(64 + 24)
}

#[test]
fn reads_values_and_tensors() {
    let file = whole().read().unwrap();
    let metadata = file.metadata();
    assert_eq!(metadata.architecture().unwrap(), "llama");
    assert_eq!(metadata.size("size").unwrap(), Some(7));
    assert_eq!(metadata.float("float").unwrap(), Some(0.5));
    assert_eq!(metadata.size("absent").unwrap(), None);
    let texts: Vec<_> = metadata.strings("texts").unwrap().unwrap().map(Result::unwrap).collect();
    assert_eq!(texts, ["a", ""]);
    assert_eq!(metadata.ints("numbers").unwrap().unwrap(), [1, -1]);
    let tensors: Vec<_> =
        file.tensors().iter().map(|t| (t.name.as_str(), t.shape.clone(), t.range.len())).collect();
    assert_eq!(tensors, [("a", vec![32], 34), ("b", vec![2, 3], 24)]);
    assert!(file.tensors()[0].range.start.is_multiple_of(DEFAULT_ALIGNMENT));
}

#[test]
fn values_of_other_types_are_rejected() {
    let file = whole().read().unwrap();
    let metadata = file.metadata();
    for error in [
        metadata.str("size").map(drop),
        metadata.size("float").map(drop),
        metadata.ints("size").map(drop),
        metadata.floats("numbers").map(drop),
        metadata.strings("numbers").map(drop),
        metadata.bools("nested").map(drop),
        metadata.size("numbers").map(drop),
    ] {
        assert!(matches!(error, Err(Error::Gguf { problem: GgufProblem::KeyType { .. }, .. })), "{error:?}");
    }
    let missing = metadata.required("absent", GgufMetadata::size).unwrap_err();
    assert!(
        matches!(missing, Error::Gguf { problem: GgufProblem::MissingKey { key }, .. } if key == "absent")
    );
}

#[test]
fn every_truncation_is_an_error() {
    let bytes = whole().0;
    for len in 0..bytes.len() {
        assert!(Bytes(bytes[..len].to_vec()).read().is_err(), "{len}");
    }
}

#[test]
fn unsupported_kind_version_and_byte_order_are_reported() {
    assert!(matches!(Bytes(b"{\"a\":1} and more".to_vec()).problem(), GgufProblem::Magic { .. }));
    assert_eq!(Bytes::head(1, 0, 0).problem(), GgufProblem::Version { version: 1 });
    assert_eq!(Bytes::head(4, 0, 0).problem(), GgufProblem::Version { version: 4 });
    assert_eq!(Bytes::head(3_u32.swap_bytes(), 0, 0).problem(), GgufProblem::BigEndian);
    assert!(Bytes::head(2, 0, 0).read().is_ok());
}

#[test]
fn wrong_counts_and_lengths_are_rejected() {
    let too_many = |bytes: Bytes| {
        let problem = bytes.problem();
        assert!(matches!(problem, GgufProblem::TooMany { .. }), "{problem:?}");
    };
    for count in [5, 1 << 40, u64::MAX] {
        too_many(Bytes::head(3, count, 0).raw(&[0; 64]));
        too_many(Bytes::head(3, 0, count).raw(&[0; 20]));
        let array = Bytes::head(3, 0, 1).key("k", GgufValueType::Array);
        for ty in [GgufValueType::U64, GgufValueType::String, GgufValueType::Array] {
            too_many(array.clone().array(ty, count).raw(&[0; 8]));
        }
    }
    for length in [9, 1 << 40, u64::MAX] {
        let problem = Bytes::head(3, 0, 1).u64(length).raw(b"12345678").problem();
        assert!(
            matches!(problem, GgufProblem::Truncated { needed, left: 8, .. } if needed == length),
            "{problem:?}"
        );
    }
}

#[test]
fn invalid_keys_are_rejected() {
    let twice =
        Bytes::head(3, 0, 2).key("k", GgufValueType::U8).raw(&[1]).key("k", GgufValueType::U8).raw(&[1]);
    assert_eq!(twice.problem(), GgufProblem::Repeated { what: "key", name: "k".into() });
    let unknown = Bytes::head(3, 0, 1).str("k").u32(13).u64(0);
    assert_eq!(unknown.problem(), GgufProblem::UnknownValueType { key: "k".into(), id: 13 });
    let not_text = Bytes::head(3, 0, 1).u64(1).raw(&[0xff]).u32(0).raw(&[0; 9]);
    assert!(matches!(not_text.problem(), GgufProblem::NotUtf8 { what: "key", .. }));
    let mut deep = Bytes::head(3, 0, 1).key("k", GgufValueType::Array);
    for _ in 0..100_000 {
        deep = deep.array(GgufValueType::Array, 1);
    }
    assert!(matches!(deep.problem(), GgufProblem::TooDeep { .. }));
    for alignment in [0, 3, 1 << 31] {
        let file = Bytes::head(3, 0, 1).key("general.alignment", GgufValueType::U32).u32(alignment);
        assert!(matches!(file.read(), Err(Error::InvalidValue { key, .. }) if key == "general.alignment"));
    }
}

#[test]
fn invalid_tensors_are_rejected() {
    let one =
        |dims: &[u64], ty, offset| Bytes::head(3, 1, 0).tensor("t", dims, ty, offset).data(64).problem();
    for dims in [&[0][..], &[4, 0], &[u64::MAX, 2], &[1 << 32, 1 << 32], &[1 << 62]] {
        assert!(matches!(one(dims, 0, 0), GgufProblem::Shape { .. }), "{dims:?}");
    }
    assert!(matches!(one(&[33], 8, 0), GgufProblem::Shape { .. }));
    assert!(matches!(one(&[1; 5], 0, 0), GgufProblem::TooMany { got: 5, limit: 4, .. }));
    assert!(matches!(one(&[], 0, 0), GgufProblem::TooMany { got: 0, .. }));
    assert_eq!(one(&[1], 5, 0), GgufProblem::UnknownTensorType { tensor: "t".into(), id: 5 });
    assert!(matches!(one(&[1], 0, 4), GgufProblem::Misaligned { .. }));
    for offset in [64, 1 << 40, u64::MAX - 31] {
        assert!(matches!(one(&[1], 0, offset), GgufProblem::OutsideFile { .. }), "{offset}");
    }
    assert!(matches!(one(&[17], 0, 0), GgufProblem::OutsideFile { bytes: 68, left: 64, .. }));
    let two = |first: &str, second: &str, offset| {
        Bytes::head(3, 2, 0).tensor(first, &[9], 0, 0).tensor(second, &[1], 0, offset).data(64).problem()
    };
    assert_eq!(two("a", "a", 32), GgufProblem::Repeated { what: "tensor", name: "a".into() });
    assert_eq!(two("a", "b", 32), GgufProblem::Overlap { first: "a".into(), second: "b".into() });
    assert_eq!(two("a", "b", 0), GgufProblem::Overlap { first: "a".into(), second: "b".into() });
}
