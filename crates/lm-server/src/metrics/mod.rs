//! Metrics in the text format of Prometheus.

use prometheus::core::Collector;
use prometheus::proto::MetricFamily;
use prometheus::{
    GaugeVec, HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Registry, TextEncoder,
};

use crate::models::Models;

mod engine;
mod reply;
mod requests;

pub(crate) use reply::ReplyObserver;
pub(crate) use requests::count;

/// Names under which request routers scrape the same values from vLLM.
const VLLM: [(&str, &str); 7] = [
    ("lm_requests_running", "vllm:num_requests_running"),
    ("lm_requests_waiting", "vllm:num_requests_waiting"),
    ("lm_kv_cache_usage_ratio", "vllm:kv_cache_usage_perc"),
    ("lm_kv_cache_info", "vllm:cache_config_info"),
    ("lm_prompt_tokens_total", "vllm:prompt_tokens_total"),
    ("lm_generated_tokens_total", "vllm:generation_tokens_total"),
    ("lm_time_to_first_token_seconds", "vllm:time_to_first_token_seconds"),
];

/// Upper bounds of the buckets of durations, in seconds.
const SECONDS: [f64; 16] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0];

/// Label of metrics of a model.
const MODEL: &str = "model_name";

/// Metrics of a server; clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: IntCounterVec,
    failed_replies: IntCounterVec,
    prompt_tokens: IntCounterVec,
    cached_tokens: IntCounterVec,
    generated_tokens: IntCounterVec,
    first_token: HistogramVec,
    inter_token: HistogramVec,
    duration: HistogramVec,
    running: IntGaugeVec,
    waiting: IntGaugeVec,
    cache_usage: GaugeVec,
    cache_info: IntGaugeVec,
    adapters: IntGaugeVec,
}

impl Metrics {
    pub fn new(models: &Models) -> Self {
        let registry = Registry::new();
        let counter = |name, help, labels: &[&str]| {
            register(&registry, IntCounterVec::new(Opts::new(name, help), labels))
        };
        let seconds = |name, help| {
            let options = HistogramOpts::new(name, help).buckets(SECONDS.to_vec());
            register(&registry, HistogramVec::new(options, &[MODEL]))
        };
        let gauge = |name, help, labels: &[&str]| {
            register(&registry, IntGaugeVec::new(Opts::new(name, help), labels))
        };
        let usage = Opts::new("lm_kv_cache_usage_ratio", "Part of the KV cache that requests hold, 0 to 1");
        let metrics = Self {
            requests: counter("lm_http_requests_total", "Responses by path and status", &["path", "status"]),
            failed_replies: counter(
                "lm_failed_replies_total",
                "Replies that ended in an error, by its status; 499 is a client that left",
                &[MODEL, "status"],
            ),
            prompt_tokens: counter("lm_prompt_tokens_total", "Prompt tokens of finished replies", &[MODEL]),
            cached_tokens: counter(
                "lm_cached_tokens_total",
                "Prompt tokens of finished replies that the KV cache had",
                &[MODEL],
            ),
            generated_tokens: counter("lm_generated_tokens_total", "Tokens of finished replies", &[MODEL]),
            first_token: seconds(
                "lm_time_to_first_token_seconds",
                "Time from a request to its first text or call, its wait in the queue included",
            ),
            inter_token: seconds(
                "lm_inter_token_seconds",
                "Time between two tokens, as the mean of each finished reply",
            ),
            duration: seconds("lm_request_seconds", "Time from a request to the end of its last reply"),
            running: gauge("lm_requests_running", "Requests in the batch", &[MODEL]),
            waiting: gauge("lm_requests_waiting", "Requests that wait for a place in the batch", &[MODEL]),
            cache_usage: register(&registry, GaugeVec::new(usage, &[MODEL])),
            cache_info: gauge(
                "lm_kv_cache_info",
                "Tokens of a page of the KV cache, and number of its pages",
                &[MODEL, "block_size", "num_gpu_blocks"],
            ),
            adapters: gauge(
                "vllm:lora_requests_info",
                "Adapters that requests choose: none; the value is the time, in seconds since 1970",
                &["max_lora", "running_lora_adapters", "waiting_lora_adapters"],
            ),
            registry,
        };
        metrics.begin(models);
        metrics
    }

    /// Begins the series of each model, at 0.
    fn begin(&self, models: &Models) {
        for model in models.all().iter() {
            let label = [model.name()];
            for counter in [&self.prompt_tokens, &self.cached_tokens, &self.generated_tokens] {
                counter.with_label_values(&label);
            }
            for histogram in [&self.first_token, &self.inter_token, &self.duration] {
                histogram.with_label_values(&label);
            }
        }
    }

    /// Writes all metrics.
    pub fn text(&self, models: &Models) -> prometheus::Result<String> {
        self.read_engines(models);
        let mut families = self.registry.gather();
        let named = VLLM.iter().filter_map(|(name, vllm)| renamed(&families, name, vllm));
        families.extend(named.collect::<Vec<_>>());
        TextEncoder::new().encode_to_string(&families)
    }
}

/// Copy of a family under another name.
fn renamed(families: &[MetricFamily], name: &str, to: &str) -> Option<MetricFamily> {
    let mut family = families.iter().find(|family| family.name() == name)?.clone();
    family.set_name(to.to_owned());
    Some(family)
}

fn register<C: Collector + Clone + 'static>(registry: &Registry, metric: prometheus::Result<C>) -> C {
    let metric = metric.expect("names and labels are valid");
    registry.register(Box::new(metric.clone())).expect("names are distinct");
    metric
}
