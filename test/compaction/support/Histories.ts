/** Histories for tests of compaction's pure functions: fixed messages, and random histories of a session. */
import { FastCheck as fc } from "effect"
import { MessageID } from "../../../packages/log/src/domain/Identifiers.ts"
import type { Message, Part, ToolPart } from "../../../packages/log/src/domain/Message.ts"

/** Marks all provider data: nothing that crosses the boundary may contain it. */
export const nativeMark = "provider-native"

const base = (seq: number) => ({ id: MessageID.make(`msg_${seq}`), seq, createdAt: seq })
const model = { providerID: "acme", id: "m1" }

export const user = (seq: number, text: string): Message => ({ type: "user", ...base(seq), text })
export const assistant = (seq: number, content: ReadonlyArray<Part>): Message => ({
  type: "assistant",
  ...base(seq),
  agent: "build",
  model,
  content
})
export const text = (value: string): Part => ({ type: "text", id: "t", text: value })
export const tool = (fields: Partial<ToolPart>): ToolPart => ({
  type: "tool",
  id: "call",
  name: "read",
  state: "completed",
  input: {},
  createdAt: 0,
  ...fields
})
export const says = (seq: number, value: string): Message => assistant(seq, [text(value)])
export const results = (seq: number, ...parts: ReadonlyArray<Partial<ToolPart>>): Message =>
  assistant(seq, parts.map(tool))

const metadata = fc.constantFrom(undefined, { acme: { signature: nativeMark } })
const words = fc.string({ unit: "grapheme", maxLength: 40 })
/** Texts, some of them longer than any limit of compaction. */
const long = fc.oneof(
  { weight: 4, arbitrary: words },
  { weight: 1, arbitrary: fc.nat(6_000).map((n) => "é𝄞x".repeat(n)) }
)

const settled = fc.record({
  executed: fc.boolean(),
  state: fc.constantFrom("completed" as const, "error" as const),
  output: long,
  name: fc.constantFrom("read", "write", "bash", "skill", "apply_patch"),
  media: fc.boolean(),
  metadata
})

/** A call with its result; its id is unique in the message and can be found again. */
const call = (at: number) =>
  settled.map(({ executed, media, metadata, name, output, state }): Part => {
    const provider = { executed, ...(metadata === undefined ? {} : { metadata, resultMetadata: metadata }) }
    return tool({
      id: `call_${at}`,
      name,
      state,
      input: { at },
      provider,
      content: [
        { type: "text", text: output },
        ...(media ? [{ type: "file" as const, uri: "data:image/png;base64,AAAA", mime: "image/png" }] : [])
      ],
      ...(state === "error" ? { error: { type: "tool.execution", message: output } } : {}),
      ...(executed ? { result: { encrypted: nativeMark } } : {})
    })
  })

const part = (at: number): fc.Arbitrary<Part> =>
  fc.oneof(
    long.map(text),
    fc.tuple(long, metadata).map(([value, native]): Part => ({
      type: "reasoning",
      id: "r",
      text: value,
      ...(native === undefined ? {} : { providerMetadata: native })
    })),
    call(at)
  )

const parts = fc.nat(3).chain((count) => fc.tuple(...Array.from({ length: count }, (_, at) => part(at))))

const unplaced: fc.Arbitrary<(seq: number) => Message> = fc.oneof(
  { weight: 3, arbitrary: long.map((value) => (seq: number) => user(seq, value)) },
  { weight: 5, arbitrary: parts.map((content) => (seq: number) => assistant(seq, content)) },
  {
    weight: 1,
    arbitrary: long.map((value) => (seq: number): Message => ({ type: "system", ...base(seq), text: value }))
  },
  {
    weight: 1,
    arbitrary: long.map((value) => (seq: number): Message => ({ type: "synthetic", ...base(seq), text: value }))
  },
  {
    weight: 1,
    arbitrary: fc.tuple(long, long).map(([command, output]) => (seq: number): Message => ({
      type: "shell",
      ...base(seq),
      callID: "s",
      command,
      output
    }))
  },
  { weight: 1, arbitrary: fc.constant((seq: number): Message => ({ type: "model-switched", ...base(seq), model })) }
)

/** A random history. Its messages have increasing positions with gaps, because other events lie between them. */
export const history = (maxLength = 12): fc.Arbitrary<ReadonlyArray<Message>> =>
  fc.array(unplaced, { maxLength }).map((messages) => messages.map((place, at) => place(at * 3)))
