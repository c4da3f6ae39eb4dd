/**
 * The coordinator against a model, under random commands on two keys.
 * Method: every fiber runs on one scheduler that the test steps, so a command is applied at an exact point. In the
 * first property the scheduler runs dry after each command and the model says exactly what must have happened; in the
 * second, commands come in bursts, between any two steps, and only the invariants are checked. All of it is
 * synchronous, and a failure prints its seed and the shortest commands that show it. Spec: specs/execution.md.
 */
import { assert, describe, it } from "@effect/vitest"
import {
  Cause,
  Deferred,
  Effect,
  Exit,
  FastCheck as fc,
  type Fiber,
  FiberId,
  Logger,
  Option,
  Scheduler,
  Scope
} from "effect"
import { make, type RunCoordinator, type RunInterrupted } from "../../packages/core/src/coordination/RunCoordinator.ts"
import { forAll } from "../support/Cases.ts"

const keys = ["a", "b"] as const
type Key = (typeof keys)[number]

const ops = ["wake", "wake", "run", "run", "interrupt", "finish", "fail", "clean", "clean", "leave"] as const
interface Command {
  readonly key: Key
  readonly op: (typeof ops)[number]
  /** In bursts: how many steps the scheduler does after the command. */
  readonly steps: number
}
const commands = fc.array(
  fc.record({ key: fc.constantFrom(...keys), op: fc.constantFrom(...ops), steps: fc.nat({ max: 4 }) }),
  { maxLength: 60 }
)

type Outcome = "succeeded" | "failed" | "stopped" | "left"

interface Drain {
  readonly key: Key
  readonly force: boolean
  readonly begunAt: number
  readonly end: Deferred.Deferred<void, "broken">
  readonly clean: Deferred.Deferred<void>
  phase: "running" | "cleaning" | "over"
}

interface Call {
  readonly key: Key
  readonly at: number
  readonly fiber: Fiber.RuntimeFiber<void, "broken" | RunInterrupted>
  leftAt?: number
}

/** The real coordinator, driven from plain code, with a record of all that happened. */
class Rig {
  readonly scheduler = new Scheduler.ControlledScheduler()
  readonly drains: Array<Drain> = []
  readonly runs: Array<Call> = []
  readonly asks: Array<{ readonly key: Key; readonly at: number; readonly op: "wake" | "run" | "interrupt" }> = []
  readonly violations: Array<string> = []
  reports = 0
  readonly coordinator: RunCoordinator<Key, void, "broken">
  private now = 0

  constructor() {
    const counting = Logger.make<unknown, void>(({ logLevel }) => {
      if (logLevel._tag === "Error") this.reports += 1
    })
    const made: Effect.Effect<RunCoordinator<Key, void, "broken">> = make<Key, void, "broken">({
      drain: (key, force) => this.drain(key, force)
    }).pipe(Effect.provide(Logger.replace(Logger.defaultLogger, counting)), Scope.extend(Effect.runSync(Scope.make())))
    this.coordinator = this.value(made)
  }

  private drain(key: Key, force: boolean): Effect.Effect<void, "broken"> {
    return Effect.suspend(() => {
      const end = Deferred.unsafeMake<void, "broken">(FiberId.none)
      const clean = Deferred.unsafeMake<void>(FiberId.none)
      if (this.live(key) !== undefined) this.violations.push(`two drains of ${key} at a time`)
      const drain: Drain = { key, force, begunAt: this.tick(), end, clean, phase: "running" }
      this.drains.push(drain)
      const cleanup = Effect.suspend(() => {
        drain.phase = "cleaning"
        return Deferred.await(clean)
      })
      const over = Effect.sync(() => {
        drain.phase = "over"
      })
      return Deferred.await(end).pipe(
        Effect.onInterrupt(() => cleanup),
        Effect.ensuring(over)
      )
    })
  }

  tick() {
    this.now += 1
    return this.now
  }

  live(key: Key) {
    return this.drains.find((drain) => drain.key === key && drain.phase !== "over")
  }

  fork<A, E>(effect: Effect.Effect<A, E>) {
    return Effect.runFork(effect, { scheduler: this.scheduler })
  }

  runDry() {
    while (this.scheduler.tasks.buckets.length > 0) this.scheduler.step()
  }

  value<A, E>(effect: Effect.Effect<A, E>): A {
    const fiber = this.fork(effect)
    this.runDry()
    const exit = fiber.unsafePoll()
    if (exit === null || Exit.isFailure(exit)) throw new Error("the effect did not succeed at once")
    return exit.value
  }

  apply({ key, op }: Command) {
    const drain = this.live(key)
    switch (op) {
      case "wake":
        this.asks.push({ key, op, at: this.tick() })
        return void this.fork(this.coordinator.wake(key))
      case "run": {
        const at = this.tick()
        this.asks.push({ key, op, at })
        return void this.runs.push({ key, at, fiber: this.fork(this.coordinator.run(key)) })
      }
      case "interrupt":
        this.asks.push({ key, op, at: this.tick() })
        return void this.fork(
          Effect.map(this.coordinator.interrupt(key), () => {
            if (drain !== undefined && drain.phase !== "over") {
              this.violations.push(`interrupt of ${key} returned before the drain it stopped was over`)
            }
          })
        )
      case "finish":
        return drain?.phase === "running" ? Deferred.unsafeDone(drain.end, Exit.void) : undefined
      case "fail":
        return drain?.phase === "running" ? Deferred.unsafeDone(drain.end, Exit.fail("broken")) : undefined
      case "clean":
        return drain?.phase === "cleaning" ? Deferred.unsafeDone(drain.clean, Exit.void) : undefined
      case "leave": {
        const call = this.runs.find((call) => call.key === key && call.fiber.unsafePoll() === null && !call.leftAt)
        if (call === undefined) return
        call.leftAt = this.tick()
        return call.fiber.unsafeInterruptAsFork(FiberId.none)
      }
    }
  }

  outcomes(): ReadonlyArray<Outcome | undefined> {
    return this.runs.map(({ fiber }): Outcome | undefined => {
      const exit = fiber.unsafePoll()
      if (exit === null) return undefined
      if (Exit.isSuccess(exit)) return "succeeded"
      if (Cause.isInterrupted(exit.cause)) return "left"
      const failure = Option.getOrThrow(Cause.failureOption(exit.cause))
      return failure === "broken" ? "failed" : "stopped"
    })
  }
}

type State =
  | { readonly at: "idle" }
  | { readonly at: "active"; readonly waiters: ReadonlyArray<number>; readonly pending: boolean }
  | {
      readonly at: "stopping"
      readonly waiters: ReadonlyArray<number>
      readonly next: ReadonlyArray<number>
      readonly woken: boolean
    }

/** What must happen, in the words of the laws, when every command meets a coordinator at rest. */
class Model {
  readonly starts: Array<readonly [Key, boolean]> = []
  readonly outcomes: Array<Outcome | undefined> = []
  reports = 0
  private readonly states = new Map<Key, State>()
  private readonly runKeys: Array<Key> = []

  state(key: Key): State {
    return this.states.get(key) ?? { at: "idle" }
  }

  private start(key: Key, force: boolean, waiters: ReadonlyArray<number> = []) {
    this.starts.push([key, force])
    this.states.set(key, { at: "active", waiters, pending: false })
  }

  private end(runs: ReadonlyArray<number>, outcome: Outcome) {
    for (const run of runs) this.outcomes[run] = outcome
  }

  apply({ key, op }: Command) {
    const state = this.state(key)
    switch (op) {
      case "wake":
        if (state.at === "idle") return this.start(key, false)
        if (state.at === "active") return void this.states.set(key, { ...state, pending: true })
        return void this.states.set(key, { ...state, woken: true })
      case "run": {
        const run = this.outcomes.push(undefined) - 1
        this.runKeys.push(key)
        if (state.at === "idle") return this.start(key, true, [run])
        if (state.at === "active") return void this.states.set(key, { ...state, waiters: [...state.waiters, run] })
        return void this.states.set(key, { ...state, next: [...state.next, run] })
      }
      case "interrupt":
        if (state.at === "idle") return
        if (state.at === "stopping") this.end(state.next, "stopped")
        return void this.states.set(key, { at: "stopping", waiters: state.waiters, next: [], woken: false })
      case "finish":
        if (state.at !== "active") return
        if (state.pending) return this.start(key, false, state.waiters)
        this.end(state.waiters, "succeeded")
        return void this.states.set(key, { at: "idle" })
      case "fail":
        if (state.at !== "active") return
        if (state.waiters.length === 0) this.reports += 1
        this.end(state.waiters, "failed")
        return state.pending ? this.start(key, false) : void this.states.set(key, { at: "idle" })
      case "clean":
        if (state.at !== "stopping") return
        this.end(state.waiters, "stopped")
        if (state.next.length > 0) return this.start(key, true, state.next)
        return state.woken ? this.start(key, false) : void this.states.set(key, { at: "idle" })
      case "leave": {
        const run = this.outcomes.findIndex((outcome, run) => outcome === undefined && this.runKeys[run] === key)
        if (run === -1 || state.at === "idle") return
        this.end([run], "left")
        const others = (runs: ReadonlyArray<number>) => runs.filter((other) => other !== run)
        if (state.at === "active") return void this.states.set(key, { ...state, waiters: others(state.waiters) })
        return void this.states.set(key, { ...state, waiters: others(state.waiters), next: others(state.next) })
      }
    }
  }
}

/** Ends every drain, one way or the other, until nothing is active. */
const wind = (rig: Rig) => {
  rig.runDry()
  for (let rounds = 0; rig.value(rig.coordinator.active).length > 0; rounds += 1) {
    assert.isBelow(rounds, 100, "drains keep starting though nobody asks")
    for (const key of keys) {
      rig.apply({ key, op: "finish", steps: 0 })
      rig.apply({ key, op: "clean", steps: 0 })
    }
    rig.runDry()
  }
}

describe("CO-1..CO-8: the coordinator and the model", () => {
  it("CO-4: command by command, drains, outcomes, reports and active keys are those of the model", () => {
    forAll([commands], 120, (commands) => {
      const [rig, model] = [new Rig(), new Model()]
      for (const command of commands) {
        rig.apply(command)
        rig.runDry()
        model.apply(command)
        assert.deepStrictEqual(
          rig.drains.map(({ key, force }) => [key, force] as const),
          model.starts
        )
        assert.deepStrictEqual(rig.outcomes(), model.outcomes)
        assert.strictEqual(rig.reports, model.reports)
        assert.sameMembers(
          [...rig.value(rig.coordinator.active)],
          keys.filter((key) => model.state(key).at !== "idle")
        )
        assert.deepStrictEqual(rig.violations, [])
      }
    })
  })

  it("CO-1: in bursts, no two drains of a key, no lost wake, no drain that nobody asked for, no run left waiting", () => {
    forAll([commands], 240, (commands) => {
      const rig = new Rig()
      for (const command of commands) {
        rig.apply(command)
        for (let step = 0; step < command.steps; step += 1) rig.scheduler.step()
      }
      wind(rig)
      assert.deepStrictEqual(rig.violations, [])
      const interruptedAfter = (key: Key, at: number) =>
        rig.asks.some((ask) => ask.key === key && ask.op === "interrupt" && ask.at > at)
      for (const { at, key, op } of rig.asks) {
        if (op !== "wake" || interruptedAfter(key, at)) continue
        assert.isTrue(
          rig.drains.some((drain) => drain.key === key && drain.begunAt > at),
          `the wake of ${key} at ${at} is lost`
        )
      }
      for (const drain of rig.drains) {
        const before = rig.asks.filter((ask) => ask.key === drain.key && ask.at < drain.begunAt)
        const lastInterrupt = before.findLastIndex((ask) => ask.op === "interrupt")
        assert.isTrue(lastInterrupt < before.length - 1, `nobody asked for the drain of ${drain.key}`)
      }
      const asked = rig.asks.filter((ask) => ask.op !== "interrupt").length
      assert.isAtMost(rig.drains.length, asked)
      rig.outcomes().forEach((outcome, index) => {
        const { at, key, leftAt } = rig.runs[index] ?? assert.fail("no such run")
        assert.isDefined(outcome, `the run of ${key} at ${at} is still waiting`)
        if (outcome === "stopped") assert.isTrue(interruptedAfter(key, at), "stopped without an interrupt")
        if (outcome === "left") assert.isDefined(leftAt, "a caller was interrupted by the coordinator")
      })
    })
  })
})
