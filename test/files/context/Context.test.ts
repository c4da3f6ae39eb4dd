/**
 * Method: a generated conversation with compactions, prunings, switches, steers, media and restarts. The context files of
 * every step are made as an exporter makes them when that step is the last, and held against what the model was shown.
 */
import { assert, describe, it } from "@effect/vitest"
import { Context as Services, Effect, Layer, Schema, Struct } from "effect"
import { shownAt, type ShownRequest } from "../../../packages/core/src/request/Recorded.ts"
import * as Rendering from "../../../packages/files/src/render/Rendering.ts"
import { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { converse, open } from "../../request/support/Conversation.ts"
import { transcript } from "../../request/support/GeneratedModel.ts"
import { random } from "../../request/support/Random.ts"
import { eventsOf } from "../../runner/support/Runs.ts"
import { temporaryFolder } from "../../support/Harness.ts"
import { type Context, contextsOf, filesOf, rowsOf, sha256 } from "./support/Contexts.ts"

const sessionID = SessionID.make("ses_context")

class Steps extends Services.Tag("test/Steps")<
  Steps,
  {
    readonly steps: ReadonlyArray<Context & { readonly whole: ShownRequest }>
    readonly last: Context
    readonly rebuilt: ReadonlyMap<string, string | Uint8Array>
  }
>() {}

/** One conversation for all laws. */
const conversation = Layer.scoped(
  Steps,
  Effect.gen(function* () {
    const { filename } = yield* converse(yield* temporaryFolder, sessionID, 60, 3)
    const runtime = yield* open(filename, random(0), transcript())
    return yield* Effect.gen(function* () {
      const { made, messages } = yield* contextsOf(sessionID, (context) =>
        Effect.map(shownAt(sessionID, context.seq), (whole) => ({ ...context, whole }))
      )
      const events = yield* eventsOf(sessionID)
      const { files } = yield* filesOf(sessionID, Rendering.evolveAll(Rendering.initial, events).rendering, messages)
      const last = made.at(-1)
      if (last === undefined || files === undefined) return assert.fail("nothing was shown")
      return { steps: made, last, rebuilt: files }
    }).pipe(Effect.provide(runtime))
  })
)

const Pack = Schema.parseJson(
  Schema.Struct({
    version: Schema.Literal(1),
    session: Schema.String,
    agent: Schema.String,
    model: Schema.String,
    step: Schema.Int,
    budget_tokens: Schema.Int,
    items: Schema.Array(
      Schema.Struct({
        kind: Schema.Literal("system", "summary", "facts", "recent_messages", "child_result"),
        source: Schema.String,
        range: Schema.optional(Schema.String),
        tokens: Schema.Int
      })
    )
  })
)

const packOf = ({ files }: Context) => Schema.decodeUnknownSync(Pack)(files.get("pack.json"))

const linesIn = (messages: Buffer): ReadonlyArray<Record<string, unknown>> =>
  messages
    .toString()
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line))

const between = (range: unknown): readonly [number, number] => {
  const [from, to] = String(range).split("-").map(Number)
  return [from ?? 0, to ?? 0]
}

/** The lines of a range, as rows. */
const slice = (messages: Buffer, range: unknown) => {
  const [from, to] = between(range)
  return linesIn(messages).slice(from - 1, to)
}

it.layer(conversation, { timeout: "120 seconds" })("the context of each step", (it) => {
  describe("PK-2", () => {
    it.effect("PK-2: the items' tokens are those of the whole request, and are within the budget", () =>
      Effect.map(Steps, ({ steps }) => {
        assert.isAtLeast(steps.length, 60)
        for (const step of steps) {
          const { agent, budget_tokens, items, model, step: seq } = packOf(step)
          const sum = items.reduce((total, { tokens }) => total + tokens, 0)
          assert.strictEqual(sum, step.whole.estimate.total)
          assert.isAtMost(sum, budget_tokens)
          assert.strictEqual(budget_tokens, 14_000)
          assert.strictEqual(String(step.files.get("budget")), "14000\n")
          assert.deepEqual([agent, seq], [step.whole.agent, step.seq])
          assert.strictEqual(model, `${step.whole.model.providerID}/${step.whole.model.id}`)
        }
      })
    )

    it.effect("PK-2: system texts and tools are the bytes that were sent, under the name of their content", () =>
      Effect.map(Steps, ({ steps }) => {
        for (const step of steps) {
          const { files, whole } = step
          const sent = packOf(step)
            .items.filter(({ kind }) => kind === "system")
            .map(({ source }) => String(files.get(source)))
          assert.deepEqual(sent, [
            ...whole.frame.system,
            ...(whole.frame.tools.length === 0 ? [] : [JSON.stringify(whole.frame.tools)])
          ])
        }
      })
    )

    it.effect("PK-2: the conversation's items are the lines of what was shown, all of them, in its order", () =>
      Effect.map(Steps, ({ steps }) => {
        let summaries = 0
        for (const step of steps) {
          const { items } = packOf(step)
          const conversation = items.filter(({ kind }) => kind !== "system")
          const texts = conversation.flatMap(({ kind, range, source }) => {
            if (kind === "summary") {
              summaries += 1
              return [`summary ${String(step.files.get(source))}`]
            }
            assert.strictEqual(source, "../messages.jsonl")
            return slice(step.messages, range).flatMap((row) => {
              const blocks = Array.isArray(row["content"]) ? row["content"] : []
              return blocks.map((block) => JSON.stringify([row["role"], block.type, block.text ?? block.tool_call_id]))
            })
          })
          const shown = step.whole.messages.flatMap((message) =>
            typeof message.content === "string"
              ? [message.content]
              : message.content.map((part) =>
                  part.type === "text"
                    ? part.text
                    : part.type === "tool-call" || part.type === "tool-result"
                      ? part.id
                      : ""
                )
          )
          // Each line's words are in the message that was shown in its place.
          let at = 0
          for (const text of texts) {
            const word = text.startsWith("summary ") ? text.slice(8, 40) : String(JSON.parse(text)[2] ?? "")
            const found = shown.findIndex((words, index) => index >= at && words.includes(word))
            assert.isAtLeast(found, 0, `step ${step.seq}: ${word} is not shown after ${at}`)
            at = found
          }
          const ids = new Set(texts.flatMap((text) => (text.startsWith("[") ? [JSON.parse(text)[2]] : [])))
          for (const message of step.whole.messages) {
            if (typeof message.content === "string") continue
            for (const part of message.content) if (part.type === "tool-call") assert.isTrue(ids.has(part.id))
          }
        }
        assert.isAtLeast(summaries, 10)
      })
    )

    it.effect("PK-2: every source resolves: to a file of the context, or to lines that are there", () =>
      Effect.map(Steps, ({ steps }) => {
        for (const step of steps) {
          const lines = linesIn(step.messages).length
          for (const { range, source } of packOf(step).items) {
            if (source !== "../messages.jsonl") assert.isTrue(step.files.has(source), source)
            else {
              const [from, to] = between(range)
              assert.isTrue(from >= 1 && from <= to && to <= lines, `${range} of ${lines}`)
            }
          }
        }
      })
    )
  })

  it.effect("PK-1: pack.md holds every text of the request, whole, and media by name, size and hash", () =>
    Effect.map(Steps, ({ steps }) => {
      let media = 0
      for (const { files, whole } of steps) {
        const text = String(files.get("pack.md"))
        for (const system of whole.frame.system) assert.include(text, system)
        for (const { name } of whole.frame.tools) assert.include(text, `## tool ${name}`)
        for (const message of whole.messages) {
          if (typeof message.content === "string") continue
          for (const part of message.content) {
            if (part.type === "text") assert.include(text, part.text)
            if (part.type === "file") {
              media += 1
              const bytes = Buffer.from(String(part.data), "base64")
              assert.include(text, `${bytes.length} bytes, sha256-${sha256(bytes)}`)
            }
          }
        }
      }
      assert.isAtLeast(media, 1)
    })
  )

  it.effect("PK-4: a swapped range is named by the bytes of its lines, and no line of it is in the pack", () =>
    Effect.map(Steps, ({ steps }) => {
      let ranges = 0
      for (const step of steps) {
        const shown = new Set<number>()
        for (const { range, source } of packOf(step).items) {
          if (source !== "../messages.jsonl") continue
          const [from, to] = between(range)
          for (let line = from; line <= to; line++) shown.add(line)
        }
        const lines = step.messages.toString().split("\n")
        for (const row of rowsOf(step.files, "swap/index.jsonl")) {
          if (row["kind"] !== "message_range") continue
          ranges += 1
          const [from, to] = between(row["range"])
          const bytes = lines.slice(from - 1, to).map((line) => `${line}\n`)
          assert.strictEqual(row["id"], `sha256-${sha256(bytes.join(""))}`)
          for (let line = from; line <= to; line++) assert.isFalse(shown.has(line), `line ${line} of step ${step.seq}`)
          const refs = rowsOf(step.files, "refs.jsonl").filter(({ id }) => id === row["id"])
          assert.deepEqual(refs.map(Struct.get("path")), [`../messages.jsonl:${from}-${to}`])
        }
      }
      assert.isAtLeast(ranges, 10)
    })
  )

  it.effect("PK-4: a result that is shown as a placeholder is named with its line, where it is whole", () =>
    Effect.map(Steps, ({ steps }) => {
      let outputs = 0
      for (const step of steps) {
        const rows = rowsOf(step.files, "swap/index.jsonl").filter(({ kind }) => kind === "tool_output")
        const placeholders = step.whole.messages.flatMap((message) =>
          message.role === "tool"
            ? message.content.filter(({ result }) => String(result).includes("is no longer shown"))
            : []
        )
        assert.deepEqual(
          rows.map((row) => row["tool_call_id"]),
          placeholders.map(({ id }) => id)
        )
        for (const row of rows) {
          outputs += 1
          const [line] = slice(step.messages, row["range"])
          const blocks = JSON.stringify(line?.["content"])
          const [block] = JSON.parse(blocks)
          assert.strictEqual(block.tool_call_id, row["tool_call_id"])
          const texts: ReadonlyArray<{ readonly text?: string }> = block.content
          assert.strictEqual(row["id"], `sha256-${sha256(texts.flatMap(({ text }) => text ?? []).join("\n"))}`)
        }
      }
      assert.isAtLeast(outputs, 1)
    })
  )

  it.effect("PK-5: each blob is under the name of its bytes, once in the index, and the index names no other", () =>
    Effect.map(Steps, ({ steps }) => {
      for (const { files } of steps) {
        const rows = rowsOf(files, "dedup/index.jsonl")
        const blobs = [...files].filter(([path]) => path.startsWith("dedup/blob/"))
        assert.deepEqual(
          rows.map((row) => `dedup/blob/${String(row["hash"])}`),
          blobs.map(([path]) => path)
        )
        for (const [nth, [path, content]] of blobs.entries()) {
          assert.strictEqual(path, `dedup/blob/sha256-${sha256(content)}`)
          assert.strictEqual(rows[nth]?.["bytes"], Buffer.from(content).length)
        }
      }
    })
  )

  it.effect("PK-6: every blob of the context is referred to by its pack, or by a line that the pack shows", () =>
    Effect.map(Steps, ({ steps }) => {
      for (const step of steps) {
        const pack = String(step.files.get("pack.json"))
        for (const row of rowsOf(step.files, "dedup/index.jsonl")) {
          const refs = Array.isArray(row["refs"]) ? row["refs"] : []
          assert.isAtLeast(refs.length, 1)
          for (const ref of refs) {
            if (ref === "pack.json") assert.include(pack, String(row["hash"]))
            else assert.match(String(ref), /^\.\.\/messages\.jsonl:[1-9][0-9]*$/)
          }
        }
      }
    })
  )

  it.effect("FL-8: made from the whole log at the end, the files are those of the last step, byte for byte", () =>
    Effect.map(Steps, ({ last, rebuilt }) => {
      assert.deepEqual(rebuilt, last.files)
    })
  )
})
