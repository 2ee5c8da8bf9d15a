//! Audit log of calls.

use super::{CallRequest, Decision, Hook};
use crate::steps::{AgentStep, CallOutcome};
use crate::tool_error::ToolErrorKind;
use jiff::Timestamp;
use lm_template::{Map, Value};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Audit log: a line of JSON for each call, with any outcome. See [`AuditEntry`].
///
/// A line is written when the call has its result, in one write, and flushed. After a failed write, no
/// further call runs: the turn ends with [`Decision::Stop`].
///
/// ```
/// # use lm_tools::testing::{ScriptedReply, scripted_engine};
/// # use lm_tools::{Agent, ToolSpec, Toolset};
/// # use serde_json::json;
/// # let engine = scripted_engine([ScriptedReply::call("roll", json!({})), ScriptedReply::text("It is a 4.")]);
/// # let spec = ToolSpec::new("roll", "Rolls a die.", json!({"type": "object", "properties": {}}));
/// # let tools = Toolset::new().with_fn(spec, |_| Ok(4.into()))?;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("calls.jsonl");
/// use lm_tools::{Audit, AuditEntry, CallOutcome};
///
/// let mut agent = Agent::builder(&engine, tools).hook(Audit::append(&path)?).build()?;
/// agent.run("Roll.")?;
/// let entry: AuditEntry = serde_json::from_str(&std::fs::read_to_string(&path)?)?;
/// assert_eq!((entry.name.as_str(), entry.outcome, entry.result_bytes), ("roll", CallOutcome::Ran, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Audit {
    log: Mutex<Log>,
}

struct Log {
    out: Box<dyn Write + Send>,
    /// Error of the last line.
    failed: Option<io::Error>,
}

/// Line of an [`Audit`] log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// Time of the line, in RFC 3339.
    pub time: String,
    /// Id of the call.
    pub id: Option<String>,
    /// The tool.
    pub name: String,
    /// The model's arguments. Changed arguments are in the outcome.
    pub arguments: Map<String, Value>,
    /// Decision on the call, and its handling.
    pub outcome: CallOutcome,
    /// True if approval was requested: the outcome is the answer.
    #[serde(default)]
    pub asked: bool,
    /// Kind of the error; `None` if the call succeeded.
    pub error: Option<ToolErrorKind>,
    /// Bytes of the result, as the model reads it.
    pub result_bytes: usize,
    /// SHA-256 of the result's bytes, in hexadecimal.
    pub result_sha256: String,
    /// Milliseconds from the start of the call to its result; 0 for a call that did not run.
    pub elapsed_ms: u64,
}

impl Audit {
    /// Writes the log to `out`.
    pub fn new(out: impl Write + Send + 'static) -> Self {
        Self { log: Mutex::new(Log { out: Box::new(out), failed: None }) }
    }

    /// Appends the log to a file, creating it if needed. Several agents and programs may append to one file.
    /// An unterminated last line, as after a crash, is terminated first, so that it is not joined with the
    /// next one.
    ///
    /// # Errors
    /// When the file cannot be opened for reading and writing, or its last line cannot be terminated.
    pub fn append(path: impl AsRef<Path>) -> io::Result<Self> {
        let mut file = OpenOptions::new().create(true).read(true).append(true).open(path)?;
        if is_cut(&mut file)? {
            file.write_all(b"\n")?;
        }
        Ok(Self::new(file))
    }
}

/// Returns true if the last line of a file is unterminated.
fn is_cut(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

impl From<&AgentStep> for AuditEntry {
    fn from(step: &AgentStep) -> Self {
        let result = step.result.content.text_with_notes();
        Self {
            time: Timestamp::now().to_string(),
            id: step.call.id.clone(),
            name: step.call.name.clone(),
            arguments: step.call.arguments.clone(),
            outcome: step.outcome.clone(),
            asked: step.asked,
            error: step.error,
            result_bytes: result.len(),
            result_sha256: Sha256::digest(&result).iter().map(|byte| format!("{byte:02x}")).collect(),
            elapsed_ms: step.elapsed_ms,
        }
    }
}

impl Hook for Audit {
    fn before_call(&self, _: &CallRequest<'_>) -> Decision {
        match &self.log.lock().unwrap_or_else(PoisonError::into_inner).failed {
            Some(error) => Decision::Stop(format!("the audit log cannot be written: {error}")),
            None => Decision::Run,
        }
    }

    fn record(&self, step: &AgentStep) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let written =
            serde_json::to_vec(&AuditEntry::from(step)).map_err(io::Error::from).and_then(|mut line| {
                line.push(b'\n');
                log.out.write_all(&line)?;
                log.out.flush()
            });
        if let Err(error) = written {
            tracing::error!(%error, tool = step.call.name, "the audit log cannot be written");
            log.failed = Some(error);
        }
    }
}

impl fmt::Debug for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Audit").finish_non_exhaustive()
    }
}
