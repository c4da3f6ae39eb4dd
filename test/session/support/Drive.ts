/** Runs commands against the runtime and its reference model, and compares the two after each. */
import { copyFileSync, existsSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import { Tool } from "@effect/ai"
import { assert } from "@effect/vitest"
import { Context, Effect, Either, Exit, FastCheck, Layer, Option, Queue, Schema, Scope, Stream } from "effect"
import { SessionExecution } from "../../../packages/core/src/session/SessionExecution.ts"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import { HostTools } from "../../../packages/core/src/tool/HostTools.ts"
import { define, type ToolCall } from "../../../packages/core/src/tool/ToolDefinition.ts"
import * as Daybook from "../../../packages/embedded/src/Daybook.ts"
import { ActivityID, MessageID, SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { userTexts } from "../../support/Harness.ts"
import { giveFileTo, goneOwner } from "../../support/Owners.ts"
import { callParts, calls, says, type Script } from "../../support/ScriptedModel.ts"
import { waitingFor } from "../../support/Waiting.ts"
import { GatedModel, type Held, runtime } from "./GatedModel.ts"
import { invariants } from "./Invariants.ts"
import { type Delivery, SessionModel } from "./SessionModel.ts"

export type Command =
  | { readonly do: "create" | "wake" | "resume" | "interrupt" | "stop" | "move" | "remove"; readonly session: number }
  | {
      readonly do: "prompt"
      readonly session: number
      readonly message: number
      readonly text: number
      readonly delivery: Delivery
      readonly resume: boolean
      /** How many copies are sent at the same time. */
      readonly copies: number
    }
  | { readonly do: "answer"; readonly session: number; readonly with: "text" | "tool" | "hang" | "fail" }
  | { readonly do: "withdraw"; readonly session: number; readonly message: number }
  | { readonly do: "crash" }

const session = FastCheck.nat({ max: 2 })

const weighted: ReadonlyArray<FastCheck.WeightedArbitrary<Command>> = [
  { weight: 2, arbitrary: FastCheck.record({ do: FastCheck.constant("create" as const), session }) },
  {
    weight: 8,
    arbitrary: FastCheck.record({
      do: FastCheck.constant("prompt" as const),
      session,
      message: FastCheck.nat({ max: 15 }),
      text: FastCheck.nat({ max: 1 }),
      delivery: FastCheck.constantFrom("steer" as const, "queue" as const),
      resume: FastCheck.boolean(),
      copies: FastCheck.integer({ min: 1, max: 4 })
    })
  },
  {
    weight: 6,
    arbitrary: FastCheck.record({
      do: FastCheck.constant("answer" as const),
      session,
      with: FastCheck.constantFrom("text" as const, "text" as const, "tool" as const, "hang" as const, "fail" as const)
    })
  },
  {
    weight: 5,
    arbitrary: FastCheck.record({
      do: FastCheck.constantFrom("resume" as const, "interrupt" as const, "stop" as const, "move" as const),
      session
    })
  },
  {
    weight: 3,
    arbitrary: FastCheck.record({
      do: FastCheck.constant("withdraw" as const),
      session,
      message: FastCheck.nat({ max: 15 })
    })
  },
  { weight: 1, arbitrary: FastCheck.constant({ do: "crash" as const }) },
  { weight: 1, arbitrary: FastCheck.record({ do: FastCheck.constant("remove" as const), session }) }
]

/** Sequences of commands; the first creates a session, so that short sequences are useful. */
export const commands = (maxLength: number) =>
  FastCheck.array(FastCheck.oneof(...weighted), { minLength: 5, maxLength, size: "max" }).map(
    (rest): ReadonlyArray<Command> => [{ do: "create", session: 0 }, ...rest]
  )

const inboxLimit = 4
const sessionID = (index: number) => SessionID.make(`ses_${index}`)

interface World {
  readonly folder: string
  readonly model: SessionModel
  /** Calls whose handler ran, in this and earlier processes, with their session. */
  readonly ran: Array<readonly [session: string, call: string]>
  readonly held: Map<string, Held>
  generation: number
  moves: number
  scope: Scope.CloseableScope
  context: Context.Context<Layer.Layer.Success<ReturnType<typeof runtime>>>
  begun: Queue.Queue<string>
}

const file = (folder: string, generation: number) => join(folder, `daybook-${generation}.db`)

const start = Effect.fnUntraced(function* (folder: string, generation: number, ran: World["ran"]) {
  const scope = yield* Scope.make()
  const options: Daybook.Options = { filename: file(folder, generation), inboxLimit }
  const context = yield* Scope.extend(Layer.build(runtime(options)), scope)
  const begun = yield* Queue.unbounded<string>()
  const record = ({ callID, messageID, sessionID }: ToolCall) =>
    Effect.sync(() => ran.push([sessionID, `${messageID} ${callID}`]))
  const tools = [
    define(Tool.make("note", { success: Schema.String }), {
      handler: (_, call) => Effect.as(record(call), "noted")
    }),
    define(Tool.make("hang", { success: Schema.String }), {
      handler: (_, call) =>
        Effect.zipRight(Effect.zipRight(record(call), Queue.offer(begun, call.sessionID)), Effect.never)
    })
  ]
  yield* Scope.extend(Context.get(context, HostTools).register(tools), scope)
  return { scope, context, begun, generation }
})

const failed: Script = Stream.make({ type: "error" as const, error: "the provider says no" })

const scripts = (): { readonly [Kind in "text" | "tool" | "hang" | "fail"]: Script } => ({
  text: says("done"),
  tool: calls(callParts("call", "note", {})),
  hang: calls(callParts("call", "hang", {})),
  fail: failed
})

/** After each step: a session that should run is at its request or in its tool; any other has settled. */
const settle = Effect.fnUntraced(function* (world: World, id: string, asked: boolean) {
  const expected = world.model.sessions.get(id)
  const sessions = Context.get(world.context, Sessions)
  if (expected?.state === "held" && asked) {
    const request = yield* Context.get(world.context, GatedModel).request
    assert.deepStrictEqual(
      userTexts(request),
      expected.promoted.map(({ text }) => text)
    )
    world.held.set(id, request)
  }
  if (expected?.state === "calling" && asked)
    assert.strictEqual(yield* waitingFor(`a call of ${id} to begin`)(Queue.take(world.begun)), id)
  if (expected?.state === "idle") {
    yield* sessions.wait(SessionID.make(id))
    world.held.delete(id)
  }
  for (const [name, { promoted, state, waiting }] of world.model.sessions) {
    const sessionID = SessionID.make(name)
    const ids = (inputs: ReadonlyArray<{ readonly id: string }>) => inputs.map((input) => input.id)
    assert.deepStrictEqual(ids(yield* sessions.inbox(sessionID)), ids(waiting))
    const { items } = yield* sessions.messages({ sessionID, limit: 500 })
    assert.deepStrictEqual(ids(items.filter(({ type }) => type === "user")), ids(promoted))
    assert.strictEqual((yield* sessions.active).includes(sessionID), state !== "idle")
  }
  assert.strictEqual(yield* Context.get(world.context, GatedModel).pending, 0)
})

/** Simulates a power cut: the file keeps committed data, and its owners are dead. */
const crash = Effect.fnUntraced(function* (world: World) {
  const [from, to] = [file(world.folder, world.generation), file(world.folder, world.generation + 1)]
  for (const suffix of ["", "-wal"]) if (existsSync(from + suffix)) copyFileSync(from + suffix, to + suffix)
  yield* Scope.close(world.scope, Exit.void)
  yield* giveFileTo(to, goneOwner)
  Object.assign(world, yield* start(world.folder, world.generation + 1, world.ran))
  world.held.clear()
  world.model.die()
  const cutOff = [...world.model.sessions].filter(([, session]) => session.cutOff).map(([id]) => id)
  const listed = yield* Context.get(world.context, Sessions).interrupted
  assert.sameMembers(
    listed.map(({ id }) => id),
    cutOff.map((id) => SessionID.make(id))
  )
})

const prompt = Effect.fnUntraced(function* (world: World, command: Extract<Command, { readonly do: "prompt" }>) {
  const { copies, delivery, message, resume } = command
  const { model } = world
  const input = {
    id: `msg_${message}`,
    session: sessionID(command.session),
    text: `text ${message} ${command.text}`,
    delivery
  }
  const before = model.sessions.get(input.session)?.state
  const expected = model.admit(input)
  const answers = yield* Effect.all(
    Array.from({ length: copies }, () =>
      Effect.either(
        Context.get(world.context, Sessions).prompt({
          id: input.id,
          sessionID: SessionID.make(input.session),
          prompt: { text: input.text },
          delivery,
          resume
        })
      )
    ),
    { concurrency: "unbounded" }
  )
  const tags = { "not-found": "SessionNotFound", conflict: "PromptConflictError", full: "InboxFullError" } as const
  for (const answer of answers) {
    if (expected === "retry" || expected === "admitted") {
      assert.isTrue(Either.isRight(answer))
      if (Either.isRight(answer)) assert.strictEqual(answer.right.id, MessageID.make(input.id))
    } else assert.strictEqual(Either.isLeft(answer) ? answer.left._tag : "admitted", tags[expected])
  }
  const accepted = expected === "retry" || expected === "admitted"
  if (resume && accepted) for (let copy = 0; copy < copies; copy += 1) model.wake(input.session)
  return [input.session, before === "idle" && model.sessions.get(input.session)?.state === "held"] as const
})

const answer = Effect.fnUntraced(function* (world: World, id: string, kind: "text" | "tool" | "hang" | "fail") {
  const { model } = world
  const held = world.held.get(id)
  if (model.sessions.get(id)?.state !== "held" || held === undefined) return false
  world.held.delete(id)
  model[kind](id)
  yield* held.answer(scripts()[kind])
  return true
})

const step = Effect.fnUntraced(function* (world: World, command: Command) {
  if (command.do === "crash") {
    yield* crash(world)
    return yield* settle(world, "", false)
  }
  const { model } = world
  const sessions = Context.get(world.context, Sessions)
  const id = sessionID(command.session)
  if (command.do === "withdraw") {
    const message = `msg_${command.message}`
    const answer = yield* Effect.either(sessions.withdraw(id, MessageID.make(message)))
    const expected = model.withdraw(id, message)
    assert.strictEqual(Either.isLeft(answer) ? answer.left._tag : "withdrawn", expected)
    return yield* settle(world, id, false)
  }
  if (command.do === "prompt") {
    const [name, asked] = yield* prompt(world, command)
    return yield* settle(world, name, asked)
  }
  if (command.do === "answer") return yield* settle(world, id, yield* answer(world, id, command.with))
  const before = model.sessions.get(id)?.state
  switch (command.do) {
    case "create":
      yield* sessions.create({ id, location: { directory: world.folder } })
      model.create(id)
      break
    case "resume":
      // A caller joins a run in its first step, which must not happen after the next command.
      yield* Effect.forkIn(
        Effect.exit((before === "idle" ? sessions : Context.get(world.context, SessionExecution)).resume(id)),
        world.scope
      )
      yield* Effect.yieldNow()
      model.resume(id)
      break
    case "interrupt":
      yield* sessions.interrupt(id)
      model.stop(id)
      break
    case "stop": {
      const session = yield* Effect.option(sessions.get(id))
      const running = Option.flatMap(session, ({ activity }) => Option.fromNullable(activity?.id))
      const asked = model.cut(id)
      yield* sessions.interrupt(id, { activityID: ActivityID.make(Option.getOrElse(running, () => "act_none")) })
      world.held.delete(id)
      return yield* settle(world, id, asked)
    }
    case "move": {
      const directory = join(world.folder, `place-${(world.moves += 1)}`)
      mkdirSync(directory)
      const moved = yield* Effect.exit(sessions.move(id, { directory }))
      assert.strictEqual(Exit.isSuccess(moved), before !== undefined)
      model.move(id)
      break
    }
    case "remove": {
      const removed = yield* Effect.exit(sessions.remove(id))
      assert.strictEqual(Exit.isSuccess(removed), before !== undefined)
      model.remove(id)
      world.held.delete(id)
      // The session's record is removed with it.
      for (let index = world.ran.length - 1; index >= 0; index -= 1) {
        if (world.ran[index]?.[0] === id) world.ran.splice(index, 1)
      }
      break
    }
    default:
  }
  yield* settle(world, id, before === "idle" && model.sessions.get(id)?.state === "held")
})

/** Runs the commands in the folder; then lets all waiting work finish, and checks the result. */
export const drive = Effect.fnUntraced(function* (folder: string, script: ReadonlyArray<Command>) {
  const model = new SessionModel(inboxLimit)
  const ran: World["ran"] = []
  const begun = yield* start(folder, 0, ran)
  const world: World = { folder, model, ran, held: new Map(), moves: 0, ...begun }
  for (const command of script) yield* step(world, command)
  const before = yield* Effect.provide(invariants, world.context)
  for (const index of [0, 1, 2]) {
    const id = sessionID(index)
    yield* step(world, { do: "interrupt", session: index })
    for (;;) {
      const { waiting } = model.sessions.get(id) ?? { waiting: [] }
      if (waiting.length === 0) break
      yield* step(world, { do: "resume", session: index })
      while (model.sessions.get(id)?.state === "held")
        yield* step(world, { do: "answer", session: index, with: "text" })
    }
  }
  const after = yield* Effect.provide(invariants, world.context)
  // Every acknowledged input is visible, in the model's order, and every call that ran is recorded once.
  const promoted = [...model.sessions.values()].flatMap((session) => session.promoted)
  assert.sameMembers(
    promoted.map(({ id }) => id),
    [...model.inputs.keys()].filter((id) => !model.withdrawn.has(id))
  )
  assert.deepStrictEqual(after, before)
  assert.sameMembers(
    [...after],
    ran.map(([, call]) => call)
  )
  yield* Scope.close(world.scope, Exit.void)
})
