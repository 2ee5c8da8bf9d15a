//! `/metrics`: values that move with requests, under our names and under those of vLLM.

use std::time::Duration;

use crate::support::{Request, Running, chat, slow_engine};
use lm_server::{ApiKeys, ServerConfig, ServerLimits};
use lm_session::EngineSettings;
use serde_json::json;

/// Value of a series; `None` if there is none.
fn value(text: &str, series: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '))?;
    Some(line.parse().unwrap_or_else(|error| panic!("{error}: {line:?}")))
}

fn metric(server: &Running, series: &str) -> Option<f64> {
    value(&server.get("/metrics").body, series)
}

/// Waits until a series has such a value.
fn wait_until(server: &Running, series: &str, is_expected: impl Fn(f64) -> bool) {
    for _ in 0..1_000 {
        if metric(server, series).is_some_and(&is_expected) {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{series} has another value:\n{}", server.get("/metrics").body);
}

fn wait_for(server: &Running, series: &str, expected: f64) {
    wait_until(server, series, |value| value == expected);
}

#[test]
fn reply_is_counted_once() {
    for stream in [false, true] {
        let whole = Running::scripted(["Hello there!"], ServerConfig::default());
        let usage = whole.send(&Request::chat(json!({}))).json()["usage"].clone();
        let server = Running::scripted(["Hello there!"], ServerConfig::default());
        assert_eq!(metric(&server, r#"lm_generated_tokens_total{model_name="fake"}"#), Some(0.0));
        assert_eq!(server.send(&Request::chat(json!({"stream": stream}))).status, 200);
        let response = server.get("/metrics");
        assert_eq!(response.header("content-type"), Some("text/plain; version=0.0.4"));
        let of = |name: &str| value(&response.body, &format!("{name}{{model_name=\"fake\"}}"));
        for (names, tokens) in [
            (["lm_prompt_tokens_total", "vllm:prompt_tokens_total"], &usage["prompt_tokens"]),
            (["lm_generated_tokens_total", "vllm:generation_tokens_total"], &usage["completion_tokens"]),
        ] {
            assert_eq!(names.map(&of), [tokens.as_f64(), tokens.as_f64()], "{names:?}");
        }
        for name in [
            "lm_time_to_first_token_seconds_count",
            "vllm:time_to_first_token_seconds_count",
            "lm_inter_token_seconds_count",
            "lm_request_seconds_count",
        ] {
            assert_eq!(of(name), Some(1.0), "{name}");
        }
        assert!(of("lm_request_seconds_sum") >= of("lm_time_to_first_token_seconds_sum"));
        let path = r#"lm_http_requests_total{path="/v1/chat/completions",status="200"}"#;
        assert_eq!(value(&response.body, path), Some(1.0));
        assert!(!response.body.contains("lm_failed_replies_total{"), "{}", response.body);
    }
}

#[test]
fn cached_prompt_tokens_are_counted() {
    let server = Running::scripted(["Hello!"; 20], ServerConfig::default());
    let message =
        json!({"role": "user", "content": "A prompt of more than one page of the cache. ".repeat(9)});
    let cached = || {
        let response = server.post("/v1/chat/completions", &json!({"messages": [message]})).json();
        response["usage"]["prompt_tokens_details"]["cached_tokens"].as_f64().expect("a count")
    };
    // The cache has a prompt when the request before it has wholly ended.
    let found = (0..20).map(|_| cached()).find(|tokens| *tokens > 0.0).expect("cached tokens");
    assert_eq!(metric(&server, r#"lm_cached_tokens_total{model_name="fake"}"#), Some(found));
}

#[test]
fn gauges_show_requests_and_cache_under_load() {
    let settings = EngineSettings { max_running_requests: 1, ..EngineSettings::default() };
    let (engine, _) = slow_engine(Duration::from_millis(20), settings);
    let server = Running::start(engine, ServerConfig::default());
    let of = |name: &str| format!("{name}{{model_name=\"fake\"}}");
    let [running, waiting] = ["vllm:num_requests_running", "vllm:num_requests_waiting"].map(of);
    let usage = of("vllm:kv_cache_usage_perc");
    assert_eq!([&running, &waiting, &usage].map(|series| metric(&server, series)), [Some(0.0); 3]);
    let streams = [(); 3].map(|()| server.open(&Request::chat(json!({"stream": true}))));
    wait_for(&server, &running, 1.0);
    wait_for(&server, &waiting, 2.0);
    wait_until(&server, &usage, |usage| usage > 0.0 && usage <= 1.0);
    drop(streams);
    for series in [running, waiting, usage] {
        wait_for(&server, &series, 0.0);
    }
    wait_for(&server, r#"lm_failed_replies_total{model_name="fake",status="499"}"#, 3.0);
}

#[test]
fn cache_size_is_an_info_metric() {
    let server = Running::scripted(["Hello!"], ServerConfig::default());
    let text = server.get("/metrics").body;
    let info = text.lines().find(|line| line.starts_with("vllm:cache_config_info{")).expect("a series");
    assert!(info.contains(&format!("block_size=\"{}\"", lm_session::PAGE_LEN)), "{info}");
    assert!(info.contains("num_gpu_blocks=\"") && !info.contains("num_gpu_blocks=\"0\""), "{info}");
    let adapters =
        r#"vllm:lora_requests_info{max_lora="0",running_lora_adapters="",waiting_lora_adapters=""}"#;
    assert!(value(&text, adapters).is_some_and(|since_1970| since_1970 > 1e9), "{text}");
}

#[test]
fn refused_and_failed_requests_are_counted_by_status() {
    let limits = ServerLimits { request_time: Duration::from_millis(300), ..ServerLimits::default() };
    let (engine, _) = slow_engine(Duration::from_millis(20), EngineSettings::default());
    let server = Running::start(engine, ServerConfig { limits, ..ServerConfig::default() });
    assert_eq!(server.post("/v1/chat/completions", &chat(json!({"temperature": -1}))).status, 400);
    assert_eq!(server.get("/nothing").status, 404);
    assert_eq!(server.get("/v1/models/a/b").status, 404);
    assert_eq!(server.send(&Request::chat(json!({"stream": true}))).status, 200);
    // The last value that a request sets.
    wait_for(&server, r#"lm_request_seconds_count{model_name="fake"}"#, 1.0);
    let text = server.get("/metrics").body;
    for (path, status) in [
        ("/v1/chat/completions", 400),
        ("other", 404),
        ("/v1/models/{*name}", 404),
        ("/v1/chat/completions", 200),
    ] {
        let series = format!("lm_http_requests_total{{path=\"{path}\",status=\"{status}\"}}");
        assert_eq!(value(&text, &series), Some(1.0), "{series}\n{text}");
    }
    assert_eq!(
        value(&text, r#"lm_failed_replies_total{model_name="fake",status="504"}"#),
        Some(1.0),
        "{text}"
    );
    let failed = text.lines().filter(|line| line.starts_with("lm_failed_replies_total{"));
    assert_eq!(failed.count(), 1, "a reply fails once:\n{text}");
}

#[test]
fn metrics_need_the_key() {
    let keys = ApiKeys::new(["secret"]).expect("a key");
    let server = Running::scripted(["Hello!"], ServerConfig { keys, ..ServerConfig::default() });
    assert_eq!(server.get("/metrics").status, 401);
    let with_key = Request::new("GET", "/metrics").header("Authorization", "Bearer secret");
    assert_eq!(server.send(&with_key).status, 200);
}
