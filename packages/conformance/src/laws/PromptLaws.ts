/** A prompt is admitted once, however often it is sent. */
import { Schema } from "effect"
import { admitted, aPrompt, type Law, posted, refuses, replay, same, say, session } from "../Kit.ts"
import { answer, request, type Target } from "../Target.ts"

const Titled = Schema.Struct({ title: Schema.optional(Schema.String), updatedAt: Schema.Number })
const Waiting = Schema.Array(Schema.Struct({ id: Schema.String, prompt: Schema.Struct({ text: Schema.String }) }))
const Receipt = Schema.Struct({ id: Schema.String, sessionID: Schema.String, admittedSeq: Schema.Int })
const Waited = Schema.Struct({ settled: Schema.Boolean })

const send = (target: Target, sessionID: string, text: string, more: object, headers = {}) =>
  answer(target, Receipt, `/sessions/${sessionID}/prompts`, posted(aPrompt(text, more), headers))

const conflicts = (target: Target, sessionID: string, text: string, more: object, headers = {}) =>
  refuses(target, `/sessions/${sessionID}/prompts`, 409, "PromptConflictError", posted(aPrompt(text, more), headers))

/** The server may know those of an earlier run of the suite. */
const fresh = () => `msg_${crypto.randomUUID()}`

export const promptLaws: ReadonlyArray<Law> = [
  {
    clause: "HT-12",
    says: "a repeated idempotency key admits one prompt, and one with other content is refused",
    test: async (target) => {
      const id = await session(target, 0)
      const headers = { "idempotency-key": crypto.randomUUID() }
      const first = await send(target, id, "hi", {}, headers)
      same(await send(target, id, "hi", {}, headers), first, "receipt of the repetition")
      await conflicts(target, id, "other", {}, headers)
      await send(target, id, "hi", {}, { "idempotency-key": crypto.randomUUID() })
      same(admitted(await replay(target, id)).length, 2, "prompts that two keys admitted")
    }
  },
  {
    clause: "HT-12",
    says: "a repeated id admits one prompt, and other content, delivery or session with it is refused",
    test: async (target) => {
      const [id, other] = [await session(target, 0), await session(target, 0)]
      const more = { id: fresh() }
      const first = await send(target, id, "hi", more)
      same([first.id, first.sessionID], [more.id, id], "id and session of the receipt")
      await say(target, id, "between")
      same(await send(target, id, "hi", more), first, "receipt of the repetition")
      await conflicts(target, id, "other", more)
      await conflicts(target, id, "hi", { ...more, delivery: "queue" })
      await conflicts(target, other, "hi", more)
      same(admitted(await replay(target, id)).length, 2, "prompts of the session")
      same(admitted(await replay(target, other)).length, 0, "prompts of the other session")
    }
  },
  {
    clause: "HT-12",
    says: "of concurrent repetitions one is admitted, and all have its receipt",
    test: async (target) => {
      const id = await session(target, 0)
      const more = { id: fresh() }
      const receipts = await Promise.all(Array.from({ length: 12 }, () => send(target, id, "hi", more)))
      for (const receipt of receipts) same(receipt, receipts[0], "receipt")
      same(admitted(await replay(target, id)).length, 1, "prompts of the session")
    }
  },
  {
    clause: "HT-1",
    says: "what was accepted is read at once: prompts wait in their order, with their texts, and a title is that of the session",
    test: async (target) => {
      const id = await session(target, 0)
      const said = ["one", "zwei \u{1F9EA}", 'three "quoted"\n\ttabbed']
      for (const text of said) await say(target, id, text)
      const waiting = await answer(target, Waiting, `/sessions/${id}/prompts`)
      same(
        waiting.map(({ prompt }) => prompt.text),
        said,
        "texts of the prompts that wait"
      )
      const renamed = await request(target, `/sessions/${id}/title`, posted({ title: "seen" }, {}, "PUT"))
      same(renamed.status, 204, "status of a new title")
      same((await answer(target, Titled, `/sessions/${id}`)).title, "seen", "title")
      same((await answer(target, Waited, `/sessions/${id}/wait`)).settled, true, "whether an idle session has settled")
    }
  }
]
