/**
 * Generates entry logs of every version and dialect: like real ones in shape and size, the same for the same options.
 * Damage is described as data, so that properties can shrink it.
 */
import { FastCheck as fc } from "effect"
import { fileOf, type Json } from "./Entries.ts"

export interface Options {
  readonly dialect: "pi" | "xcsh" | "omp"
  readonly version: 1 | 2 | 3
  /** Records after the header. */
  readonly entries: number
  readonly seed?: number
  /** Every so many entries the log continues from an earlier one; 0 never. Versions from 2. */
  readonly branchEvery?: number
  /** Every so many entries a compaction; 0 never. */
  readonly compactEvery?: number
  /** The scale of the texts: 1 is about 2.4 KB for each entry. */
  readonly size?: number
}

const startedAt = Date.parse("2026-02-16T10:20:30.000Z")

/** A small generator of numbers from 0 to 1 (mulberry32). */
const numbers = (seed: number) => {
  let state = seed | 0
  return (): number => {
    state = (state + 0x6d2b79f5) | 0
    const mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    const again = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((again ^ (again >>> 14)) >>> 0) / 4_294_967_296
  }
}

const words =
  'the session reads a file, then "quotes" it; naïve café 日本語 path\\to\\file {brace} [bracket] const x = () => {}\n\t```ts '.split(
    " "
  )

const proseOf =
  (next: () => number) =>
  (length: number): string => {
    const parts: Array<string> = []
    for (let size = 0; size < length;) {
      const word = words[Math.floor(next() * words.length)] ?? ""
      parts.push(word)
      size += word.length + 1
    }
    return parts.join(" ")
  }

const hex = (value: number): string => (value >>> 0).toString(16).padStart(8, "0")

const headerOf = ({ dialect, version }: Options, seed: number): Json => ({
  type: "session",
  ...(version === 1 ? {} : { version }),
  id: dialect === "pi" ? `019c0000-0000-7000-8000-${hex(seed).padStart(12, "0")}` : `1f9d2a6b${hex(seed)}`,
  timestamp: new Date(startedAt).toISOString(),
  cwd: "/work/pi",
  ...(version === 1 && dialect === "pi"
    ? { provider: "anthropic", modelId: "claude-sonnet-4-5", thinkingLevel: "off" }
    : {}),
  ...(dialect === "xcsh" ? { title: "A title", titleSource: "user" } : {})
})

/** The bodies of a log: a turn is a prompt, an answer with a call, its result, and an answer. */
const bodiesOf = (options: Options, next: () => number) => {
  const { dialect, size = 1, version } = options
  const prose = proseOf(next)
  const text = (scale: number) => prose(Math.ceil(scale * size * next()) + 1)
  const isPi = dialect === "pi"
  const usage = () => ({
    input: Math.floor(next() * 1000),
    output: Math.floor(next() * 500),
    cacheRead: Math.floor(next() * 9000),
    cacheWrite: 0,
    cost: { input: 0.01, output: 0.02, cacheRead: 0.001, cacheWrite: 0, total: 0.031 }
  })
  const assistant = (n: number, content: ReadonlyArray<Json>, stopReason: string): Json => ({
    type: "message",
    message: {
      role: "assistant",
      content,
      provider: "anthropic",
      model: "claude-sonnet-4-5",
      usage: usage(),
      stopReason,
      timestamp: startedAt + n * 1000
    }
  })
  const other: ReadonlyArray<() => Json> = [
    () => ({ type: "thinking_level_change", thinkingLevel: "high" }),
    () =>
      isPi
        ? { type: "model_change", provider: "openai", modelId: "gpt-5" }
        : { type: "model_change", model: "openai/gpt-5" },
    () => ({ type: "custom", customType: "state", data: { text: text(300) } }),
    () => ({ type: "custom_message", customType: "note", content: text(300), display: true }),
    () => ({
      type: "message",
      message: { role: version < 3 ? "hookMessage" : "custom", customType: "hook", content: text(200), display: true }
    }),
    () => ({
      type: "message",
      message: {
        role: "bashExecution",
        command: "ls -la",
        output: text(500),
        exitCode: 0,
        cancelled: false,
        truncated: false
      }
    }),
    () => ({
      type: "message",
      message: {
        role: "user",
        content: [
          { type: "text", text: text(50) },
          { type: "image", data: "aGVsbG8=", mimeType: "image/png" }
        ]
      }
    }),
    () => (isPi ? { type: "session_info", name: text(20) } : { type: "mode_change", mode: "plan", data: {} }),
    () =>
      dialect === "omp"
        ? { type: "title_change", title: text(20), source: "auto" }
        : { type: "future_type", value: text(20) }
  ]
  return (n: number): Json => {
    const call = `call_${n - (n % 5)}`
    switch (n % 5) {
      case 0:
        return { type: "message", message: { role: "user", content: text(400), timestamp: startedAt + n * 1000 } }
      case 1:
        return assistant(
          n,
          [
            { type: "thinking", thinking: text(1500), thinkingSignature: "c2ln" },
            { type: "toolCall", id: `${call}`, name: "read", arguments: { path: "src/a.ts", limit: n } }
          ],
          "toolUse"
        )
      case 2:
        return {
          type: "message",
          message: {
            role: "toolResult",
            toolCallId: `call_${n - 2}`,
            toolName: "read",
            content: [{ type: "text", text: text(14_000) }],
            isError: next() < 0.1,
            timestamp: startedAt + n * 1000
          }
        }
      case 3:
        return assistant(n, [{ type: "text", text: text(5000) }], "stop")
      default:
        return other[Math.floor(next() * other.length)]?.() ?? {}
    }
  }
}

/** The records of a log, the header first. */
export function* records(options: Options): Generator<Json> {
  const { branchEvery = 17, compactEvery = 60, entries, seed = 1, version } = options
  const next = numbers(seed)
  const bodyOf = bodiesOf(options, next)
  if (options.dialect === "omp") {
    yield {
      type: "title",
      v: 1,
      title: "A title",
      source: "auto",
      updatedAt: new Date(startedAt).toISOString(),
      pad: " ".repeat(100)
    }
  }
  yield headerOf(options, seed)
  const ids: Array<string> = []
  const parents: Array<number> = []
  const some = () => Math.floor(next() * ids.length)
  for (let n = 0; n < entries; n++) {
    const timestamp = new Date(startedAt + n * 1000).toISOString()
    const isBranch = version > 1 && branchEvery > 0 && n % branchEvery === branchEvery - 1
    const parent = isBranch ? some() : n - 1
    // The first kept entry is an ancestor, as the tools write it.
    let kept = parent
    for (let steps = Math.floor(next() * 12); steps > 0 && kept > 0; steps--) kept = parents[kept] ?? kept
    const compaction: Json = {
      type: "compaction",
      summary: `summary ${n}`,
      tokensBefore: 40_000,
      ...(version === 1 ? { firstKeptEntryIndex: kept + 1 } : { firstKeptEntryId: ids[kept] }),
      details: { readFiles: ["src/a.ts"], modifiedFiles: [] }
    }
    const isCompaction = n > 0 && compactEvery > 0 && n % compactEvery === compactEvery - 1
    const isLabel = version > 1 && n % 23 === 22
    const body = isCompaction
      ? compaction
      : isLabel
        ? { type: "label", targetId: ids[some()], label: `mark ${n}` }
        : bodyOf(n)
    const id = hex(Math.imul(n + 1, 0x9e3779b1) ^ seed)
    yield version === 1
      ? { ...body, timestamp }
      : { type: body["type"], id, parentId: ids[parent] ?? null, timestamp, ...body }
    ids.push(id)
    parents.push(parent)
  }
}

/** A file of a log. */
export const file = (options: Options): string => fileOf(...records(options))

const dialects = ["pi", "xcsh", "omp"] as const
const versions = [1, 2, 3] as const

/** Small logs of every version and dialect, healthy. */
export const logs: fc.Arbitrary<Options> = fc
  .record({
    dialect: fc.constantFrom(...dialects),
    version: fc.constantFrom(...versions),
    entries: fc.nat(30),
    seed: fc.nat(1_000_000),
    branchEvery: fc.constantFrom(0, 4, 7),
    compactEvery: fc.constantFrom(0, 6, 11)
  })
  .map((options) => ({ ...options, size: 0.02 }))

/** A change of a file: from a place on, `cut` bytes are replaced. */
export interface Damage {
  /** From 0 to 1: where in the file. */
  readonly at: number
  readonly cut: number
  readonly insert: Uint8Array
}

const bytes = (text: string) => Buffer.from(text)

/** Flips, cuts, insertions, NUL bytes, lost newlines, records glued on, and a torn end. */
export const damages: fc.Arbitrary<ReadonlyArray<Damage>> = fc.array(
  fc.record({
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    cut: fc.oneof(fc.nat(3), fc.nat(400), fc.constant(1_000_000)),
    insert: fc.oneof(
      fc.uint8Array({ maxLength: 8 }),
      fc.constantFrom(
        bytes(""),
        bytes("\n"),
        bytes("\0\0\0\0"),
        bytes('{"'),
        bytes('"'),
        bytes("}\n"),
        bytes("\u2028"),
        bytes("\ufeff")
      )
    )
  }),
  { maxLength: 4 }
)

/** The file after the damages, one after the other. */
export const damaged = (content: Uint8Array, list: ReadonlyArray<Damage>): Buffer =>
  list.reduce((file: Buffer, { at, cut, insert }) => {
    const from = Math.floor(at * file.length)
    return Buffer.concat([file.subarray(0, from), insert, file.subarray(from + cut)])
  }, Buffer.from(content))
