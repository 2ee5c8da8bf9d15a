//! Invalid encoder settings, folders without an encoder, and progress of a load.

use lm_media::Audio;
use lm_model::{Error, LoadOptions, LoadPhase, ModelFolder, WeightFormat};
use serde_json::{Value, json};

use crate::audio::golden::Golden;
use crate::golden_folder::{GoldenFolder, loaded};

fn with_setting(folder: &str, file: &str, pointer: &str, value: &Value) -> ModelFolder {
    GoldenFolder::read("audio", folder).with_setting(file, pointer, value)
}

type Case = (&'static str, &'static str, String, Value, &'static str);

fn granite_speech() -> impl Iterator<Item = Case> {
    let config = [
        ("encoder_config/num_layers", json!(1025), "1 to 1024"),
        ("encoder_config/num_layers", json!(4), "no tensor encoder.layers.3"),
        ("encoder_config/hidden_dim", json!(0), "1 to 131072"),
        ("encoder_config/hidden_dim", json!(25), "encoder_config.hidden_dim = 25"),
        ("encoder_config/input_dim", json!(42), "half of encoder_config.input_dim = 42"),
        ("encoder_config/num_heads", json!(0), "1 to 128"),
        ("encoder_config/dim_head", json!(1 << 20), "1 to 4096"),
        ("encoder_config/context_size", json!(24), "1 to 23"),
        ("encoder_config/max_pos_emb", json!(24), "expected [49, 10]"),
        ("encoder_config/feedforward_mult", json!(1_u64 << 40), "1 to 64"),
        ("encoder_config/conv_kernel_size", json!(6), "expected [48, 1, 6]"),
        ("encoder_config/conv_expansion_factor", json!(65), "1 to 64"),
        ("encoder_config/output_dim", json!(10), "expected [10, 24]"),
        ("window_size", json!(0), "1 to 256"),
        ("window_size", json!(9), "a multiple of downsample_rate = 2"),
        ("downsample_rate", json!(3), "`projector_downsample_rate` is 2, supported: 3"),
        ("projector_config/model_type", json!("perceiver"), "supported: blip_2_qformer"),
        ("projector_config/num_attention_heads", json!(3), "a divisor of hidden_size = 20"),
        ("projector_config/encoder_hidden_size", json!(20), "encoder_config.hidden_dim = 24"),
        ("projector_config/cross_attention_frequency", json!(0), "1 to 1024"),
        ("projector_config/layer_norm_eps", json!(-1.0), "0.0 to 1.0"),
        ("projector_config/hidden_act", json!("swishy"), "gelu_pytorch_tanh"),
        ("projector_config", json!([]), "config.json"),
    ];
    let extractor = [
        ("feature_size", json!(21), "half of encoder_config.input_dim = 40"),
        ("hop_length", json!(100), "supported: 160"),
        ("n_fft", json!(400), "supported: 512"),
        ("win_length", json!(512), "supported: 400"),
        ("sampling_rate", json!(8000), "supported: 16000"),
        ("projector_window_size", json!(15), "supported: 6"),
    ];
    let of = |file: &'static str| {
        move |(key, value, expected)| ("granite-speech-tiny", file, format!("/{key}"), value, expected)
    };
    config.map(of("config.json")).into_iter().chain(extractor.map(of("preprocessor_config.json")))
}

#[test]
fn invalid_encoder_settings_are_errors() {
    let gemma4 = [
        ("num_hidden_layers", json!(1 << 30), "1 to 1024"),
        ("num_hidden_layers", json!(3), "no tensor model.audio_tower.layers.2"),
        ("hidden_size", json!(1_u64 << 40), "2 to 131072"),
        ("hidden_size", json!(25), "a multiple of 2"),
        ("num_attention_heads", json!(5), "num_attention_heads = 5"),
        ("num_attention_heads", json!(0), "1 to 128"),
        ("hidden_act", json!("swishy"), "gelu_pytorch_tanh"),
        ("subsampling_conv_channels", json!([16]), "config.json"),
        ("subsampling_conv_channels", json!([0, 6]), "4 to 512"),
        ("subsampling_conv_channels", json!([24, 6]), "a size with 6 bands"),
        ("conv_kernel_size", json!(0), "1 to 256"),
        ("conv_kernel_size", json!(7), "expected [24, 1, 7]"),
        ("attention_chunk_size", json!(0), "1 to 256"),
        ("attention_context_left", json!(1), "2 to 256"),
        ("attention_context_right", json!(-1), "config.json"),
        ("attention_logit_cap", json!(0.0), "0.001 to 1000.0"),
        ("attention_invalid_logits_value", json!(-5.0), "supported: -1e4 and less"),
        ("rms_norm_eps", json!(-1.0), "`audio_config.rms_norm_eps` is -1"),
        ("gradient_clipping", json!(0.0), "`audio_config.gradient_clipping` is 0"),
        ("residual_weight", json!(1e300), "`audio_config.residual_weight` is"),
        ("output_proj_dims", json!(21), "expected [21, 24]"),
        ("use_clipped_linears", json!(true), "input_min"),
    ]
    .map(|(key, value, expected)| {
        ("gemma4-tiny", "config.json", format!("/audio_config/{key}"), value, expected)
    });
    let extractor = [
        ("feature_size", json!(24), "a size with 4 bands"),
        ("frame_length_ms", json!(0), "5 to 100"),
        ("frame_length_ms", json!(30), "`frame_length` is 320, supported: 480"),
        ("hop_length", json!(100), "supported: 160"),
        ("sampling_rate", json!(8000), "supported: 16000"),
        ("fft_overdrive", json!(true), "supported: false"),
        ("preemphasis", json!(0.97), "supported: 0"),
        ("dither", json!(0.1), "supported: 0"),
        ("input_scale_factor", json!(2), "supported: 1"),
        ("per_bin_mean", json!([0.0]), "supported: null"),
    ]
    .map(|(key, value, expected)| {
        ("gemma4-tiny", "processor_config.json", format!("/feature_extractor/{key}"), value, expected)
    });
    let cases = gemma4.into_iter().chain(extractor);
    for (folder, file, pointer, value, expected) in cases.chain(granite_speech()) {
        let error = loaded(&with_setting(folder, file, &pointer, &value)).err();
        let error = error.unwrap_or_else(|| panic!("{folder} {pointer}: {value} loads"));
        assert!(error.to_string().contains(expected), "{folder} {pointer}: {value}: {error}");
    }
}

/// Feature settings that the encoder does not depend on are checked with the first audio clip.
#[test]
fn invalid_preprocessing_is_an_audio_error() {
    for (key, value) in
        [("max_frequency", json!(9000)), ("min_frequency", json!(-1)), ("mel_floor", json!(0))]
    {
        let pointer = format!("/feature_extractor/{key}");
        let model = loaded(&with_setting("gemma4-tiny", "processor_config.json", &pointer, &value)).unwrap();
        let audio = Audio::from_samples(vec![0.5; 4000]).unwrap();
        let error = model.audio.unwrap().encode(&audio).unwrap_err();
        assert!(matches!(error, Error::Media(_)), "{key}: {error}");
    }
}

#[test]
fn processor_config_has_priority() {
    let folder = GoldenFolder::read("audio", "gemma4-tiny");
    let older = ("preprocessor_config.json".to_owned(), json!({"feature_size": 24}).to_string().into_bytes());
    let mut files = folder.files();
    files.push(older);
    assert!(loaded(&folder.in_memory(files.clone())).unwrap().audio.is_some());
    files.retain(|(name, _)| name != "processor_config.json");
    let error = loaded(&folder.in_memory(files)).err().unwrap().to_string();
    assert!(error.starts_with("preprocessor_config.json: `feature_size` is 24"), "{error}");
}

#[test]
fn model_loads_without_an_unknown_or_empty_audio_part() {
    let unknown = with_setting("gemma4-tiny", "config.json", "/model_type", &json!("hearing"));
    let model = loaded(&unknown).unwrap();
    assert!(model.audio.is_none() && model.vision.is_none());
    let folder = GoldenFolder::read("vision", "gemma4-tiny");
    let audio = folder.with_setting("config.json", "/audio_config", &json!({"hidden_size": 16}));
    let model = loaded(&audio).unwrap();
    assert!(model.audio.is_none() && model.vision.is_some());
}

#[test]
fn quantised_decoder_keeps_a_float_encoder() {
    for golden in Golden::all() {
        let folder = ModelFolder::open(&golden.path).unwrap();
        let footprint = folder.footprint().unwrap();
        let audio = golden.json.audios[1].audio();
        let rows = |format| {
            let options = LoadOptions { quantization: format, ..LoadOptions::default() };
            let loaded = folder.load(&options, &mut |_| {}).unwrap();
            let (said, is) = (footprint.weight_bytes(format), loaded.model.info().weight_bytes);
            assert!(said.abs_diff(is) <= is / 50, "{} {format:?}: {said}, it is {is}", golden.name());
            loaded.audio.unwrap().encode(&audio).unwrap().rows
        };
        assert_eq!(rows(None), rows(Some(WeightFormat::Q8)), "{}", golden.name());
    }
}

#[test]
fn progress_includes_the_encoders() {
    for golden in Golden::all() {
        let folder = ModelFolder::open(&golden.path).unwrap();
        let mut reports = Vec::new();
        folder.load(&LoadOptions::default(), &mut |report| reports.push(report)).unwrap();
        let weights: Vec<_> = reports.iter().filter(|report| report.phase == LoadPhase::Weights).collect();
        assert!(weights.is_sorted_by_key(|report| report.done_bytes), "{}", golden.name());
        assert!(
            weights.iter().all(|report| report.total_bytes == weights[0].total_bytes),
            "{}",
            golden.name()
        );
        let last = weights.last().unwrap();
        assert_eq!(last.done_bytes, last.total_bytes, "{}", golden.name());
    }
}
