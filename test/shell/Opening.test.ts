/** Creations that are interrupted, or that the end of the layer overtakes. Spec: SL-67, SL-70, SL-77 in specs/shell.md. */
import { expect, it } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Scope } from "effect"
import { type ShellFact, ShellRecord } from "../../packages/shell/src/record/ShellRecord.ts"
import * as Shells from "../../packages/shell/src/Shells.ts"
import { local } from "./support/LocalShells.ts"
import { processesOf } from "./support/Processes.ts"

const nameOf = ({ data, type }: ShellFact) => [
  type.slice("session.next.shell.".length),
  "reason" in data && data.reason
]

/** Shells that the test's scope ends, whose openings are recorded when `recorded` is done. */
const opening = Effect.gen(function* () {
  const facts: Array<ShellFact> = []
  const writes = yield* Deferred.make<void>()
  const recorded = yield* Deferred.make<void>()
  const write = Effect.fnUntraced(function* (fact: ShellFact) {
    facts.push(fact)
    yield* Deferred.succeed(writes, undefined)
    yield* Deferred.await(recorded)
  })
  const marked = `DAYBOOK_TEST=${process.pid}.${Math.random()}`
  const [name = "", value = ""] = marked.split("=")
  const scope = yield* Effect.acquireRelease(Scope.make(), (made) =>
    Effect.zipRight(Deferred.succeed(recorded, undefined), Scope.close(made, Exit.void))
  )
  const env = { PATH: process.env["PATH"] ?? "/usr/bin:/bin", [name]: value }
  const layer = Layer.provide(Shells.layer({ local: { env } }), Layer.succeed(ShellRecord, ShellRecord.of({ write })))
  const shells = Context.get(yield* Layer.buildWithScope(layer, scope), Shells.Shells)
  return { shells, facts, writes, recorded, scope, processes: processesOf(marked) }
})

it.scopedLive(
  "SL-77: a shell whose creation was interrupted is recorded as opened and closed, and leaves nothing",
  () =>
    Effect.gen(function* () {
      const { facts, processes, recorded, shells, writes } = yield* opening
      const creation = yield* Effect.forkDaemon(shells.create({ target: local }))
      yield* Deferred.await(writes)
      expect(yield* processes).not.toEqual([])
      const interrupted = yield* Effect.forkDaemon(Fiber.interrupt(creation))
      yield* Effect.yieldNow()
      yield* Deferred.succeed(recorded, undefined)
      expect(Exit.isInterrupted(yield* Fiber.join(interrupted))).toBe(true)
      expect(facts.map(nameOf)).toEqual([
        ["opened", false],
        ["closed", "destroyed"]
      ])
      expect(yield* shells.list).toEqual([])
      expect(yield* shells.count.get).toBe(0)
      expect(yield* processes).toEqual([])
    })
)

it.scopedLive("SL-70: the end of the layer closes a shell whose opening is being recorded", () =>
  Effect.gen(function* () {
    const { facts, processes, recorded, scope, shells, writes } = yield* opening
    const creation = yield* Effect.forkDaemon(shells.create({ target: local }))
    yield* Deferred.await(writes)
    const end = yield* Effect.forkDaemon(Scope.close(scope, Exit.void))
    yield* Effect.yieldNow()
    yield* Deferred.succeed(recorded, undefined)
    yield* Fiber.join(end)
    expect(facts.map(nameOf)).toEqual([
      ["opened", false],
      ["closed", "shutdown"]
    ])
    expect(yield* processes).toEqual([])
    yield* Fiber.await(creation)
  })
)

it.scopedLive(
  "SL-70: the end of the layer interrupts a creation that has not opened its shell, and those that follow",
  () =>
    Effect.gen(function* () {
      const { facts, scope, shells } = yield* opening
      const creation = yield* Effect.forkDaemon(shells.create({ target: local }))
      yield* Effect.yieldNow()
      yield* Scope.close(scope, Exit.void)
      expect(Exit.isInterrupted(yield* Fiber.await(creation))).toBe(true)
      expect(Exit.isInterrupted(yield* Effect.exit(shells.create({ target: local })))).toBe(true)
      expect(facts).toEqual([])
      expect(yield* shells.count.get).toBe(0)
    })
)
