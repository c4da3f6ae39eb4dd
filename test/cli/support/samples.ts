/** A sample of every event, message and session, valid by its schema. */
import { Schema } from "effect"
import { Message, Session } from "../../../packages/log/src/domain/Message.ts"
import { durableDefinitions, type SessionEvent } from "../../../packages/log/src/events/SessionEvents.ts"

const am = "msg_answer"
const call = { assistantMessageID: am, callID: "call_1" }
const model = { providerID: "p", id: "m" }
const prompt = { text: "Do\nit" }
const error = { type: "test", message: "it\nbroke \u001b[31m" }
const tokens = { input: 1_200, output: 34, reasoning: 5, cache: { read: 6, write: 7 } }
const provider = { executed: false }
const text = (words: string) => ({ type: "text", text: words })
const file = { type: "file", uri: "file:///a.png", mime: "image/png", name: "a.png" }

/** The payloads of each durable type. */
const payloads: Readonly<Record<string, ReadonlyArray<unknown>>> = {
  "session.created": [
    { location: { directory: "/work" }, title: "fix", agent: "plan", model },
    { location: { directory: "/work" } }
  ],
  "session.next.addressed": [
    { address: { scope: "private", uid: 7, kind: "agent", name: "build", session: "default" }, root: "/srv" }
  ],
  "session.next.agent.switched": [{ messageID: am, agent: "plan" }],
  "session.next.model.switched": [{ messageID: am, model: { ...model, variant: "high" } }],
  "session.next.moved": [{ location: { directory: "/other" }, subdirectory: "src" }],
  "session.next.renamed": [{ title: "login\npage" }],
  "session.next.prompted": [{ messageID: "msg_p", prompt, delivery: "steer" }],
  "session.next.prompt.admitted": [{ messageID: "msg_p", prompt, delivery: "queue" }],
  "session.next.prompt.promoted": [{ messageID: "msg_p", prompt, timeCreated: 0 }],
  "session.next.prompt.withdrawn": [{ messageID: "msg_p" }],
  "session.next.interrupt.requested": [{}],
  "session.next.activity.started": [{ activityID: "act_1", trigger: "resume" }],
  "session.next.activity.settled": [
    { activityID: "act_1", outcome: "completed" },
    { activityID: "act_1", outcome: "failed", error }
  ],
  "session.next.request.framed": [
    {
      hash: "abcdefghijkl",
      system: ["a", "b"],
      tools: { offered: ["x", "y"], defined: [{ name: "x", parameters: {} }] }
    },
    { hash: "abcdefghijkl", baselineSeq: 4, settings: { temperature: 0.2 } },
    { hash: "abcdefghijkl" }
  ],
  "session.next.instructions.discovered": [{ paths: ["/a/AGENTS.md", "/b/AGENTS.md"] }],
  "session.next.context.updated": [{ messageID: am, text: "the\ndate" }],
  "session.next.synthetic": [{ messageID: am, text: "go\non" }],
  "session.next.shell.started": [{ messageID: am, callID: "call_1", command: "ls\n-l" }],
  "session.next.shell.ended": [{ callID: "call_1", output: "a\nb" }],
  "session.next.step.started": [{ assistantMessageID: am, agent: "build", model }],
  "session.next.step.ended": [{ assistantMessageID: am, finish: "stop", cost: 0.01, tokens }],
  "session.next.step.failed": [{ assistantMessageID: am, error }],
  "session.next.text.started": [{ assistantMessageID: am, textID: "t" }],
  "session.next.text.ended": [{ assistantMessageID: am, textID: "t", text: "你好\n世界 \u001b[2J" }],
  "session.next.reasoning.started": [{ assistantMessageID: am, reasoningID: "r" }],
  "session.next.reasoning.ended": [{ assistantMessageID: am, reasoningID: "r", text: "hm\nwell" }],
  "session.next.tool.input.started": [{ ...call, name: "edit" }],
  "session.next.tool.input.ended": [{ ...call, text: '{"path":\n"a"}' }],
  "session.next.tool.called": [
    { ...call, tool: "edit", input: { path: "a", oldText: "one\ntwo", newText: "one\n2" }, provider },
    { ...call, callID: "call_2", tool: "bash", input: { command: "make" }, provider }
  ],
  "session.next.tool.progress": [{ ...call, callID: "call_2", structured: {}, content: [text("10 %\n")] }],
  "session.next.tool.success": [
    { ...call, structured: { path: "a", replacements: 1 }, content: [text("Edited\na"), text("more")], provider },
    { ...call, callID: "call_9", structured: { count: 2 }, content: [file], provider }
  ],
  "session.next.tool.failed": [{ ...call, callID: "call_2", error, provider }],
  "session.next.retried": [
    { attempt: 1, waitMs: 27_000, error: { message: "slow\ndown", isRetryable: true } },
    { attempt: 2, error: { message: "no", isRetryable: true } }
  ],
  "session.next.compaction.requested": [{ messageID: "msg_c" }],
  "session.next.compaction.started": [{ messageID: "msg_c", reason: "manual" }],
  "session.next.compaction.ended": [
    { messageID: "msg_c", reason: "auto", text: "## Goal\nTo count", recent: "", tokensBefore: 1_234.4 },
    { messageID: "msg_c", reason: "auto", text: "short", recent: "" }
  ],
  "session.next.compaction.failed": [{ messageID: "msg_c", error }],
  "session.next.context.pruned": [{ through: 4 }, { through: -1 }],
  "session.next.context.edited": [
    { messageID: "msg_b" },
    { messageID: "msg_b", callID: "call_1", content: [{ type: "text", text: "other words" }] }
  ],
  "session.next.part.withheld": [
    { messageID: "msg_b", index: 0, kind: "image", model: { providerID: "acme", id: "m1" }, reason: "no pictures" },
    { messageID: "msg_b", callID: "call_1", kind: "text", model: { providerID: "acme", id: "m1" } }
  ],
  "session.next.leaf.moved": [{ messageID: "msg_b", path: [[0, 4]] }, { path: [] }],
  "session.next.branch.summarized": [{ messageID: "msg_s", text: "## Goal\nTo count" }],
  "session.next.labeled": [{ messageID: "msg_b", label: "good" }, { messageID: "msg_b" }],
  "session.next.forked": [{ from: "ses_old", messageID: "msg_b" }, { from: "ses_old" }],
  "session.next.imported": [
    { record: { key: "a1b2c3d4", difference: { set: { usage: 1 } } } },
    {
      log: {
        dialect: "pi",
        id: "1f9d2a6b9c0d1234",
        version: 3,
        records: 12,
        digest: "0000000000000000000000000000000000000000000000000000000000000000",
        ends: [12]
      }
    }
  ],
  "session.next.files.changed": [
    {
      assistantMessageID: "msg_b",
      before: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
      after: "5b825dc642cb6eb9a060e54bf8d69288fbee4904",
      files: ["a.ts", "b c.ts"],
      count: 2
    },
    { assistantMessageID: "msg_b", files: [], count: 0, problem: "git is not installed" }
  ],
  "session.next.files.restored": [
    { files: ["a.ts"], left: ["b.ts"], counts: { changed: 1, conflicts: 1 }, leafID: "msg_b" }
  ],
  "session.next.question.answered": [{ ...call, answers: ["one", "two\nthree"] }],
  "session.next.question.dismissed": [call],
  "session.next.permission.decided": [
    { ...call, permission: "bash", resources: ["make test"], decision: "once", uid: 1000 },
    {
      ...call,
      permission: "own_echo",
      resources: ["{}"],
      decision: "always",
      patterns: ["*"],
      definition: "ab",
      saved: [3]
    },
    { ...call, permission: "bash", resources: ["make"], decision: "approved", used: [1, 2] }
  ],
  "session.next.permission.revoked": [{ number: 3, permission: "own_echo", resource: "*", uid: 1000 }],
  "session.next.budget.set": [{ budget: { cost: 1.5, tokens: 10 } }, { budget: {} }],
  "session.next.shell.opened": [
    { shellID: "1_local", transport: "local", cwd: "/work" },
    { shellID: "2_ssh_build@host", transport: "ssh", title: "build@host:22" }
  ],
  "session.next.shell.executed": [
    {
      shellID: "1_local",
      command: "npm run\nbuild \u001b[2J",
      stdout: "built\u001b[31m",
      stderr: "one\ntwo",
      exitCode: 1,
      durationMs: 3_412.5,
      cwd: "/work/dist",
      truncated: true,
      lateOutput: "ready",
      output: "out_1"
    },
    {
      shellID: "1_local",
      command: "sleep 60",
      stdout: "",
      stderr: "",
      exitCode: 124,
      durationMs: 30_000,
      cwd: "/work/dist",
      truncated: false,
      timedOut: true
    }
  ],
  "session.next.shell.blocked": [
    { shellID: "1_local", command: "rm -rf /", policy: "operator", reason: "rm -r of / is denied" }
  ],
  "session.next.shell.checkpointed": [
    { shellID: "2_ssh_build@host", checkpointID: "cp_1", label: "before\nthe change" },
    { shellID: "2_ssh_build@host", checkpointID: "cp_2" }
  ],
  "session.next.shell.restored": [{ shellID: "2_ssh_build@host", checkpointID: "cp_1", filesChanged: 1 }],
  "session.next.shell.closed": [{ shellID: "1_local", reason: "timeout" }]
}

/** Types that have no sample. */
export const missing: ReadonlyArray<string> = durableDefinitions
  .map(({ type }): string => type)
  .filter((type) => payloads[type] === undefined)

/** Every sample as the log returns it, one second apart. */
export const events: ReadonlyArray<SessionEvent> = durableDefinitions
  .flatMap(({ data, type, version }) =>
    (payloads[type] ?? []).map((payload) => ({
      type,
      version,
      // A union of schemas is not a schema of the union.
      data: Schema.decodeUnknownSync(data as Schema.Schema<unknown>)(payload)
    }))
  )
  .map(
    (event, at) =>
      ({
        ...event,
        position: at + 1,
        seq: at,
        id: `evt_${at}`,
        sessionID: "ses_test",
        created: Date.UTC(2026, 0, 2, 3, 4, at % 60)
      }) as SessionEvent // each payload was decoded by its type's schema
  )

const base = { id: "msg_a", createdAt: Date.UTC(2026, 0, 2, 3, 4, 5) }
const tool = { type: "tool", id: "call_1", name: "bash", createdAt: 0 }
const part = (kind: string, name: string, words: string) => ({ kind, name, content: text(words) })

/** Every kind of message, with every kind of part. */
export const messages: ReadonlyArray<Message> = [
  { type: "user", text: "Hi there" },
  {
    type: "user",
    text: "Look \u001b[2J",
    system: "Be\nbrief",
    tools: { "*": false, read: true },
    output: { schema: { type: "object" } },
    files: [
      { uri: "file:///work/a.ts", mime: "text/plain" },
      { uri: "data:,x", mime: "text/plain", name: "b.ts" }
    ]
  },
  {
    type: "user",
    text: "@a @b",
    expansion: {
      text: "from\nthe template",
      parts: [
        part("file", "a", "ä".repeat(600)),
        part("failure", "b", "there is\nno b"),
        { kind: "media", name: "c.png", content: file }
      ]
    }
  },
  {
    type: "assistant",
    agent: "build",
    model: { ...model, variant: "high" },
    content: [
      { type: "reasoning", id: "r", text: "hm\nwell\n" },
      { type: "reasoning", id: "r2" },
      { type: "text", id: "t", text: "Let me see." },
      { type: "text", id: "t2" },
      { ...tool, state: "pending", raw: '{"command":' },
      { ...tool, state: "running", input: { command: "make" } },
      { ...tool, state: "completed", input: { command: "make" }, content: [text("done\n"), file] },
      { ...tool, state: "completed", input: {}, content: [text("line\n".repeat(15) + "x".repeat(500))] },
      { ...tool, state: "completed", input: {} },
      { ...tool, state: "error", input: { command: "rm" }, error },
      { ...tool, state: "error", input: {} }
    ],
    error
  },
  { type: "system", text: "The date is\nknown." },
  { type: "synthetic", text: "Go on." },
  { type: "shell", callID: "c", command: "ls", output: "a\nb\n" },
  { type: "shell", callID: "c", command: "sleep 9" },
  { type: "agent-switched", agent: "plan" },
  { type: "model-switched", model },
  { type: "compaction", reason: "auto", summary: "So far.\n", recent: "", readFiles: ["a", "b"], modifiedFiles: ["a"] },
  { type: "compaction", reason: "manual", summary: "So far.", recent: "", modifiedFiles: ["a"] },
  { type: "compaction", reason: "auto", summary: "So far.", recent: "" },
  { type: "branch-summary", summary: "Tried it.\n", from: "msg_x", readFiles: ["a"] }
].map((message, at) => Schema.decodeUnknownSync(Message)({ ...base, ...message, seq: at }))

const times = { createdAt: base.createdAt, updatedAt: base.createdAt + 60_000 }

/** A session with all fields, and one with the required fields only. */
export const sessions: ReadonlyArray<Session> = [
  {
    id: "ses_full",
    location: { directory: "/work/你好" },
    title: "two\nlines 你好",
    agent: "plan",
    model: { ...model, variant: "high" },
    cost: 1.5,
    tokens,
    activity: { id: "act_1", state: "running" },
    compaction: { id: "msg_c", state: "requested" },
    prunedSeq: 4,
    budget: { cost: 2.5, tokens: 10 },
    ...times
  },
  { id: "ses_bare", location: { directory: "/" }, cost: 0, tokens, prunedSeq: -1, ...times }
].map((session) => Schema.decodeUnknownSync(Session)(session))
