//! Context of a call: values that a tool receives without being in its schema.

use crate::execution::Reporter;
use async_channel::Receiver;
use lm_conversation::CancelHandle;
use lm_session::caught_wakes;
use lm_template::{ToolCall, Value};
use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Instant;

/// Context of one call. A `#[tool]` function takes it as an argument of the type `&CallContext`, which is not
/// in the schema.
///
/// ```
/// use lm_tools::{CallContext, Toolset, ToolCall, tool};
///
/// /// Waits until it is cancelled.
/// #[tool]
/// fn wait(context: &CallContext) -> String {
///     while !context.is_cancelled() {
///         std::thread::sleep(std::time::Duration::from_millis(1));
///     }
///     "cancelled".to_owned()
/// }
///
/// let tools = Toolset::new().with(wait::tool())?;
/// let cancel = lm_tools::CancelHandle::new();
/// let mut results = tools.start(vec![ToolCall::new("wait", Default::default())], &cancel, None);
/// cancel.cancel();
/// assert_eq!(results.next().expect("one result a call").content.text(), "cancelled");
/// # Ok::<(), lm_tools::Error>(())
/// ```
/// The default context has no name, no limits and no states: for a tool that is called directly.
#[derive(Clone, Debug, Default)]
pub struct CallContext {
    call: Arc<Call>,
}

#[derive(Debug, Default)]
struct Call {
    id: Option<String>,
    name: String,
    cancel: CancelHandle,
    deadline: Option<Instant>,
    states: States,
    reader: Option<Reader>,
}

/// Connection of a running call to the reader of its result.
#[derive(Debug)]
pub(crate) struct Reader {
    pub reporter: Reporter,
    /// Closed when the call is cancelled or ends.
    pub cancelled: Receiver<Infallible>,
}

impl CallContext {
    pub(crate) fn new(
        call: &ToolCall,
        cancel: CancelHandle,
        deadline: Option<Instant>,
        states: States,
        reader: Reader,
    ) -> Self {
        let (id, name, reader) = (call.id.clone(), call.name.clone(), Some(reader));
        Self { call: Arc::new(Call { id, name, cancel, deadline, states, reader }) }
    }

    /// Id of the call, which its result carries.
    pub fn id(&self) -> Option<&str> {
        self.call.id.as_deref()
    }

    /// Name under which the tool was called.
    pub fn name(&self) -> &str {
        &self.call.name
    }

    /// Returns true if the result is no longer needed: the turn was cancelled, the time limit has passed, or
    /// there is a result, for background work of the tool with a clone of its context.
    pub fn is_cancelled(&self) -> bool {
        self.call.cancel.is_cancelled()
    }

    /// Waits until [`is_cancelled`](Self::is_cancelled), within some 10 ms of it, on any runtime. In a
    /// context that no toolset made it does not see a later cancellation.
    ///
    /// ```
    /// use lm_tools::{CallContext, Toolset, ToolCall, tool};
    ///
    /// /// Waits for a message.
    /// #[tool]
    /// async fn receive(context: &CallContext) -> String {
    ///     context.cancelled().await;
    ///     "no message until the end of the turn".to_owned()
    /// }
    ///
    /// let tools = Toolset::new().with(receive::tool())?;
    /// let cancel = lm_tools::CancelHandle::new();
    /// let mut results = tools.start(vec![ToolCall::new("receive", Default::default())], &cancel, None);
    /// cancel.cancel();
    /// let text = results.next().expect("one result a call").content.text();
    /// assert_eq!(text, "no message until the end of the turn");
    /// # Ok::<(), lm_tools::Error>(())
    /// ```
    pub async fn cancelled(&self) {
        if self.is_cancelled() {
            return;
        }
        if let Some(reader) = &self.call.reader {
            let _closed = caught_wakes(reader.cancelled.recv()).await;
        }
        if !self.is_cancelled() {
            std::future::pending().await
        }
    }

    /// Reports progress to the reader of the results: a text, or JSON in a form of the tool's own. It never
    /// blocks: of a call's reports that are unread, the last 32 are kept. One of more than 4096 bytes is cut
    /// to a text with a mark; one that is nested deeper than 128 levels, or that comes after the result, is
    /// dropped. The model does not see them.
    ///
    /// ```
    /// use lm_tools::{CallContext, CallEvent, CancelHandle, Toolset, ToolCall, tool};
    ///
    /// /// Counts to three.
    /// #[tool]
    /// fn count(context: &CallContext) -> u32 {
    ///     (1..=3).for_each(|number| context.progress(number));
    ///     3
    /// }
    ///
    /// let tools = Toolset::new().with(count::tool())?;
    /// let mut calls = tools.start(vec![ToolCall::new("count", Default::default())], &CancelHandle::new(), None);
    /// let mut seen = Vec::new();
    /// while let Some(event) = calls.next_event() {
    ///     match event {
    ///         CallEvent::Progress { progress, .. } => seen.push(progress),
    ///         CallEvent::Finished(result) => assert_eq!(result.message.content.text(), "3"),
    ///         _ => {}
    ///     }
    /// }
    /// assert_eq!(seen, [1, 2, 3]);
    /// # Ok::<(), lm_tools::Error>(())
    /// ```
    pub fn progress(&self, progress: impl Into<Value>) {
        if let Some(reader) = &self.call.reader {
            reader.reporter.progress(progress.into());
        }
    }

    /// Handle of this call alone, for requests that the tool makes itself.
    pub fn cancel_handle(&self) -> &CancelHandle {
        &self.call.cancel
    }

    /// Time at which the call is abandoned; `None`: never.
    pub fn deadline(&self) -> Option<Instant> {
        self.call.deadline
    }

    /// State of the type `T`, from [`Toolset::with_state`](crate::Toolset::with_state).
    pub fn state<T: Send + Sync + 'static>(&self) -> Option<State<T>> {
        let state = self.call.states.0.get(&TypeId::of::<T>())?.clone();
        state.downcast().ok().map(State)
    }
}

/// State of a toolset, shared by its tools: an argument of a `#[tool]` function that is not in the schema.
///
/// ```
/// use lm_tools::{State, ToolCall, Toolset, tool};
/// use std::sync::Mutex;
///
/// #[derive(Default)]
/// struct Notes(Mutex<Vec<String>>);
///
/// /// Adds a note.
/// #[tool]
/// fn add_note(notes: State<Notes>, /** the text */ text: String) -> usize {
///     let mut notes = notes.0.lock().expect("no tool panics while it holds the lock");
///     notes.push(text);
///     notes.len()
/// }
///
/// let tools = Toolset::new().with_state(Notes::default()).with(add_note::tool())?;
/// let call = ToolCall::from_json(serde_json::json!({"name": "add_note", "arguments": {"text": "milk"}}))?;
/// assert_eq!(tools.call(&call).content.text(), "1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct State<T>(Arc<T>);

impl<T> Clone for State<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Deref for State<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// Type of a [`State`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateType {
    id: TypeId,
    name: &'static str,
}

impl StateType {
    /// The type `T`.
    pub fn of<T: 'static>() -> Self {
        Self { id: TypeId::of::<T>(), name: type_name::<T>() }
    }

    /// Name of the type, for messages.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

/// States by type.
#[derive(Clone, Default)]
pub(crate) struct States(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl States {
    pub(crate) fn insert<T: Send + Sync + 'static>(&mut self, state: T) {
        self.0.insert(TypeId::of::<T>(), Arc::new(state));
    }

    pub(crate) fn has(&self, ty: StateType) -> bool {
        self.0.contains_key(&ty.id)
    }
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("States").field("len", &self.0.len()).finish()
    }
}
