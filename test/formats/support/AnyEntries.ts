/** Entry logs of any shape: any tree, any order of types, unknown fields, and fields of wrong types. */
import { FastCheck as fc } from "effect"

type Json = Readonly<Record<string, unknown>>

const text = fc.oneof(
  fc.string({ maxLength: 12 }),
  fc.constantFrom("", "words of a text that is long enough to be borrowed from another place", "\ud800", "a\u2028b"),
  fc.string({ minLength: 48, maxLength: 90 })
)
const any = fc.jsonValue({ maxDepth: 2 }).map((value): unknown => JSON.parse(JSON.stringify(value)))
const count = fc.nat(1000)
const callID = fc.constantFrom("call_1", "call_2", "call_3")

const block = fc.oneof(
  fc.record({ type: fc.constant("text"), text }),
  fc.record({ type: fc.constant("thinking"), thinking: text, thinkingSignature: text }, { requiredKeys: ["type"] }),
  fc.record({
    type: fc.constant("toolCall"),
    id: callID,
    name: fc.constantFrom("bash", "read"),
    arguments: fc.dictionary(text, any)
  }),
  fc.record({ type: fc.constant("image"), data: fc.constant("aGVsbG8="), mimeType: fc.constantFrom("image/png", "") }),
  fc.record({ type: fc.constant("future"), value: any })
)
const content = fc.oneof(text, fc.array(block, { maxLength: 4 }))
const usage = fc.record(
  {
    input: count,
    output: count,
    cacheRead: count,
    cacheWrite: count,
    cost: fc.record({ total: fc.double({ min: 0, max: 10, noNaN: true }) })
  },
  { requiredKeys: ["input"] }
)

const message = fc.oneof(
  fc.record({ role: fc.constant("user"), content, timestamp: count }, { requiredKeys: ["role", "content"] }),
  fc.record(
    {
      role: fc.constant("assistant"),
      content: fc.array(block, { maxLength: 5 }),
      provider: fc.constantFrom("anthropic", "openai", ""),
      model: fc.constantFrom("m1", "m2"),
      usage,
      stopReason: fc.constantFrom("stop", "toolUse", "length", "aborted", "error", "new"),
      errorMessage: text
    },
    { requiredKeys: ["role", "content"] }
  ),
  fc.record(
    {
      role: fc.constant("toolResult"),
      toolCallId: callID,
      toolName: text,
      content,
      isError: fc.boolean(),
      details: any
    },
    { requiredKeys: ["role", "toolCallId", "content"] }
  ),
  fc.record(
    {
      role: fc.constant("bashExecution"),
      command: text,
      output: text,
      exitCode: fc.constantFrom(0, 1, null),
      cancelled: fc.boolean(),
      excludeFromContext: fc.boolean()
    },
    { requiredKeys: ["role", "command", "output"] }
  ),
  fc.record({ role: fc.constantFrom("custom", "hookMessage", "developer"), content }),
  fc.record(
    {
      role: fc.constant("system"),
      content,
      sections: fc.dictionary(text, fc.oneof(text, fc.constant(null))),
      toolsAdded: fc.array(fc.record({ name: callID, parameters: any }), { maxLength: 2 }),
      toolsRemoved: fc.array(fc.record({ name: callID }), { maxLength: 2 })
    },
    { requiredKeys: ["role", "content"] }
  ),
  any
)

const body = (ids: fc.Arbitrary<string>) =>
  fc.oneof(
    { weight: 6, arbitrary: fc.record({ type: fc.constant("message"), message }) },
    {
      weight: 1,
      arbitrary: fc.oneof(
        fc.record({ type: fc.constant("model_change"), provider: text, modelId: text }),
        fc.record(
          { type: fc.constant("model_change"), model: fc.constantFrom("a/b", "c"), role: text },
          { requiredKeys: ["type"] }
        ),
        fc.record(
          { type: fc.constant("compaction"), summary: text, firstKeptEntryId: ids, tokensBefore: count, details: any },
          { requiredKeys: ["type", "summary"] }
        ),
        fc.record({ type: fc.constant("branch_summary"), fromId: ids, summary: text }),
        fc.record(
          { type: fc.constantFrom("compaction", "branch_summary"), summary: text, usage, systemMessage: any },
          { requiredKeys: ["type", "summary", "usage"] }
        ),
        fc.record({ type: fc.constantFrom("usage", "model_usage"), kind: text, provider: text, model: text, usage }),
        fc.record({
          type: fc.constant("context_edit"),
          targetId: ids,
          replacement: fc.oneof(fc.constant(null), fc.record({ content }), content, any)
        }),
        fc.record({ type: fc.constant("reset_boundary") }),
        fc.record({ type: fc.constant("custom_message"), customType: text, content, display: fc.boolean() }),
        fc.record({ type: fc.constant("label"), targetId: ids, label: text }, { requiredKeys: ["type", "targetId"] }),
        fc.record({ type: fc.constant("session_info"), name: text }),
        fc.record({ type: fc.constantFrom("custom", "mode_change", "unheard_of"), data: any, "1": any })
      )
    }
  )

/** The records of a log of `dialect` pi. Ids repeat now and then; parents are any record, or none. */
export const anyEntries: fc.Arbitrary<ReadonlyArray<Json>> = fc
  .integer({ min: 0, max: 14 })
  .chain((length) => {
    const ids = Array.from({ length: length + 1 }, (_, n) => `e${n}`)
    const id = fc.constantFrom(...ids)
    const record = (n: number) =>
      fc
        .tuple(
          body(id),
          fc.oneof({ weight: 12, arbitrary: fc.constant(`e${n}`) }, { weight: 1, arbitrary: id }),
          fc.oneof(
            { weight: 5, arbitrary: fc.constant(n === 0 ? null : `e${n - 1}`) },
            { weight: 2, arbitrary: id },
            { weight: 1, arbitrary: fc.constant(null) }
          ),
          fc.boolean()
        )
        .map(([fields, own, parentId, reversed]): Json => {
          const base = { id: own, parentId, timestamp: new Date(1_760_000_000_000 + n * 1000).toISOString() }
          return reversed ? { ...fields, ...base } : { ...base, ...fields }
        })
    return fc.tuple(...Array.from({ length }, (_, n) => record(n)))
  })
  .map((records) => [
    {
      type: "session",
      version: 3,
      id: "0198c0de-0000-7000-8000-000000000002",
      timestamp: "2026-02-16T10:20:30.000Z",
      cwd: "/tmp"
    },
    ...records
  ])
