/** What stands in place of media and texts that a model is not shown. */
import { assert, it } from "@effect/vitest"
import { Schema, Struct } from "effect"
import { conversation, lower, type LoweringTarget, shownTo } from "../../packages/core/src/request/Lowering.ts"
import { shownBy } from "../../packages/core/src/request/Recorded.ts"
import { assemble } from "../../packages/core/src/request/Request.ts"
import { withoutRefused } from "../../packages/core/src/request/Withholding.ts"
import { MessageID } from "../../packages/log/src/domain/Identifiers.ts"
import { Message } from "../../packages/log/src/domain/Message.ts"

const model = { providerID: "p", id: "m" }
const other = { providerID: "p", id: "n" }
const decode = Schema.decodeUnknownSync(Message)
const png = { uri: "data:image/png;base64,QUJD", mime: "image/png", name: "a.png" }
const pdf = { uri: "data:application/pdf;base64,QUJD", mime: "application/pdf", name: "a.pdf" }

const user = (seq: number, files: ReadonlyArray<unknown>, more: object = {}) =>
  decode({ type: "user", id: `msg_u${seq}`, seq, createdAt: 0, text: "see", files, ...more })
const read = (content: ReadonlyArray<unknown>, more: object = {}) =>
  decode({
    type: "assistant",
    id: "msg_a",
    seq: 2,
    createdAt: 0,
    agent: "build",
    model,
    content: [
      {
        type: "tool",
        id: "c1",
        name: "read",
        state: "completed",
        input: { path: "a" },
        provider: { executed: false },
        structured: {},
        content,
        createdAt: 0
      }
    ],
    ...more
  })
const file = (one: object) => ({ type: "file", ...one })
const json = (message: Message, shown: LoweringTarget) => JSON.stringify(lower([message], shown))

it("RQ-640: a medium that the model does not take is a sentence in the prompt, and what it takes is shown", () => {
  const text = json(user(1, [png, pdf]), { ...shownTo(model), media: ["image"] })
  assert.include(text, '"mediaType":"image/png"')
  assert.include(text, '[The PDF document \\"a.pdf\\" is not shown: this model reads no PDF documents.')
  assert.notInclude(text, '"mediaType":"application/pdf"')
})

it("RQ-640: a medium of a result becomes its text, without a message after the result", () => {
  const lowered = lower([read([file(png)])], { ...shownTo(model), media: [] })
  assert.deepStrictEqual(lowered.map(Struct.get("role")), ["assistant", "tool"])
  assert.include(JSON.stringify(lowered), '[The picture \\"a.png\\" is not shown: this model reads no pictures.')
})

it("RQ-640: when the facts do not say, all media are shown", () => {
  assert.include(json(user(1, [png]), shownTo(model)), '"mediaType":"image/png"')
})

it("RQ-641: a withheld part is a sentence for its model alone, whatever the variant", () => {
  const message = user(1, [png], { withheld: [{ index: 0, kind: "image", model, reason: "secret words" }] })
  for (const to of [model, { ...model, variant: "fast" }]) {
    assert.include(json(message, shownTo(to)), "the model's server refused it")
    assert.notInclude(json(message, shownTo(to)), "secret words")
  }
  assert.include(json(message, shownTo(other)), '"mediaType":"image/png"')
})

it("RQ-641: a call whose input is withheld has an empty input, and a result that says so", () => {
  const text = [{ type: "text", text: "forbidden" }]
  const withheld = [{ callID: "c1", kind: "input", model, reason: "flagged" }]
  const lowered = lower([read(text, { withheld })], shownTo(model))
  assert.include(JSON.stringify(lowered), '"params":{}')
  assert.include(JSON.stringify(lowered), "[The input and the result of this call are not shown")
  assert.notInclude(JSON.stringify(lowered), "forbidden")
})

it("CP-640: what is summarized holds no refused text", () => {
  const text = [{ type: "text", text: "forbidden" }]
  const result = read(text, { withheld: [{ callID: "c1", kind: "text", model, reason: "flagged" }] })
  const prompt = user(1, [], { text: "forbidden", withheld: [{ kind: "text", model, reason: "flagged" }] })
  assert.notInclude(JSON.stringify(withoutRefused([result, prompt], model)), "forbidden")
  assert.include(JSON.stringify(withoutRefused([result, prompt], other)), "forbidden")
})

const picturesIn = (count: number, pictures: number) =>
  JSON.stringify(
    conversation(
      Array.from({ length: count }, (_, at) => user(at, [{ ...png, name: `${at}.png` }])),
      { ...shownTo(model), pictures }
    ).flatMap(({ shown }) => shown)
  ).split('"mediaType"').length - 1

it("RQ-642: the oldest media beyond the limit go in blocks of a fifth of it", () => {
  assert.deepStrictEqual(
    [10, 11, 12, 13, 14, 15].map((count) => picturesIn(count, 10)),
    [10, 9, 10, 9, 10, 9]
  )
  assert.deepStrictEqual(
    [1, 2, 3].map((count) => picturesIn(count, 1)),
    [1, 1, 1]
  )
})

it("RQ-642: without a limit of the model, a request has at most 100 media", () => {
  const messages = Array.from({ length: 101 }, (_, at) => user(at, [png]))
  const shown = JSON.stringify(conversation(messages, shownTo(model)).flatMap((one) => one.shown))
  assert.strictEqual(shown.split('"mediaType"').length - 1, 81)
})

it("RQ-643: a frame says what the model takes, so that a past request is shown as it was", () => {
  const info = { ref: model, name: "m", contextTokens: 0, outputTokens: 0, media: ["pdf"] as const, pictures: 7 }
  const { frame } = assemble({
    info,
    system: ["Be brief."],
    baselineSeq: -1,
    messages: [],
    prunedSeq: undefined,
    tools: [],
    toolChoice: "auto",
    settings: {}
  })
  const step = { seq: 1, messageID: MessageID.make("msg_a") }
  const shown = shownBy({ step, agent: "build", model, frame, prunedSeq: -1 })
  assert.deepInclude(shown, { media: ["pdf"], pictures: 7 })
})
