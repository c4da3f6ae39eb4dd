/**
 * What each endpoint, parameter and error means, for people and programs that have the description alone, and an
 * example of each body. A new endpoint, parameter or error needs a text here. Pure. Spec: HT-2, HT-10 in specs/http.md.
 */
import type * as HttpApi from "@effect/platform/HttpApi"
import type * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import type * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import type { Api } from "../index.ts"
import type { Code } from "../wire/Failure.ts"

// Bodies of requests.

/** A body for each endpoint that has one: it fits the endpoint's schema. */
export const examples: Readonly<Record<string, unknown>> = {
  create: { location: { directory: "/home/user/project" }, title: "Fix the totals" },
  named: { location: { directory: "/home/user/project" }, title: "Fix the totals" },
  addressed: { address: { scope: "private", uid: 1000, kind: "agent", name: "build", session: "default" } },
  rename: { title: "Fix the totals of invoices" },
  switchAgent: { agent: "plan" },
  switchModel: { providerID: "anthropic", id: "claude-sonnet-4-5" },
  move: { directory: "/home/user/other" },
  place: { address: { scope: "private", uid: 1000, kind: "agent", name: "build", session: "totals" } },
  setBudget: { cost: 2.5, tokens: 1_000_000 },
  label: { label: "before the change" },
  prompt: { id: "msg_client-1", prompt: { text: "Why do the totals differ by a cent?" }, delivery: "steer" },
  ask: { id: "msg_client-2", prompt: { text: "Which file rounds the totals?" } },
  interrupt: {},
  branch: { messageID: "msg_client-1", summary: false },
  fork: { messageID: "msg_client-1", title: "Another way" },
  undo: { dryRun: true },
  redo: { dryRun: true },
  answer: { answers: ["the second one"] },
  decide: { decision: "once" }
}

// What each error means to a caller: a new error needs a text here.

export const errors: Readonly<Record<Code, string>> = {
  AddressTaken: "Another session has the address.",
  AgentNotFound: "There is no such agent, or its file is unusable.",
  BodyTooLarge: "The body is larger than the server reads, or it ended early.",
  BodyUnreadable: "The body is not JSON, is nested more than 200 levels deep, or holds more than 50,000 values.",
  BranchNotSummarized: "The model gave no summary of the branch. History continues where it did.",
  BudgetExceeded: "The session and its children used up their budget. Raise it, then resume.",
  ContextSnapshotUnreadable: "The stored context of the session cannot be read.",
  CursorAhead: "The cursor is beyond the latest event: it is of another database or of a removed session.",
  CursorExpired:
    "Events after the cursor are no longer kept. Read the snapshot, then continue with the floor's cursor.",
  EndpointNotFound: "There is no endpoint with this method and path.",
  EventRefused: "The change contradicts the session's state. Nothing was stored.",
  EventUnreadable: "A stored event is damaged or missing.",
  Forbidden: "The token is valid, and its scope or its session does not permit this.",
  ForeignCursor: "The cursor is malformed, of another database, or of another kind of stream.",
  ImportUnfinished: "The session is still being imported, and takes no change. Import its log again first.",
  InboxFullError: "Too many prompts wait. Nothing was admitted; try again later.",
  InitializationBlocked: "The session's first context could not be read. The prompt is kept; try again.",
  InternalError: "The server failed. Its log says how.",
  InvalidDurableEvent: "An event does not fit its schema. Nothing was stored.",
  InvalidInput: "An argument is not valid: `field` names it, `details` says what is expected.",
  LogUnavailable: "The database is busy for too long, read-only, full, corrupt or closed.",
  MessageNotFound: "The session has no such message.",
  MessageUnreadable: "A stored message is damaged.",
  MethodNotAllowed: "The path has endpoints, and none with this method.",
  ModelNotFound: "The provider has no such model.",
  ModelNotSelected: "No model is selected, and there is no default.",
  NotServed: "The server was started without this.",
  NotWaiting: "The prompt does not wait any more: it was promoted or withdrawn.",
  NothingShown: "No turn had begun at this event.",
  NothingToRedo: "There is no undo that could be taken back.",
  NothingToUndo: "There is no prompt that could be taken back.",
  OwnerLost: "Another process took over the session. Nothing was stored.",
  PermissionClosed: "The permission was decided before, or its call has ended.",
  PriceUnknown: "The budget is in dollars, and the price of the model is not known.",
  PromptConflictError: "The message id belongs to another session, prompt or delivery.",
  PromptUnanswered: "The prompt ended without an answer; `reason` says why.",
  ProviderFailed: "The provider of the model failed the turn.",
  ProviderNotFound: "The provider is unknown or not configured.",
  QuestionClosed: "The question is not open: it was answered or dismissed, or its call has ended.",
  RedoRefused: "The session or files went on since the undo. Nothing was changed.",
  RequestAmbiguous: "A proxy before the server could understand the request differently.",
  RunInterrupted: "The run was interrupted.",
  SeqConflict: "The session went on meanwhile. Nothing was stored; read again, then repeat the request.",
  SessionBusy: "The session runs. Wait for it, or interrupt it.",
  SessionNotFound: "There is no such session.",
  ShellsUnavailable: "The host of the machine's live shells cannot be asked.",
  SiteRefused: "The request names another host than the server, or a page of another origin sent it.",
  SnapshotUnavailable: "The files cannot be restored. History was not changed.",
  Stopping: "The server ends. Try again, there or at the next one.",
  StructuredOutputFailed: "The model did not return a valid structured answer.",
  TitleAmbiguous: "More than one session has the title.",
  ToolStorageError: "Complete outputs of tools cannot be stored.",
  TooManyRequests: "The client sends too much. Wait for `retry-after` seconds.",
  TurnLimitExceeded: "The activity used all its turns, and work remains. Resume it.",
  Unauthorized: "The request has no token, or one that is wrong or has ended.",
  UnsupportedApi: "This build does not support the protocol of the model.",
  VariantUnavailable: "The model has no such variant."
}

type Groups = typeof Api extends HttpApi.HttpApi<infer _Name, infer Group, infer _E, infer _R> ? Group : never

export type Name = HttpApiEndpoint.HttpApiEndpoint.Name<HttpApiGroup.HttpApiGroup.Endpoints<Groups>>

/** A line, and what more there is to know. */
type Text = readonly [summary: string, description: string]

const again = "After 25 seconds it returns even if the work goes on: send the same request again."

const stream =
  "The response is a stream of frames: server-sent events, or with `accept: application/x-ndjson` lines of JSON. An " +
  "`event` frame has a stored event, and its cursor as `id`. One `replay.complete` frame stands where stored events end; " +
  "new events follow. An `end` frame has the reason and, if the stream can be continued, the cursor. A stream that ends " +
  "without one was cut off: connect again with the last `id`. A comment or an empty line comes every 15 seconds."

export const endpoints: Readonly<Record<Name, Text>> = {
  create: [
    "Create a session",
    "Only `location` is required. The `id` of an existing session, or its address, returns that session unchanged."
  ],
  named: [
    "Find or create a session by its title",
    "The only session with this title in the folder, else the only one anywhere, else a new one. Of concurrent requests " +
      "exactly one creates it."
  ],
  addressed: ["Find the session at an address", "Null if no session has the address."],
  list: ["List sessions", "Last used first, in pages."],
  active: ["List the sessions that run", "Those that run in the process of the server."],
  interrupted: ["List interrupted sessions", "Those whose last activity was cut off by the end of its process."],
  waiting: [
    "List sessions with prompts that nothing runs",
    "Their prompts wait, and no living process works on them. `resume` runs them."
  ],
  get: ["Get a session", "Its state now: title, agent, model, location, activity, budget and spending."],
  usage: ["Get what a session spent", "Itself, and together with the sessions that it started."],
  limits: ["Get what bounds a session", "The context window of its model, and the configured budget if it holds."],
  metrics: ["Get what a session did", "Turns, calls of tools, time at work, tokens and cost, without its children."],
  rename: ["Change a session's title", "Titles need not be unique."],
  switchAgent: ["Give a session another agent", "From the next turn on. The agent must exist and be able to lead."],
  switchModel: ["Give a session another model", "From the next turn on. The model must exist."],
  move: ["Move a session to another folder", "Its context starts anew there. The folder must be permitted."],
  place: ["Give a session an address", "Its first address, or another root."],
  setBudget: ["Limit what a session may spend", "With its children, from now on. An empty budget means no limit."],
  label: ["Label a message", "Without a label, the message's label is removed."],
  remove: [
    "Remove a session",
    "It is interrupted first. Everything that belongs to it is deleted; this cannot be undone."
  ],

  messages: [
    "Read a session's messages",
    "The visible transcript in the order of the log, in pages: the history path, or with `branch=all` every branch."
  ],
  message: ["Read one message", "Null if the visible transcript has no message with this id."],
  context: ["Read what the model is shown", "The messages from the last completed compaction on."],
  tree: ["Read the tree of messages", "All branches, in pages in the order of the log."],
  todos: ["Read the todo list", "As the model last wrote it."],
  request: [
    "Read a request to the model",
    "With `at`: that of the turn that the event belongs to, from the log. Without it: the request that would be sent " +
      "now; nothing is written and no model is called."
  ],

  prompt: [
    "Prompt a session",
    "The prompt is on disk when this returns, and the work goes on; `wait` and `events` follow it. The same `id` with " +
      "the same content returns the same receipt. Without an `id`, `Idempotency-Key` takes its place."
  ],
  inbox: ["Read the prompts that wait", "In the order of their admission."],
  withdraw: ["Withdraw a waiting prompt", "No model gets it. Its id stays taken."],
  ask: ["Prompt a session and wait for the answer", `The same \`id\` returns the same answer. ${again}`],
  wait: ["Wait until a session has settled", `Nothing is started. ${again}`],
  resume: [
    "Run a session now",
    "At least one turn; a run in progress is joined. After 25 seconds it returns even if the run goes on: wait for it with " +
      "`GET /sessions/{sessionID}/resumes/{id}`, since another `resume` could start another run."
  ],
  resumed: [
    "Wait until a resume has settled",
    `Fails with the error of its run. If the server does not know the resume, as after a start, it waits as \`wait\` does. ${again}`
  ],
  interrupt: [
    "Stop a session's work",
    "In every process; returns when the work has settled. With an activity, only that one. Prompts that wait are kept."
  ],
  settle: [
    "Settle what a dead process left running",
    "As interrupted; nothing is run. True if there was something to settle."
  ],
  compact: [
    "Request a compaction",
    "It runs before the next turn, or at once if the session is idle; events report it."
  ],
  unprune: ["Show pruned results to the model again", "All results of tools that were left out of requests."],
  branch: [
    "Continue after an earlier message",
    "What is left stays in the tree. A prompt is returned, so that it can be edited and sent again. With `summary`, the " +
      "model summarizes what is left."
  ],
  fork: ["Copy a session up to a message", "The copy is a new session; the source does not change."],
  reset: ["Continue before the first message", "What is left stays in the tree."],
  undo: [
    "Take back the last prompt",
    "The files that its turns changed, where they were snapshotted, then the history. Files that changed since are left, " +
      "unless `force`. The result is an exact account."
  ],
  redo: ["Take back the last undo", "Refused if the session went on since, or files did, unless `force`."],

  questions: ["List the open questions of a session", "What its models ask a person, oldest first."],
  answer: ["Answer a question", "One text for each question of the call."],
  dismissQuestion: ["Decline to answer a question", "The run that asked stops."],

  permissions: ["List the permissions that a session waits for", "With all that a person must see to decide."],
  allPermissions: ["List the permissions that all sessions wait for", "With all that a person must see to decide."],
  decide: ["Decide a permission", "The first decision counts, wherever it comes from."],

  models: [
    "List the models that sessions can be given",
    "Those of the provider at the server's address, those of the catalogue, and the offline one. `needs` names the setting " +
      "that a model misses."
  ],
  agents: ["List the agents", "Those of the server and its user; with `directory`, also those of its project."],
  templates: ["List the templates", "Those of the server and its user; with `directory`, also those of its project."],

  search: ["Search the texts of all sessions", "Best match first, in pages."],
  prompts: ["List earlier prompts", "Latest first, in pages; with `words`, those that have them."],

  events: ["Replay and follow a session's events", stream],
  history: ["Read a page of a session's events", "At most 100 after the cursor, with the cursor of the next page."],
  head: ["Get the cursor of a session's latest event", "A reader that wants only new events begins there."],
  feedHead: ["Get the cursor of the latest event of all sessions", "A reader that wants only new events begins there."],
  feed: ["Replay and follow the events of all sessions", `In global order, with cursors of their own. ${stream}`],
  snapshot: ["Get a session's state at its floor", "A reader whose events were pruned starts there, with its cursor."],
  snapshots: ["Get the states of all sessions at their floors", "In pages of 100, by id."],

  stats: ["Get the figures of the database", "Bytes by table, type, day and session, and what a prune would free."],
  sessionStats: ["Get the figures of a session", "Bytes by type and day, what it did, and what a prune would free."],
  shells: ["List the open live shells", "Those of the server's machine, in the order of their opening."],
  nodes: [
    "List the nodes of the database",
    "The servers that share it and live, and the sessions with waiting prompts whose workspace no node has."
  ],
  health: [
    "Ask whether the server can work",
    "Needs no token. 503: its database cannot be written. `draining`: it ends; connect to another one, or later."
  ],
  serverMetrics: [
    "Get the metrics of the server",
    "As text for Prometheus. Any token that is not for one session reads it."
  ]
}

/** What the parameters mean, by name; `ENDPOINT.NAME` where an endpoint means something else. */
export const parameters: Readonly<Record<string, string>> = {
  sessionID: "The id of the session.",
  messageID: "The id of the message.",
  callID: "The call of a tool that asks.",
  ask: "The id of the permission, as the list of permissions has it.",
  directory: "Only sessions of this folder.",
  "agents.directory": "A folder of the server's machine, as an absolute path, whose project may define more.",
  "templates.directory": "A folder of the server's machine, as an absolute path, whose project may define more.",
  search: "A part of the title or of a prompt, in any case.",
  house: "Only sessions of this agent or model, as JSON.",
  query: "What to search for: words, phrases in quotes, and filters, as `daybook search` takes them.",
  words: "Words that the prompts have.",
  limit: "The most items of a page.",
  cursor: "The cursor of the page before.",
  order: "`asc`, oldest first, or `desc`. Default: `asc`.",
  branch: "`path`, the messages of the history path, or `all`. Default: `path`.",
  at: "The sequence number of an event.",
  after: "The cursor to start after: that of an item before, or a sequence number. Default: before the first event.",
  "feed.after": "The cursor to start after. Default: before the first event.",
  "snapshots.after": "The last session of the page before.",
  incarnation: "The life of the session that a sequence number belongs to. A cursor names it itself.",
  id: "A name for this resume, which the caller makes up.",
  live: "`1`: also deltas of the running turn, as frames `live` without a cursor. They are not stored.",
  follow: "`0`: the stream ends where stored events end. Default: `1`.",
  type: "Only events of these types, with commas between them. The cursor passes the others.",
  exact: "`1`: count everything. By default, figures of a large database are estimated from a sample.",
  "last-event-id": "The cursor to start after, if there is no `after`. Browsers send it when they connect again.",
  "idempotency-key": "Takes the place of the prompt's `id`: the same key with the same prompt admits it once."
}
