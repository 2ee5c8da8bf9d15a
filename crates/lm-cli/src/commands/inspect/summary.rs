//! Properties of a model folder, and their formatting.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use anyhow::Result;
use lm_model::{
    ChatTemplateSource, GenerationConfig, ModelConfig, ModelFolder, ModelOutput, Parameters, Pooling,
    TensorInfo,
};
use lm_session::SamplerParams;
use lm_template::{Capabilities, ChatTemplates, TemplateChoice};
use lm_tokenizer::Tokenizer;
use serde_json::{Value, json};

use super::memory::MemoryTable;
use crate::{events, model, size};

/// All properties that `lm inspect` shows.
pub struct Summary {
    name: String,
    /// Name in a GGUF file, `general.name`.
    stored_name: Option<String>,
    config: ModelConfig,
    parameters: Parameters,
    tensors: Vec<TensorInfo>,
    tokenizer: Tokenizer,
    generation: GenerationConfig,
    template: Option<Template>,
    output: ModelOutput,
    /// Pooling of an embedding model.
    pooling: Option<Pooling>,
    licence: Option<String>,
    memory: MemoryTable,
    /// Images and audio that the model reads beside text.
    reads: [bool; 2],
    /// GGUF file with the vision encoder of a GGUF model.
    projector: Option<String>,
    /// Bytes of all files.
    file_bytes: u64,
}

struct Template {
    capabilities: Capabilities,
    dialect: &'static str,
    /// Further templates by name.
    named: Vec<String>,
}

impl Template {
    /// Capabilities of the folder's template; `None` if the folder has no template.
    fn of(source: &ChatTemplateSource, model_name: &str) -> Result<Option<Self>> {
        let templates = ChatTemplates::from_files(source.iter())?;
        if templates.names().next().is_none() {
            return Ok(None);
        }
        let template = templates.get(TemplateChoice::Default)?;
        Ok(Some(Self {
            capabilities: Capabilities::of(&template),
            dialect: lm_processors::detect(template.source(), model_name).name(),
            named: templates.names().filter(|name| *name != "default").map(str::to_owned).collect(),
        }))
    }

    fn abilities(&self) -> [(&'static str, bool); 6] {
        let can = &self.capabilities;
        [
            ("system", can.system),
            ("tools", can.tools || can.tools_variable.is_some()),
            ("tool_calls", can.tool_calls),
            ("parallel_tool_calls", can.parallel_tool_calls),
            ("tool_results", can.tool_results),
            ("thinking_switch", can.thinking.is_some()),
        ]
    }
}

/// Tensors that differ only in the layer's number.
#[derive(Default)]
struct Group {
    layers: usize,
    bytes: usize,
}

impl Summary {
    /// Reads the folder, opened at `path`; the embedded one without. `source` defines its chat template.
    pub fn read(
        folder: &ModelFolder,
        path: Option<&Path>,
        source: Option<ChatTemplateSource>,
    ) -> Result<Self> {
        let tensors = folder.tensors()?;
        let output = folder.output()?;
        let is_embedding = output == ModelOutput::HiddenStates;
        let pooling =
            is_embedding.then(|| Ok::<_, anyhow::Error>(folder.embedding_config()?.pooling)).transpose()?;
        let weight_files: BTreeSet<_> = tensors.iter().map(|tensor| tensor.file.as_str()).collect();
        Ok(Self {
            file_bytes: model::file_bytes(path, weight_files.into_iter())?,
            name: folder.name().to_owned(),
            stored_name: folder.stored_name()?,
            config: folder.config()?,
            parameters: folder.parameters()?,
            tensors,
            tokenizer: folder.tokenizer()?,
            generation: folder.generation_config()?,
            template: source.map_or(Ok(None), |source| Template::of(&source, folder.name()))?,
            output,
            pooling,
            licence: folder.licence()?,
            memory: MemoryTable::of(&folder.footprint()?),
            reads: [folder.reads_images()?, folder.reads_audio()?],
            projector: folder.projector_file().map(str::to_owned),
        })
    }

    /// Those of the names of text, images and audio that the model reads.
    fn input(&self, [text, image, audio]: [&'static str; 3]) -> Vec<&'static str> {
        let [images, audios] = self.reads;
        let media = [(images, image), (audios, audio)];
        std::iter::once(text)
            .chain(media.into_iter().filter_map(|(read, name)| read.then_some(name)))
            .collect()
    }

    fn bytes(&self) -> u64 {
        self.tensors.iter().map(|tensor| tensor.bytes as u64).sum()
    }

    fn dtypes(&self) -> BTreeMap<&str, usize> {
        let mut dtypes = BTreeMap::new();
        for tensor in &self.tensors {
            *dtypes.entry(tensor.dtype.as_str()).or_default() += tensor.bytes;
        }
        dtypes
    }

    /// Weight files, with the bytes of their tensors.
    fn files(&self) -> BTreeMap<&str, u64> {
        let mut files = BTreeMap::new();
        for tensor in &self.tensors {
            *files.entry(tensor.file.as_str()).or_default() += tensor.bytes as u64;
        }
        files
    }

    /// Groups of tensors by name (with `*` for the layer), shape and type.
    fn groups(&self) -> BTreeMap<(String, &[usize], &str), Group> {
        let mut groups: BTreeMap<_, Group> = BTreeMap::new();
        for tensor in &self.tensors {
            let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
            let parts: Vec<_> =
                tensor.name.split('.').map(|part| if is_number(part) { "*" } else { part }).collect();
            let group =
                groups.entry((parts.join("."), tensor.shape.as_slice(), tensor.dtype.as_str())).or_default();
            group.layers += 1;
            group.bytes += tensor.bytes;
        }
        groups
    }

    pub fn to_json(&self) -> Value {
        let config = &self.config;
        let tensor = |tensor: &TensorInfo| json!({"name": tensor.name, "file": tensor.file, "dtype": tensor.dtype, "shape": tensor.shape, "bytes": tensor.bytes});
        json!({
            "version": events::VERSION,
            "name": self.name,
            "general_name": self.stored_name,
            "architecture": config.model_type,
            "parameters": self.parameters.all,
            "parameters_of_token": self.parameters.of_token,
            "bytes": self.file_bytes,
            "weight_bytes": self.bytes(),
            "dtypes": self.dtypes(),
            "files": self.files(),
            "mmproj": self.projector,
            "licence": self.licence,
            "memory": self.memory.to_json(),
            "num_layers": config.num_hidden_layers,
            "hidden_size": config.hidden_size,
            "intermediate_size": config.intermediate_size,
            "num_heads": config.num_attention_heads,
            "num_kv_heads": config.num_key_value_heads.unwrap_or(config.num_attention_heads),
            "head_dim": config.head_dim,
            "input_modalities": self.input(["text", "image", "audio"]),
            "context_len": config.max_position_embeddings,
            "vocab_size": config.vocab_size,
            "tokenizer": {"tokens": self.tokenizer.vocab_size(), "end_ids": self.tokenizer.end_ids()},
            "output": match self.output {
                ModelOutput::Tokens => "tokens",
                ModelOutput::HiddenStates => "embedding",
                ModelOutput::Labels { .. } => "labels",
            },
            "generation": {
                "do_sample": self.generation.do_sample,
                "temperature": self.generation.temperature,
                "top_k": self.generation.top_k,
                "top_p": self.generation.top_p,
                "min_p": self.generation.min_p,
                "repetition_penalty": self.generation.repetition_penalty,
            },
            "template": self.template.as_ref().map(|template| json!({
                "dialect": template.dialect,
                "capabilities": BTreeMap::from(template.abilities()),
                "named": template.named,
            })),
            "tensors": self.tensors.iter().map(tensor).collect::<Vec<_>>(),
        })
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let config = &self.config;
        let kv_heads = config.num_key_value_heads.unwrap_or(config.num_attention_heads);
        writeln!(f, "{}", self.name)?;
        if let Some(name) = &self.stored_name {
            writeln!(f, "  name          {name}, in the file")?;
        }
        writeln!(f, "  architecture  {}", config.model_type)?;
        writeln!(
            f,
            "  shape         {} layers, hidden {}, intermediate {}, {} heads over {kv_heads} KV heads{}",
            config.num_hidden_layers,
            config.hidden_size,
            config.intermediate_size,
            config.num_attention_heads,
            config.head_dim.map(|dim| format!(" of {dim}")).unwrap_or_default(),
        )?;
        writeln!(f, "  context       {} tokens", config.max_position_embeddings)?;
        writeln!(f, "  input         {}", self.input(["text", "images", "audio"]).join(", "))?;
        let dtypes: Vec<_> = self
            .dtypes()
            .iter()
            .map(|(dtype, &bytes)| format!("{dtype} {}", size::format_bytes(bytes as u64)))
            .collect();
        let Parameters { all, of_token } = self.parameters;
        let millions = |count: u64| format!("{:.1} M", count as f64 / 1e6);
        let active = if of_token < all {
            format!(", {} of them for a token", millions(of_token))
        } else {
            String::new()
        };
        writeln!(
            f,
            "  weights       {}{active}, in {} tensors: {}",
            millions(all),
            self.tensors.len(),
            dtypes.join(", ")
        )?;
        for (file, bytes) in self.files() {
            writeln!(f, "                {} of them in {file}", size::format_bytes(bytes))?;
        }
        writeln!(f, "  files         {} in all", size::format_bytes(self.file_bytes))?;
        if let Some(file) = &self.projector {
            writeln!(f, "  encoder       of images in {file}, which is not counted above")?;
        }
        writeln!(f, "  licence       {}", self.licence.as_deref().unwrap_or("not said in the model's card"))?;
        self.fmt_text_side(f)?;
        write!(f, "{}", self.memory)?;
        writeln!(f, "  tensors")?;
        for ((name, shape, dtype), group) in self.groups() {
            let times = if group.layers > 1 { format!("{} x ", group.layers) } else { String::new() };
            writeln!(
                f,
                "    {times:>6}{name}  {shape:?} {dtype}, {}",
                size::format_bytes(group.bytes as u64)
            )?;
        }
        Ok(())
    }
}

fn pooling_name(pooling: Pooling) -> &'static str {
    match pooling {
        Pooling::Mean => "mean",
        Pooling::Last => "last token",
        Pooling::Cls => "first token",
    }
}

impl Summary {
    /// Tokenizer, and the output: sampling and template, pooling or labels.
    fn fmt_text_side(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let output = match self.output {
            ModelOutput::Tokens => return self.fmt_generation(f),
            ModelOutput::HiddenStates => {
                format!("embeddings, {} pooling", pooling_name(self.pooling.unwrap_or_default()))
            }
            ModelOutput::Labels { count: 1, .. } => "a score of a pair of texts, for `lm rerank`".to_owned(),
            ModelOutput::Labels { count, .. } => format!("{count} labels"),
        };
        writeln!(f, "  tokenizer     {} tokens", self.tokenizer.vocab_size())?;
        writeln!(f, "  output        {output}")
    }

    /// Tokenizer, sampling and template of a model that generates text.
    fn fmt_generation(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ends: Vec<_> = self.tokenizer.end_ids().iter().map(|&id| self.shown_token(id)).collect();
        writeln!(
            f,
            "  tokenizer     {} tokens, a reply ends with {}",
            self.tokenizer.vocab_size(),
            ends.join(" or ")
        )?;
        let sampling = match (self.generation.do_sample, self.generation.temperature) {
            (Some(true), temperature) => format!("sampled, temperature {}", temperature.unwrap_or(1.0)),
            _ if !self.generation.is_recommended && self.template.is_some() => {
                let SamplerParams { temperature, top_p, min_p, .. } =
                    SamplerParams::for_chat(&self.generation);
                format!(
                    "the file has no sampling settings: a chat samples with temperature {temperature}, top-p \
                     {top_p}, min-p {min_p}"
                )
            }
            _ => "greedy".to_owned(),
        };
        writeln!(f, "  generation    {sampling}")?;
        let Some(template) = &self.template else {
            return writeln!(
                f,
                "  template      none, as of a base model: `lm generate --raw` continues plain text, --chat-template names one"
            );
        };
        let list = |wanted| {
            let names =
                template.abilities().into_iter().filter(|(_, has)| *has == wanted).map(|(name, _)| name);
            let names: Vec<_> = names.collect();
            if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
        };
        writeln!(f, "  template      writes {}", list(true))?;
        if template.abilities().iter().any(|(_, has)| !has) {
            writeln!(f, "                leaves out {}", list(false))?;
        }
        if !template.named.is_empty() {
            writeln!(f, "                further templates: {}", template.named.join(", "))?;
        }
        writeln!(f, "  dialect       {}", template.dialect)
    }

    fn shown_token(&self, id: lm_tokenizer::TokenId) -> String {
        format!("{} ({id})", self.tokenizer.token_bytes(id).escape_ascii())
    }
}
