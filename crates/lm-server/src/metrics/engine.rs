//! Metrics of the engines, read on request.

use std::time::{SystemTime, UNIX_EPOCH};

use lm_session::PAGE_LEN;

use super::Metrics;
use crate::models::Models;

impl Metrics {
    /// Sets the gauges.
    pub(super) fn read_engines(&self, models: &Models) {
        self.cache_info.reset();
        for model in models.all().iter() {
            let Some(loaded) = model.loaded() else { continue };
            let (name, activity) = (model.name(), loaded.engine.activity());
            let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
            self.running.with_label_values(&[name]).set(count(activity.running_requests));
            self.waiting.with_label_values(&[name]).set(count(activity.waiting_requests));
            let used = activity.total_pages.saturating_sub(activity.free_pages) as f64;
            self.cache_usage.with_label_values(&[name]).set(used / activity.total_pages.max(1) as f64);
            let (page, pages) = (PAGE_LEN.to_string(), activity.total_pages.to_string());
            self.cache_info.with_label_values(&[name, &page, &pages]).set(1);
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        self.adapters.with_label_values(&["0", "", ""]).set(now.cast_signed());
    }
}
