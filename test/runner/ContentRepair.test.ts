/** A server that rejects content: what is withheld, how many requests it costs, and that the session goes on. */
import { assert, it } from "@effect/vitest"
import { Effect, Struct } from "effect"
import { eventsOf } from "./support/Runs.ts"
import { makeRefusing, model } from "./support/RefusingServer.ts"

const noPictures = (body: string) =>
  body.includes('"image_url"') ? "unknown variant `image_url`, expected `text`" : undefined
const flagged = (body: string) =>
  body.includes("forbidden") ? "Your input was flagged as potentially violating our usage policy" : undefined
const unnamed = (word: string) => (body: string) => (body.includes(word) ? "Bad Request" : undefined)

const echo = (words: string) => ["bash", { command: `echo ${words}` }] as const
/** The word is only in the result. */
const spoken = (word: string) => ["bash", { command: `printf '%s%s' ${word.slice(0, 3)} ${word.slice(3)}` }] as const

it.scopedLive("RQ-644: a picture that the server refuses is withheld, and the prompt goes on in its activity", () =>
  Effect.gen(function* () {
    const server = yield* makeRefusing({ rejects: noPictures, calls: [["read", { path: "a.png" }]] })
    assert.isUndefined(yield* server.ask("look"))
    const [part, ...more] = yield* server.withheld
    assert.deepInclude(part, { callID: "call_0", index: 0, kind: "image", model })
    assert.match(part?.reason ?? "", /unknown variant/)
    assert.deepStrictEqual(more, [])
    assert.strictEqual(server.received().length, 3)
    const types = (yield* server.run(eventsOf(server.id))).map(({ type }) => type)
    assert.strictEqual(types.filter((type) => type === "session.next.activity.started").length, 1)
    assert.isUndefined(yield* server.ask("and now?"))
    assert.strictEqual(server.received().length, 4)
  })
)

it.scopedLive("RQ-644: a picture that a prompt mentions is withheld, and its words are shown", () =>
  Effect.gen(function* () {
    const server = yield* makeRefusing({ rejects: noPictures })
    assert.isUndefined(yield* server.ask("what is @a.png"))
    const body = JSON.stringify(server.received().at(-1)?.body)
    assert.include(body, "what is @a.png")
    assert.include(body, 'The picture \\"a.png\\" is not shown')
  })
)

it.scopedLive("RQ-641: the model's sentence has no word of the server", () =>
  Effect.gen(function* () {
    const server = yield* makeRefusing({ rejects: noPictures, calls: [["read", { path: "a.png" }]] })
    yield* server.ask("look")
    assert.notInclude(JSON.stringify(server.received().at(-1)?.body), "unknown variant")
  })
)

it.scopedLive("RQ-644: messages list what is withheld, and a fork withholds it too", () =>
  Effect.gen(function* () {
    const server = yield* makeRefusing({ rejects: noPictures, calls: [["read", { path: "a.png" }]] })
    yield* server.ask("look")
    const fork = yield* server.sessions.fork({ sessionID: server.id })
    for (const sessionID of [server.id, fork.session.id]) {
      const { items } = yield* server.sessions.messages({ sessionID })
      assert.deepStrictEqual(
        items.flatMap(({ withheld = [] }) => withheld.map(({ index, kind }) => [kind, index])),
        [["image", 0]]
      )
    }
  })
)

it.scopedLive("RQ-645: of several pictures only the newest is withheld, if that helps", () =>
  Effect.gen(function* () {
    let bad = ""
    const server = yield* makeRefusing({
      rejects: (body) => {
        const pictures = body.match(/data:image\/png;base64,[\w+/=]+/g) ?? []
        bad = bad === "" && pictures.length === 2 ? (pictures[1] ?? "") : bad
        return bad !== "" && body.includes(bad) ? "Could not process image" : undefined
      },
      calls: [
        ["read", { path: "a.png" }],
        ["read", { path: "b.png" }]
      ]
    })
    assert.isUndefined(yield* server.ask("look"))
    assert.deepStrictEqual((yield* server.withheld).map(Struct.get("callID")), ["call_1"])
  })
)

it.scopedLive("RQ-645: an error without a reason is bisected, with at most three more requests", () =>
  Effect.gen(function* () {
    const words = ["alpha", "bravo", "forbidden", "delta", "echoes", "foxtrot"]
    const server = yield* makeRefusing({ rejects: unnamed("forbidden"), calls: words.map(spoken) })
    assert.isUndefined(yield* server.ask("go"))
    const body = JSON.stringify(server.received().at(-1)?.body)
    assert.strictEqual(server.received().length, 4)
    for (const word of words.slice(3)) assert.include(body, word)
    assert.notInclude(body, "forbidden")
  })
)

it.scopedLive("RQ-645: a refused text is withheld with the input of its call", () =>
  Effect.gen(function* () {
    const server = yield* makeRefusing({ rejects: flagged, calls: [echo("forbidden")] })
    assert.isUndefined(yield* server.ask("go"))
    assert.deepStrictEqual(
      (yield* server.withheld).map(({ callID, kind }) => [callID, kind]),
      [
        ["call_0", "text"],
        ["call_0", "input"]
      ]
    )
    assert.isUndefined(yield* server.ask("and now?"))
    assert.strictEqual(server.received().length, 5)
  })
)

it.scopedLive("RQ-646: what an accepted request had is innocent", () =>
  Effect.gen(function* () {
    const server = yield* makeRefusing({ rejects: unnamed("second"), calls: [echo("first")] })
    assert.isUndefined(yield* server.ask("go"))
    assert.include(yield* server.ask("the second one"), "Bad Request")
    assert.deepStrictEqual(yield* server.withheld, [])
    assert.strictEqual(server.received().length, 3)
  })
)

it.scopedLive("RQ-647: the words of a prompt are not withheld, and the error says what to do", () =>
  Effect.gen(function* () {
    const server = yield* makeRefusing({ rejects: flagged })
    assert.match((yield* server.ask("a forbidden word")) ?? "", /flagged .*daybook undo.*daybook switch/)
    assert.deepStrictEqual(yield* server.withheld, [])
    assert.strictEqual(server.received().length, 1)
  })
)

it.scopedLive("RQ-646: the next prompt goes on without the prompt that was refused", () =>
  Effect.gen(function* () {
    const server = yield* makeRefusing({ rejects: flagged })
    yield* server.ask("a forbidden word")
    assert.isUndefined(yield* server.ask("and now?"))
    assert.deepStrictEqual(
      (yield* server.withheld).map(({ callID, kind }) => [callID, kind]),
      [[undefined, "text"]]
    )
  })
)

it.scopedLive("RQ-648: parts whose absence does not help are shown again", () =>
  Effect.gen(function* () {
    const server = yield* makeRefusing({
      rejects: (body) => (body.includes("call_0") ? "Could not process image" : undefined),
      calls: [["read", { path: "a.png" }]]
    })
    assert.match((yield* server.ask("look")) ?? "", /daybook undo/)
    const { items } = yield* server.sessions.messages({ sessionID: server.id })
    assert.isTrue(items.every(({ withheld }) => withheld === undefined))
    assert.isAtMost(server.received().length, 5)
  })
)

it.scopedLive("RQ-648: parts are shown again when the next request fails for a reason beside content", () =>
  Effect.gen(function* () {
    const server = yield* makeRefusing({
      rejects: (body) => noPictures(body) ?? (body.includes("call_0") ? "no such key" : undefined),
      status: (reason) => (reason === "no such key" ? 401 : 400),
      calls: [["read", { path: "a.png" }]]
    })
    assert.include(yield* server.ask("look"), "no such key")
    const { items } = yield* server.sessions.messages({ sessionID: server.id })
    assert.isTrue(items.every(({ withheld }) => withheld === undefined))
  })
)

it.scopedLive("RQ-644: a kind after another is withheld too, and both stay withheld", () =>
  Effect.gen(function* () {
    const server = yield* makeRefusing({
      rejects: (body) => noPictures(body) ?? flagged(body),
      calls: [["read", { path: "a.png" }], spoken("forbidden")]
    })
    assert.isUndefined(yield* server.ask("look"))
    const { items } = yield* server.sessions.messages({ sessionID: server.id })
    assert.deepStrictEqual(
      items.flatMap(({ withheld = [] }) => withheld.map(({ kind }) => kind)),
      ["image", "text"]
    )
  })
)

const noThinking = (body: string) =>
  body.includes("reasoning_content") ? "messages.2.assistant.reasoning_content: property is unsupported" : undefined

it.scopedLive("MD-781: thinking that the server does not take back is withheld, and the session goes on", () =>
  Effect.gen(function* () {
    const server = yield* makeRefusing({ rejects: noThinking, calls: [echo("one")], thought: "I wonder" })
    assert.isUndefined(yield* server.ask("go"))
    assert.deepStrictEqual(
      (yield* server.withheld).map(({ callID, kind }) => [callID, kind]),
      [[undefined, "thinking"]]
    )
    const body = JSON.stringify(server.received().at(-1)?.body)
    assert.notInclude(body, "I wonder")
    assert.include(body, "call_0")
    assert.isUndefined(yield* server.ask("and now?"))
    assert.strictEqual(server.received().length, 4)
  })
)

it.scopedLive("MD-781: without thinking nothing else is withheld for it", () =>
  Effect.gen(function* () {
    const server = yield* makeRefusing({
      rejects: (body) => (body.includes("call_0") ? "Corrupted thought signature." : undefined),
      calls: [echo("one")]
    })
    assert.match((yield* server.ask("go")) ?? "", /Corrupted .*daybook switch/)
    assert.deepStrictEqual(yield* server.withheld, [])
  })
)
