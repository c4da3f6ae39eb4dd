/**
 * Makes logs of Claude Code: records by their fields, and sessions of any size in the forms of several versions. Written
 * from descriptions of the format; no log of a person is copied.
 */

/** A record as a line holds it. */
export type Json = { readonly [field: string]: unknown }

export const sessionID = "5d0c1f7e-6a1b-4c2d-8e3f-001122334455"

/** A uuid from a number: the same number gives the same uuid. */
export const uuid = (number: number): string => `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`

const start = Date.parse("2026-03-01T09:00:00.000Z")

const envelope = (number: number, parent: number | null, more: Json): Json => ({
  parentUuid: parent === null ? null : uuid(parent),
  isSidechain: false,
  userType: "external",
  cwd: "/work/shop",
  sessionId: sessionID,
  version: "2.1.72",
  gitBranch: "main",
  ...more,
  uuid: uuid(number),
  timestamp: new Date(start + number * 1_000).toISOString()
})

/** A person's prompt, or blocks that a user record holds. */
export const user = (number: number, parent: number | null, content: unknown, more: Json = {}): Json =>
  envelope(number, parent, { type: "user", message: { role: "user", content }, ...more })

export interface Usage {
  readonly input?: number
  readonly output?: number
  readonly cacheRead?: number
  readonly cacheWrite?: number
}

/** One line of an API message. */
export const assistant = (
  number: number,
  parent: number | null,
  messageID: string,
  content: ReadonlyArray<unknown>,
  { usage = {}, ...more }: { readonly usage?: Usage; readonly stop?: string } & Json = {}
): Json => {
  const { stop = null, ...fields } = more
  return envelope(number, parent, {
    type: "assistant",
    requestId: `req_${messageID}`,
    message: {
      id: messageID,
      type: "message",
      role: "assistant",
      model: "claude-sonnet-4-5-20250929",
      content,
      stop_reason: stop,
      stop_sequence: null,
      usage: {
        input_tokens: usage.input ?? 0,
        cache_creation_input_tokens: usage.cacheWrite ?? 0,
        cache_read_input_tokens: usage.cacheRead ?? 0,
        output_tokens: usage.output ?? 0,
        service_tier: "standard"
      }
    },
    ...fields
  })
}

export const system = (number: number, parent: number | null, subtype: string, more: Json = {}): Json =>
  envelope(number, parent, { type: "system", subtype, content: "", level: "info", ...more })

export const attachment = (number: number, parent: number | null, attached: Json): Json =>
  envelope(number, parent, { type: "attachment", attachment: attached })

export const call = (id: string, name: string, input: unknown): Json => ({ type: "tool_use", id, name, input })

export const result = (id: string, content: unknown, more: Json = {}): Json => ({
  type: "tool_result",
  tool_use_id: id,
  content,
  ...more
})

export const text = (words: string): Json => ({ type: "text", text: words })
export const thinking = (words: string): Json => ({ type: "thinking", thinking: words, signature: "c2lnbmF0dXJl" })

/** A healthy session of `turns` prompts, each answered with reasoning, two parallel calls and a text. */
export function* session(turns: number, resultSizeBytes = 400): Generator<Json> {
  yield { type: "file-history-snapshot", messageId: uuid(0), snapshot: { trackedFileBackups: {} } }
  let last: number | null = null
  for (let turn = 0; turn < turns; turn++) {
    const at = turn * 10 + 1
    const [asks, answers] = [`msg_${turn}a`, `msg_${turn}b`]
    const usage: Usage = { input: 3, output: 5, cacheRead: 1_000 + turn, cacheWrite: 20 }
    yield user(at, last, `Prompt ${turn}: look at both files`)
    yield assistant(at + 1, at, asks, [thinking(`Think about ${turn}`)], { usage: { ...usage, output: 1 } })
    yield assistant(at + 2, at + 1, asks, [call(`toolu_${turn}a`, "Read", { file_path: `/work/shop/a${turn}.ts` })], {
      usage
    })
    yield assistant(at + 3, at + 2, asks, [call(`toolu_${turn}b`, "Bash", { command: `ls ${turn}` })], {
      usage: { ...usage, output: 40 },
      stop: "tool_use"
    })
    yield user(at + 4, at + 2, [result(`toolu_${turn}a`, `${turn} `.repeat(resultSizeBytes / 4))], {
      toolUseResult: { type: "text", file: { filePath: `a${turn}.ts`, numLines: 3 } },
      sourceToolAssistantUUID: uuid(at + 2)
    })
    yield user(at + 5, at + 3, [result(`toolu_${turn}b`, "a.ts\nb.ts", { is_error: false })])
    yield assistant(at + 6, at + 5, answers, [text(`Answer ${turn}: done`)], { usage, stop: "end_turn" })
    yield system(at + 7, at + 6, "turn_duration", { durationMs: 1_200 })
    yield { type: "ai-title", aiTitle: "Two files", sessionId: sessionID }
    yield { type: "last-prompt", lastPrompt: `Prompt ${turn}`, leafUuid: uuid(at + 7), sessionId: sessionID }
    last = at + 7
  }
}

/** Records as the bytes of a file. */
export const bytes = (records: Iterable<Json>): Buffer =>
  Buffer.from([...records].map((record) => `${JSON.stringify(record)}\n`).join(""))
