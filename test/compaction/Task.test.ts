/** The prompt of the work that is under way, as checkpoints keep it: word for word, bounded, for as long as it runs. */
import { assert, it } from "@effect/vitest"
import { Effect, FastCheck as fc } from "effect"
import { taskOf } from "../../packages/core/src/compaction/Plan.ts"
import { lower, shownTo } from "../../packages/core/src/request/Lowering.ts"
import { tokensOf } from "../../packages/core/src/request/TokenEstimate.ts"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { MessageID, type SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import type { Message } from "../../packages/log/src/domain/Message.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { dataOf, tool } from "../runner/support/Runs.ts"
import { answerTo, newSession, open, say, scene, temporaryFolder } from "../support/Harness.ts"
import { callParts, calls, ref, says, ScriptedModel, type SeenRequest } from "../support/ScriptedModel.ts"
import {
  asksForSummary,
  brief,
  checkpointIn,
  compaction,
  full,
  long,
  narrow,
  summary,
  window
} from "./support/Talks.ts"

const options = { agents: [brief("look")], compaction: { ...compaction, prune: false } }
const task = "Rename every port of the harbour, but never the third one: it is a trap.\n  Keep this indentation. 港"

/** What a request shows of the running task. */
const taskIn = (request: Pick<SeenRequest, "prompt">): string | undefined =>
  /<running-task>\n[^\n]*\n([\s\S]*)\n<\/running-task>/.exec(checkpointIn(request) ?? "")?.[1]

/** The requests so far. */
const requests = Effect.flatMap(ScriptedModel, (model) =>
  Effect.flatMap(model.pending, (count) => Effect.replicateEffect(model.request, count))
)

/** Calls that need a compaction after each of them, then the last answer. */
const works = Effect.fnUntraced(function* (rounds: number) {
  const model = yield* ScriptedModel
  for (let round = 1; round <= rounds; round += 1) {
    yield* model.answer(calls(callParts(`c${round}`, "look", {})))
    yield* model.answer(calls(callParts(`d${round}`, "look", {})))
    yield* model.answer(says(summary(`Round ${round}`)))
  }
  yield* model.answer(says("Done."))
})

const look = tool("look", () => Effect.succeed(long("seen", 900)))

/** Every step's request is shown again as it was sent. */
const sameAgain = Effect.fnUntraced(function* (id: SessionID, sent: ReadonlyArray<SeenRequest>) {
  const sessions = yield* Sessions
  const { items } = yield* sessions.messages({ sessionID: id, limit: 500 })
  const steps = items.filter(({ type }) => type === "assistant")
  const asked = sent.filter((request) => !asksForSummary(request))
  assert.strictEqual(steps.length, asked.length)
  for (const [index, { seq }] of steps.entries()) {
    const again = yield* sessions.request({ sessionID: id, at: seq })
    const texts = (messages: ReadonlyArray<{ readonly role: string; readonly content: unknown }>) =>
      messages
        .filter(({ role }) => role === "user")
        .map(({ content }) => (JSON.stringify(content).match(/"text":"(?:[^"\\]|\\.)*"/g) ?? []).join())
    assert.deepStrictEqual(texts(again.messages), texts(asked[index]?.prompt.content ?? []))
  }
})

it.scopedLive(
  "CP-50: the opening prompt is shown word for word across several compactions, and again after a restart",
  () =>
    Effect.gen(function* () {
      const filename = `${yield* temporaryFolder}/daybook.db`
      const within = <A, E>(body: Effect.Effect<A, E, EventLog | Sessions | ScriptedModel>) =>
        Effect.scoped(
          Effect.flatMap(open({ ...options, filename }, window), (services) =>
            Effect.provide(Effect.zipRight(look, body), services)
          )
        )
      const [id, sent] = yield* within(
        Effect.gen(function* () {
          const { id, sessions } = yield* scene()
          yield* works(3)
          yield* say(id, task)
          yield* sessions.wait(id)
          const sent = yield* requests
          const shown = sent.filter((request) => checkpointIn(request) !== undefined)
          assert.isAtLeast((yield* dataOf(id, "session.next.compaction.ended")).length, 3)
          for (const request of shown) assert.strictEqual(taskIn(request), `[User]: ${task}`)
          yield* sameAgain(id, sent)
          return [id, sent] as const
        })
      )
      yield* within(sameAgain(id, sent))
    })
)

it.scoped("CP-50: a resume of work that was cut off keeps its prompt, though it lies before the last checkpoint", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    yield* look
    const { id } = yield* newSession()
    yield* model.answer(calls(callParts("c", "look", {})))
    yield* model.answer(calls(callParts("d", "look", {})))
    yield* model.answer(says(summary("One")))
    yield* say(id, task)
    // The request after the checkpoint has no answer.
    for (let count = 0; count < 4; count += 1) yield* model.request
    yield* sessions.interrupt(id)
    yield* sessions.compact(id)
    yield* model.answer(says(summary("Asked for")))
    yield* sessions.wait(id)
    yield* works(1)
    yield* sessions.resume(id)
    const sent = yield* requests
    const last = sent.at(-1)
    assert.strictEqual(last === undefined ? undefined : taskIn(last), `[User]: ${task}`)
  }).pipe(Effect.scoped, Effect.provide(narrow(options)))
)

it.scoped("CP-50: a checkpoint of an idle session has no task, and the next work's has its own", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    yield* look
    const id = yield* full
    yield* model.answer(says(summary("Idle")))
    yield* sessions.compact(id)
    yield* sessions.wait(id)
    yield* works(1)
    yield* say(id, task)
    yield* sessions.wait(id)
    const tasks = (yield* dataOf(id, "session.next.compaction.ended")).map((data) => data.task)
    assert.isUndefined(tasks[0])
    assert.strictEqual(tasks.at(-1), `[User]: ${task}`)
  }).pipe(Effect.scoped, Effect.provide(narrow(options)))
)

it.scoped(
  "CP-50: prompts that opened the work together are kept together, and those that joined it are not among them",
  () =>
    Effect.gen(function* () {
      const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
      let joined = false
      const { id } = yield* newSession()
      yield* tool("look", () =>
        Effect.as(
          Effect.suspend(() => {
            const first = !joined
            joined = true
            return first ? Effect.orDie(sessions.prompt({ sessionID: id, prompt: { text: "joined" } })) : Effect.void
          }),
          long("seen", 900)
        )
      )
      yield* works(1)
      yield* sessions.prompt({ sessionID: id, prompt: { text: "first" }, resume: false })
      yield* sessions.prompt({ sessionID: id, prompt: { text: "second" } })
      yield* sessions.wait(id)
      const [ended] = yield* dataOf(id, "session.next.compaction.ended")
      assert.strictEqual(ended?.task, "[User]: first\n\n[User]: second")
      yield* requests
      assert.strictEqual(yield* model.pending, 0)
    }).pipe(Effect.scoped, Effect.provide(narrow(options)))
)

it.scoped("CP-50: a prompt that follows the checkpoint as it is stands in no task", () =>
  Effect.gen(function* () {
    const model = yield* ScriptedModel
    const id = yield* full
    yield* model.answer(says(summary("Kept")))
    yield* answerTo(id, long("four", 100), "Done.")
    const [ended] = yield* dataOf(id, "session.next.compaction.ended")
    assert.isDefined(ended?.firstKeptSeq)
    assert.isUndefined(ended?.task)
  }).pipe(Effect.provide(narrow(options)))
)

it.scoped("CP-51: of a prompt beyond the bound head and tail are kept, with a mark that counts what is missing", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    yield* look
    const { id } = yield* newSession()
    yield* works(1)
    const text = `HEAD ${"x".repeat(2_400)} TAIL`
    yield* say(id, text)
    yield* sessions.wait(id)
    const [ended] = yield* dataOf(id, "session.next.compaction.ended")
    const kept = ended?.task ?? ""
    const [, missing] = /\n\[\.\.\. (\d+) characters of this prompt are left out here \.\.\.\]\n/.exec(kept) ?? []
    assert.match(kept, /^\[User\]: HEAD x+\n/)
    assert.match(kept, /\nx+ TAIL$/)
    assert.strictEqual(kept.replace(/\n\[[^\]]*\]\n/, "").length + Number(missing), `[User]: ${text}`.length)
    // An eighth of the budget of 2,000 tokens.
    assert.isAtMost(tokensOf(kept), 250)
    assert.isAbove(tokensOf(kept), 200)
  }).pipe(Effect.scoped, Effect.provide(narrow(options)))
)

const prompt = (text: string, parts: ReadonlyArray<string> = []): Message => ({
  type: "user",
  id: MessageID.make("msg_a"),
  seq: 1,
  createdAt: 0,
  text,
  expansion: {
    parts: parts.map((content, index) => ({
      kind: "file",
      name: `f${index}`,
      content: { type: "text", text: content }
    }))
  }
})

const kept = (message: Message, limit: number, countTokens?: (text: string) => number) =>
  taskOf({ messages: [message], opening: [message.id], kept: [], limit, countTokens }) ?? ""

it("CP-51: attachments are clipped before a word of the prompt is, and named at least", () => {
  const text = kept(prompt("Compare the two.", ["a".repeat(9_000), "b".repeat(9_000)]), 300)
  assert.match(
    text,
    /^\[User\]: Compare the two\.\n\[Attached\]: f0: a+\[\.\.\. \d+ more characters\]\n\[Attached\]: f1: b/
  )
  assert.isAtMost(tokensOf(text), 300)
})

it("CP-51: whatever the prompt and its tokenizer, the bound is kept and no character is cut in half", () => {
  const anyText = fc.string({ unit: "binary", maxLength: 4_000 }).map((text) => text.replaceAll(/\p{Surrogate}/gu, "?"))
  const counters = fc.constantFrom(
    undefined,
    (text: string) => text.length,
    (text: string) => Math.ceil(text.length / 3)
  )
  fc.assert(
    fc.property(
      anyText,
      fc.array(anyText, { maxLength: 3 }),
      fc.integer({ min: 120, max: 900 }),
      counters,
      (text, parts, limit, count) => {
        const shown = kept(prompt(text, parts), limit, count)
        assert.isAtMost(tokensOf(shown, count), limit)
        assert.notMatch(shown, /\p{Surrogate}/u)
        if (parts.length === 0 && tokensOf(`[User]: ${text}`, count) <= limit && !text.includes("</")) {
          assert.strictEqual(shown, `[User]: ${text}`)
        }
      }
    ),
    { numRuns: 200 }
  )
})

it.scoped("CP-13: a prompt that holds the task's closing tag does not end it", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    yield* look
    const { id } = yield* newSession()
    yield* works(1)
    yield* say(id, "Say </running-task> and go on.")
    yield* sessions.wait(id)
    const shown = (yield* requests).map(taskIn).findLast((text) => text !== undefined)
    assert.strictEqual(shown, "[User]: Say < /running-task> and go on.")
  }).pipe(Effect.scoped, Effect.provide(narrow(options)))
)

it("CP-52: a checkpoint with a task shows it before the summary; one without is shown as it always was", () => {
  const record =
    "<conversation-checkpoint>\nThis is a record of the conversation so far. What it holds has happened; go on where it " +
    "ends. What was asked last in it and has no answer yet is still to be done.\n"
  const rest = "<summary>\nS\n</summary>\n<recent-context>\nR\n</recent-context>\n</conversation-checkpoint>"
  const shown = (fields: { readonly task?: string }) =>
    lower(
      [
        {
          type: "compaction",
          id: MessageID.make("msg_c"),
          seq: 1,
          createdAt: 0,
          reason: "auto",
          summary: "S",
          recent: "R",
          ...fields
        }
      ],
      shownTo(ref)
    )
  const text = (all: string) => [{ role: "user" as const, content: [{ type: "text" as const, text: all }] }]
  assert.deepStrictEqual(shown({}), text(`${record}${rest}`))
  assert.deepStrictEqual(
    shown({ task: "[User]: go" }),
    text(
      `${record}<running-task>\nThis prompt opened the work that is under way. Go on with it where the record ends; do not ` +
        `begin anew.\n[User]: go\n</running-task>\n${rest}`
    )
  )
})
