/**
 * Generates random logs that break conversations: blank texts, answers cut off anywhere, reasoning of every kind, calls whose
 * ids and names other providers reject, results without content, and model changes at any time.
 */
import { FastCheck as fc } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import { MessageID } from "../../packages/log/src/domain/Identifiers.ts"
import type { ModelRef, StoredError } from "../../packages/log/src/domain/Values.ts"
import { type Draft, draft } from "../../packages/log/src/events/SessionEvents.ts"

type Made<Of> = Of extends fc.Arbitrary<infer A> ? A : never
const oneOf = <const A>(...values: ReadonlyArray<A>): fc.Arbitrary<A> => fc.constantFrom(...values)

/** Models of the protocols. */
export const refs = {
  anthropic: { providerID: "anthropic", id: "claude-sonnet-4-6" },
  openai: { providerID: "openai", id: "gpt-6.1-terra" },
  "openai-compatible": { providerID: "openai-compatible", id: "qwen3:8b" },
  gemini: { providerID: "gemini", id: "gemini-3.5-flash" }
} as const satisfies Readonly<Record<string, ModelRef>>

const blanks = ["", " ", "\n\n", "\t\r\n", "\u00a0", "\u2028\u3000", "\u200b\ufeff", "\u0085\u001c"] as const
export const hostileText = fc.oneof(
  { weight: 2, arbitrary: oneOf(...blanks) },
  { weight: 3, arbitrary: oneOf("Yes.", " padded ", "a\ud800b", '"quoted"', "\udc00", "\\ud800 and \\", "日本 😀") },
  { weight: 1, arbitrary: fc.string() }
)

const longName = "a_tool_with_a_name_".repeat(8)
export const hostileIds = [
  "call_0",
  "call_0_2",
  "call_1",
  "a:b",
  "a.b",
  "a_b",
  "functions.look:0",
  "x".repeat(41),
  "x".repeat(64),
  "x".repeat(300),
  `${"x".repeat(300)}y`,
  "ж日",
  " ",
  "srvtoolu_1"
] as const
const names = [
  "look",
  "bash",
  "web_search",
  "computer",
  "no such tool!",
  "server.tool",
  "werkzeug_ü",
  longName
] as const

/** A PNG of one pixel, in base64. */
export const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
const file = oneOf(
  { uri: `data:image/png;base64,${pixel}`, mime: "image/png", name: "pixel.png" },
  { uri: `data:image/jpeg;base64,${pixel}`, mime: "image/jpeg", name: "wrong.jpg" },
  { uri: "data:image/png;base64,", mime: "image/png", name: "empty.png" },
  { uri: "data:image/bmp;base64,Qk0=", mime: "image/bmp" },
  { uri: "data:application/pdf;base64,JVBERi0xLjQK", mime: "application/pdf", name: "paper.pdf" },
  { uri: "data:text/plain,", mime: "text/plain", name: "empty.txt" },
  { uri: "file:///gone.png", mime: "image/png" }
)
const content = fc.array(
  fc.oneof(
    hostileText.map((text) => ({ type: "text" as const, text })),
    file.map((one) => ({ type: "file" as const, ...one }))
  ),
  { maxLength: 3 }
)

/** Provider metadata in valid and invalid forms. */
const metadata = oneOf<Readonly<Record<string, unknown>> | undefined>(
  undefined,
  {},
  ...Array.from({ length: 4 }, () => ({ anthropic: { type: "thinking", signature: "SIG==" } })),
  ...Array.from({ length: 4 }, () => ({ openai: { itemId: "rs_3", encryptedContent: "ENC" } })),
  { anthropic: { type: "thinking", signature: "" } },
  { anthropic: { type: "redacted_thinking", redactedData: "HIDDEN" } },
  { anthropic: { type: "later" } },
  { anthropic: "not a record" },
  { openai: { itemId: "rs_1", encryptedContent: "ENC" } },
  { openai: { itemId: "rs_2", encryptedContent: "ENC" } },
  { openai: { itemId: "rs_1", encryptedContent: null } },
  { openai: { itemId: 7 } },
  { openaiCompatible: { thoughtSignature: "T" } }
)
const callMetadata = oneOf<Readonly<Record<string, unknown>> | undefined>(
  undefined,
  ...Array.from({ length: 4 }, () => ({ openai: { itemId: "fc_1" } })),
  { openai: { itemId: "fc_2" } },
  { openai: { itemId: 7 } }
)
const hosted = oneOf(
  ...Array.from({ length: 15 }, () => undefined),
  { name: "AnthropicWebSearch", result: [{ type: "web_search_result", url: "https://a.example" }] as unknown },
  { name: "AnthropicCodeExecution", result: { type: "bash_code_execution_result" } as unknown },
  { name: "OpenAiWebSearch", result: undefined }
)

const text = fc.record({ kind: fc.constant("text" as const), text: hostileText })
const reasoning = fc.record({ kind: fc.constant("reasoning" as const), text: hostileText, metadata })
const call = fc.record({
  kind: fc.constant("call" as const),
  id: oneOf(...hostileIds),
  name: oneOf(...names),
  input: oneOf<Readonly<Record<string, unknown>>>({}, { path: "a" }, { input: '{"path": "a' }, { "\ud800": "\udc00" }),
  outcome: oneOf("pending", "running", "completed", "completed", "completed", "error"),
  content,
  message: hostileText,
  metadata: callMetadata,
  hosted
})
const part = fc.oneof(
  { weight: 2, arbitrary: text },
  { weight: 2, arbitrary: reasoning },
  { weight: 4, arbitrary: call }
)
type Part = Made<typeof part>

const step = fc.record({
  kind: fc.constant("step" as const),
  /** A model that differs from most of the log. */
  model: fc.option(oneOf(...Object.values(refs)), { freq: 3, nil: undefined }),
  parts: fc.uniqueArray(part, { maxLength: 5, selector: (one) => (one.kind === "call" ? one.id : one) }),
  end: oneOf("stop", "stop", "stop", "length", "tool-calls", "aborted", "provider", "running")
})
const said = fc.record({
  kind: oneOf("prompt", "synthetic", "context", "shell", "checkpoint", "switch"),
  text: hostileText,
  files: fc.array(file, { maxLength: 2 }),
  system: fc.option(hostileText, { nil: undefined })
})

const tokens = { input: 3, output: 2, reasoning: 1, cache: { read: 1, write: 0 } }
const interrupted: StoredError = { type: "aborted", message: "interrupted" }

const partDrafts = (assistantMessageID: MessageID, made: Part, nth: number): ReadonlyArray<Draft> => {
  switch (made.kind) {
    case "text":
      return [
        draft("session.next.text.started", { assistantMessageID, textID: `t${nth}` }),
        draft("session.next.text.ended", { assistantMessageID, textID: `t${nth}`, text: made.text })
      ]
    case "reasoning": {
      const providerMetadata = made.metadata === undefined ? {} : { providerMetadata: made.metadata }
      const reasoning = { assistantMessageID, reasoningID: `t${nth}`, ...providerMetadata }
      return [
        draft("session.next.reasoning.started", reasoning),
        draft("session.next.reasoning.ended", { ...reasoning, text: made.text })
      ]
    }
    case "call": {
      const call = { assistantMessageID, callID: made.id }
      const name = made.hosted?.name ?? made.name
      const provider = {
        executed: made.hosted !== undefined,
        ...(made.metadata === undefined ? {} : { metadata: made.metadata })
      }
      const result = made.hosted?.result === undefined ? {} : { result: made.hosted.result }
      const started = draft("session.next.tool.input.started", { ...call, name })
      if (made.outcome === "pending") return [started]
      const called = [
        started,
        draft("session.next.tool.input.ended", { ...call, text: JSON.stringify(made.input) }),
        draft("session.next.tool.called", { ...call, tool: name, input: made.input, provider })
      ]
      if (made.outcome === "running") return called
      return [
        ...called,
        made.outcome === "error"
          ? draft("session.next.tool.failed", {
              ...call,
              error: { type: "x", message: made.message },
              provider,
              ...result
            })
          : draft("session.next.tool.success", { ...call, structured: {}, content: made.content, provider, ...result })
      ]
    }
  }
}

const stepDrafts = (
  assistantMessageID: MessageID,
  model: ModelRef,
  { end, parts }: Made<typeof step>
): ReadonlyArray<Draft> => [
  draft("session.next.step.started", { assistantMessageID, agent: "build", model }),
  ...parts.flatMap((one, nth) => partDrafts(assistantMessageID, one, nth)),
  ...(end === "running"
    ? []
    : end === "aborted" || end === "provider"
      ? [draft("session.next.step.failed", { assistantMessageID, error: interrupted })]
      : [draft("session.next.step.ended", { assistantMessageID, finish: end, cost: 0, tokens })])
]

const saidDrafts = (messageID: MessageID, { files, kind, system, text }: Made<typeof said>): ReadonlyArray<Draft> => {
  switch (kind) {
    case "prompt": {
      const prompt = { text, ...(files.length === 0 ? {} : { files }), ...(system === undefined ? {} : { system }) }
      return [
        draft("session.next.prompt.admitted", { messageID, prompt, delivery: "steer" }),
        draft("session.next.prompt.promoted", { messageID, prompt, timeCreated: 1 })
      ]
    }
    case "synthetic":
      return [draft("session.next.synthetic", { messageID, text })]
    case "context":
      return [draft("session.next.context.updated", { messageID, text })]
    case "shell":
      return [draft("session.next.shell.started", { messageID, callID: messageID, command: text })]
    case "checkpoint":
      return [draft("session.next.compaction.ended", { messageID, reason: "auto", text, recent: text })]
    case "switch":
      return [draft("session.next.model.switched", { messageID, model: refs.openai })]
  }
}

const withheld = fc.record({
  at: fc.nat(),
  callID: fc.option(oneOf(...hostileIds), { freq: 3, nil: undefined }),
  index: fc.option(oneOf(0, 1, 2, 9), { freq: 2, nil: undefined }),
  kind: oneOf("image", "pdf", "text", "input"),
  model: oneOf(...Object.values(refs)),
  reason: fc.option(hostileText, { freq: 9, nil: undefined })
})

/** A log whose parts are withheld and shown again at random, also ones that it does not have. */
export const withheldLog = (name: string): fc.Arbitrary<NonEmptyReadonlyArray<Draft>> =>
  fc.tuple(hostileLog(name), fc.array(withheld, { maxLength: 30, size: "max" })).map(([log, all]) => {
    const ids = log.flatMap(({ data }) =>
      "assistantMessageID" in data ? [data.assistantMessageID] : "messageID" in data ? [data.messageID] : []
    )
    return [
      ...log,
      ...all.flatMap(({ at, callID, index, kind, model, reason }): ReadonlyArray<Draft> => {
        const messageID = ids[at % Math.max(1, ids.length)]
        if (messageID === undefined) return []
        return [
          draft("session.next.part.withheld", {
            messageID,
            kind,
            model,
            ...(callID === undefined ? {} : { callID }),
            ...(index === undefined ? {} : { index }),
            ...(reason === undefined ? {} : { reason: reason.slice(0, 300) })
          })
        ]
      })
    ]
  })

/** A log that begins with the session's creation; its message ids contain `name`. */
export const hostileLog = (name: string, maxLength = 12): fc.Arbitrary<NonEmptyReadonlyArray<Draft>> =>
  fc
    .tuple(
      oneOf(...Object.values(refs)),
      fc.array(fc.oneof({ weight: 3, arbitrary: step }, { weight: 2, arbitrary: said }), { maxLength, size: "max" })
    )
    .map(([most, all]) => [
      draft("session.created", { location: { directory: "/work" } }),
      ...all.flatMap((one, nth) => {
        const id = MessageID.make(`msg_${name}-${nth}`)
        return one.kind === "step" ? stepDrafts(id, one.model ?? most, one) : saidDrafts(id, one)
      })
    ])
