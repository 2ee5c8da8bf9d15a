//! Chat template in place of the model's.

use std::fs::File;
use std::io::Read;

use anyhow::{Context, Result, bail, ensure};
use lm_model::{ChatTemplateSource, ModelFolder};
use lm_template::{ChatTemplates, PromptTemplate, TemplateChoice};

/// Templates of families, by name.
const FAMILIES: [(&str, &str); 7] = [
    ("alpaca", include_str!("templates/alpaca.jinja")),
    ("chatml", include_str!("templates/chatml.jinja")),
    ("gemma", include_str!("templates/gemma.jinja")),
    ("llama3", include_str!("templates/llama3.jinja")),
    ("mistral", include_str!("templates/mistral.jinja")),
    ("phi3", include_str!("templates/phi3.jinja")),
    ("vicuna", include_str!("templates/vicuna.jinja")),
];

/// Name of the file that takes precedence over all others.
const FILE: &str = "chat_template.jinja";

/// Files that name the special tokens of a template.
const TOKENS: [&str; 2] = ["tokenizer_config.json", "special_tokens_map.json"];

/// Largest file of a template, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Option of a chat template.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct TemplateArgs {
    /// Chat template in place of the model's: a Jinja file, or alpaca, chatml, gemma, llama3, mistral, phi3
    /// or vicuna. alpaca and vicuna need no special tokens, as for a base model
    #[arg(long, value_name = "FILE|FAMILY")]
    chat_template: Option<String>,
}

impl TemplateArgs {
    /// The template in place of that of a model; `None` without the option.
    ///
    /// # Errors
    /// When it is neither a family nor a file that can be read; when it does not compile.
    pub fn of(&self, folder: &ModelFolder) -> Result<Option<PromptTemplate>> {
        if self.chat_template.is_none() {
            return Ok(None);
        }
        let files = self.files(folder)?.unwrap_or_default();
        let templates = ChatTemplates::from_files(files.iter())?;
        Ok(Some(templates.get(TemplateChoice::Default).context("--chat-template")?))
    }

    /// The files that define the template of a model, with this one in place of its own.
    ///
    /// # Errors
    /// As [`of`](Self::of), but for a template that does not compile.
    pub fn files(&self, folder: &ModelFolder) -> Result<Option<ChatTemplateSource>> {
        let own = folder.chat_template()?;
        let Some(name) = &self.chat_template else { return Ok(own) };
        let mut files = vec![(FILE.to_owned(), source(name)?.into_bytes())];
        let own = own.unwrap_or_default().files.into_iter();
        files.extend(own.filter(|(name, _)| TOKENS.contains(&name.as_str())));
        Ok(Some(ChatTemplateSource { files }))
    }
}

/// Source of the template of a family, or of a file.
fn source(name: &str) -> Result<String> {
    if let Some((_, source)) = FAMILIES.iter().find(|(family, _)| *family == name) {
        return Ok((*source).to_owned());
    }
    let option = || format!("--chat-template {name}");
    let file = match File::open(name) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let families = FAMILIES.map(|(family, _)| family).join(", ");
            bail!("{}: there is no such file; the families are {families}", option());
        }
        Err(error) => return Err(error).with_context(option),
    };
    let mut text = String::new();
    let len = file.take(MAX_BYTES + 1).read_to_string(&mut text).with_context(option)?;
    ensure!(len as u64 <= MAX_BYTES, "{}: it has more than {MAX_BYTES} bytes", option());
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lm_template::{GenerationPrompt, Map, RenderInput, Value};
    use serde_json::json;

    #[test]
    fn families_render_a_conversation() {
        let said = [("system", "Be brief."), ("user", "One?"), ("assistant", "Two."), ("user", "Three?")];
        let messages = said.map(|(role, content)| json!({"role": role, "content": content}));
        let tokens = [("bos_token", "<s>"), ("eos_token", "</s>")];
        for (family, expected) in [
            (
                "alpaca",
                "Be brief.\n\n### Instruction:\nOne?\n\n### Response:\nTwo.</s>\n\n### Instruction:\nThree?\n\n### Response:\n",
            ),
            (
                "chatml",
                "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nOne?<|im_end|>\n<|im_start|>assistant\nTwo.<|im_end|>\n<|im_start|>user\nThree?<|im_end|>\n<|im_start|>assistant\n",
            ),
            (
                "gemma",
                "<s><start_of_turn>user\nBe brief.\n\nOne?<end_of_turn>\n<start_of_turn>model\nTwo.<end_of_turn>\n<start_of_turn>user\nThree?<end_of_turn>\n<start_of_turn>model\n",
            ),
            (
                "llama3",
                "<s><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nOne?<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nTwo.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nThree?<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
            ),
            ("mistral", "<s>[INST] Be brief.\n\nOne? [/INST] Two.</s>[INST] Three? [/INST]"),
            (
                "phi3",
                "<|system|>\nBe brief.<|end|>\n<|user|>\nOne?<|end|>\n<|assistant|>\nTwo.<|end|>\n<|user|>\nThree?<|end|>\n<|assistant|>\n",
            ),
            ("vicuna", "Be brief.\n\nUSER: One?\nASSISTANT: Two.</s>\nUSER: Three?\nASSISTANT:"),
        ] {
            let context = tokens.map(|(name, token)| (name.to_owned(), token.into())).into_iter().collect();
            let template = PromptTemplate::new(&source(family).expect("a family")).expect("compiles");
            let input = RenderInput {
                messages: &messages,
                tools: &Value::Null,
                generation_prompt: GenerationPrompt::Add,
                extra_context: &Map::new(),
            };
            let prompt = template.with_context(context).render(&input).expect("renders");
            let text: String = prompt.segments.iter().map(|segment| segment.text.as_str()).collect();
            assert_eq!(text, expected, "{family}");
        }
    }

    #[test]
    fn neither_family_nor_file_is_an_error() {
        let error = source("chatlm").expect_err("is none").to_string();
        assert!(error.contains("the families are alpaca, chatml, "), "{error}");
        let folder = tempfile::tempdir().expect("a folder");
        assert!(source(folder.path().to_str().expect("text")).is_err());
        let large = folder.path().join("large");
        std::fs::write(&large, " ".repeat(MAX_BYTES as usize + 1)).expect("can be written");
        let error = source(large.to_str().expect("text")).expect_err("is too large").to_string();
        assert!(error.contains("more than 1048576 bytes"), "{error}");
    }
}
