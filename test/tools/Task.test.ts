/** The tool `task` from the facade down: a child session, what it is shown, what it may do, and how it ends. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Stream, Struct } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import type { Session } from "../../packages/log/src/domain/Message.ts"
import { dataOf, eventsOf, transcript } from "../runner/support/Runs.ts"
import { GatedModel } from "../session/support/GatedModel.ts"
import { newSession, say, temporaryFolder } from "../support/Harness.ts"
import { callParts, calls, failure, finish, says, textParts } from "../support/ScriptedModel.ts"
import { allowing, childrenOf, delegates, family, hands, play } from "./Family.ts"

const only = (sessions: ReadonlyArray<Session>): Session => {
  const [first] = sessions
  if (sessions.length !== 1 || first === undefined) throw new Error(`expected one session, got ${sessions.length}`)
  return first
}

/** A session that works on the prompt until nothing is left to do. */
const worked = Effect.fnUntraced(function* (prompt: string, agent?: string, directory?: string) {
  const sessions = yield* Sessions
  const { id, location } = yield* newSession(directory)
  const session = agent === undefined ? { id } : yield* sessions.create({ location, agent })
  yield* say(session.id, prompt)
  yield* sessions.wait(session.id)
  return session.id
})

it.scoped(
  "TO-101: a task runs in a session of its own and gives back its last answer, and where to read the rest",
  () =>
    Effect.gen(function* () {
      const sessions = yield* Sessions
      yield* play((turn) => (turn.told === "parent" ? delegates(turn, "count the files") : says("there are 3")))
      const id = yield* worked("parent")
      const parent = yield* sessions.get(id)
      const child = only(yield* childrenOf(id))
      assert.deepInclude(child, { parentID: id, title: "about count the files", location: parent.location })
      assert.strictEqual(child.agent, "build")
      assert.deepStrictEqual(
        (yield* dataOf(id, "session.next.tool.success")).map(({ content, structured }) => [structured, content]),
        [[{ sessionID: child.id, state: "completed" }, [{ type: "text", text: "there are 3" }]]]
      )
      assert.deepStrictEqual(
        (yield* transcript(child.id)).map((message) => (message.type === "user" ? message.text : message.type)),
        ["count the files", "assistant"]
      )
      assert.deepStrictEqual((yield* transcript(id)).map(Struct.get("type")), ["user", "assistant", "assistant"])
    }).pipe(Effect.provide(family()))
)

it.scoped("TO-102: the child's id is in the parent's log before the child's model is asked", () =>
  Effect.gen(function* () {
    const model = yield* GatedModel
    const sessions = yield* Sessions
    const { id } = yield* newSession()
    yield* say(id, "parent")
    yield* (yield* model.request).answer(hands("child"))
    const held = yield* model.request
    const child = only(yield* childrenOf(id))
    assert.strictEqual(child.activity?.state, "running")
    yield* held.answer(says("done"))
    yield* (yield* model.request).answer(says("heard"))
    yield* sessions.wait(id)
    // The same call names the same child: made again, it is the one that is there.
    const again = yield* sessions.create({ id: child.id, parentID: id, location: child.location })
    assert.strictEqual(again.title, "about child")
  }).pipe(Effect.provide(family()))
)

it.scoped(
  "TO-121, TO-101: the caller's agent takes the task where it may, else `build`; others say that they do not",
  () =>
    Effect.gen(function* () {
      yield* play((turn) => {
        if (turn.told === "whom") return delegates(turn, "a")
        if (turn.told === "leader") return delegates(turn, "b")
        if (turn.told === "names")
          return delegates(
            turn,
            { agent: "helper", prompt: "c" },
            { agent: "lead", prompt: "d" },
            { agent: "nobody", prompt: "e" }
          )
        return says("done")
      })
      assert.strictEqual(only(yield* childrenOf(yield* worked("whom", "both"))).agent, "both")
      assert.strictEqual(only(yield* childrenOf(yield* worked("leader", "lead"))).agent, "build")
      const id = yield* worked("names", "both")
      assert.strictEqual(only(yield* childrenOf(id)).agent, "helper")
      const failed = (yield* dataOf(id, "session.next.tool.failed")).map(({ error }) => error)
      assert.deepStrictEqual(failed.map(Struct.get("type")), ["tool.input", "tool.input"])
      const messages = failed.map(({ message }) => message).join("\n")
      assert.match(messages, /"lead" takes no tasks; there are: .*helper/)
      assert.match(messages, /there is no agent "nobody"; known: .*helper/)
    }).pipe(
      Effect.provide(
        family({
          agents: [allowing("both"), allowing("helper", { mode: "subagent" }), allowing("lead", { mode: "primary" })]
        })
      )
    )
)

it.scoped("TO-101: `task` is asked for by the agent's name, and an agent that is denied it is not offered it", () =>
  Effect.gen(function* () {
    const seen = yield* play((turn) => (turn.told === "child" ? says("done") : delegates(turn, "child")))
    const id = yield* worked("some", "choosy")
    assert.deepStrictEqual(
      (yield* dataOf(id, "session.next.tool.failed")).map(({ error }) => error.type),
      ["permission.denied"]
    )
    assert.deepStrictEqual(yield* childrenOf(id), [])
    const none = yield* worked("none", "alone")
    assert.deepStrictEqual(
      (yield* dataOf(none, "session.next.tool.failed")).map(({ error }) => error.type),
      ["tool.unknown"]
    )
    assert.isFalse(seen.some(({ offered, told }) => told === "none" && offered.includes("task")))
  }).pipe(
    Effect.provide(
      family({
        agents: [
          allowing("choosy", {
            permissions: [
              { permission: "task", resource: "*", verdict: "allow" },
              { permission: "task", resource: "choosy", verdict: "deny" }
            ]
          }),
          allowing("alone", { permissions: [{ permission: "task", resource: "*", verdict: "deny" }] })
        ]
      })
    )
  )
)

it.scoped("TO-103: tasks go as deep as the host says, and the deepest session is not offered any", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const below: Readonly<Record<string, string>> = { root: "child", child: "grandchild", grandchild: "too deep" }
    const seen = yield* play((turn) => {
      const next = below[turn.told]
      return next === undefined ? says("nobody asked me") : delegates(turn, next)
    })
    const root = yield* worked("root")
    const child = only(yield* childrenOf(root))
    const grandchild = only(yield* childrenOf(child.id))
    assert.deepStrictEqual(yield* childrenOf(grandchild.id), [])
    assert.strictEqual(grandchild.parentID, child.id)
    const offers = (told: string) => seen.find((turn) => turn.told === told)?.offered.includes("task")
    assert.deepStrictEqual([offers("root"), offers("child"), offers("grandchild")], [true, true, false])
    const [failed] = yield* dataOf(grandchild.id, "session.next.tool.failed")
    assert.strictEqual(failed?.error.type, "tool.unknown")
    assert.strictEqual((yield* sessions.get(root)).activity?.state, "completed")
  }).pipe(Effect.provide(family({ taskDepth: 2 })))
)

it.scoped("TO-105: what any agent above denies, no child may do, whatever its own rules", () =>
  Effect.gen(function* () {
    const seen = yield* play((turn) => {
      if (turn.told === "root") return delegates(turn, { agent: "middle", prompt: "middle" })
      if (turn.told === "middle") return delegates(turn, { agent: "free", prompt: "free" })
      return turn.results.length > 0
        ? says("I tried")
        : calls(
            callParts("a", "read", { path: "secret.txt" }),
            callParts("b", "write", { path: "own.txt", content: "x" }),
            callParts("c", "read", { path: "open.txt" })
          )
    })
    const folder = yield* temporaryFolder
    for (const file of ["secret.txt", "open.txt"]) writeFileSync(join(folder, file), "text")
    const root = yield* worked("root", "careful", folder)
    const free = only(yield* childrenOf(only(yield* childrenOf(root)).id))
    const failed = yield* dataOf(free.id, "session.next.tool.failed")
    assert.deepStrictEqual(failed.map(({ callID, error }) => [callID, error.type]).toSorted(), [
      ["a", "permission.denied"],
      ["b", "tool.unknown"]
    ])
    const offered = seen.find(({ told }) => told === "free")?.offered ?? []
    assert.isFalse(offered.includes("write") || offered.includes("edit") || offered.includes("apply_patch"))
    assert.isTrue(offered.includes("bash"))
  }).pipe(
    Effect.provide(
      family({
        agents: [
          allowing("careful", {
            permissions: [
              { permission: "*", resource: "*", verdict: "allow" },
              { permission: "read", resource: "secret*", verdict: "deny" }
            ]
          }),
          allowing("middle", {
            permissions: [
              { permission: "*", resource: "*", verdict: "allow" },
              { permission: "edit", resource: "*", verdict: "deny" }
            ]
          }),
          allowing("free")
        ]
      })
    )
  )
)

it.scoped(
  "TO-123, TO-104: interrupting the parent interrupts what it started, however deep, before the interrupt returns",
  () =>
    Effect.gen(function* () {
      const [model, sessions] = [yield* GatedModel, yield* Sessions]
      const { id } = yield* newSession()
      yield* say(id, "root")
      yield* (yield* model.request).answer(hands("child"))
      yield* (yield* model.request).answer(hands("grandchild"))
      // The grandchild's model answers no more.
      yield* model.request
      yield* sessions.interrupt(id)
      const child = only(yield* childrenOf(id))
      const grandchild = only(yield* childrenOf(child.id))
      for (const session of [child, grandchild, yield* sessions.get(id)]) {
        assert.strictEqual(session.activity?.state, "interrupted")
      }
      assert.deepStrictEqual(yield* sessions.active, [])
      assert.deepStrictEqual(
        (yield* dataOf(id, "session.next.tool.failed")).map(({ error }) => error.message),
        ["Tool execution interrupted"]
      )
    }).pipe(Effect.provide(family()))
)

it.scoped("TO-122, TO-104: a child that fails, or that a person stops, is a failed call, and the parent goes on", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    yield* play((turn) => {
      if (turn.told === "breaks")
        return Stream.concat(Stream.fromIterable(textParts("t", "so")), Stream.fail(failure("on fire")))
      if (turn.told === "asks") return calls(callParts("q", "question", { questions: [{ question: "May I?" }] }))
      if (turn.told === "hangs") return Stream.never
      return delegates(turn, turn.told.slice("parent ".length))
    })
    const started = Effect.fnUntraced(function* (told: string) {
      const { id } = yield* newSession()
      yield* say(id, `parent ${told}`)
      yield* Stream.runHead(
        Stream.filter(sessions.events({ sessionID: id }), ({ type }) => type === "session.next.tool.progress")
      )
      return { id, child: only(yield* childrenOf(id)) }
    })
    const until = (sessionID: Session["id"], type: string) =>
      Stream.runHead(Stream.filter(sessions.events({ sessionID }), (event) => event.type === type))
    const ended = Effect.fnUntraced(function* (id: Session["id"]) {
      const { activity } = yield* sessions.wait(id)
      const [failed] = yield* dataOf(id, "session.next.tool.failed")
      return [activity?.state, failed?.error.type, failed?.error.message ?? ""] as const
    })
    const broken = yield* started("breaks")
    const [state, type, message] = yield* ended(broken.id)
    assert.deepStrictEqual([state, type], ["completed", "task.failed"])
    assert.include(message, "on fire")
    assert.include(message, broken.child.id)

    const declined = yield* started("asks")
    yield* until(declined.child.id, "session.next.tool.called")
    const [question] = yield* sessions.questions(declined.child.id)
    if (question === undefined) return yield* Effect.dieMessage("nothing was asked")
    yield* sessions.dismissQuestion(question)
    assert.deepStrictEqual((yield* ended(declined.id)).slice(0, 2), ["completed", "task.declined"])

    const stopped = yield* started("hangs")
    yield* until(stopped.child.id, "session.next.step.started")
    yield* sessions.interrupt(stopped.child.id)
    assert.deepStrictEqual((yield* ended(stopped.id)).slice(0, 2), ["completed", "task.interrupted"])
  }).pipe(Effect.provide(family({ questions: true })))
)

it.scoped("TO-122, TO-104: a child has the turns of its agent, and using them up is a failure of the task", () =>
  Effect.gen(function* () {
    yield* play((turn) =>
      turn.told === "parent" ? delegates(turn, { agent: "brief", prompt: "child" }) : calls(callParts("t", "todo", {}))
    )
    const id = yield* worked("parent", "leader")
    const [failed] = yield* dataOf(id, "session.next.tool.failed")
    assert.strictEqual(failed?.error.type, "task.failed")
    const child = only(yield* childrenOf(id))
    assert.strictEqual((yield* dataOf(child.id, "session.next.step.started")).length, 2)
  }).pipe(Effect.provide(family({ agents: [allowing("leader"), allowing("brief", { turnLimit: 2 })] })))
)

it.scoped(
  "TO-104: eight children of one depth run at once, more wait, and children of children do not block them",
  () =>
    Effect.gen(function* () {
      const prompts = Array.from({ length: 12 }, (_, index) => `child ${index}`)
      let started = 0
      const eight = yield* Deferred.make<void>()
      yield* play(
        (turn) =>
          turn.told === "parent"
            ? delegates(turn, ...prompts)
            : turn.told.startsWith("child")
              ? delegates(turn, `below ${turn.told}`)
              : says("done"),
        // No child ends before eight have begun.
        ({ told }) =>
          told.startsWith("below")
            ? Deferred.await(eight)
            : told.startsWith("child") && ++started === 8
              ? Effect.asVoid(Deferred.succeed(eight, undefined))
              : Effect.void
      )
      const id = yield* worked("parent")
      const settled = yield* dataOf(id, "session.next.tool.success")
      assert.strictEqual(settled.length, 12)
      const bounds: Array<readonly [number, number]> = []
      for (const { structured } of settled) {
        const child = only(
          (yield* (yield* Sessions).list({ limit: 500 })).items.filter((s) => s.id === structured["sessionID"])
        )
        for (const event of yield* eventsOf(child.id)) {
          if (event.type === "session.next.activity.started") bounds.push([event.position, 1])
          if (event.type === "session.next.activity.settled") bounds.push([event.position, -1])
        }
      }
      let [running, most] = [0, 0]
      for (const [, change] of bounds.toSorted(([a], [b]) => a - b)) {
        running += change
        most = Math.max(most, running)
      }
      assert.strictEqual(bounds.length, 24)
      assert.strictEqual(most, 8)
    }).pipe(Effect.provide(family()))
)

it.scoped("TO-120, TO-101: a task's words are taken as they are: what a model mentions is not read for it", () =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    writeFileSync(join(folder, "secret.txt"), "the secret")
    const words = "look at @secret.txt and @./secret.txt"
    yield* play((turn) => (turn.told === "parent" ? delegates(turn, words) : says("done")))
    const child = only(yield* childrenOf(yield* worked("parent", undefined, folder)))
    const [admitted] = yield* dataOf(child.id, "session.next.prompt.admitted")
    assert.deepStrictEqual(admitted?.prompt, { text: words })
  }).pipe(Effect.provide(family()))
)

it.scoped("TO-620: a task whose answer was cut off gives its text back with a sentence that says so", () =>
  Effect.gen(function* () {
    yield* play((turn) =>
      turn.told === "parent"
        ? delegates(turn, "child")
        : Stream.fromIterable([...textParts("t", "Half of it"), finish("length")])
    )
    const id = yield* worked("parent")
    const [result] = yield* dataOf(id, "session.next.tool.success")
    assert.deepInclude(result?.structured, { state: "completed", problem: "answer.cut" })
    assert.deepStrictEqual(result?.content, [
      { type: "text", text: "Half of it\n\nThe answer was cut off at the model's output limit, after 5 tokens." }
    ])
  }).pipe(Effect.provide(family()))
)

it.scoped("TO-620: a task whose answer is empty says so", () =>
  Effect.gen(function* () {
    yield* play((turn) => (turn.told === "parent" ? delegates(turn, "child") : says("")))
    const id = yield* worked("parent")
    assert.deepStrictEqual(
      (yield* dataOf(id, "session.next.tool.success")).map(({ content }) => content),
      [[{ type: "text", text: "The model answered nothing." }]]
    )
  }).pipe(Effect.provide(family()))
)
