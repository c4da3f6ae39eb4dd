/** Branches from the facade down: what the model is shown after a move of the leaf, and what stays in the tree. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Layer, Stream } from "effect"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import { MessageID, type SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import {
  answerTo,
  eventTypes,
  exchange,
  newSession,
  type Runtimes,
  say,
  scene,
  userTexts
} from "../../support/Harness.ts"
import { callParts, calls, textParts } from "../../support/ScriptedModel.ts"

export const branching = ({ runtime }: Runtimes) => {
  const ids = Effect.fnUntraced(function* (sessionID: SessionID, type: string) {
    const { items } = yield* (yield* Sessions).messages({ sessionID, branch: "all" })
    return items.flatMap((message) => (message.type === type ? [message.id] : []))
  })

  const at = (all: ReadonlyArray<MessageID>, index: number): MessageID => all[index] ?? MessageID.make("msg_none")

  const texts = (sessionID: SessionID, branch: "path" | "all" = "path") =>
    Effect.map(
      Effect.flatMap(Sessions, (sessions) => sessions.messages({ sessionID, branch })),
      ({ items }) =>
        items.flatMap((message) =>
          message.type === "user"
            ? [message.text]
            : message.type === "assistant"
              ? message.content.flatMap((part) => (part.type === "text" ? [part.text ?? ""] : []))
              : []
        )
    )

  const suite = <E>(title: string, body: Effect.Effect<void, E, Layer.Layer.Success<ReturnType<typeof runtime>>>) =>
    it.scopedLive(title, () => Effect.provide(body, runtime()))

  describe("branch", () => {
    suite(
      "HP-20: after a branch the next request shows the history up to that message, and nothing that came after it",
      Effect.gen(function* () {
        const { id, sessions } = yield* scene()
        yield* exchange(id, "one", "1")
        yield* exchange(id, "two", "2")
        yield* exchange(id, "three", "3")
        const answers = yield* ids(id, "assistant")
        const branched = yield* sessions.branch({ sessionID: id, messageID: at(answers, 0) })
        assert.deepStrictEqual(branched, { moved: true, leafID: at(answers, 0) })
        assert.deepStrictEqual(userTexts(yield* exchange(id, "four", "4")), ["one", "four"])
        assert.deepStrictEqual(userTexts(yield* exchange(id, "five", "5")), ["one", "four", "five"])
        assert.deepStrictEqual(yield* texts(id), ["one", "1", "four", "4", "five", "5"])
        assert.deepStrictEqual(yield* texts(id, "all"), [
          "one",
          "1",
          "two",
          "2",
          "three",
          "3",
          "four",
          "4",
          "five",
          "5"
        ])
        // And back to the branch that was left.
        yield* sessions.branch({ sessionID: id, messageID: at(answers, 1) })
        assert.deepStrictEqual(userTexts(yield* exchange(id, "six", "6")), ["one", "two", "six"])
      })
    )

    suite(
      "HP-21: a prompt is branched off before it, and its text is returned to be edited and sent again",
      Effect.gen(function* () {
        const { id, sessions } = yield* scene()
        yield* exchange(id, "one", "1")
        yield* exchange(id, "two", "2")
        const prompts = yield* ids(id, "user")
        const second = yield* sessions.branch({ sessionID: id, messageID: at(prompts, 1) })
        assert.deepStrictEqual(second.prompt, { text: "two" })
        assert.deepStrictEqual(userTexts(yield* exchange(id, "two, edited", "2")), ["one", "two, edited"])
        const first = yield* sessions.branch({ sessionID: id, messageID: at(prompts, 0) })
        assert.deepStrictEqual(first, { moved: true, prompt: { text: "one" } })
        assert.deepStrictEqual(userTexts(yield* exchange(id, "other", "0")), ["other"])
      })
    )

    suite(
      "HP-22: a branch to the leaf stores nothing; a branch to an unknown message is refused and stores nothing",
      Effect.gen(function* () {
        const { id, sessions } = yield* scene()
        yield* exchange(id, "one", "1")
        const other = yield* newSession()
        yield* exchange(other.id, "elsewhere", "1")
        const before = yield* eventTypes(id)
        const leaf = at(yield* ids(id, "assistant"), 0)
        assert.deepStrictEqual(yield* sessions.branch({ sessionID: id, messageID: leaf }), {
          moved: false,
          leafID: leaf
        })
        for (const messageID of ["msg_unknown", "what?", at(yield* ids(other.id, "assistant"), 0)]) {
          const refused = yield* Effect.flip(sessions.branch({ sessionID: id, messageID }))
          assert.strictEqual(refused._tag, "MessageNotFound")
        }
        assert.deepStrictEqual(yield* eventTypes(id), before)
      })
    )

    suite(
      "HP-22: while the session runs, a branch is refused and stores nothing",
      Effect.gen(function* () {
        const { id, model, sessions } = yield* scene()
        yield* exchange(id, "one", "1")
        const gate = yield* Deferred.make<void>()
        yield* model.answer(
          Stream.concat(Stream.fromIterable(textParts("t", "2")), Stream.drain(Stream.fromEffect(Deferred.await(gate))))
        )
        yield* say(id, "two")
        yield* model.request
        const refused = yield* Effect.flip(
          sessions.branch({ sessionID: id, messageID: at(yield* ids(id, "assistant"), 0) })
        )
        assert.strictEqual(refused._tag, "SessionBusy")
        yield* Deferred.succeed(gate, undefined)
        yield* sessions.interrupt(id)
        assert.notInclude(yield* eventTypes(id), "session.next.leaf.moved")
      })
    )

    suite(
      "HP-23: a reset continues before the first message",
      Effect.gen(function* () {
        const { id, sessions } = yield* scene()
        assert.deepStrictEqual(yield* sessions.reset(id), { moved: false })
        yield* exchange(id, "one", "1")
        assert.deepStrictEqual(yield* sessions.reset(id), { moved: true })
        assert.deepStrictEqual(yield* sessions.reset(id), { moved: false })
        assert.deepStrictEqual(yield* sessions.context(id), [])
        assert.deepStrictEqual(userTexts(yield* exchange(id, "two", "2")), ["two"])
      })
    )

    suite(
      "HP-7: a request of an earlier turn shows the path as it was then",
      Effect.gen(function* () {
        const { id, log, sessions } = yield* scene()
        const seen = [yield* exchange(id, "one", "1"), yield* exchange(id, "two", "2")]
        yield* sessions.branch({ sessionID: id, messageID: at(yield* ids(id, "assistant"), 0) })
        seen.push(yield* exchange(id, "three", "3"))
        yield* sessions.branch({ sessionID: id, messageID: at(yield* ids(id, "assistant"), 1) })
        seen.push(yield* exchange(id, "four", "4"))
        const { events } = yield* log.read({ sessionID: id })
        const steps = events.filter(({ type }) => type === "session.next.step.started")
        const shown = yield* Effect.forEach(steps, ({ seq }) => sessions.request({ sessionID: id, at: seq }))
        const said = shown.map(({ messages }) =>
          messages.flatMap(({ content, role }) =>
            role !== "user" || typeof content === "string"
              ? []
              : content.flatMap((part) => (part.type === "text" ? [part.text] : []))
          )
        )
        assert.deepStrictEqual(
          said.map((all) => all.filter((text) => !text.startsWith("<reminder>"))),
          seen.map(userTexts)
        )
        assert.deepStrictEqual(said.at(-1), ["one", "two", "four"])
      })
    )
  })

  describe("the tree", () => {
    suite(
      "HP-4: a message follows the one before it, and the first one after a move follows the message that it names",
      Effect.gen(function* () {
        const { id, sessions } = yield* scene()
        yield* exchange(id, "one", "1")
        yield* exchange(id, "two", "2")
        const answers = yield* ids(id, "assistant")
        yield* sessions.branch({ sessionID: id, messageID: at(answers, 0) })
        yield* exchange(id, "three", "3")
        yield* sessions.reset(id)
        yield* exchange(id, "four", "4")
        const whole = yield* sessions.tree({ sessionID: id })
        const all = [...whole.items]
        const parents = new Map(all.map((node) => [node.text, all.find(({ id }) => id === node.parentID)?.text]))
        assert.deepStrictEqual(
          ["one", "1", "two", "2", "three", "3", "four", "4"].map((text) => parents.get(text)),
          [undefined, "one", "1", "two", "1", "three", undefined, "four"]
        )
        assert.deepStrictEqual(
          all.filter(({ onPath }) => onPath).map(({ text }) => text),
          ["four", "4"]
        )
        assert.strictEqual(all.find(({ leaf }) => leaf)?.text, "4")
        const paged: Array<(typeof all)[number]> = []
        for (let cursor: number | undefined = -1; cursor !== undefined;) {
          const page: typeof whole = yield* sessions.tree({ sessionID: id, limit: 3, cursor })
          paged.push(...page.items)
          cursor = page.cursor
        }
        assert.deepStrictEqual(paged, all)
      })
    )

    suite(
      "HP-24: a label names a message until another one replaces or removes it",
      Effect.gen(function* () {
        const { id, sessions } = yield* scene()
        yield* exchange(id, "one", "1")
        const messageID = at(yield* ids(id, "assistant"), 0)
        const labels = Effect.map(sessions.tree({ sessionID: id }), ({ items }) =>
          items.flatMap(({ label }) => (label === undefined ? [] : [label]))
        )
        yield* sessions.label({ sessionID: id, messageID, label: "first" })
        yield* sessions.label({ sessionID: id, messageID, label: "second" })
        assert.deepStrictEqual(yield* labels, ["second"])
        yield* sessions.label({ sessionID: id, messageID })
        assert.deepStrictEqual(yield* labels, [])
        const unknown = yield* Effect.flip(sessions.label({ sessionID: id, messageID: "msg_none", label: "x" }))
        assert.strictEqual(unknown._tag, "MessageNotFound")
        for (const label of ["", "two\nlines", " padded", "x".repeat(101)]) {
          const refused = yield* Effect.flip(sessions.label({ sessionID: id, messageID, label }))
          assert.strictEqual(refused._tag, "InvalidInput", label)
        }
      })
    )
  })

  describe("tools", () => {
    suite(
      "HP-3: a call keeps its result in every branch that holds its message",
      Effect.gen(function* () {
        const { id, model, sessions } = yield* scene()
        yield* model.answer(calls(callParts("c1", "todo", { items: [{ text: "first", status: "pending" }] })))
        yield* answerTo(id, "one", "done")
        yield* model.request
        yield* model.request
        const calling = at(yield* ids(id, "assistant"), 0)
        yield* model.answer(calls(callParts("c2", "todo", { items: [{ text: "second", status: "pending" }] })))
        yield* answerTo(id, "two", "done")
        yield* model.request
        yield* model.request
        const todos = Effect.map(sessions.todos(id), (items) => items.map(({ text }) => text))
        assert.deepStrictEqual(yield* todos, ["second"])
        yield* sessions.branch({ sessionID: id, messageID: calling })
        assert.deepStrictEqual(yield* todos, ["first"])
        const { prompt } = yield* exchange(id, "three", "3")
        const results = prompt.content.flatMap((message) =>
          message.role === "tool" ? message.content.map(({ id }) => id) : []
        )
        assert.deepStrictEqual(results, ["c1"])
        yield* sessions.reset(id)
        assert.deepStrictEqual(yield* todos, [])
      })
    )
  })
}
