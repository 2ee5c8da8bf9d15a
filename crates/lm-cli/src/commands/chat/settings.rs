//! Settings of a chat that `/set` changes.

use anyhow::{Result, anyhow, bail};
use clap::ValueEnum;
use lm_conversation::{Overflow, ThinkingMode, TurnOptions};
use lm_session::SamplerParams;

use crate::args::{OverflowArg, numbers};
use crate::screen::{Reasoning, Screen};
use crate::suggestion::did_you_mean;

/// Settings of the next turns.
#[derive(Clone)]
pub struct Settings {
    pub sampler: SamplerParams,
    pub max_tokens: Option<usize>,
    /// Further options, which `/set` changes in part.
    pub turn: TurnOptions,
    /// Display of token counts and speed after each turn.
    pub stats: bool,
}

/// Names of the settings, in alphabetical order, with the values they take.
pub const NAMES: [(&str, &str); 13] = [
    ("frequency-penalty", "X"),
    ("hide-thinking", "on|off"),
    ("max-tokens", "N, or off"),
    ("min-p", "P"),
    ("overflow", "error|drop-oldest|sliding-window"),
    ("presence-penalty", "X"),
    ("repetition-penalty", "X"),
    ("seed", "N, or random"),
    ("stats", "on|off"),
    ("temperature", "T"),
    ("thinking", "on|off|default"),
    ("top-k", "K"),
    ("top-p", "P"),
];

impl Settings {
    /// Options of a turn, with a seed that differs by `regenerated`, or a drawn one, which all replies of the
    /// turn share.
    ///
    /// # Errors
    /// When no seed can be drawn.
    pub fn options(&self, regenerated: u64) -> Result<TurnOptions> {
        let seed = self.sampler.seed.map(|seed| seed.wrapping_add(regenerated));
        Ok(TurnOptions {
            sampler: Some(SamplerParams { seed, ..self.sampler.clone() }.seeded()?),
            max_output_tokens: self.max_tokens,
            ..self.turn.clone()
        })
    }

    /// Handling of a conversation that exceeds the context.
    pub fn overflow(&self) -> Overflow {
        self.turn.overflow.unwrap_or(Overflow::Error)
    }

    /// Sets the setting `name`.
    ///
    /// # Errors
    /// When there is none of this name, or the value is invalid.
    pub fn set(&mut self, name: &str, value: &str, screen: &mut Screen) -> Result<()> {
        let sampler = &mut self.sampler;
        let set = |field: &mut f32, parsed: Result<f32, String>| parsed.map(|value| *field = value);
        let parsed = match name {
            "temperature" => set(&mut sampler.temperature, numbers::non_negative(value)),
            "top-p" => set(&mut sampler.top_p, numbers::probability(value)),
            "min-p" => set(&mut sampler.min_p, numbers::probability(value)),
            "repetition-penalty" => set(&mut sampler.repetition_penalty, numbers::positive(value)),
            "presence-penalty" => set(&mut sampler.presence_penalty, numbers::finite(value)),
            "frequency-penalty" => set(&mut sampler.frequency_penalty, numbers::finite(value)),
            "top-k" => numbers::at_least_zero(value).map(|k| sampler.top_k = k),
            "seed" if value == "random" => {
                sampler.seed = None;
                Ok(())
            }
            "seed" => numbers::seed(value).map(|seed| sampler.seed = Some(seed)),
            "max-tokens" if value == "off" => {
                self.max_tokens = None;
                Ok(())
            }
            "max-tokens" => numbers::at_least_one(value).map(|n| self.max_tokens = Some(n)),
            "overflow" => {
                OverflowArg::from_str(value, false).map(|arg| self.turn.overflow = Some(arg.into()))
            }
            "stats" => switch(value).map(|on| self.stats = on),
            "hide-thinking" => switch(value)
                .map(|on| screen.set_reasoning(if on { Reasoning::Hidden } else { Reasoning::Shown })),
            "thinking" => thinking(value).map(|mode| self.turn.thinking.mode = mode),
            _ => {
                let names = NAMES.map(|(name, _)| name);
                let meant = did_you_mean(name, names.into_iter(), "");
                bail!("there is no setting `{name}`{meant}; the settings are {}", names.join(", "))
            }
        };
        parsed.map_err(|expected| anyhow!("{name} is `{value}`: {expected}"))
    }

    /// Value of the setting `name`, as [`set`](Self::set) takes it.
    pub fn get(&self, name: &str, screen: &Screen) -> String {
        let sampler = &self.sampler;
        match name {
            "temperature" => sampler.temperature.to_string(),
            "top-p" => sampler.top_p.to_string(),
            "min-p" => sampler.min_p.to_string(),
            "repetition-penalty" => sampler.repetition_penalty.to_string(),
            "presence-penalty" => sampler.presence_penalty.to_string(),
            "frequency-penalty" => sampler.frequency_penalty.to_string(),
            "top-k" => sampler.top_k.to_string(),
            "seed" => sampler.seed.map_or("random".to_owned(), |seed| seed.to_string()),
            "max-tokens" => self.max_tokens.map_or("off".to_owned(), |n| n.to_string()),
            "overflow" => match self.overflow() {
                Overflow::Error => "error",
                Overflow::DropOldest(_) => "drop-oldest",
                Overflow::SlidingWindow => "sliding-window",
            }
            .to_owned(),
            "stats" => on_off(self.stats).to_owned(),
            "hide-thinking" => on_off(screen.reasoning_display() == Reasoning::Hidden).to_owned(),
            "thinking" => match self.turn.thinking.mode {
                ThinkingMode::On => "on",
                ThinkingMode::Off => "off",
                ThinkingMode::Default => "default",
            }
            .to_owned(),
            _ => String::new(),
        }
    }
}

fn switch(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("expected on or off".to_owned()),
    }
}

fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

fn thinking(text: &str) -> Result<ThinkingMode, String> {
    match text {
        "default" => Ok(ThinkingMode::Default),
        text => switch(text)
            .map(|on| if on { ThinkingMode::On } else { ThinkingMode::Off })
            .map_err(|_| "expected on, off or default".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::CallsTo;

    #[test]
    fn settings_round_trip() {
        let mut screen = Screen::new(CallsTo::Notes, false);
        let mut settings = Settings {
            sampler: SamplerParams::default(),
            max_tokens: None,
            turn: TurnOptions::default(),
            stats: false,
        };
        for (name, values) in NAMES {
            let value = match values {
                "X" | "P" | "T" => "0.5",
                "N" | "K" | "N, or off" | "N, or random" => "7",
                "error|drop-oldest|sliding-window" => "drop-oldest",
                _ => "on",
            };
            settings.set(name, value, &mut screen).expect("is valid");
            assert_eq!(settings.get(name, &screen), value, "{name}");
            assert!(settings.set(name, "x", &mut screen).is_err(), "{name}");
        }
        assert!(settings.set("temperature", "-1", &mut screen).is_err());
        assert!(
            settings.set("speed", "1", &mut screen).is_err_and(|error| error.to_string().contains("top-p"))
        );
        let options = settings.options(2).expect("a seed is given");
        assert_eq!(options.sampler.and_then(|sampler| sampler.seed), Some(9));
        settings.set("seed", "random", &mut screen).expect("is valid");
        let seed = || settings.options(0).expect("a seed is drawn").sampler.and_then(|sampler| sampler.seed);
        assert!(settings.get("seed", &screen) == "random" && seed().is_some() && seed() != seed());
        assert_eq!(options.max_output_tokens, Some(7));
    }
}
