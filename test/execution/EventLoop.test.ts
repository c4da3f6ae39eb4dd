/** Calls that never wait, and the event loop beside them. Where time counts, it is the test's. */
import { join } from "node:path"
import { it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { assert } from "vitest"
import * as Consumer from "../../packages/log/src/consumer/Consumer.ts"
import type { Address } from "../../packages/log/src/domain/Address.ts"
import { MessageID, SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as EventLoop from "../../packages/log/src/support/EventLoop.ts"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { newSession, open, temporaryFolder } from "../support/Harness.ts"

/** Calls until the event loop ran, at most so many. */
const callsBeforeTurn = <A, E, R>(call: Effect.Effect<A, E, R>, most: number) =>
  Effect.gen(function* () {
    const turns: Array<string> = []
    setImmediate(() => turns.push("turn"))
    let calls = 0
    for (; turns.length === 0 && calls < most; calls++) yield* Effect.exit(call)
    return turns.length === 0 ? Infinity : calls
  })

/** An event loop whose time passes only with the work. */
const simulated = () => {
  let time = 0
  const { committed, sharing } = EventLoop.make(() => time)
  const working = (millis: number, stores: boolean) =>
    sharing(
      Effect.sync(() => {
        time += millis
        if (stores) committed()
      })
    )
  return { time: () => time, working }
}

it.live("EX-400: calls let the event loop run after a dozen milliseconds, and sooner if they store nothing", () =>
  Effect.gen(function* () {
    const { working } = simulated()
    assert.isAtMost(yield* callsBeforeTurn(working(1, true), 100), 14)
    assert.isAtMost(yield* callsBeforeTurn(working(1, false), 100), 14)
    for (let times = 0; times < 5; times++) assert.isAtMost(yield* callsBeforeTurn(working(1, false), 100), 4)
  })
)

for (const idle of [1, 16, 200]) {
  it.live(`EX-401: beside ${idle} callers that store nothing, one that stores has most of the time`, () =>
    Effect.gen(function* () {
      const { time, working } = simulated()
      let stored = 0
      const until = <A, E, R>(call: Effect.Effect<A, E, R>) =>
        Effect.iterate(0, { while: () => time() < 3_000, body: () => Effect.as(call, 0) })
      const storing = until(Effect.tap(working(0.3, true), () => Effect.sync(() => (stored += 0.3))))
      const others = Array.from({ length: idle }, () => until(working(0.2, false)))
      yield* Effect.all([storing, ...others], { concurrency: "unbounded", discard: true })
      assert.isAtLeast(stored / time(), 0.7)
    })
  )
}

it.live("EX-401: callers that store nothing take turns", () =>
  Effect.gen(function* () {
    const { time, working } = simulated()
    const done = [0, 0, 0, 0]
    yield* Effect.forEach(
      done,
      (_, index) =>
        Effect.iterate(0, {
          while: () => time() < 400,
          body: () => Effect.map(working(1, false), () => (done[index] = (done[index] ?? 0) + 1))
        }),
      { concurrency: "unbounded", discard: true }
    )
    assert.isAtMost(Math.max(...done) - Math.min(...done), 15)
  })
)

it.live("EX-400: an interruption in line loses no turn", () =>
  Effect.gen(function* () {
    const { working } = simulated()
    const first = yield* Effect.fork(Effect.replicateEffect(working(20, false), 3))
    const second = yield* Effect.fork(working(20, false))
    yield* Effect.yieldNow()
    yield* Fiber.interrupt(second)
    yield* Fiber.join(first)
    yield* working(20, false)
  })
)

it("EX-400: a host that runs a call synchronously gets its result", () => {
  const { working } = simulated()
  for (let times = 0; times < 5; times++) Effect.runSync(working(20, false))
})

/** Calls of every verb that read, repeat or are refused. */
const callsOf = (
  sessions: Sessions["Type"],
  sessionID: SessionID,
  directory: string
): Record<string, Effect.Effect<unknown, unknown>> => {
  const [missing, messageID] = [SessionID.make("ses_missing"), MessageID.make("msg_missing")]
  const location = { directory }
  const address: Address = { scope: "private", uid: 0, kind: "agent", name: "none", session: "none" }
  const sent = { sessionID, id: "msg_sent", resume: false }
  return {
    create: sessions.create({ id: sessionID, location }),
    named: sessions.named({ location, title: "\n" }),
    addressed: sessions.addressed(address),
    place: sessions.place(missing, { address }),
    get: sessions.get(sessionID),
    list: sessions.list(),
    messages: sessions.messages({ sessionID }),
    message: sessions.message(sessionID, messageID),
    tree: sessions.tree({ sessionID }),
    branch: sessions.branch({ sessionID: missing, messageID }),
    fork: sessions.fork({ sessionID: missing }),
    undo: sessions.undo({ sessionID: missing }),
    redo: sessions.redo({ sessionID: missing }),
    reset: sessions.reset(missing),
    label: sessions.label({ sessionID, messageID, label: "x" }),
    context: sessions.context(sessionID),
    inbox: sessions.inbox(sessionID),
    events: Stream.runHead(sessions.events({ sessionID })),
    eventsMarked: Stream.runHead(sessions.eventsMarked({ sessionID })),
    follow: Stream.runHead(sessions.follow({ sessionID })),
    history: sessions.history({ sessionID }),
    prompt: sessions.prompt({ ...sent, prompt: { text: "one" } }),
    "prompt, in conflict": sessions.prompt({ ...sent, prompt: { text: "two" } }),
    "prompt, invalid": sessions.prompt({ ...sent, prompt: { text: "" } }),
    ask: sessions.ask({ sessionID: missing, prompt: { text: "one" } }),
    withdraw: sessions.withdraw(sessionID, messageID),
    settle: sessions.settle(sessionID),
    resume: sessions.resume(missing),
    interrupt: sessions.interrupt(sessionID),
    wait: sessions.wait(sessionID),
    active: sessions.active,
    interrupted: sessions.interrupted,
    waiting: sessions.waiting,
    switchAgent: sessions.switchAgent(missing, "build"),
    switchModel: sessions.switchModel(missing, { providerID: "test", id: "one" }),
    move: sessions.move(missing, location),
    compact: sessions.compact(missing),
    unprune: sessions.unprune(missing),
    setBudget: sessions.setBudget(missing, {}),
    request: sessions.request({ sessionID: missing }),
    rename: sessions.rename(sessionID, ""),
    questions: sessions.questions(sessionID),
    answer: sessions.answer({ sessionID, messageID, callID: "x", answers: [] }),
    dismissQuestion: sessions.dismissQuestion({ sessionID, messageID, callID: "x" }),
    todos: sessions.todos(sessionID),
    usage: sessions.usage(sessionID),
    metrics: sessions.metrics(sessionID),
    remove: sessions.remove(missing)
  }
}

it.scopedLive("EX-400: every verb, called in a loop by one fiber, lets the event loop run", () =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const runtime = yield* open({ filename: join(folder, "daybook.db") })
    const sessions = yield* Effect.provide(Sessions, runtime)
    const { id } = yield* Effect.provide(newSession(), runtime)
    yield* sessions.prompt({ sessionID: id, id: "msg_sent", prompt: { text: "one" }, resume: false })
    const calls = callsOf(sessions, id, folder)
    const verbs = Object.keys(sessions).filter((verb) => verb !== "live")
    assert.deepStrictEqual(
      verbs.filter((verb) => !(verb in calls)),
      []
    )
    for (const [verb, call] of Object.entries(calls)) {
      assert.isBelow(yield* callsBeforeTurn(call, 50_000), Infinity, verb)
    }
    yield* Effect.provide(
      Effect.gen(function* () {
        const log = yield* EventLog
        const reads = {
          read: log.read({ sessionID: id }),
          readFeed: log.readFeed(),
          latest: log.latest(id),
          tail: Stream.runHead(log.tail({ sessionID: id })),
          list: Consumer.list,
          skipped: Consumer.skipped("none"),
          holds: Consumer.holds(id),
          remove: Consumer.remove("none"),
          run: Consumer.run({ name: "not a name", apply: () => Effect.void })
        }
        for (const [name, call] of Object.entries<Effect.Effect<unknown, unknown, EventLog | Consumer.ConsumerStore>>(
          reads
        )) {
          assert.isBelow(yield* callsBeforeTurn(call, 50_000), Infinity, name)
        }
      }),
      runtime
    )
  })
)
