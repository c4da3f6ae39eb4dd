/**
 * A day of agent work with every known model server. Method: the real runtime, with models from `Models`, talks over real HTTP to
 * a server that answers a script in its own style and checks each request by its documented rules (`ModelServers.ts`). What must
 * hold: no request breaks a rule, and each step has its outcome, in the log and in the next request.
 */
import { cp } from "node:fs/promises"
import { join } from "node:path"
import { Tool } from "@effect/ai"
import { assert, describe, layer } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer, Queue, Schema, Stream, TestClock } from "effect"
import { Models } from "@daybook/models"
import { ToolFailure } from "../../packages/core/src/domain/ToolError.ts"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { HostTools } from "../../packages/core/src/tool/HostTools.ts"
import { define } from "../../packages/core/src/tool/ToolDefinition.ts"
import * as Daybook from "../../packages/embedded/src/Daybook.ts"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import type { PromptInput } from "../../packages/log/src/domain/Values.ts"
import { brief, compaction, compactions, long, summary } from "../compaction/support/Talks.ts"
import { failureOf, transcript } from "../runner/support/Runs.ts"
import { newSession, temporaryFolder } from "../support/Harness.ts"
import { modelServers, type ModelServer, type Running, start } from "../support/ModelServers.ts"
import { giveFileTo, goneOwner } from "../support/Owners.ts"
import { picture } from "../support/Pictures.ts"
import { untilAsleep, waitingFor } from "../support/Waiting.ts"

/** The server under test, another one to switch to, and the calls of `hang` that began. */
class Scene extends Context.Tag("test/Scene")<
  Scene,
  { readonly one: Running; readonly other: Running; readonly hanging: Queue.Queue<void> }
>() {}

const scene = (server: ModelServer) =>
  Layer.scoped(
    Scene,
    Effect.all({
      one: start(server),
      other: start(Object.values(modelServers).find(({ api }) => api !== server.api) ?? server),
      hanging: Queue.unbounded<void>()
    })
  )

const models = Layer.unwrapEffect(
  Effect.map(Scene, ({ one, other }) =>
    Models.layerOptions({
      providers: { [one.ref.providerID]: one.provider, [other.ref.providerID]: other.provider },
      default: one.ref,
      policy: { retry: { times: 2, baseDelay: "200 millis", maxDelay: "900 millis" } }
    })
  )
)

const named = (name: string) => Tool.make(name, { parameters: { path: Schema.String }, success: Schema.String })

/** Tools that succeed, fail, and never end. */
const tools = Layer.scopedDiscard(
  Effect.gen(function* () {
    const [host, { hanging }] = [yield* HostTools, yield* Scene]
    yield* host.register([
      define(named("look"), { handler: ({ path }) => Effect.succeed(`saw ${path}`) }),
      define(named("fail"), {
        handler: ({ path }) => new ToolFailure({ type: "tool.execution", message: `no ${path} here` })
      }),
      define(named("hang"), { handler: () => Effect.zipRight(Queue.offer(hanging, undefined), Effect.never) })
    ])
  })
)

const agent = { ...brief("look", "fail", "hang"), prompt: long("Be brief.", 2_000) }

const runtime = (filename: string) =>
  tools.pipe(Layer.provideMerge(Daybook.layer({ filename, agents: [agent], compaction })), Layer.provide(models))

/** A new session, and a server without answers of an earlier test. */
const opened = Effect.gen(function* () {
  const { one, other } = yield* Scene
  for (const running of [one, other]) running.clear()
  return { one, other, ...(yield* newSession()) }
})

/** Runs a prompt to its end, which must be an answer. */
const prompt = (id: SessionID, text: string, more: Partial<PromptInput> = {}) =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    yield* sessions.prompt({ sessionID: id, prompt: { text, ...more }, resume: false })
    const failure = yield* failureOf(sessions.resume(id))
    yield* noFaults
    assert.isUndefined(failure)
  })

/** The texts, thoughts and calls of a session, as `show` prints them. */
const shown = (id: SessionID) =>
  Effect.map(transcript(id), (messages) =>
    messages.flatMap((message) =>
      message.type === "user"
        ? [`user: ${message.text}`]
        : message.type !== "assistant"
          ? []
          : message.content.map((part) =>
              part.type === "tool" ? `${part.name}: ${part.state}` : `${part.type}: ${part.text ?? ""}`
            )
    )
  )

const lastRequest = ({ received }: Running): string => JSON.stringify(received.at(-1)?.body)

/** No request broke a rule of its server. */
const noFaults = Effect.map(Scene, ({ one, other }) => assert.deepStrictEqual([...one.faults(), ...other.faults()], []))

describe.each(modelServers.map((server) => [server.profile, server] as const))("%s", (_, server) => {
  const reason = (text: string) => ({ reason: text })
  const thought = (text: string) => (server.thinks ? [`reasoning: ${text}`] : [])

  // `it.layer` would nest this server's layer in that of the server before.
  layer(runtime(":memory:").pipe(Layer.provideMerge(scene(server))))((it) => {
    it.scoped("MD-130: three turns with thinking and a call keep their parts, and later requests hold them", () =>
      Effect.gen(function* () {
        const { id, one } = yield* opened
        one.answer(reason("I must look."), { tool: "look", input: { path: "a.txt" } })
        one.answer(reason("That is it."), { text: "It says A." })
        one.answer(reason("Easy."), { text: "Nothing else." })
        one.answer(reason("They thank me."), { text: "You are welcome." })
        for (const text of ["What is in a.txt?", "What else?", "Thanks!"]) yield* prompt(id, text)
        assert.deepStrictEqual(yield* shown(id), [
          "user: What is in a.txt?",
          ...thought("I must look."),
          "look: completed",
          ...thought("That is it."),
          "text: It says A.",
          "user: What else?",
          ...thought("Easy."),
          "text: Nothing else.",
          "user: Thanks!",
          ...thought("They thank me."),
          "text: You are welcome."
        ])
        for (const text of ["saw a.txt", "It says A.", "Nothing else."]) assert.include(lastRequest(one), text)
        yield* noFaults
      })
    )

    it.scoped("MD-131: two parallel calls have a result each", () =>
      Effect.gen(function* () {
        const { id, one } = yield* opened
        const look = (path: string) => ({ tool: "look", input: { path } })
        one.answer(reason("Both."), look("left.txt"), look("right.txt"))
        one.answer({ text: "Two files." })
        yield* prompt(id, "Look at both.")
        const calls = ["look: completed", "look: completed"]
        assert.deepStrictEqual(yield* shown(id), [
          "user: Look at both.",
          ...thought("Both."),
          ...calls,
          "text: Two files."
        ])
        for (const text of ["saw left.txt", "saw right.txt"]) assert.strictEqual(lastRequest(one).split(text).length, 2)
        yield* noFaults
      })
    )

    it.scoped("MD-132: a failed call is answered with its error", () =>
      Effect.gen(function* () {
        const { id, one } = yield* opened
        one.answer({ tool: "fail", input: { path: "b.txt" } })
        one.answer({ text: "It is not there." })
        yield* prompt(id, "Read b.txt.")
        assert.deepStrictEqual(yield* shown(id), ["user: Read b.txt.", "fail: error", "text: It is not there."])
        assert.include(lastRequest(one), "no b.txt here")
        yield* noFaults
      })
    )

    it.scoped("MD-133: an answer that was interrupted keeps its text, and the session goes on", () =>
      Effect.gen(function* () {
        const [sessions, { id, one }] = [yield* Sessions, yield* opened]
        const wrote = yield* Deferred.make<void>()
        const whole = "Once upon a time"
        yield* sessions.live(id).pipe(
          Stream.filter((event) => event.type === "session.next.text.delta"),
          Stream.mapAccum("", (text, { data }) => [text + data.delta, text + data.delta]),
          Stream.runForEach((text) => (text === whole ? Deferred.succeed(wrote, undefined) : Effect.void)),
          Effect.forkScoped
        )
        one.hold(reason("A tale."), { text: whole })
        yield* sessions.prompt({ sessionID: id, prompt: { text: "Tell me a story." } })
        yield* waitingFor("the text")(Deferred.await(wrote))
        yield* sessions.interrupt(id)
        one.answer({ text: "As you wish." })
        yield* prompt(id, "Another one.")
        assert.deepStrictEqual((yield* shown(id)).slice(-3), [
          `text: ${whole}`,
          "user: Another one.",
          "text: As you wish."
        ])
        yield* noFaults
      })
    )

    it.scoped("MD-134: a session switches to another server and back", () =>
      Effect.gen(function* () {
        const [sessions, { id, one, other }] = [yield* Sessions, yield* opened]
        const turn = Effect.fnUntraced(function* (running: Running, path: string) {
          yield* sessions.switchModel(id, running.ref)
          running.answer(reason(`I must see ${path}.`), { tool: "look", input: { path } })
          running.answer(reason("Done."), { text: `Read ${path}.` })
          yield* prompt(id, `Look at ${path}.`)
        })
        yield* turn(one, "c1.txt")
        yield* turn(other, "c2.txt")
        yield* turn(one, "c3.txt")
        yield* turn(other, "c4.txt")
        for (const path of ["c1", "c2", "c3", "c4"]) assert.include(lastRequest(other), `saw ${path}.txt`)
        yield* noFaults
      })
    )

    it.scoped(`MD-135: a picture is ${server.pictures ? "sent" : "a sentence"}`, () =>
      Effect.gen(function* () {
        const { id, one } = yield* opened
        const data = (yield* picture()).toString("base64")
        const file = { uri: `data:image/png;base64,${data}`, mime: "image/png", name: "a.png" }
        one.answer({ text: "Red and blue." })
        yield* prompt(id, "What is this?", { files: [file] })
        assert.strictEqual(lastRequest(one).includes(data), server.pictures)
        assert.strictEqual(lastRequest(one).includes("this model reads no pictures"), !server.pictures)
        yield* noFaults
      })
    )

    const filled = Effect.gen(function* () {
      const { id, one } = yield* opened
      for (const name of ["one", "two", "three"]) {
        one.answer({ text: long(`${name}-answer`, 100) })
        yield* prompt(id, long(name, 500))
      }
      return id
    })

    it.scoped("MD-136: a compaction makes room, and the session goes on from its summary", () =>
      Effect.gen(function* () {
        const [sessions, { one }] = [yield* Sessions, yield* Scene]
        const id = yield* filled
        one.answer(reason("What matters?"), { text: summary("To count") })
        yield* sessions.compact(id)
        yield* sessions.wait(id)
        one.answer({ text: "Four." })
        yield* prompt(id, "Go on.")
        assert.deepStrictEqual(yield* compactions(id), ["requested", "started", "ended"])
        assert.include(lastRequest(one), "To count")
        assert.notInclude(lastRequest(one), "one-answer")
        const [checkpoint] = yield* sessions.context(id)
        assert.strictEqual(checkpoint?.type, "compaction")
        yield* noFaults
      })
    )

    it.scoped("MD-137: a request that is too long causes a compaction, and the prompt is answered", () =>
      Effect.gen(function* () {
        const { one } = yield* Scene
        const id = yield* filled
        one.refuse("overflow")
        one.answer({ text: summary("To fit") })
        one.answer({ text: "Four is done." })
        yield* prompt(id, "four")
        assert.deepStrictEqual((yield* shown(id)).at(-1), "text: Four is done.")
        assert.include(lastRequest(one), "To fit")
        yield* noFaults
      })
    )

    it.scoped("MD-138: a rate limit is waited for, as long as the server asks", () =>
      Effect.gen(function* () {
        const [sessions, { id, one }] = [yield* Sessions, yield* opened]
        one.refuse("rateLimit")
        one.answer({ text: "At last." })
        const run = yield* Effect.fork(prompt(id, "Hurry."))
        const retried = sessions.events({ sessionID: id }).pipe(
          Stream.filter(({ type }) => type === "session.next.retried"),
          Stream.runHead
        )
        yield* waitingFor("the retry")(retried)
        yield* untilAsleep(7_000)
        yield* TestClock.adjust("7 seconds")
        assert.isUndefined(yield* Fiber.join(run))
        assert.deepStrictEqual(yield* shown(id), ["user: Hurry.", "text: At last."])
        yield* noFaults
      })
    )

    it.scoped("MD-139: a process that was killed in a call leaves a session that another one continues", () =>
      Effect.gen(function* () {
        const [{ hanging }, { one }] = [yield* Scene, yield* opened]
        const folder = yield* temporaryFolder
        const [file, killed] = [join(folder, "one.db"), join(folder, "two.db")]
        const id = yield* Effect.gen(function* () {
          const sessions = yield* Sessions
          const { id } = yield* newSession()
          one.answer(reason("It may take long."), { tool: "hang", input: { path: "d.txt" } })
          yield* sessions.prompt({ sessionID: id, prompt: { text: "Wait for it." } })
          yield* waitingFor("the call")(Queue.take(hanging))
          // The file as the killed process leaves it.
          yield* Effect.promise(async () => {
            for (const end of ["", "-wal"]) await cp(`${file}${end}`, `${killed}${end}`)
          })
          return id
        }).pipe(Effect.provide(Layer.fresh(runtime(file))))
        yield* giveFileTo(killed, goneOwner)
        yield* Effect.gen(function* () {
          one.answer({ text: "It did not end." })
          assert.isUndefined(yield* failureOf(Effect.flatMap(Sessions, (sessions) => sessions.resume(id))))
          assert.deepStrictEqual((yield* shown(id)).slice(-2), ["hang: error", "text: It did not end."])
          assert.include(lastRequest(one), "Tool execution interrupted")
        }).pipe(Effect.provide(Layer.fresh(runtime(killed))))
        yield* noFaults
      })
    )

    it.scoped("MD-129: a prompt that was taken back is in no later request", () =>
      Effect.gen(function* () {
        const [sessions, { id, one }] = [yield* Sessions, yield* opened]
        for (const text of ["First it is.", "Second it is.", "Third it is."]) one.answer(reason("Hm."), { text })
        yield* prompt(id, "first")
        yield* prompt(id, "second")
        yield* sessions.undo({ sessionID: id })
        assert.strictEqual((yield* sessions.context(id)).length, 2)
        yield* prompt(id, "third")
        assert.include(lastRequest(one), "First it is.")
        assert.notInclude(lastRequest(one), "Second it is.")
        yield* noFaults
      })
    )
  })
})
